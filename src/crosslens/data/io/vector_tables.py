"""Vectors in columns of lists: Parquet and Arrow tables, decoded a part at a time.

A table is compressed and cannot be memory-mapped. Up to a limit it is decoded into memory, beyond it into a file of the
cache, which is then mapped like any other array.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, atomic_file, cache_folder, fingerprint, open_array

Array = np.ndarray[Any, Any]

TABLE_SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
_IN_MEMORY = 1 << 28
_PART_BYTES = 1 << 26


class ListColumn:
    """A column of lists of equal length: an array of rows × numbers that is decoded when it is asked for."""

    ndim = 2

    def __init__(self, file: Path, name: str, kind: Any, rows: int) -> None:
        self.file, self.name = file, name
        first = _scan(file).select(name).slice(0, 1).collect()[name]
        width = kind.size if isinstance(kind, pl.Array) else (len(first[0]) if rows and first[0] is not None else 0)
        self.shape = (rows, width)
        self.dtype = pl.Series([], dtype=kind.inner).to_numpy().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def decoded(self, *, on_disk: bool = False) -> Array:
        """All rows: in memory, or in a file of the cache where they are many, or are to be ``on_disk``."""
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        if not size or (size <= _IN_MEMORY and not on_disk):
            out = np.empty(self.shape, self.dtype)
            self._decode(out)
            return out
        stat = self.file.stat()
        about = {"file": str(self.file.resolve()), "size": stat.st_size, "time": stat.st_mtime_ns, "column": self.name}
        copy = cache_folder() / "vectors" / f"{fingerprint('list column', about)}.npy"
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(copy) as partial:
                mapped = np.lib.format.open_memmap(partial, "w+", self.dtype, self.shape)
                self._decode(mapped)
                mapped.flush()
        return open_array(copy)

    def _decode(self, out: Array) -> None:
        step = max(1, _PART_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        rows = _scan(self.file).select(self.name)
        for start in range(0, len(self), step):
            out[start : start + step] = self._numbers(rows.slice(start, step).collect()[self.name], start)

    def _numbers(self, lists: pl.Series, start: int) -> Array:
        lengths = (lists.arr.len() if isinstance(lists.dtype, pl.Array) else lists.list.len()).fill_null(0)
        wrong = (lengths != self.shape[1]) | lists.is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            problem = f"the list of the column {self.name!r} has {lengths[row]} numbers"
            fix = "encode that item again, or drop it"
            raise InputError(problem, row=start + row, expected=f"{self.shape[1]}, as in the first row", fix=fix)
        numbers = lists.explode()
        if numbers.null_count():
            row = int(numbers.is_null().arg_max() or 0) // self.shape[1]
            problem = f"a missing number in the column {self.name!r}"
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
