"""What was said how often: labels, ratings, labels together, numbers of causes, and rules between labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.explanations import association_rules
from crosslens.statistics import Bootstrap, Estimate
from crosslens.web.judging.results.decisions import UNDECIDED
from crosslens.web.judging.results.table import labels_of

_SHARE: dict[str, Any] = {"count": pl.Int64, **dict.fromkeys(("share", "low", "high"), pl.Float64)}


def label_shares(table: pl.DataFrame, labels: Sequence[str] = (), *, level: float = 0.95) -> pl.DataFrame:
    """One row per label: how many judgements gave it, their share, and its interval over items."""
    named = labels_of(table, labels)
    draws = _over_items(table)
    rows = []
    for label in named:
        given = table["labels"].list.contains(label).cast(pl.Float64).to_numpy()
        rows.append((label, int(given.sum()), *_ends(draws.estimate(given, level=level, bounds=(0, 1)))))
    return pl.DataFrame(rows, schema={"label": pl.String, **_SHARE}, orient="row")


def rating_counts(table: pl.DataFrame, ratings: Sequence[int] = range(1, 11)) -> pl.DataFrame:
    """One row per rating: how many judgements have it (rounded half up), and their share of those with a rating."""
    given = table["rating"].drop_nulls().to_numpy()
    whole = np.floor(given + 0.5).astype(np.int64)
    rows = [(rating, int((whole == rating).sum())) for rating in ratings]
    counts = pl.DataFrame(rows, schema={"rating": pl.Int64, "count": pl.Int64}, orient="row")
    return counts.with_columns(share=pl.col("count") / max(len(given), 1))


def rating_mean(table: pl.DataFrame, *, level: float = 0.95) -> Estimate:
    """The mean rating with its interval over items."""
    rated = table.filter(pl.col("rating").is_not_null())
    return _over_items(rated).estimate(rated["rating"].to_numpy(), level=level)


def co_occurrence(decided: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """Every two labels that hold together for an item: how many items, and their share of the decided ones."""
    frame = decided_labels(decided, labels)
    rows = []
    for at, first in enumerate(frame.columns):
        for second in frame.columns[at + 1 :]:
            count = int((frame[first] & frame[second]).sum())
            rows.append((first, second, count, count / frame.height if frame.height else None))
    schema = {"first": pl.String, "second": pl.String, "count": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def cause_numbers(decided: pl.DataFrame, causes: Sequence[str], *, level: float = 0.95) -> pl.DataFrame:
    """One row per number of causes from 0 to the largest: items with exactly so many, and their share with interval.

    ``of_caused`` is the share of the items with any cause, as EXPL counts failures with one, two and three.
    """
    frame = decided_labels(decided, causes).select(causes)
    numbers = frame.sum_horizontal().to_numpy() if frame.width else np.zeros(0, np.int64)
    caused = int((numbers > 0).sum())
    draws = Bootstrap(np.arange(len(numbers)))
    rows = []
    for number in range(int(numbers.max(initial=0)) + 1):
        exactly = (numbers == number).astype(np.float64)
        count = int(exactly.sum())
        ends = _ends(draws.estimate(exactly, level=level, bounds=(0, 1))) if len(numbers) else (None,) * 3
        rows.append((number, count, *ends, count / caused if number and caused else None))
    return pl.DataFrame(rows, schema={"causes": pl.Int64, **_SHARE, "of_caused": pl.Float64}, orient="row")


def label_rules(decided: pl.DataFrame, labels: Sequence[str] = (), *, minimum: int = 5) -> pl.DataFrame:
    """Every rule "if label A, then label B" over the decided items, with support, confidence, lift and p-value."""
    return association_rules(decided_labels(decided, labels), minimum=minimum)


def decided_labels(decided: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """One row per decided item and a boolean column per label."""
    final = decided.filter(pl.col("by") != UNDECIDED)
    named = labels_of(final, labels)
    return final.select(pl.col("labels").list.contains(label).alias(label) for label in named)


def _over_items(table: pl.DataFrame) -> Bootstrap:
    order: Mapping[str, int] = {item: row for row, item in enumerate(table["item"].unique(maintain_order=True))}
    return Bootstrap(np.array([order[item] for item in table["item"]], np.int64))


def _ends(estimate: Estimate) -> tuple[float | None, ...]:
    return tuple(end if np.isfinite(end) else None for end in (estimate.mean, estimate.low, estimate.high))
