"""Arrays in compressed files: ``.npz`` archives, and columns of lists in Parquet and Arrow tables.

Their shape is known before they are unpacked, and has to fit what is asked for. A compressed array cannot be
memory-mapped: up to a size it is unpacked into memory, beyond it into a file of the cache, which then is mapped.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    NPZ_ERRORS,
    UNPACKED_BYTES,
    ArrayBlocks,
    InputError,
    PackedArray,
    cache_folder,
    file_fingerprint,
    fingerprint,
    frozen,
    mapped_array,
    open_array,
    read_cached_array,
    reading,
    write_cached_array,
)

Array = np.ndarray[Any, Any]

TABLE_SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
_SUFFIXES = (".npz", ".safetensors", ".pt", ".pth", *TABLE_SUFFIXES)
_DAMAGED = (AttributeError, TypeError, SyntaxError, TokenError, *NPZ_ERRORS)
_IN_MEMORY = 1 << 28
_PART_BYTES = 1 << 26
_USUAL = 8
"""Vectors hardly compress: what unpacks to more than so many times its file is held to the limit."""
_VERIFIED: dict[tuple[int | str, ...], tuple[Path, tuple[int, ...]]] = {}
"""Unpacked copies that this process has looked at, by the file and the array: shards are opened again and again."""


@contextmanager
def readable_array(path: Path) -> Iterator[None]:
    """Whatever a damaged file raises, in words."""
    try:
        yield
    except _DAMAGED as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise  # of the copy in the cache
        text = str(error).strip()
        # A file that was copied or written in part was right before: it needs no other content.
        partial = text.startswith(("cut off", "the file is empty"))
        suffix = path.suffix.lower()
        raise InputError(
            f"cannot be read: {text.splitlines()[0] if text else type(error).__name__}",
            file=path,
            expected=f"a {suffix if suffix in _SUFFIXES else '.npy'} file of plain numbers",
            fix="copy or write it again" if partial else "write it with numpy.save(path, array.astype('float32'))",
        ) from error


class PackedBlocks(ArrayBlocks):
    """A compressed array as vectors in blocks: unpacked when the first of them is asked for."""

    def __init__(self, packed: PackedArray | ListColumn, file: Path, on_disk: bool = False) -> None:
        self._packed, self._path, self._on_disk, self._file = packed, file, on_disk, str(file)
        self.shape: tuple[int, ...] = packed.shape
        self.dtype = packed.dtype

    @cached_property
    def array(self) -> Array:  # type: ignore[override]
        """All of it."""
        with readable_array(self._path), reading(self._path):
            return frozen(unpacked(self._packed, self._path, on_disk=self._on_disk))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.array, dtype)


def check_unpacked(size: int, packed: int) -> None:
    """Raise for an array of more bytes than the limit, unless its file is about as large."""
    if size > _USUAL * packed:
        UNPACKED_BYTES.check(size, "the array, unpacked,")


def unpacked(packed: PackedArray | ListColumn, file: Path, *, on_disk: bool = False) -> Array:
    """All of an array: in memory, or in a file of the cache where it is large, or is to be ``on_disk``."""
    size, source = math.prod(packed.shape) * packed.dtype.itemsize, _state(file)
    check_unpacked(size, source[2])
    turned = packed.stored_shape != packed.shape
    if not size or (size <= _IN_MEMORY and not on_disk):
        array = np.empty(packed.stored_shape, packed.dtype)
        packed.unpack_into(array)
        return array.T if turned else array
    known = _VERIFIED.get((*source, packed.member))
    if known is not None and known[0].exists() and _state(known[0]) == known[1]:
        stored = open_array(known[0])
        return stored.T if turned else stored
    key = fingerprint("unpacked array", {"file": file_fingerprint([file]), "array": packed.member})
    copy = cache_folder() / "vectors" / f"{key}.npy"

    def write(partial: Path) -> None:
        mapped = mapped_array(partial, packed.dtype, packed.stored_shape)
        packed.unpack_into(mapped)
        mapped.flush()

    if read_cached_array(copy, packed.stored_shape, packed.dtype) is None:
        write_cached_array(copy, write)
    stored, _VERIFIED[*source, packed.member] = open_array(copy), (copy, _state(copy))
    return stored.T if turned else stored


def _state(file: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class ListColumn:
    """A column of lists of equal length: an array of rows × numbers that is decoded when it is asked for."""

    ndim = 2

    def __init__(self, file: Path, name: str, kind: Any, rows: int) -> None:
        self.file, self.member = file, name
        first = _scan(file).select(name).slice(0, 1).collect()[name]
        width = kind.size if isinstance(kind, pl.Array) else (len(first[0]) if rows and first[0] is not None else 0)
        self.shape = self.stored_shape = (rows, width)
        self.dtype = pl.Series([], dtype=kind.inner).to_numpy().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def unpack_into(self, out: Array) -> None:
        """Decode all rows, a part at a time."""
        step = max(1, _PART_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        rows = _scan(self.file).select(self.member)
        for start in range(0, len(self), step):
            out[start : start + step] = self._numbers(rows.slice(start, step).collect()[self.member], start)

    def _numbers(self, lists: pl.Series, start: int) -> Array:
        lengths = (lists.arr.len() if isinstance(lists.dtype, pl.Array) else lists.list.len()).fill_null(0)
        wrong = (lengths != self.shape[1]) | lists.is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            problem = f"the list of the column {self.member!r} has {lengths[row]} numbers"
            fix = "encode that item again, or drop it"
            raise InputError(problem, row=start + row, expected=f"{self.shape[1]}, as in the first row", fix=fix)
        numbers = lists.explode()
        if numbers.null_count():
            row = int(numbers.is_null().arg_max() or 0) // self.shape[1]
            problem = f"a missing number in the column {self.member!r}"
            raise InputError(problem, row=start + row, expected="a number", fix="encode that item again, or drop it")
        return numbers.to_numpy().reshape(len(lists), self.shape[1])


def read_list_columns(path: Path) -> dict[str, Any]:
    """The columns of lists of numbers, not decoded yet, and the columns of ids."""
    try:
        table = _scan(path)
        schema = table.collect_schema()
        rows = int(table.select(pl.len()).collect().item())
        columns: dict[str, Any] = {
            name: ListColumn(path, name, kind, rows)
            for name, kind in schema.items()
            if isinstance(kind, pl.List | pl.Array) and kind.inner.is_numeric()
        }
        ids = [name for name, kind in schema.items() if not kind.is_nested() and "id" in name.lower()]
        return columns | table.select(ids).collect().to_dict(as_series=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False) if path.suffix.lower() == ".parquet" else pl.scan_ipc(path)
