"""Captions from a file, and what became of them in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

import polars as pl

from crosslens.build.imp.cleaning.captions import CleanedCaptions
from crosslens.core import InputError, UsageError, argument, parquet_bytes
from crosslens.data import format_suffix, read_lines, read_table, writing_bytes

_USUAL = ("caption", "captions", "text", "title", "alt")
_LINES = ".txt"


def read_captions(path: str | Path, column: str | None = None) -> tuple[list[str], pl.DataFrame]:
    """The texts of a ``.txt`` file (one per line) or of a column of a table, and the table's other columns."""
    if format_suffix(path) == _LINES:
        if column is not None:
            raise UsageError(f"{path} has lines, not columns", fix=f"drop {argument('column')}", option="column")
        return read_lines(path), pl.DataFrame()
    frame, row_name = read_table(path)
    name = column or next((usual for usual in _USUAL if usual in frame.columns), None)
    if name is None or name not in frame.columns:
        problem = f"no column {name!r}" if name else f"no column {', '.join(_USUAL[:-1])} or {_USUAL[-1]}"
        fix = f"say which column holds the captions: {argument('column')} {' or '.join(frame.columns)}"
        raise InputError(problem, file=path, fix=fix)
    if frame[name].dtype != pl.String:
        raise InputError(f"the column {name!r} is of type {frame[name].dtype}", file=path, fix="name a column of texts")
    empty = frame[name].is_null().arg_max() if frame[name].null_count() else None
    if empty is not None:
        raise InputError(f"no text in the column {name!r}", file=path, row=row_name(empty), fix="remove this row")
    return frame[name].to_list(), frame.drop(name)


def write_cleaned(result: CleanedCaptions, path: str | Path, others: pl.DataFrame | None = None) -> None:
    """Write the table of a result, after the columns that the captions came with; ``.txt``: the kept captions alone."""
    write = _writer(path)
    table = result.table
    if others is not None and others.width:
        clash = next((name for name in others.columns if name in table.columns), None)
        if clash is not None:
            raise InputError(f"the column {clash!r} is one that cleaning writes", fix=f"rename the column {clash!r}")
        table = pl.concat([others, table], how="horizontal")
    with writing_bytes(path) as file:
        write(table, file)


def check_cleaned_output(path: str | Path) -> None:
    """Raise unless a result can be written under this name."""
    _writer(path)


def _writer(path: str | Path) -> Callable[[pl.DataFrame, IO[bytes]], None]:
    writers = {".parquet": _write_parquet, ".csv": _write_csv, _LINES: _write_lines}
    suffix = format_suffix(path)
    if suffix not in writers:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of {', '.join(writers)}", option="output")
    return writers[suffix]


def _write_parquet(table: pl.DataFrame, file: IO[bytes]) -> None:
    file.write(parquet_bytes(table))


def _write_csv(table: pl.DataFrame, file: IO[bytes]) -> None:
    table.with_columns(pl.col("changes").list.join(" ")).write_csv(file)


def _write_lines(table: pl.DataFrame, file: IO[bytes]) -> None:
    file.write("".join(f"{text}\n" for text in table["cleaned"].drop_nulls()).encode())
