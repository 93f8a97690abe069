"""Where the pictures of a Hugging Face dataset lie: the column that holds them, and the address of every row's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from crosslens.data.inside import MARK, arrow_table


class Pictures(NamedTuple):
    """One address per row, starting from the folder ``home``."""

    home: Path
    files: list[str]


def in_parquet(path: str, schema: Mapping[str, pl.DataType], rows: int, column: str | None) -> Pictures | None:
    """The pictures of a Parquet file; None if it has none."""
    column = column or next((name for name, kind in schema.items() if _holds_pictures(kind)), None)
    return (
        None
        if column is None
        else Pictures(Path(path).parent, [f"{Path(path).name}{MARK}{place}" for place in _cells(column, rows)])
    )


def in_arrow(table: Any, column: str | None) -> Pictures | None:
    """The pictures of a dataset in Arrow files; None if it has none, or if its rows are not simply those of the files.

    That is so where a part of a split was asked for, or rows were chosen or shuffled without being saved.
    """
    column = column or next((name for name, kind in table.features.items() if _is_picture(kind)), None)
    paths = [Path(one["filename"]) for one in table.cache_files]
    if column is None or not paths or getattr(table, "_indices", None) is not None:
        return None
    parts = [arrow_table(path) for path in paths]
    if sum(part.num_rows for part in parts) != len(table) or not _same_ends(table, parts, column):
        return None
    home = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
    names = [path.absolute().relative_to(home).as_posix() for path in paths]
    cells = zip(names, (_cells(column, part.num_rows) for part in parts), strict=True)
    return Pictures(home, [f"{name}{MARK}{cell}" for name, inside in cells for cell in inside])


def _cells(column: str, rows: int) -> list[str]:
    return [f"{column}/{row}" for row in range(rows)]


def _same_ends(table: Any, parts: list[Any], column: str) -> bool:
    """Whether the first and the last picture of the dataset are those of its files."""
    if not len(table):
        return True
    shown, last = table.select_columns([column]).with_format("arrow"), len(table) - 1
    filled = [part[column] for part in parts if part.num_rows]
    return bool(shown[:1][column][0] == filled[0][0] and shown[last : last + 1][column][0] == filled[-1][-1])


def _is_picture(feature: Any) -> bool:
    return getattr(feature, "_type", "") == "Image" or getattr(feature, "dtype", "") in ("binary", "large_binary")


def _holds_pictures(kind: pl.DataType) -> bool:
    return kind == pl.Binary or (isinstance(kind, pl.Struct) and any(one.name == "bytes" for one in kind.fields))
