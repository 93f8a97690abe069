"""Content hashes and the seeds derived from them: equal content, equal fingerprint, on every machine.

A file that is no longer what crosslens wrote is refused, and named. The JSON header of a folder (``run.json``,
``header.json``, …) is its manifest too. ``files`` holds the SHA-256 of every file that belongs to it, ``checksum`` that
of the header's own content, whatever its layout. A header with neither comes from a version that stored none: it is
read unchecked. Files that it does not list are no concern of it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.core import InputError, argument, available_cores
from crosslens.storage.input_files import require_regular

if TYPE_CHECKING:
    import numpy as np

HEADER_FILE = "header.json"
_CHUNK_ROWS = 65_536
_CHUNK_BYTES = 1 << 24


def fingerprint(kind: str, parts: Mapping[str, Any]) -> str:
    """Hash the named parts of a value: arrays, vectors in blocks, tables, sequences of strings, or JSON-like values.

    Every part is framed by its name and length, so parts cannot run together.
    """
    import numpy as np  # here: the help texts do without it

    builder = hashlib.blake2b(digest_size=16)

    def frame(name: str, content: bytes) -> None:
        builder.update(f"{name}:{len(content)}:".encode())
        builder.update(content)

    frame("kind", kind.encode())
    for name, value in parts.items():
        if isinstance(value, np.ndarray) or hasattr(value, "block"):
            # Vectors in shards have the hash that they have in one array.
            frame(name, f"{value.dtype.str}{value.shape}".encode())
            width = value.dtype.itemsize * math.prod(value.shape[1:])
            height = max(1, _CHUNK_BYTES // max(1, width))
            for start in range(0, value.shape[0], height):
                stop = start + height
                rows = value[start:stop] if isinstance(value, np.ndarray) else value.block(start, stop)
                builder.update(np.ascontiguousarray(rows).data)
        elif hasattr(value, "write_ipc"):
            # Row by row as JSON: independent of chunking, Arrow version and the machine's byte order.
            frame(name, json.dumps([[column, str(kind)] for column, kind in value.schema.items()]).encode())
            for start in range(0, value.height, _CHUNK_ROWS):
                frame("rows", value.slice(start, _CHUNK_ROWS).write_ndjson().encode())
        elif isinstance(value, tuple) and all(isinstance(part, str) for part in value):
            frame(name, b"\x00".join(part.encode() for part in value))
        else:
            frame(name, json.dumps(value, sort_keys=True, default=str).encode())
    return builder.hexdigest()


def file_fingerprint(paths: Sequence[str | Path]) -> str:
    """Hash the bytes of files, in the order given."""
    builder = hashlib.blake2b(digest_size=16)
    for path in paths:
        require_regular(path)
        with open(path, "rb") as file:
            builder.update(hashlib.file_digest(file, "sha256").digest())
    return builder.hexdigest()


def derive_seed(seed: int, *keys: str | int) -> int:
    """A 64-bit seed for one purpose: the same run seed and keys give the same value everywhere."""
    text = "\x1f".join(str(key) for key in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def random_stream(seed: int, *keys: str | int) -> np.random.Generator:
    """A random generator of its own for the purpose named by ``keys``."""
    import numpy as np

    return np.random.Generator(np.random.Philox(derive_seed(seed, *keys)))


FILES, CHECKSUM = "files", "checksum"
CHUNK = 64 << 20
"""A larger file is hashed in chunks of so many bytes, several at a time; its hash is that of the chunks' hashes."""

_VERIFY: ContextVar[bool] = ContextVar("verify", default=True)
_FIX = f"restore it from a copy, or write it again; {argument('verify', False)} reads it as it is"


@contextmanager
def verification(on: bool) -> Iterator[None]:
    """Inside the block, files are compared with their stored hashes only if ``on``."""
    token = _VERIFY.set(on and _VERIFY.get())
    try:
        yield
    finally:
        _VERIFY.reset(token)


def is_verifying() -> bool:
    """Whether files that are read now are compared with their stored hashes."""
    return _VERIFY.get()


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; see ``CHUNK`` for large ones."""
    chunks = range(0, path.stat().st_size, CHUNK)
    if len(chunks) <= 1:
        return _chunk_hash(path, 0).hex()
    with ThreadPoolExecutor(min(len(chunks), available_cores())) as pool:
        digests = pool.map(lambda start: _chunk_hash(path, start), chunks)
        return hashlib.sha256(b"".join(digests)).hexdigest()


def _chunk_hash(path: Path, start: int) -> bytes:
    builder, buffer = hashlib.sha256(), memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        remaining = CHUNK
        while remaining and (count := file.readinto(buffer[: min(len(buffer), remaining)])):
            builder.update(buffer[:count])
            remaining -= count
    return builder.digest()


def with_hashes(content: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
    """A header with the hashes of ``files``, by the names that the header gives them, and of its own content."""
    # As it will be read: a number as a key becomes a text, which changes the order of keys.
    plain: dict[str, Any] = json.loads(json.dumps(content))
    complete = plain | {FILES: {name: file_hash(path) for name, path in files.items()}}
    return {**complete, CHECKSUM: _content_hash(complete)}


def _content_hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """The hashes in the header ``source``; ``hashes`` is None where it has none."""

    source: Path
    hashes: Mapping[str, str] | None

    def check(self, name: str, file: Path) -> None:
        """Raise unless ``file`` is what the header lists under ``name``, or is not listed at all."""
        if not _VERIFY.get() or self.hashes is None or name not in self.hashes:
            return
        if not file.is_file():
            raise InputError(
                f"the file is missing, though {self.source.name} lists it", file=file, fix=_FIX, code="changed-file"
            )
        if file_hash(file) != self.hashes[name]:
            problem = f"the file has changed since it was written: its SHA-256 is not the one in {self.source.name}"
            raise InputError(problem, file=file, fix=_FIX, code="changed-file")

    def check_folder(self, names: Iterable[str] | None = None) -> None:
        """Check the files of these names (default: all that are listed) in the header's folder."""
        for name in (self.hashes or ()) if names is None else names:
            self.check(name, self.source.parent / name)


def without_hashes(header: dict[str, Any], source: Path) -> tuple[dict[str, Any], Manifest]:
    """The content of a header and the hashes that it holds; one that is not as it was written raises."""
    content = {key: value for key, value in header.items() if key not in (FILES, CHECKSUM)}
    if FILES not in header and CHECKSUM not in header:
        return content, Manifest(source, None)
    hashes = header.get(FILES)
    intact = header.get(CHECKSUM) == _content_hash({key: header[key] for key in header if key != CHECKSUM})
    if _VERIFY.get() and not (intact and isinstance(hashes, dict)):
        problem = "the file has changed since it was written: its checksum is not that of its content"
        raise InputError(problem, file=source, fix=_FIX, code="changed-file")
    return content, Manifest(source, hashes if isinstance(hashes, dict) else None)
