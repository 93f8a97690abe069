"""Files, gzipped or not: their bytes, text, lines and JSON, and writing them atomically.

Errors name the file and the line.
"""

from __future__ import annotations

import difflib
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from crosslens.core import (
    UNPACKED_BYTES,
    InputError,
    atomic_file,
    decode,
    parse_json,
    reading,
    require_regular,
)

_GZIP_MAGIC = b"\x1f\x8b"
_INCOMPLETE = "fetch or write the file again: it may be cut off or damaged"


def existing_file(path: str | Path) -> Path:
    """``path``, if it is a file."""
    path = Path(path)
    require_regular(path)
    if not path.exists():
        near = near_name(path)
        fix = f"did you mean {near}?" if near else "check the path"
        raise InputError("no such file", file=path, expected="an existing file", fix=fix)
    return path


def near_name(path: str | Path) -> str | None:
    """The name beside a missing path that is most like it, with the same ending or with a slip in the ending."""
    path = Path(path)
    beside = [Path(entry.name) for entry in islice(path.parent.iterdir(), 2000)] if path.parent.is_dir() else []
    alike = {name.stem: name.name for name in beside if name.suffix == path.suffix}
    if near := difflib.get_close_matches(path.stem, alike, n=1, cutoff=0.65):
        return alike[near[0]]
    slipped = {name.suffix: name.name for name in beside if name.stem == path.stem and name.suffix}
    ending = difflib.get_close_matches(path.suffix, slipped, n=1)
    return slipped[ending[0]] if ending else None


def json_file(folder: Path, name: str) -> Path:
    """The JSON file ``name`` of a folder, gzipped where only that exists."""
    plain, packed = folder / f"{name}.json", folder / f"{name}.json.gz"
    return packed if packed.exists() and not plain.exists() else plain


def format_suffix(path: str | Path) -> str:
    """The ending that names the format, without ``.gz``: ``.csv`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).suffix.lower()


def format_stem(path: str | Path) -> str:
    """The file's name without the endings that name its format: ``captions`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).stem


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, decompressed if it is gzip."""
    path = existing_file(path)
    try:
        with path.open("rb") as file:
            if file.peek(2).startswith(_GZIP_MAGIC):
                return _unpacked(file, path)
            content = file.read()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path, fix="check its permissions") from error
    if path.suffix == ".gz":
        raise InputError("not gzip", file=path, expected="a gzip file, by its name", fix="drop .gz from its name")
    return content


def _unpacked(file: IO[bytes], path: Path) -> bytes:
    """The content of a gzip file, which is unpacked only up to the limit."""
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as packed:
            content = read_at_most(cast(IO[bytes], packed), UNPACKED_BYTES.value + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"damaged gzip: {error}", file=path, expected="a complete gzip file", fix=_INCOMPLETE
        ) from error
    if len(content) > UNPACKED_BYTES.value:
        raise UNPACKED_BYTES.error(f"{path.stat().st_size:,} bytes of gzip unpack to more than allowed", file=path)
    return content


def read_at_most(file: IO[bytes] | gzip.GzipFile, size: int) -> bytes:
    """The next ``size`` bytes, or all that are left; memory is taken as they come, not for ``size`` at once."""
    chunks = []
    while size > 0 and (chunk := file.read(min(size, 1 << 20))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def read_text(path: str | Path) -> str:
    """The text of a file that must not be empty."""
    with reading(path):
        text = decode(read_bytes(path))
        if not text.strip():
            raise InputError("the file is empty", expected="some content", fix=_INCOMPLETE)
        return text


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file; only line feeds (with or without a carriage return) end a line."""
    lines = read_text(path).replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def numbered_lines(path: str | Path) -> tuple[list[str], list[int]]:
    """The lines that are not blank, and the number of each, from 1."""
    numbered = [(line, number) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    return [line for line, _ in numbered], [number for _, number in numbered]


def read_json(path: str | Path) -> Any:
    """The value in a JSON file; see :func:`parse_json`."""
    text = read_text(path)
    with reading(path):
        return parse_json(text)


@contextmanager
def writing_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears only when complete; gzipped if its name ends in ``.gz``."""
    with atomic_file(path) as partial, partial.open("wb") as raw:
        if Path(path).suffix == ".gz":
            # No name and no time in the header: the same content gives the same bytes.
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


@contextmanager
def writing_text(path: str | Path) -> Iterator[IO[str]]:
    """Like :func:`writing_bytes`, for UTF-8 text."""
    with writing_bytes(path) as raw, TextIOWrapper(raw, encoding="utf-8", newline="\n") as text:
        yield text
