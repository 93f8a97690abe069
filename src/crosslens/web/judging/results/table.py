"""The table of judgements that all results are computed from, and judgements as matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

PERSON, MODEL = "person", "model"
"""Who judged: results of people and of models are never mixed."""
REAL, PRACTICE, CHECK, DISTRACTOR = "real", "practice", "check", "distractor"
"""Kinds of items: those that count, those with known answers to learn from, attention checks, true negatives."""

JUDGEMENT_COLUMNS: dict[str, Any] = {
    "item": pl.String,
    "account": pl.String,
    "labels": pl.List(pl.String),
    "rating": pl.Float64,
    "text": pl.String,
    "seconds": pl.Float64,
    "kind": pl.String,
    "source": pl.String,
    "created": pl.Datetime("us", "UTC"),
}
"""One row per judgement. ``labels`` may be empty; ``rating``, ``text`` and ``seconds`` may be null."""


def judgement_table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of these judgements; an account that judges an item twice raises."""
    content = [{name: row.get(name) for name in JUDGEMENT_COLUMNS} for row in rows]
    table = pl.DataFrame(content, schema=JUDGEMENT_COLUMNS, orient="row").with_columns(
        pl.col("labels").fill_null([]), pl.col("kind").fill_null(REAL), pl.col("source").fill_null(PERSON)
    )
    repeated = table.filter(pl.struct("item", "account").is_duplicated())
    if repeated.height:
        item, account = repeated.row(0)[:2]
        raise InputError(
            f"{account!r} judged item {item!r} twice", expected="each item at most once per judge", fix="keep one"
        )
    return table


def judged_by(table: pl.DataFrame, source: str = PERSON, kinds: Sequence[str] = (REAL,)) -> pl.DataFrame:
    """The judgements of people, or of models, on items of these kinds."""
    return table.filter((pl.col("source") == source) & pl.col("kind").is_in(list(kinds)))


def labels_of(table: pl.DataFrame, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """The labels of a project in its order, then any others that occur."""
    used = table["labels"].explode().drop_nulls().unique().sort().to_list()
    return (*labels, *(label for label in used if label not in labels))


def label_matrix(table: pl.DataFrame, label: str) -> FloatArray:
    """Items × judges: 1 where the judge gave the label, 0 where not, NaN where the item was not judged."""
    return matrix(table, table["labels"].list.contains(label).cast(pl.Float64))


def answer_matrix(table: pl.DataFrame) -> FloatArray:
    """Items × judges: the number of the whole answer, all labels together; NaN where there is none."""
    answers = table["labels"].list.unique().list.sort().list.join("\x1f")
    return matrix(table, answers.rank("dense").cast(pl.Float64))


def matrix(table: pl.DataFrame, values: pl.Series) -> FloatArray:
    """Items × judges of one value per judgement, items and judges in their order of appearance."""
    rows, items = _codes(table["item"])
    columns, judges = _codes(table["account"])
    cells = np.full((items, judges), np.nan)
    cells[rows, columns] = values.fill_null(float("nan")).to_numpy()
    return cells


def _codes(names: pl.Series) -> tuple[np.ndarray[Any, Any], int]:
    order = {name: number for number, name in enumerate(names.unique(maintain_order=True))}
    return np.array([order[name] for name in names], np.int64), len(order)
