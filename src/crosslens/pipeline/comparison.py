"""What a comparison of runs found, and how it reads as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from crosslens.core.errors import UnknownNameError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.core.metric_values import Statistic
from crosslens.metrics.figures import beside, count, figure, interval, unit_sentence

_MOST_NAMED = 6
"""Beyond this many metrics the queries that differ most are a wall of ids: they are left to a closer look."""
_CORRECTIONS = {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}


@dataclass(frozen=True)
class QueryDifference:
    """One query and its value in both runs."""

    query: str
    baseline: float
    other: float


@dataclass(frozen=True)
class MetricComparison:
    """One metric of two runs on the same queries; ``difference`` is other − baseline.

    A query is won where the other run is better: above the baseline, or below it for a metric such as ``MedR``.
    """

    metric: str
    baseline: str
    other: str
    baseline_mean: float
    other_mean: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float
    n: int
    wins: int
    losses: int
    ties: int
    largest_gains: tuple[QueryDifference, ...]
    largest_losses: tuple[QueryDifference, ...]
    statistic: Statistic = "mean"
    higher_is_better: bool = True


@dataclass(frozen=True)
class Comparison:
    """The first run against each of the others, metric by metric; prints as a table."""

    baseline: str
    others: tuple[str, ...]
    results: tuple[MetricComparison, ...]
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, metric: str) -> MetricComparison:
        """The result of a metric against the first of the other runs."""
        for one in self.results:
            if one.metric == metric:
                return one
        raise UnknownNameError("metric in this comparison", metric, [one.metric for one in self.results])

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; None where there is no number."""
        return {
            "baseline": self.baseline,
            "others": list(self.others),
            "test": "paired permutation over images, two-sided",
            "correction": self.correction,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": self.level,
            "comparisons": [json_form(asdict(one)) for one in self.results],
            "notes": list(self.notes),
        }

    def text(self, width: int | None = PAGE_WIDTH) -> str:
        """Each run against the first: figures, differences, p-values, and who wins where; tables up to ``width``."""
        parts = []
        for other in self.others:
            results = [one for one in self.results if one.other == other]
            parts += [f"{other} against {self.baseline}", self._grid(results).text(width)]
            if len(results) <= _MOST_NAMED:
                parts.append(_queries(results))
        return "\n\n".join([*(part for part in parts if part), "\n".join(self._explanation())])

    def __str__(self) -> str:
        return self.text()

    def _grid(self, results: Sequence[MetricComparison]) -> Grid:
        differences = beside(
            [figure(one.metric, one.difference, signed=True) for one in results],
            [interval(one.metric, one.low, one.high, signed=True) for one in results],
        )
        rows = tuple(
            (
                one.metric + ("" if one.higher_is_better else " ↓"),
                figure(one.metric, one.baseline_mean),
                figure(one.metric, one.other_mean),
                difference,
                self._p_value(one.adjusted_p),
                f"{one.wins:,} : {one.losses:,}",
            )
            for one, difference in zip(results, differences, strict=True)
        )
        return Grid(("metric", self.baseline, results[0].other, "difference", "p", "wins : losses"), rows, "lrrlrr")

    def _p_value(self, p: float) -> str:
        if not isfinite(p):
            return "–"
        # As many decimals as the smallest p-value that the test can give has: more would claim too much.
        decimals = max(3, len(str(self.permutations)) - 1)
        least = 10.0**-decimals
        return f"<{least:.{decimals}f}" if p < least / 2 else f"{p:.{decimals}f}"

    def _explanation(self) -> list[str]:
        tests = "" if self.correction == "none" else f" for {count(len(self.results), 'test')}"
        sentences = [
            f"p: paired permutation test over images, two-sided, {self.permutations:,} permutations, "
            f"{_CORRECTIONS[self.correction]}{tests}.",
            f"In brackets: {100 * self.level:g}% interval of the difference, from resampling images.",
            "Wins and losses: queries on which the second run is better or worse.",
            unit_sentence(one.metric for one in self.results),
        ]
        if any(not one.higher_is_better for one in self.results):
            sentences.append("↓: lower is better.")
        if len(self.results) > _MOST_NAMED * len(self.others):
            sentences.append("Choose a few metrics to see the queries that differ most.")
        return [line for sentence in (*sentences, *self.notes) for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _queries(results: Sequence[MetricComparison]) -> str:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    lines = []
    for one in results:
        for better, found in ((one.other, one.largest_gains), (one.baseline, one.largest_losses)):
            if found:
                line = f"{one.metric}, {better} better: {'; '.join(_query(one, query) for query in found)}"
                lines += textwrap.wrap(line, PAGE_WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(["Where they differ most (value in the first → in the second)", *lines]) if lines else ""


def _query(one: MetricComparison, query: QueryDifference) -> str:
    values = (figure(one.metric, value, decimals=0) for value in (query.baseline, query.other))
    return f"{query.query} {' → '.join(values)}"
