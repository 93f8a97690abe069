"""Judgements against automatic metrics: per-query values of a run, and numbers that came with the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import BOTH, Run, split_name
from crosslens.statistics import COEFFICIENTS, correlations
from crosslens.web.judging.results.table import FloatArray

_COLUMNS: dict[str, Any] = {
    "judged": pl.String,
    "metric": pl.String,
    "items": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in COEFFICIENTS for end in ("", "_low", "_high")},
}


def metric_correlations(
    judged: Mapping[str, Mapping[str, float]],
    metrics: Mapping[str, Mapping[str, float]],
    queries: Mapping[str, str] | None = None,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
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
            fit = correlations(
                _column(values, both), _column(numbers, both), groups, resamples=resamples, seed=seed, threads=1
            )
            estimates = [fit.estimate(name, level) for name in COEFFICIENTS]
            ends = [end if np.isfinite(end) else None for e in estimates for end in (e.mean, e.low, e.high)]
            rows.append((quantity, metric, len(both), *ends))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def judged_quantities(
    decided: pl.DataFrame, shares: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, dict[str, float]]:
    """What is correlated: the mean rating of items and, of each label, the share of judges who gave it."""
    ratings = {item: rating for item, rating in decided.select("item", "rating").iter_rows() if rating is not None}
    quantities = {"rating": ratings} if ratings else {}
    return quantities | {label: dict(of_items) for label, of_items in (shares or {}).items()}


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


def _groups(names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)


def _column(values: Mapping[str, float], items: Sequence[str]) -> FloatArray:
    return np.array([values[item] for item in items], np.float64)
