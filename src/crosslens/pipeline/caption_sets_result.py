"""What a comparison of two caption sets found, and how it reads as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from crosslens.analyze.granularity_comparison import GranularityComparison
from crosslens.core.errors import UnknownNameError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.core.metric_values import Statistic
from crosslens.core.run import BOTH, Run, split_name
from crosslens.metrics.figures import beside, count, figure, interval, unit, unit_sentence

_SECTIONS = {"i2t": "image → text", "t2i": "text → image", BOTH: "both directions"}
_OWN = "[scores_from=own]"
"""What every DCGcm would have in its name: said once, under the table, it leaves room for the numbers."""
_CORRECTIONS = {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}


@dataclass(frozen=True)
class MetricChange:
    """One metric on both sets; ``difference`` is after − before, ``relative`` the same as a share of before.

    ``better`` and ``worse`` count images: by the mean over an image's own queries.
    """

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    p_value: float
    adjusted_p: float
    images: int
    better: int
    worse: int
    statistic: Statistic = "mean"
    higher_is_better: bool = True


@dataclass(frozen=True)
class CaptionSets:
    """Two caption sets under one model: the change of every metric, both runs, and the captions' granularity."""

    names: tuple[str, str]
    runs: tuple[Run, Run]
    results: tuple[MetricChange, ...]
    granularity: GranularityComparison | None
    model: str
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, metric: str) -> MetricChange:
        for one in self.results:
            if one.metric == metric:
                return one
        raise UnknownNameError("metric in this comparison", metric, [one.metric for one in self.results])

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; None where there is no number."""
        sizes = [run.provenance["dataset"] for run in self.runs]
        return {
            "model": self.model,
            "before": {"name": self.names[0], "images": sizes[0]["images"], "captions": sizes[0]["captions"]},
            "after": {"name": self.names[1], "images": sizes[1]["images"], "captions": sizes[1]["captions"]},
            "test": "paired permutation over images, two-sided",
            "correction": self.correction,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": self.level,
            "metrics": {one.metric: json_form(asdict(one)) for one in self.results},
            "granularity": None if self.granularity is None else self.granularity.as_dict(),
            "notes": list(self.notes),
        }

    def text(self, width: int | None = PAGE_WIDTH) -> str:
        """One table per direction, the captions' granularity, and what to know about the numbers."""
        before, after = (
            name if name.endswith(f"({side})") else f"{name} ({side})"  # sets of one name have it in theirs
            for name, side in zip(self.names, ("before", "after"), strict=True)
        )
        heading = f"{after} against {before}" + (f", {self.model}" if self.model else "")
        parts = ["\n".join(textwrap.wrap(heading, PAGE_WIDTH))]
        for direction, words in _SECTIONS.items():
            chosen = [one for one in self.results if split_name(one.metric)[0] == direction]
            if chosen:
                parts.append(f"{words}\n{self._grid(chosen).text(width)}")
        parts.append("\n".join(self._explanation()))
        if self.granularity is not None:
            parts.append(f"The captions themselves\n\n{self.granularity.text(width)}")
        return "\n\n".join(parts)

    def wide_grid(self) -> Grid:
        """One row per set, as papers print them: first image to text, then text to image, then sums."""
        ordered = [one for direction in _SECTIONS for one in self.results if split_name(one.metric)[0] == direction]
        titles = [
            _short(one.metric) if split_name(one.metric)[0] == BOTH
            else f"{split_name(one.metric)[0]} {_short(one.metric)}"
            for one in ordered
        ]  # fmt: skip
        before, after = ([_figure(one, getattr(one, side)) for one in ordered] for side in ("before", "after"))
        rows = ((self.names[0], *before), (self.names[1], *after))
        return Grid(("captions", *titles), rows, "l" + "r" * len(titles))

    def __str__(self) -> str:
        return self.text()

    def _grid(self, results: Sequence[MetricChange]) -> Grid:
        differences = beside(
            [_figure(one, one.difference, signed=True) for one in results],
            [
                interval(one.metric, one.low, one.high, _decimals(one.metric), signed=True)
                for one in results
            ],
        )  # fmt: skip
        rows = tuple(
            (
                _short(one.metric) + ("" if one.higher_is_better else " ↓"),
                _figure(one, one.before),
                _figure(one, one.after),
                difference,
                f"{round(100 * one.relative, 1) + 0.0:+.1f} %" if isfinite(one.relative) else "–",
                self._p_value(one.adjusted_p),
            )
            for one, difference in zip(results, differences, strict=True)
        )
        return Grid(("metric", "before", "after", "difference", "relative", "p"), rows, "lrrlrr")

    def _p_value(self, p: float) -> str:
        if not isfinite(p):
            return "–"
        # As many decimals as the smallest p-value that the test can give has: more would claim too much.
        decimals = max(3, len(str(self.permutations)) - 1)
        least = 10.0**-decimals
        return f"<{least:.{decimals}f}" if p < least / 2 else f"{p:.{decimals}f}"

    def _explanation(self) -> list[str]:
        sizes = [run.provenance["dataset"] for run in self.runs]
        said = [f"{one['captions']:,} captions {side}" for one, side in zip(sizes, ("before", "after"), strict=True)]
        tests = "" if self.correction == "none" else f" for {count(len(self.results), 'test')}"
        sentences = [
            f"{count(sizes[0]['images'], 'image')}, {' and '.join(said)}.",
            unit_sentence(one.metric for one in self.results).replace(_OWN, ""),
            f"p: permutation test that swaps the sets image by image, two-sided, {self.permutations:,} permutations, "
            f"{_CORRECTIONS[self.correction]}{tests}.",
        ]
        if any(isfinite(one.low) for one in self.results):
            sentences.insert(
                2,
                f"In brackets: {100 * self.level:g}% interval of the difference; images are drawn with their captions "
                "of both sets.",
            )
        if any(_OWN in one.metric for one in self.results):
            sentences.append("DCGcm: unlabelled items count by the evaluated model's own scores (scores_from=own).")
        if any(not one.higher_is_better for one in self.results):
            sentences.append("↓: lower is better.")
        return [line for sentence in (*sentences, *self.notes) for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _short(metric: str) -> str:
    return split_name(metric)[1].replace(_OWN, "")


def _decimals(metric: str) -> int:
    """A plain number (DCGcm) with two decimals, as the papers print it: ``figure`` adds three."""
    return -1 if unit(metric) == "number" else 1


def _figure(one: MetricChange, value: float, *, signed: bool = False) -> str:
    return figure(one.metric, value, _decimals(one.metric), signed=signed)
