"""A comparison of runs as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite

from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import format_count, format_figure, format_interval, unit_sentence, with_intervals
from crosslens.pipeline import Comparison, MetricComparison, QueryDifference

_MOST_METRICS = 6
"""With more metrics, the queries that differ most are not listed: they would be a wall of ids."""
_CORRECTIONS = {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}


@RENDERERS.register("Comparison")
def comparison_text(comparison: Comparison, width: int | None = PAGE_WIDTH) -> str:
    """Each run against the first: values, differences, p-values, and who wins where; tables up to ``width``."""
    parts = []
    for other in comparison.others:
        results = [result for result in comparison.results if result.other == other]
        parts += [f"{other} against {comparison.baseline}", _grid(comparison, results).text(width)]
        if len(results) <= _MOST_METRICS:
            parts.append(_queries(results))
    return "\n\n".join([*(part for part in parts if part), "\n".join(_explanation(comparison))])


def _grid(comparison: Comparison, results: Sequence[MetricComparison]) -> Grid:
    differences = with_intervals(
        [format_figure(result.metric, result.difference, signed=True) for result in results],
        [format_interval(result.metric, result.low, result.high, signed=True) for result in results],
    )
    rows = tuple(
        (
            result.metric + ("" if result.higher_is_better else " ↓"),
            format_figure(result.metric, result.baseline_mean),
            format_figure(result.metric, result.other_mean),
            difference,
            p_value(result.adjusted_p, comparison.permutations),
            f"{result.wins:,} : {result.losses:,}",
        )
        for result, difference in zip(results, differences, strict=True)
    )
    header = ("metric", comparison.baseline, results[0].other, "difference", "p", "wins : losses")
    return Grid(header, rows, "lrrlrr")


def p_value(p: float, permutations: int) -> str:
    """A p-value with as many decimals as the smallest that the test can give: more would claim too much."""
    if not isfinite(p):
        return "–"
    decimals = max(3, len(str(permutations)) - 1)
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if p < least / 2 else f"{p:.{decimals}f}"


def significance_sentence(test: str, permutations: int, correction: str, tests: int) -> str:
    """How p-values were computed and corrected."""
    number = "" if correction == "none" else f" for {format_count(tests, 'test')}"
    return f"p: {test}, two-sided, {permutations:,} permutations, {_CORRECTIONS[correction]}{number}."


def _explanation(comparison: Comparison) -> list[str]:
    results = comparison.results
    test = "paired permutation test over images"
    sentences = [
        significance_sentence(test, comparison.permutations, comparison.correction, len(results)),
        f"In brackets: {100 * comparison.level:g}% interval of the difference, from resampling images.",
        "Wins and losses: queries on which the second run is better or worse.",
        unit_sentence(result.metric for result in results),
    ]
    if any(not result.higher_is_better for result in results):
        sentences.append("↓: lower is better.")
    if len(results) > _MOST_METRICS * len(comparison.others):
        sentences.append("Choose a few metrics to see the queries that differ most.")
    return [line for sentence in (*sentences, *comparison.notes) for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _queries(results: Sequence[MetricComparison]) -> str:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    lines = []
    for result in results:
        sides = ((result.other, result.largest_gains), (result.baseline, result.largest_losses))
        for better, queries in sides:
            if queries:
                listed = "; ".join(_query(result.metric, query) for query in queries)
                line = f"{result.metric}, {better} better: {listed}"
                lines += textwrap.wrap(line, PAGE_WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(["Where they differ most (value in the first → in the second)", *lines]) if lines else ""


def _query(metric: str, query: QueryDifference) -> str:
    values = (format_figure(metric, value, decimals=0) for value in (query.baseline, query.other))
    return f"{query.query} {' → '.join(values)}"
