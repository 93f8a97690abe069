"""The category of every pair of an image and a caption, from a column of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.analyze.difficulty.assignment import Difficulty, read_difficulty
from crosslens.analyze.difficulty.levels import DIFFICULTY
from crosslens.core import IMAGE_TO_TEXT, Dataset, InputError, Ranking, UnknownNameError, UsageError, match_ids
from crosslens.data import read_table

IntArray = np.ndarray[Any, np.dtype[np.int64]]
Key = Literal["caption", "image", "pair"]

TOTAL = "total"
"""What results call all pairs together."""
NO_CATEGORY = "(none)"
"""Pairs that the table does not mention, or whose value is empty."""
USUAL_ORDER = ("easy", "medium", "hard")
MOST_CATEGORIES = 20

Source = pl.DataFrame | str | Path | Any
"""A table, its file, or a result that has one, such as a ``Difficulty``."""


@dataclass(frozen=True, eq=False)
class Categories:
    """``labels`` maps an id to the position of its category in ``names``.

    The ids are captions where the table has a row per caption, images where it has only those, and (caption, image)
    where a caption has several rows. ``table`` is the whole table.
    """

    column: str
    key: Key
    names: tuple[str, ...]
    labels: Mapping[Any, int]
    table: pl.DataFrame

    @staticmethod
    def of(source: Source, column: str = DIFFICULTY) -> Categories:
        """The categories in a column of a table with the columns ``caption``, ``image`` or both."""
        table, levels = _read(source, column)
        ids = [name for name in ("caption", "image") if name in table.columns]
        if not ids:
            raise InputError(
                f"neither a column 'caption' nor 'image' (columns: {', '.join(table.columns)})",
                file=source if isinstance(source, str | Path) else None,
                expected="the ids of captions, of images or of both",
                fix="rename the column that holds the ids",
            )
        if column not in table.columns:
            raise UnknownNameError("column", column, [name for name in table.columns if name not in ids])
        table = table.with_columns(pl.col(ids).cast(pl.String))
        key: Key = "image" if ids == ["image"] else "caption"
        if key == "caption" and len(ids) == 2 and table["caption"].n_unique() < table.height:
            key = "pair"
        columns = ids if key == "pair" else [key]
        values = _values(table[column])
        names = _order(values, levels)
        _refuse_contradictions(table, columns)
        position_of = {name: position for position, name in enumerate(names)}
        rows = table.select(columns).rows() if key == "pair" else table[key].to_list()
        labels = {row: position_of[value] for row, value in zip(rows, values, strict=True) if value is not None}
        return Categories(column, key, names, labels, table)

    def of_ranking(self, ranking: Ranking) -> IntArray:
        """The category of every relevant pair of a ranking, by position; −1 for one without."""
        sides = ranking.query_ids, ranking.item_ids
        queries, items = ranking.rows, ranking.relevant
        if ranking.direction == IMAGE_TO_TEXT:
            return self.of_pairs(*sides, queries, items)
        return self.of_pairs(*sides[::-1], items, queries)

    def of_dataset(self, dataset: Dataset) -> IntArray:
        """The category of every caption with its own image, by position; −1 for one without."""
        captions = np.arange(len(dataset.caption_ids))
        return self.of_pairs(dataset.image_ids, dataset.caption_ids, dataset.caption_image, captions)

    def of_pairs(
        self, image_ids: Sequence[str], caption_ids: Sequence[str], images: IntArray, captions: IntArray
    ) -> IntArray:
        """The category of pairs of positions among these ids."""
        if self.key == "pair":
            known = list(dict.fromkeys(image for _, image in self.labels))
            spelled = [known[row] if row >= 0 else "" for row in match_ids(image_ids, known)]
            pairs = zip(captions.tolist(), images.tolist(), strict=True)
            codes = [self.labels.get((caption_ids[caption], spelled[image]), -1) for caption, image in pairs]
            return np.array(codes, np.int64)
        ids, own = (caption_ids, captions) if self.key == "caption" else (image_ids, images)
        stored = np.array([*self.labels.values(), -1], np.int64)
        # −1, an id that the table does not have, takes the last entry.
        rows = match_ids(ids, list(self.labels), any_ending=self.key == "image")
        return np.asarray(stored[rows][own], np.int64)

    def shown(self, codes: IntArray) -> tuple[str, ...]:
        """The names to list: all of the table's, and the one for pairs without a category where there are any."""
        return self.names + ((NO_CATEGORY,) if (codes < 0).any() else ())


def _read(source: Source, column: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The table, and the order of its levels of difficulty where it says one."""
    if isinstance(source, pl.DataFrame):
        return source, ()
    if isinstance(source, str | Path):
        if Path(source).suffix.lower() == ".jsonl":
            raise UsageError(f"{source} ends in '.jsonl'", fix="use .csv, .tsv or .parquet")
        table = read_table(source).frame
        known = column == DIFFICULTY and {"caption", "image", DIFFICULTY} <= set(table.columns)
        return table, read_difficulty(source).levels if known else ()
    own = getattr(source, "table", None)
    if not isinstance(own, pl.DataFrame):
        raise UsageError(f"categories from {type(source).__name__}", fix="pass a table, its file or a Difficulty")
    return own, source.levels if isinstance(source, Difficulty) and column == DIFFICULTY else ()


def _values(column: pl.Series) -> list[str | None]:
    if column.dtype.is_nested():
        raise UsageError(f"the column {column.name!r} holds lists", fix="name a column with one value per row")
    return column.cast(pl.String).replace("", None).to_list()


def _order(values: Sequence[str | None], levels: Sequence[str]) -> tuple[str, ...]:
    """Levels of difficulty from easy to hard; numbers by size; anything else by the alphabet."""
    names = {value for value in values if value is not None}
    if not names:
        raise InputError("no row has a category", expected="at least one value in the column", fix="name another one")
    if len(names) > MOST_CATEGORIES:
        raise UsageError(
            f"{len(names):,} different values are too many categories (at most {MOST_CATEGORIES})",
            fix="name a column with few values, or put values together first",
        )
    for reserved in (TOTAL, NO_CATEGORY):
        if reserved in names:
            raise InputError(f"a category is called {reserved!r}", fix="give it another name: results use this one")
    for order in (levels, USUAL_ORDER):
        if names <= set(order):
            return tuple(name for name in order if name in names)
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(sorted(names))


def _refuse_contradictions(table: pl.DataFrame, columns: Sequence[str]) -> None:
    repeated = table.select(columns).is_duplicated()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        named = " and ".join(f"{name} {table[name][row]!r}" for name in columns)
        raise InputError(f"{named} has several rows", row=row, expected="one category per pair", fix="keep one row")
