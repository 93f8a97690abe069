"""What a comparison of runs found, and how it reads as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

from crosslens.core.metric_values import Statistic

Unit = Literal["percent", "plain"]

_CORRECTIONS = {
    "holm": "corrected by Holm",
    "bh": "corrected by Benjamini–Hochberg",
    "none": "not corrected",
}


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
    unit: Unit = "percent"


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
        from crosslens.core.errors import UnknownNameError

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
            "comparisons": [_finite(asdict(one)) for one in self.results],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n\n".join([*(self._table(other) for other in self.others), "\n".join(self._explanation())])

    def _table(self, other: str) -> str:
        chosen = [one for one in self.results if one.other == other]
        corrected = "p" if self.correction == "none" else f"p ({self.correction})"
        header = (
            "",
            self.baseline,
            other,
            "difference",
            f"{100 * self.level:g}% interval",
            corrected,
            "wins",
            "losses",
        )
        rows = [
            (
                one.metric + ("" if one.higher_is_better else " ↓"),
                _number(one.baseline_mean, one.unit),
                _number(one.other_mean, one.unit),
                _number(one.difference, one.unit, signed=True),
                f"[{_number(one.low, one.unit, signed=True)}, {_number(one.high, one.unit, signed=True)}]",
                _p_value(one.adjusted_p, self.permutations),
                f"{one.wins:,}",
                f"{one.losses:,}",
            )
            for one in chosen
        ]
        parts = [f"{other} against {self.baseline}", _aligned([header, *rows])]
        winners = _winners(chosen)
        if winners:
            parts += ["\nQueries that each run wins by most", _aligned([("", other, self.baseline), *winners], "lll")]
        return "\n".join(parts)

    def _explanation(self) -> list[str]:
        counted = f" for {len(self.results)} comparisons" if self.correction != "none" else ""
        lines = [
            f"Paired permutation test over images, two-sided, {self.permutations:,} permutations, seed {self.seed}.",
            f"p-values are {_CORRECTIONS[self.correction]}{counted}.",
            f"Interval of the difference: {100 * self.level:g}%, from resampling images.",
            "Wins and losses: queries on which the second run is better or worse than the first.",
        ]
        plain = dict.fromkeys(one.metric.rpartition("/")[2] for one in self.results if one.unit == "plain")
        if any(one.unit == "percent" for one in self.results):
            lines.append("In percent" + (f", but {', '.join(plain)} as they are." if plain else "."))
        lines += ["↓: lower is better."] if any(not one.higher_is_better for one in self.results) else []
        return [*lines, *self.notes]


def _number(value: float, unit: Unit, signed: bool = False) -> str:
    if not isfinite(value):
        return "–"
    shown = round(100 * value if unit == "percent" else value, 1) + 0.0  # no "-0.0"
    return f"{shown:{'+' if signed else ''}.1f}"


def _p_value(value: float, permutations: int) -> str:
    if not isfinite(value):
        return "–"
    # As many decimals as the smallest p-value the test can give has: more would claim too much.
    return f"{value:.{max(3, len(str(permutations)) - 1)}f}"


def _winners(results: Iterable[MetricComparison]) -> list[tuple[str, str, str]]:
    """Metrics with the queries of their largest gains and largest losses; metrics that agree share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one in results:
        if one.largest_gains or one.largest_losses:
            rows.setdefault((_names(one.largest_gains), _names(one.largest_losses)), []).append(one.metric)
    return [(", ".join(metrics), *queries) for queries, metrics in rows.items()]


def _names(queries: Iterable[QueryDifference]) -> str:
    return ", ".join(one.query for one in queries) or "–"


def _aligned(rows: Sequence[Sequence[str]], align: str = "l") -> str:
    """Columns under each other: on the left where ``align`` says l, else on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = align.ljust(len(widths), "r")
    return "\n".join(
        "   ".join(cell.ljust(width) if side == "l" else cell.rjust(width) for cell, width, side in cells).rstrip()
        for cells in (zip(row, widths, sides, strict=True) for row in rows)
    )


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content
