"""Tables in CSV, TSV and Parquet files, with the line number of every row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import polars as pl

from crosslens.core import InputError, UsageError, read_parquet_file, reading
from crosslens.data.io.checks import RowName, by_row, on_lines, wrong_width
from crosslens.data.io.files import existing_file, format_suffix, numbered_lines, read_text

# 007 and 1_000 are names, not numbers; a whole number has at most 18 digits, to fit.
_NUMBERS = {pl.Int64: r"^-?(0|[1-9]\d{0,17})$", pl.Float64: r"^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,2})?$"}
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
PLAIN_SUFFIXES = (*TABLE_SUFFIXES, ".jsonl")


class InputTable(NamedTuple):
    """Rows, and what each is called in a message."""

    frame: pl.DataFrame
    row_name: RowName


def read_table(path: str | Path) -> InputTable:
    """A ``.csv`` (quoted as usual), ``.tsv`` (nothing is quoted) or ``.parquet`` file with a header."""
    path = existing_file(path)
    suffix = format_suffix(path)
    if suffix == ".parquet":
        with readable_parquet(path):
            return InputTable(read_parquet_file(path), by_row)
    if suffix not in TABLE_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix="use a .csv, .tsv, .jsonl or .parquet file")
    with reading(path):
        header, rows, lines = split_csv(path) if suffix == ".csv" else split_lines(path, "\t")
        _check_header(header)
        _check_widths(rows, lines, header, suffix)
        return InputTable(pl.DataFrame(rows, schema=dict.fromkeys(header, pl.String), orient="row"), on_lines(lines))


def split_csv(path: str | Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the line each row begins on; blank lines are skipped."""
    source = io.StringIO(read_text(path), newline="")
    reader = csv.reader(source, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        expected = 'fields that hold a comma, a quote or a line break inside "…", quotes in them doubled'
        fix = "quote the whole field and double its quotes"
        raise InputError(f"badly quoted: {error}", row=f"line {start}", expected=expected, fix=fix) from error
    return [name.strip() for name in rows[0]], rows[1:], lines[1:]


def typed(column: pl.Series) -> pl.Series:
    """A column of text as whole numbers or numbers, where every value is written as one; empty values are null."""
    if column.dtype != pl.String:
        return column
    column = column.replace({"": None})
    for kind, pattern in _NUMBERS.items():
        if column.null_count() < len(column) and column.str.contains(pattern).fill_null(True).all():
            return column.cast(kind)
    return column


def find_column(frame: pl.DataFrame, name: str | None, usual: Sequence[str], option: str) -> str | None:
    """The column ``name``, given as ``option``; without one the first of the usual names that the table has."""
    if name is None:
        return next((column for column in usual if column in frame.columns), None)
    if name not in frame.columns:
        fix = f"pass {option}= one of: {', '.join(frame.columns)}"
        raise InputError(f"no column {name!r}", row="line 1", expected=f"the column that {option}= names", fix=fix)
    return name


def require_column(
    frame: pl.DataFrame, what: str, usual: Sequence[str], name: str | None = None, option: str | None = None
) -> str:
    """Like :func:`find_column`, for a column that the table must have."""
    column = find_column(frame, name, usual, option or "")
    if column is None:
        problem = f"no column for the {what} (found: {', '.join(frame.columns)})"
        fix = "rename the column" + (f", or pass {option}=" if option else "")
        raise InputError(problem, row="line 1", expected=f"a header with {' or '.join(usual)}", fix=fix)
    return column


def split_lines(path: str | Path, separator: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Like :func:`split_csv`, without quotes."""
    lines, numbers = numbered_lines(path)
    rows = [line.split(separator) for line in lines]
    return [name.strip() for name in rows[0]], rows[1:], numbers[1:]


def parquet_schema(path: str | Path) -> dict[str, pl.DataType]:
    """The columns of a Parquet file and their types, without their content."""
    with readable_parquet(path):
        return dict(pl.scan_parquet(existing_file(path), glob=False).collect_schema())


def parquet_columns(path: str | Path, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a Parquet file; the others are not read."""
    with readable_parquet(path):
        return read_parquet_file(existing_file(path), list(columns))


@contextmanager
def readable_parquet(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with a Parquet file, in words, with its name."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"cannot be read: {error}", file=path, expected="a Parquet file", fix="write it again, or check its ending"
        ) from error


def _check_header(header: list[str]) -> None:
    for index, name in enumerate(header):
        if not name or name in header[:index]:
            problem = f"column {index + 1} has no name" if not name else f"two columns are named {name!r}"
            fix = "name every column in the first line"
            raise InputError(problem, row="line 1", expected="a header with a different name for every column", fix=fix)


def _check_widths(rows: list[list[str]], lines: list[int], header: list[str], suffix: str) -> None:
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            tip = "quote texts that contain commas" if suffix == ".csv" else "check for lost or extra tabs"
            raise wrong_width(row, f"line {line}", f"{len(header)} columns: {', '.join(header)}", tip)
