"""Content hashes: equal content, equal fingerprint, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

_CHUNK_ROWS = 65_536


class Fingerprint:
    """Feed it parts in a fixed order; every part is framed by its kind, so parts cannot run together."""

    def __init__(self, kind: str) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._frame("kind", kind.encode())

    def add(self, name: str, value: Any) -> Fingerprint:
        """Add a named array, table, string sequence, or JSON-like value."""
        if isinstance(value, np.ndarray):
            self._add_array(name, value)
        elif hasattr(value, "write_ipc"):
            self._add_table(name, value)
        elif isinstance(value, tuple) and all(isinstance(part, str) for part in value):
            self._frame(name, b"\x00".join(part.encode() for part in value))
        else:
            self._frame(name, json.dumps(value, sort_keys=True, default=str).encode())
        return self

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _frame(self, name: str, content: bytes | memoryview) -> None:
        self._hash.update(f"{name}:{len(content)}:".encode())
        self._hash.update(content)

    def _add_array(self, name: str, array: np.ndarray[Any, Any]) -> None:
        self._frame(name, f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), _CHUNK_ROWS):
            self._hash.update(np.ascontiguousarray(array[start : start + _CHUNK_ROWS]).data)

    def _add_table(self, name: str, table: pl.DataFrame) -> None:
        # Row by row as JSON: independent of chunking, Arrow version and the machine's byte order.
        self._frame(name, json.dumps([[c, str(t)] for c, t in table.schema.items()]).encode())
        for start in range(0, table.height, _CHUNK_ROWS):
            self._frame("rows", table.slice(start, _CHUNK_ROWS).write_ndjson().encode())


def fingerprint(kind: str, parts: Mapping[str, Any]) -> str:
    """Hash the named parts of a value of the given kind."""
    builder = Fingerprint(kind)
    for name, value in parts.items():
        builder.add(name, value)
    return builder.hexdigest()


def file_fingerprint(paths: Sequence[str | Path]) -> str:
    """Hash the bytes of files, in the order given."""
    builder = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            builder.update(hashlib.file_digest(file, "sha256").digest())
    return builder.hexdigest()
