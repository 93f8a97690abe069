"""Tables that people fill in: their columns as texts, whatever program saved them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from crosslens.core import InputError
from crosslens.data import RowName, format_suffix, read_records, read_table

_FORMULA = r"[=+\-@\t\r]"
"""How a cell begins that a spreadsheet program may run as a formula; an apostrophe in front makes it a text."""
_ESCAPED = re.compile(rf"'(?='*{_FORMULA})")


def write_sheet(table: pl.DataFrame, path: Path) -> None:
    """Write a .csv file whose texts no spreadsheet program runs as formulas; reading it undoes that."""
    table.with_columns(pl.col(pl.String).str.replace(f"^('*{_FORMULA})", "'${1}")).write_csv(path)


def read_written_sheet(path: Path) -> pl.DataFrame:
    """What :func:`write_sheet` wrote, all columns as texts."""
    table = pl.read_csv(path, infer_schema=False)
    return table.with_columns(pl.all().map_elements(_as_given, return_dtype=pl.String))


def _as_given(cell: str) -> str:
    """The text without the apostrophe that :func:`write_sheet` puts in front of a formula."""
    return _ESCAPED.sub("", cell, count=1) if _ESCAPED.match(cell) else cell


def read_columns(
    path: Path, columns: Sequence[str], needed: Sequence[str], name: str
) -> tuple[dict[str, list[str]], RowName]:
    """These columns of a .csv, .tsv, .parquet or .jsonl file, empty where they are missing, and its rows' names.

    ``needed`` columns must be there; ``name`` is what the sheet was called when it was written.
    """
    if format_suffix(path) == ".jsonl":
        records = read_records(path)
        for column in needed:
            records.values(column)
        values = {
            column: ["" if value is None else str(value) for value in records.optional(column)] for column in columns
        }
        return _all_as_given(values), records.row_name
    frame, row_name = read_table(path)
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise InputError(
            f"no column {missing[0]!r}",
            row="line 1",
            expected=f"the columns {', '.join(needed)}",
            fix=f"fill in the {name} of a benchmark, and keep its header",
        )
    empty = [""] * frame.height
    values = {
        column: [value or "" for value in frame[column].cast(pl.String)] if column in frame.columns else empty
        for column in columns
    }
    return _all_as_given(values), row_name


def _all_as_given(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: [_as_given(cell) for cell in cells] for name, cells in columns.items()}
