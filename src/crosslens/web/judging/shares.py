"""What was said how often (labels, ratings, causes, rules between labels), and how it agrees with what is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import BOTH, IntArray, Run, split_name
from crosslens.explanations import association_rules, cause_numbers as numbers_of_causes
from crosslens.statistics import COEFFICIENTS, Bootstrap, Estimate, correlations, kappa_estimate
from crosslens.web.judging.agreement import UNDECIDED, codes, labels_of

_SHARE: dict[str, Any] = {"count": pl.Int64, **dict.fromkeys(("share", "low", "high"), pl.Float64)}


def label_shares(table: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """One row per label: how many judgements gave it, their share, and its interval over items."""
    draws = Bootstrap(codes(table["item"]))
    rows = []
    for label in labels_of(table, labels):
        given = table["labels"].list.contains(label).cast(pl.Float64).to_numpy()
        rows.append((label, int(given.sum()), *draws.estimate(given, bounds=(0, 1)).cells))
    return pl.DataFrame(rows, schema={"label": pl.String, **_SHARE}, orient="row")


def rating_counts(table: pl.DataFrame, ratings: Sequence[int] = range(1, 11)) -> pl.DataFrame:
    """One row per rating: how many judgements have it (rounded half up), and their share of those with a rating."""
    given = table["rating"].drop_nulls().to_numpy()
    whole = np.floor(given + 0.5).astype(np.int64)
    rows = [(rating, int((whole == rating).sum())) for rating in ratings]
    counts = pl.DataFrame(rows, schema={"rating": pl.Int64, "count": pl.Int64}, orient="row")
    return counts.with_columns(share=pl.col("count") / max(len(given), 1))


def rating_mean(table: pl.DataFrame) -> Estimate:
    """The mean rating with its interval over items."""
    rated = table.filter(pl.col("rating").is_not_null())
    return Bootstrap(codes(rated["item"])).estimate(rated["rating"].to_numpy())


def co_occurrence(decided: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """Every two labels that hold together for an item: how many items, and their share of the decided ones."""
    frame = decided_labels(decided, labels)
    rows = []
    for first, second in combinations(frame.columns, 2):
        count = int((frame[first] & frame[second]).sum())
        rows.append((first, second, count, count / frame.height if frame.height else None))
    schema = {"first": pl.String, "second": pl.String, "count": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def cause_numbers(decided: pl.DataFrame, causes: Sequence[str]) -> pl.DataFrame:
    """One row per number of causes that a decided item has, as :func:`crosslens.explanations.cause_numbers` has it."""
    frame = decided_labels(decided, causes).select(causes)
    return numbers_of_causes(frame, Bootstrap(np.arange(frame.height)))


def label_rules(decided: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """Every rule "if label A, then label B" over the decided items, with support, confidence, lift and p-value."""
    return association_rules(decided_labels(decided, labels))


def decided_labels(decided: pl.DataFrame, labels: Sequence[str] = ()) -> pl.DataFrame:
    """One row per decided item and a boolean column per label."""
    final = decided.filter(pl.col("by") != UNDECIDED)
    return final.select(pl.col("labels").list.contains(label).alias(label) for label in labels_of(final, labels))


_COLUMNS: dict[str, Any] = {
    "judged": pl.String,
    "metric": pl.String,
    "items": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in COEFFICIENTS for end in ("", "_low", "_high")},
}

_DERIVED = {"object_class": "object", "details": "detail", "successful_alternative": "near miss"}
"""Labels of the task failures whose derived cause has another name."""
_CAUSES: dict[str, Any] = {
    **dict.fromkeys(("label", "cause"), pl.String),
    **dict.fromkeys(("items", "both", "people", "derived", "neither"), pl.Int64),
    **dict.fromkeys(("kappa", "kappa_low", "kappa_high"), pl.Float64),
}


@dataclass(frozen=True, eq=False)
class CauseAgreement:
    """What people decided against the causes that were derived, over the ``items`` that have both.

    ``table``  a row per label, and the number of its items with each derived cause; an item may have several of both
    ``kappa``  a row per label that has a derived counterpart: of the items where that is not open, how many have
               ``both``, only that of ``people``, only the ``derived`` one or ``neither``; Cohen's κ, and its interval
    """

    items: int
    table: pl.DataFrame
    kappa: pl.DataFrame

    @property
    def causes(self) -> list[str]:
        return self.table.columns[2:]

    def as_dict(self) -> dict[str, Any]:
        return {"items": self.items, "table": self.table.to_dicts(), "kappa": self.kappa.to_dicts()}


def compare_causes(
    decided: pl.DataFrame, labels: Sequence[str], causes: Mapping[str, Mapping[str, bool | None]],
    queries: Mapping[str, str] | None = None,
) -> CauseAgreement | None:  # fmt: skip
    """Decided labels (see :func:`decide`) against derived causes, by item; None where no decided item has any.

    Intervals resample the ``queries`` of items, or the items themselves.
    """
    said = {
        item: set(given)
        for item, given, by in decided.select("item", "labels", "by").iter_rows()
        if by != UNDECIDED and item in causes
    }
    if not said:
        return None
    names = list(dict.fromkeys(name for item in said for name in causes[item]))
    rows, kappas = [], []
    for label in labels:
        given = [item for item in said if label in said[item]]
        rows.append((label, len(given), *(sum(causes[item].get(name) is True for item in given) for name in names)))
        if (cause := _DERIVED.get(label, label)) in names:
            known = [item for item in said if causes[item].get(cause) is not None]
            pairs = [(label in said[item], bool(causes[item][cause])) for item in known]
            cells = [pairs.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
            asked = _groups([(queries or {}).get(item, item) for item in known])
            kappa = kappa_estimate([people for people, _ in pairs], [derived for _, derived in pairs], asked)
            kappas.append((label, cause, len(pairs), *cells, *kappa.cells))
    schema = {"label": pl.String, "items": pl.Int64, **dict.fromkeys(names, pl.Int64)}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return CauseAgreement(len(said), table, pl.DataFrame(kappas, schema=_CAUSES, orient="row"))


def metric_correlations(
    judged: Mapping[str, Mapping[str, float]],
    metrics: Mapping[str, Mapping[str, float]],
    queries: Mapping[str, str] | None = None,
    *,
    resamples: int = 1000,
) -> pl.DataFrame:
    """Pearson, Spearman and Kendall of each judged quantity with each metric, over the items that have both.

    ``judged`` and ``metrics`` map names to numbers by item. Intervals resample the ``queries`` of items, or the items
    themselves. A metric that fewer than three items have is left out.
    """
    rows = []
    for quantity, values in judged.items():
        for metric, numbers in metrics.items():
            both = [item for item in values if np.isfinite(values[item]) and np.isfinite(numbers.get(item, np.nan))]
            if len(both) < 3:
                continue
            groups = _groups([(queries or {}).get(item, item) for item in both])
            said, computed = (np.array([known[item] for item in both], np.float64) for known in (values, numbers))
            fit = correlations(said, computed, groups, resamples=resamples, threads=1)
            ends = [end for name in COEFFICIENTS for end in fit.estimate(name).cells]
            rows.append((quantity, metric, len(both), *ends))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def label_shares_of_items(table: pl.DataFrame, labels: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of each label, the share of an item's judges who gave it; labels that nobody gave are left out."""
    shares = {}
    for label in labels:
        given = (
            table.select("item", given=pl.col("labels").list.contains(label))
            .group_by("item")
            .agg(pl.col("given").mean())
        )
        if given["given"].sum():
            shares[label] = dict(given.sort("item").iter_rows())
    return shares


def run_metrics(run: Run, direction: str, queries: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Every per-query metric of a run's direction, by item; ``queries`` names each item's query."""
    metrics = {}
    for name, values in run.values.items():
        if split_name(name)[0] not in (direction, BOTH):
            continue
        by_query = dict(zip(values.query_ids, values.values.tolist(), strict=True))
        numbers = {item: by_query[query] for item, query in queries.items() if query in by_query}
        if numbers:
            metrics[name] = numbers
    return metrics


def _groups(names: Sequence[str]) -> IntArray:
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
