"""Parquet files: regular ones only, and their columns before anybody relies on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.errors import InputError
from crosslens.core.input_files.regular import require_regular


def read_parquet_file(file: str | Path) -> pl.DataFrame:
    """The table in a Parquet file; what is wrong with it raises a ``PolarsError``, a missing file an ``OSError``."""
    require_regular(file)
    try:
        return pl.read_parquet(file, glob=False)
    except pl.exceptions.PanicException as error:  # polars trusts some fields of the file
        raise pl.exceptions.ComputeError(str(error).splitlines()[0]) from error


def require_columns(table: pl.DataFrame, columns: Mapping[str, Any], file: str | Path) -> None:
    """Raise unless the table has these columns, each of one of its types (a polars type, or a tuple of them)."""
    for name, types in columns.items():
        kind = table.schema.get(name)
        if kind is None or kind not in (types if isinstance(types, tuple) else (types,)):
            problem = f"no column {name!r}" if kind is None else f"the column {name!r} is of type {kind}"
            raise InputError(problem, file=file, expected="the table that crosslens wrote", fix="write it again")
