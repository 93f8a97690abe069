"""What agreement with people came out as, and how it reads as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.data.judgements import Judgements
from crosslens.metrics.figures import count
from crosslens.statistics import Estimate
from crosslens.statistics.correlation import COEFFICIENTS
from crosslens.statistics.correlation_judges import JudgeAgreement

BINARY = "binary"
"""The φ of ordinary recall: 1 for a pair of the ground truth, 0 for any other."""
ALL, OUTSIDE, UNREAD = "all", "non-gt", "non-reference"
TITLES = {
    ALL: "All pairs",
    OUTSIDE: "Outside the ground truth",
    UNREAD: "Caption not among the references",
}
LABELS = {"pearson": "Pearson", "spearman": "Spearman", "kendall-b": "Kendall τ-b", "kendall-c": "Kendall τ-c"}

Figures = Mapping[str, Estimate]


@dataclass(frozen=True)
class Subset:
    """Figures over some of the judged pairs.

    ``figures`` holds the coefficients of each φ; ``differences`` those of each two φ, first less second, on the same
    pairs. ``observations`` is the number of pairs, or of single judgements where they were pooled.
    """

    pairs: int
    observations: int
    images: int
    figures: Mapping[str, Figures]
    differences: Mapping[tuple[str, str], Figures]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Each φ against people; prints as a table.

    ``values`` holds φ of every judged pair, ``truth`` whether the pair is in the ground truth.
    """

    dataset: str
    judgements: Judgements
    values: Mapping[str, np.ndarray[Any, Any]]
    truth: np.ndarray[Any, Any]
    subsets: Mapping[str, Subset]
    judges: JudgeAgreement | None
    pooled: bool = False
    level: float = 0.95

    def figure(self, phi: str, coefficient: str = "pearson", subset: str = ALL) -> Estimate:
        """One coefficient of one φ, with its interval."""
        if subset not in self.subsets:
            raise UnknownNameError("subset", subset, self.subsets)
        if phi not in self.values:
            raise UnknownNameError("φ", phi, self.values)
        if coefficient not in COEFFICIENTS:
            raise UnknownNameError("coefficient", coefficient, COEFFICIENTS)
        return self.subsets[subset].figures[phi][coefficient]

    @property
    def table(self) -> pl.DataFrame:
        """One row per subset, φ and coefficient."""
        rows = [
            (part, name, coefficient, subset.pairs, one.mean, one.low, one.high)
            for part, subset in self.subsets.items()
            for name, figures in subset.figures.items()
            for coefficient, one in figures.items()
        ]
        return pl.DataFrame(rows, ["pairs", "phi", "coefficient", "n", "value", "low", "high"], orient="row")

    def as_dict(self) -> dict[str, Any]:
        """Everything but the values of single pairs, as JSON can hold it."""
        subsets = {
            part: {
                "pairs": one.pairs,
                "observations": one.observations,
                "images": one.images,
                "phi": {name: _plain(figures) for name, figures in one.figures.items()},
                "differences": [
                    {"first": first, "second": second, **_plain(figures)}
                    for (first, second), figures in one.differences.items()
                ],
            }
            for part, one in self.subsets.items()
        }
        found: dict[str, Any] = json_form(
            {
                "dataset": self.dataset,
                "judgements": self.judgements.source,
                "skipped": self.judgements.skipped,
                "pooled": self.pooled,
                "level": self.level,
                "subsets": subsets,
                "judges": None if self.judges is None else asdict(self.judges),
            }
        )
        return found

    def text(self, width: int | None = None, kendall: str = "b") -> str:
        """The tables: φ down, coefficients across."""
        if kendall not in ("b", "c"):
            raise UsageError(f"Kendall's τ-{kendall}", fix="use 'b' or 'c'")
        shown = ("pearson", "spearman", f"kendall-{kendall}")
        parts = [f"{self.judgements.source} on {self.dataset}"]
        parts += [_section(part, subset, shown, self.pooled, width) for part, subset in self.subsets.items()]
        return "\n\n".join([*parts, self._explanation(width or PAGE_WIDTH)])

    def __str__(self) -> str:
        return self.text()

    def _explanation(self, width: int) -> str:
        lines = [
            "binary: 1 for a pair of the ground truth, 0 for any other; outside it, it says nothing (–).",
            f"In brackets: {100 * self.level:g}% intervals from resampling images.",
        ]
        if any(len(one.figures) > 2 for one in self.subsets.values()):
            lines.append("−: the difference on the same pairs, with its own interval.")
        if UNREAD in self.subsets:
            lines.append("Not among the references: word for word, whichever image the caption was written for.")
        if self.pooled:
            lines.append("Each judge's score is an observation of its own.")
        if self.judges is not None:
            one = self.judges.one_against_others
            lines.append(
                f"People: {count(self.judges.judgements, 'score')} for {count(self.judges.pairs, 'pair')}; "
                f"one judge against the mean of the others: Pearson {_number(one['pearson'])}, "
                f"Spearman {_number(one['spearman'])}; Krippendorff's α {_number(self.judges.alpha)}."
            )
        if self.judgements.skipped:
            lines.append(f"{count(self.judgements.skipped, 'row')} of images or captions not in the dataset left out.")
        return "\n".join(part for line in lines for part in textwrap.wrap(line, width))


def _plain(figures: Figures) -> dict[str, Any]:
    return {key: {"value": one.mean, "low": one.low, "high": one.high} for key, one in figures.items()}


def _section(part: str, subset: Subset, shown: tuple[str, ...], pooled: bool, width: int | None) -> str:
    size = count(subset.pairs, "pair") + (f", {count(subset.observations, 'score')}" if pooled else "")
    head = f"{TITLES[part]}: {size} of {count(subset.images, 'image')}"
    return f"{head}\n\n{Grid(('φ', *(LABELS[one] for one in shown)), _rows(subset, shown), 'l' * 4).text(width)}"


def _rows(subset: Subset, shown: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Each φ, and under it how much it is above the first that is not the ground truth itself."""
    rows = []
    first = next((name for name in subset.figures if name != BINARY), None)
    for name, figures in subset.figures.items():
        rows.append((name, *(_cell(figures[one]) for one in shown)))
        if (difference := subset.differences.get((name, first or ""))) is not None:
            rows.append((f"  − {first}", *(_cell(difference[one], signed=True) for one in shown)))
    return tuple(rows)


def _cell(one: Estimate, signed: bool = False) -> str:
    if not isfinite(one.mean):
        return "–"
    bounds = f" [{_short(one.low)}, {_short(one.high)}]" if isfinite(one.low) and isfinite(one.high) else ""
    return f"{round(one.mean, 3) + 0.0:{'+' if signed else ''}.3f}{bounds}"


def _number(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "–"


def _short(value: float) -> str:
    """Three digits without the zero before the point, which every coefficient has."""
    text = f"{round(value, 3) + 0.0:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
