"""Content hashes and the seeds derived from them: equal content, equal fingerprint, on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.input_files.regular import require_regular

_CHUNK_ROWS = 65_536
_CHUNK_BYTES = 1 << 24


def fingerprint(kind: str, parts: Mapping[str, Any]) -> str:
    """Hash the named parts of a value: arrays, vectors in blocks, tables, sequences of strings, or JSON-like values.

    Every part is framed by its name and length, so parts cannot run together.
    """
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
    return np.random.Generator(np.random.Philox(derive_seed(seed, *keys)))
