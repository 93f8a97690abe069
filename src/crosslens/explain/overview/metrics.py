"""Concept metrics over all failures of a run: their means with intervals, and how they go together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.explain.concepts.metrics import METRICS
from crosslens.statistics import Bootstrap
from crosslens.statistics.correlation import correlations

Array = np.ndarray[Any, Any]

SCOPES = ("all", "query")
"""Query-agnostic (every object counts) and query-informed (only what the query mentions)."""
QUERY = "query "
"""What the names of query-informed columns begin with."""

POOLED = {
    "CA": ("common", "synsets_ground_truth"),
    "matched_synsets": ("concept_pairs", "non_common"),
    "SD[binary]": ("box_pairs_over", "box_pairs"),
    "wrong_count": ("wrong_counts", "common"),
}
"""Shares that are also taken over all failures together: the sums of two tallies."""
TOTALS = ("object_hit", "object_miss", "object_extra", "CE")
"""Metrics that are also summed up."""

CORRELATED = ("CA", "NonCommonSimilarity", "CE", "SD[binary]", "attribute_agreement", "spatial_agreement", "rank")
CORRELATION_RESAMPLES = 200

_MEANS: dict[str, Any] = {
    "scope": pl.String,
    "metric": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "defined": pl.Int64,
    "undefined": pl.Int64,
    "total": pl.Float64,
    "pooled": pl.Float64,
}
_CORRELATIONS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "failures": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in ("spearman", "kendall-b") for end in ("", "_low", "_high")},
}


def column_of(metric: str, scope: str) -> str:
    """The column of a metric in the table of failures."""
    return metric if scope == SCOPES[0] else QUERY + metric


def metric_means(failures: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per scope and metric: the mean over the failures that define it, with its interval over images.

    ``undefined`` counts the others. ``total`` is the sum (objects found, missing); ``pooled`` the share over all
    failures together, where a metric is one: long lists weigh more in it.
    """
    rows = []
    for scope in SCOPES:
        for metric in METRICS:
            column = column_of(metric, scope)
            if column not in failures.columns:
                continue
            values = failures[column]
            found = draws.estimate(values.fill_null(float("nan")).to_numpy(), level=level)
            defined = values.len() - values.null_count()
            total = float(values.sum()) if metric in TOTALS else None
            rows.append((scope, metric, _real(found.mean), _real(found.low), _real(found.high), defined,
                         values.null_count(), total, _pooled(failures, metric, scope)))  # fmt: skip
    return pl.DataFrame(rows, schema=_MEANS, orient="row")


def metric_correlations(
    failures: pl.DataFrame,
    clusters: Array,
    *,
    resamples: int = CORRELATION_RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Spearman's ρ and Kendall's τ-b of each two metrics, and of each with the rank, over failures that define both."""
    there = [name for name in CORRELATED if name in failures.columns]
    rows = []
    for first, second in combinations(there, 2):
        rows.append((first, second, *_together(failures, (first, second), clusters, resamples, level, seed)))
    return pl.DataFrame(rows, schema=_CORRELATIONS, orient="row")


def _together(
    failures: pl.DataFrame, names: Sequence[str], clusters: Array, resamples: int, level: float, seed: int
) -> tuple[Any, ...]:
    one, other = (failures[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names)
    both = np.isfinite(one) & np.isfinite(other)
    found = correlations(one[both], other[both], clusters[both], resamples=resamples, seed=seed)
    estimates = [found.estimate(name, level) for name in ("spearman", "kendall-b")]
    return int(both.sum()), *(_real(end) for est in estimates for end in (est.mean, est.low, est.high))


def _pooled(failures: pl.DataFrame, metric: str, scope: str) -> float | None:
    if metric not in POOLED:
        return None
    part, whole = (_sum(failures, name, scope) for name in POOLED[metric])
    return part / whole if whole else None


def _sum(failures: pl.DataFrame, tally: str, scope: str) -> int:
    names = ("missing", "extra") if tally == "non_common" else (tally,)
    return sum(int(failures[column_of(name, scope)].sum()) for name in names)


def _real(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
