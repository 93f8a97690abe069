"""Statistics over the table of failures: means of concept metrics, their correlations, and association rules.

An association rule "if A then B" is over a table of true and false: a row is something that was judged (a failure), a
column something that may be true of it. Null is "not judged": a rule is counted over the rows in which everything it
names was judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.explanations.concepts.lexicon import Array
from crosslens.explanations.concepts.metrics import METRICS
from crosslens.explanations.words.images import finite
from crosslens.statistics import Bootstrap, correct, correlations

SCOPES = ("all", "query")
"""Query-agnostic (every object counts) and query-informed (only what the query mentions)."""
QUERY = "query "
"""The prefix of query-informed columns."""

POOLED = {
    "CA": ("common", "synsets_ground_truth"),
    "matched_synsets": ("concept_pairs", "missing", "extra"),
    "SD[binary]": ("box_pairs_over", "box_pairs"),
    "wrong_count": ("wrong_counts", "common"),
}
"""Shares that are also taken over all failures together: the sums of a tally, and of those it is a part of."""
TOTALS = ("object_hit", "object_miss", "object_extra", "CE")
"""Metrics that are also summed up."""

CORRELATED = ("CA", "NonCommonSimilarity", "CE", "SD[binary]", "attribute_agreement", "spatial_agreement", "rank")

_MEANS: dict[str, Any] = {
    **dict.fromkeys(("scope", "metric"), pl.String),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    **dict.fromkeys(("defined", "undefined"), pl.Int64),
    **dict.fromkeys(("total", "pooled"), pl.Float64),
}
_TOTALS: dict[str, Any] = {
    "scope": pl.String,
    **dict.fromkeys(("common_synsets", "non_common_synsets", "matchings"), pl.Int64),
    **dict.fromkeys(("same_multiplicity", "different_multiplicities"), pl.Int64),
    **dict.fromkeys(("same_share", "different_share"), pl.Float64),
    **dict.fromkeys(("most_common_CE", "most_common_CE_failures"), pl.Int64),
}
_CORRELATIONS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "failures": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in ("spearman", "kendall-b") for end in ("", "_low", "_high")},
}

RULE_COLUMNS: dict[str, Any] = {
    "if": pl.List(pl.String),
    "then": pl.String,
    **dict.fromkeys(("rows", "count_if", "count_then", "count"), pl.Int64),
    **dict.fromkeys(("support", "confidence", "lift", "p_value", "p_adjusted"), pl.Float64),
}


def column_of(metric: str, scope: str) -> str:
    """The column of a metric in the table of failures."""
    return metric if scope == SCOPES[0] else QUERY + metric


def metric_means(failures: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per scope and metric: the mean over the failures that define it, with its interval over images.

    ``undefined`` counts the others. ``total`` is the sum (objects hit, missed); ``pooled`` the share over all
    failures together, where a metric is a share: failures with more objects weigh more in it.
    """
    rows = []
    for scope in SCOPES:
        for metric in METRICS:
            column = column_of(metric, scope)
            if column not in failures.columns:
                continue
            values = failures[column]
            estimate = draws.estimate(values.fill_null(float("nan")).to_numpy(), level=level)
            interval = (finite(estimate.mean), finite(estimate.low), finite(estimate.high))
            undefined = values.null_count()
            total = float(values.sum()) if metric in TOTALS else None
            pooled = _pooled(failures, metric, scope)
            rows.append((scope, metric, *interval, values.len() - undefined, undefined, total, pooled))
    return pl.DataFrame(rows, schema=_MEANS, orient="row")


def failure_totals(failures: pl.DataFrame) -> pl.DataFrame:
    """One row per scope: what EXPL counts over all failures together (its section on global evaluation).

    ``common_synsets`` and ``non_common_synsets`` of the two images, ``matchings`` of the latter in pairs; how many
    common synsets have the ``same_multiplicity`` in both images or ``different_multiplicities``, and their shares;
    ``most_common_CE``, the smallest of several, and in how many failures it is CE.
    """
    rows: list[dict[str, Any]] = []
    for scope in SCOPES:
        names = ("common", "missing", "extra", "concept_pairs", "wrong_counts")
        common, missing, extra, matchings, different = (int(failures[column_of(name, scope)].sum()) for name in names)
        errors, counts = np.unique(failures[column_of("CE", scope)].drop_nulls().to_numpy(), return_counts=True)
        most = int(counts.argmax()) if counts.size else None
        rows.append({
            "scope": scope, "common_synsets": common, "non_common_synsets": missing + extra, "matchings": matchings,
            "same_multiplicity": common - different, "different_multiplicities": different,
            "same_share": (common - different) / common if common else None,
            "different_share": different / common if common else None,
            "most_common_CE": None if most is None else int(errors[most]),
            "most_common_CE_failures": 0 if most is None else int(counts[most]),
        })  # fmt: skip
    return pl.DataFrame(rows, schema=_TOTALS)


def metric_correlations(
    failures: pl.DataFrame, clusters: Array, *, resamples: int = 200, level: float = 0.95, seed: int = 0
) -> pl.DataFrame:
    """Spearman's ρ and Kendall's τ-b of each two metrics, and of each with the rank, over failures that define both."""
    columns = {
        name: failures[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        for name in CORRELATED
        if name in failures.columns
    }
    rows = []
    for first, second in combinations(columns, 2):
        both = np.isfinite(columns[first]) & np.isfinite(columns[second])
        pair = (columns[first][both], columns[second][both])
        result = correlations(*pair, clusters[both], resamples=resamples, seed=seed)
        estimates = [result.estimate(name, level) for name in ("spearman", "kendall-b")]
        ends = [finite(end) for estimate in estimates for end in (estimate.mean, estimate.low, estimate.high)]
        rows.append((first, second, int(both.sum()), *ends))
    return pl.DataFrame(rows, schema=_CORRELATIONS, orient="row")


def _pooled(failures: pl.DataFrame, metric: str, scope: str) -> float | None:
    if metric not in POOLED:
        return None
    part, *whole = (int(failures[column_of(name, scope)].sum()) for name in POOLED[metric])
    return part / sum(whole) if sum(whole) else None


def association_rules(
    table: pl.DataFrame,
    *,
    longest: int = 1,
    minimum: int = 5,
    confidence: float = 0.0,
    support: float = 0.0,
    correction: str = "holm",
) -> pl.DataFrame:
    """Every rule "if A then B" over the boolean columns of ``table``, by adjusted p-value.

    A is up to ``longest`` columns, all true; B another one. ``rows``: where all of them were judged; ``count_if`` and
    ``count_then``: how often A and B are true there, ``count``: both. ``support`` = count / rows, ``confidence`` =
    count / count_if, ``lift`` = confidence / (count_then / rows): above 1, A makes B likelier than it is anyway.

    ``p_value`` is Fisher's exact one: the chance of at least this ``count`` where A and B have nothing to do with each
    other; rows are taken as independent. ``p_adjusted`` corrects it for every rule that was tested, which are those
    with A, and B, true in at least ``minimum`` rows and not in all of them. The least ``confidence`` and ``support``
    only choose what is listed: what is tested does not depend on what comes out.
    """
    from scipy.stats import hypergeom

    _check(table, longest, minimum)
    tested = list(_tested(table, longest, minimum))
    if not tested:
        return pl.DataFrame(schema=RULE_COLUMNS)
    counts = np.array([numbers for _, _, numbers in tested], np.int64)
    rows, first, second, both = counts.T
    p_values = np.clip(hypergeom.sf(both - 1, rows, first, second), 0.0, 1.0)
    rules = pl.DataFrame(
        {
            "if": [list(names) for names, _, _ in tested],
            "then": [name for _, name, _ in tested],
            "rows": rows,
            "count_if": first,
            "count_then": second,
            "count": both,
            "support": both / rows,
            "confidence": both / first,
            "lift": (both * rows) / (first.astype(np.float64) * second),
            "p_value": p_values,
            "p_adjusted": correct(p_values, correction),
        },
        schema=RULE_COLUMNS,
    )
    kept = rules.filter((pl.col("confidence") >= confidence) & (pl.col("support") >= support) & (pl.col("count") > 0))
    order = ["p_adjusted", "p_value", "lift", "count"]
    return kept.sort(order, descending=[False, False, True, True], maintain_order=True)


def _tested(
    table: pl.DataFrame, longest: int, minimum: int
) -> Iterator[tuple[tuple[str, ...], str, tuple[int, int, int, int]]]:
    """Every rule with its counts: rows judged, A, B, both."""
    names = table.columns
    judged = {name: table[name].is_not_null().to_numpy() for name in names}
    true = {name: table[name].fill_null(False).to_numpy() for name in names}
    for size in range(1, longest + 1):
        for condition in combinations(names, size):
            known = np.logical_and.reduce([judged[name] for name in condition])
            holds = np.logical_and.reduce([true[name] for name in condition]) & known
            if int(holds.sum()) < minimum:
                continue
            for name in names:
                if name not in condition:
                    counts = _counts(known & judged[name], holds, true[name])
                    if all(minimum <= count < counts[0] for count in counts[1:3]):
                        yield condition, name, counts


def _counts(rows: Array, first: Array, second: Array) -> tuple[int, int, int, int]:
    first, second = first & rows, second & rows
    return int(rows.sum()), int(first.sum()), int(second.sum()), int((first & second).sum())


def _check(table: pl.DataFrame, longest: int, minimum: int) -> None:
    wrong = [name for name, kind in table.schema.items() if kind != pl.Boolean]
    if wrong:
        raise InputError(
            f"the column {wrong[0]!r} holds {table.schema[wrong[0]]}",
            expected="true, false or null",
            fix="pass a table of boolean columns only",
        )
    if longest < 1:
        raise UsageError(f"longest = {longest}", fix="longest must be at least 1", option="longest")
    if minimum < 1:
        raise UsageError(f"minimum = {minimum}", fix="minimum must be at least 1; 5 is usual", option="minimum")
