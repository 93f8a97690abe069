"""Parquet files: regular ones only, and their columns before anybody relies on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.core.errors import InputError
from crosslens.core.input_files.limits import UNPACKED_BYTES
from crosslens.core.input_files.regular import require_regular

if TYPE_CHECKING:
    import polars as pl

_CELL_BYTES = 16
"""What a cell takes in memory: a text that many rows share is held once, and each row has 16 bytes that point to it."""


def read_parquet_file(file: str | Path, columns: list[str] | None = None) -> pl.DataFrame:
    """A Parquet file, or some of its columns; a damaged one raises ``PolarsError``, a missing one ``OSError``."""
    import polars as pl

    require_regular(file)
    try:
        rows = pl.scan_parquet(file, glob=False)
        width = len(rows.collect_schema()) if columns is None else len(columns)
        cells = rows.select(pl.len()).collect().item() * width
        UNPACKED_BYTES.check(_CELL_BYTES * cells, "the table, unpacked,", file=file)
        return pl.read_parquet(file, columns=columns, glob=False)
    except pl.exceptions.PanicException as error:  # polars trusts some fields of the file
        raise pl.exceptions.ComputeError(str(error).splitlines()[0]) from error


def require_columns(table: pl.DataFrame, columns: Mapping[str, Any], file: str | Path) -> None:
    """Raise unless the table has these columns, each of one of its types (a polars type, or a tuple of them)."""
    for name, types in columns.items():
        kind = table.schema.get(name)
        if kind is None or kind not in (types if isinstance(types, tuple) else (types,)):
            problem = f"no column {name!r}" if kind is None else f"the column {name!r} is of type {kind}"
            raise InputError(problem, file=file, expected="the table that crosslens wrote", fix="write it again")
