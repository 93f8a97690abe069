"""A comparison as a person reads it, on a terminal of 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from crosslens.pipeline.comparison import Comparison, MetricComparison, QueryDifference
from crosslens.report.figures import count, figure
from crosslens.report.table import Grid, unit_sentence

_WIDTH = 80
_MOST_NAMED = 6
"""Beyond this many metrics the queries that differ most are a wall of ids: they are left to a closer look."""
_CORRECTIONS = {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}


def comparison_text(comparison: Comparison, width: int | None = None) -> str:
    """Each run against the first: figures, difference with its interval, p-value, and who wins on which queries."""
    parts = []
    for other in comparison.others:
        results = [one for one in comparison.results if one.other == other]
        parts += [f"{other} against {comparison.baseline}", _grid(comparison, results).text(width)]
        if len(results) <= _MOST_NAMED:
            parts += [_queries(results)]
    return "\n\n".join([*(part for part in parts if part), "\n".join(_explanation(comparison))])


def _grid(comparison: Comparison, results: Sequence[MetricComparison]) -> Grid:
    differences = [_signed(one, one.difference) for one in results]
    room = max(map(len, differences), default=0)
    rows = tuple(
        (
            one.metric + ("" if one.higher_is_better else " ↓"),
            figure(one.metric, one.baseline_mean),
            figure(one.metric, one.other_mean),
            f"{difference:>{room}}  {_interval(one)}".rstrip(),
            _p_value(one.adjusted_p),
            f"{one.wins:,} : {one.losses:,}",
        )
        for one, difference in zip(results, differences, strict=True)
    )
    header = ("metric", comparison.baseline, results[0].other, "difference", "p", "wins : losses")
    return Grid(header, rows, "lrrlrr")


def _signed(one: MetricComparison, value: float) -> str:
    text = figure(one.metric, value)
    return f"+{text}" if math.isfinite(value) and not text.startswith("-") else text.replace("-0.0", "+0.0")


def _interval(one: MetricComparison) -> str:
    if not (math.isfinite(one.low) and math.isfinite(one.high)):
        return ""
    return f"[{_signed(one, one.low)}, {_signed(one, one.high)}]"


def _p_value(p: float) -> str:
    return "–" if not math.isfinite(p) else f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _queries(results: Sequence[MetricComparison]) -> str:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    lines = []
    for one in results:
        for better, found in ((one.other, one.largest_gains), (one.baseline, one.largest_losses)):
            if found:
                line = f"{one.metric}, {better} better: {'; '.join(_query(one, query) for query in found)}"
                lines += textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(["Where they differ most (value in the first → in the second)", *lines]) if lines else ""


def _query(one: MetricComparison, query: QueryDifference) -> str:
    values = (figure(one.metric, value, decimals=0) for value in (query.baseline, query.other))
    return f"{query.query} {' → '.join(values)}"


def _explanation(comparison: Comparison) -> list[str]:
    tests = count(len(comparison.results), "test")
    corrected = _CORRECTIONS.get(comparison.correction, comparison.correction)
    sentences = [
        f"p: paired permutation test over images, two-sided, {comparison.permutations:,} permutations, {corrected}"
        + (f" for {tests}." if comparison.correction != "none" else "."),
        f"In brackets: {100 * comparison.level:g}% interval of the difference, from resampling images.",
        "Wins and losses: queries on which the second run is better or worse.",
        unit_sentence(one.metric for one in comparison.results),
    ]
    if any(not one.higher_is_better for one in comparison.results):
        sentences.append("↓: lower is better.")
    if len(comparison.results) > _MOST_NAMED * len(comparison.others):
        sentences.append("Choose a few metrics to see the queries that differ most.")
    return [line for sentence in (*sentences, *comparison.notes) for line in textwrap.wrap(sentence, _WIDTH)]
