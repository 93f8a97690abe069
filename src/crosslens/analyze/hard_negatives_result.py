"""What a model makes of hard negatives: as a table, case by case, and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives import ALL, MACRO, ROUNDING, Figure, Outcomes, figures, judge
from crosslens.core.errors import UnknownNameError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.data.hard_negatives import ACCURACY, HardNegatives
from crosslens.metrics.figures import count

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_MOST_CATEGORIES = 20
_INDENT = 4 * " "


@dataclass(frozen=True, eq=False)
class HardNegativesResult:
    """The outcome of every case and the figures over them; prints as a table.

    ``scores`` are those of ``negatives.pairs``. ``left_out`` says how many cases had no score.
    """

    model: str
    negatives: HardNegatives
    scores: FloatArray
    outcomes: Outcomes
    figures: tuple[Figure, ...]
    level: float = 0.95
    left_out: int = 0

    @property
    def resampled(self) -> str:
        """What intervals resample: photos, whose cases are not independent; of cases with two pictures, the cases."""
        return "photos" if self.negatives.measures == ACCURACY else "cases"

    def figure(self, category: str = "", measure: str | None = None, grouping: str | None = None) -> Figure:
        """One figure: of a category (empty: all cases), by the first measure unless another is named.

        ``grouping="macro"`` is the mean over categories.
        """
        measure = measure or self.negatives.measures[0]
        if measure not in self.negatives.measures:
            raise UnknownNameError("measure", measure, self.negatives.measures)
        wanted = grouping or (None if category else ALL)
        for one in self.figures:
            if one.measure == measure and wanted in (None, one.grouping) and category in (one.category, ""):
                return one
        raise UnknownNameError("category", category or str(grouping), {one.category for one in self.figures} - {""})

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per category and measure: cases, value, interval, chance, the share of ties."""
        return pl.DataFrame([asdict(one) for one in self.figures])

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row per case: groups, texts, scores, and by measure whether it is right, tied, and by how far."""
        found = self.negatives.cases
        prefixes = {one: "" if one == ACCURACY[0] else f"{one}_" for one in self.negatives.measures}
        for measure, prefix in prefixes.items():
            found = found.with_columns(
                pl.Series(f"{prefix}correct", self.outcomes.correct(measure)),
                pl.Series(f"{prefix}tied", self.outcomes.tied(measure)),
                pl.Series(f"{prefix}margin", self.outcomes.margins[measure]),
            )
        texts = self._one_picture() if self.negatives.measures == ACCURACY else self._two_pictures()
        return found.with_columns(texts)

    def failures(self, most: int | None = 10) -> pl.DataFrame:
        """The cases that are wrong, the furthest from right first; of cases with two pictures, by the group score."""
        prefix = "" if self.negatives.measures == ACCURACY else "group_"
        wrong = self.cases.filter(~pl.col(f"{prefix}correct"))
        ordered = wrong.sort(f"{prefix}margin", maintain_order=True)
        return ordered if most is None else ordered.head(most)

    def as_dict(self, failures: int = 10) -> dict[str, Any]:
        """The figures and the largest failures, as JSON can hold them."""
        found: dict[str, Any] = json_form(
            {
                "set": self.negatives.name,
                "model": self.model,
                "cases": len(self.negatives),
                "images": self.negatives.dataset.images.height,
                "left_out": self.left_out,
                "tolerance": self.outcomes.tolerance,
                "by_rounding": self.outcomes.by_rounding,
                "level": self.level,
                "figures": [asdict(one) for one in self.figures],
                "failures": self.failures(failures).to_dicts(),
                "notes": list(self.negatives.notes),
            }
        )
        return found

    def text(self, width: int | None = None, failures: int = 5) -> str:
        """The figures, what they mean, and the largest failures."""
        head = f"{self.model} on {self.negatives.name}: {count(len(self.negatives), 'case')}"
        pictures = len(np.unique(self.negatives.clusters))
        head += f", {count(pictures if self.resampled == 'photos' else 2 * len(self.negatives), 'photo')}"
        parts = ["\n".join(textwrap.wrap(head, width or PAGE_WIDTH))]
        parts += [self._grid(measure).text(width) for measure in self.negatives.measures]
        parts.append("\n".join(line for one in self._notes() for line in textwrap.wrap(one, width or PAGE_WIDTH)))
        if failures and (told := self._failures_text(failures, width or PAGE_WIDTH)):
            parts.append(told)
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _grid(self, measure: str) -> Grid:
        name = measure if measure == ACCURACY[0] else f"{measure} score"
        rows: list[tuple[str, ...]] = []
        before = ALL
        for one in shown_figures(self.figures, measure):
            if one.grouping not in (ALL, MACRO, before) and len(self.negatives.groupings) > 1:
                rows.append((f"by {one.grouping}", *[""] * 5))
            before = one.grouping
            rows.append(_row(one))
        return Grid(("", "cases", name, "", "chance", "tied"), tuple(rows), "lrrlrr")

    def _notes(self) -> list[str]:
        bounded = any(isfinite(one.low) for one in self.figures)
        drawn = f", with {100 * self.level:g}% intervals from resampling {self.resampled}" if bounded else ""
        notes = [f"In percent{drawn}. A case is right where the right one scores strictly higher; a tie is wrong."]
        if self.negatives.averaged is not None:
            least = f" of at least {self.negatives.fewest} cases" if self.negatives.fewest > 1 else ""
            over = f"the categories of {self.negatives.averaged!r}{least}"
            notes.append(f"macro: the mean over {over}, each counting the same.")
        hidden = self._hidden()
        if hidden:
            notes.append(f"{count(hidden, 'smaller category')} not shown; --json has all.")
        if self.outcomes.by_rounding:
            notes.append(
                f"{count(self.outcomes.by_rounding, 'outcome')} decided by less than {ROUNDING:g}, which may be "
                f"rounding alone: --tolerance {ROUNDING:g} counts them as ties."
            )
        if self.left_out:
            notes.append(f"{count(self.left_out, 'case')} without a score left out.")
        return [*notes, *self.negatives.notes]

    def _hidden(self) -> int:
        first = self.negatives.measures[0]
        return sum(one.measure == first for one in self.figures) - len(shown_figures(self.figures, first))

    def _failures_text(self, most: int, width: int) -> str:
        found = self.failures(most)
        if not found.height:
            return ""
        lines = ["Furthest from right:"]
        for row in found.iter_rows(named=True):
            margin = row["margin" if "margin" in row else "group_margin"]
            lines.append(f"  {margin:+.4g}  {row['case']}, {row.get('image', row.get('image_0'))}")
            first, second = ("right", "wrong") if "right" in row else ("caption_0", "caption_1")
            for mark, text in ((first, row[first]), (second, row[second])):
                label = f"{mark}: " if mark in ("right", "wrong") else ""
                lines += textwrap.wrap(
                    f"{label}{' '.join(text.split())}", width, initial_indent=_INDENT, subsequent_indent=2 * _INDENT
                )
        return "\n".join(lines)

    def _scored(self) -> pl.DataFrame:
        dataset = self.negatives.dataset
        return self.negatives.pairs.with_columns(
            pl.Series("score", self.scores),
            pl.Series("id", dataset.caption_ids, dtype=pl.String).gather(self.negatives.pairs["caption"]),
            pl.Series("text", dataset.texts, dtype=pl.String).gather(self.negatives.pairs["caption"]),
            pl.Series("picture", dataset.image_ids, dtype=pl.String).gather(self.negatives.pairs["image"]),
        )

    def _one_picture(self) -> list[pl.Series]:
        """The picture, the right caption, and the best of the wrong ones."""
        scored = self._scored()
        right = scored.filter("right").sort("case")
        wrong = scored.filter(~pl.col("right")).sort("case", "score", descending=[False, True], maintain_order=True)
        wrong = wrong.unique("case", keep="first", maintain_order=True)
        return [
            right["picture"].alias("image"),
            right["text"].alias("right"),
            wrong["text"].alias("wrong"),
            wrong["id"].alias("wrong_caption"),
            right["score"].alias("right_score"),
            wrong["score"].alias("wrong_score"),
        ]

    def _two_pictures(self) -> list[pl.Series]:
        """Both captions, both pictures, and the four scores."""
        scored = self._scored().sort("case", "caption", "image", maintain_order=True)
        right = scored.filter("right")
        columns = [
            right[name].gather_every(2, side).alias(f"{label}_{side}")
            for name, label in (("text", "caption"), ("picture", "image"))
            for side in (0, 1)
        ]
        own = right["image"].gather_every(2, 0).to_numpy(), right["image"].gather_every(2, 1).to_numpy()
        images = scored["image"].to_numpy().reshape(-1, 2, 2)
        values = scored["score"].to_numpy().reshape(-1, 2, 2)
        for caption in (0, 1):
            for side in (0, 1):
                place = np.argmax(images[:, caption] == own[side][:, None], axis=1)
                taken = np.take_along_axis(values[:, caption], place[:, None], axis=1)[:, 0]
                columns.append(pl.Series(f"score_{caption}_{side}", taken))
        return columns


def measure_negatives(
    negatives: HardNegatives,
    scores: FloatArray,
    model: str,
    *,
    skip_missing: bool = False,
    tolerance: float = 0.0,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> HardNegativesResult:
    """The result from a score for each of ``negatives.pairs``; a missing one (NaN) raises, or its case is left out."""
    missing = 0
    scores = np.asarray(scores, np.float64)
    if skip_missing and np.isnan(scores).any():
        lacking = np.bincount(negatives.pairs["case"].to_numpy()[np.isnan(scores)], minlength=len(negatives)) > 0
        scores = scores[~lacking[negatives.pairs["case"].to_numpy()]]
        negatives, missing = negatives.select(~lacking), int(lacking.sum())
    outcomes = judge(negatives, scores, tolerance)
    found = figures(negatives, outcomes, resamples=resamples, level=level, seed=seed)
    return HardNegativesResult(model, negatives, scores, outcomes, found, level, missing)


class _Sized(Protocol):
    @property
    def grouping(self) -> str: ...
    @property
    def cases(self) -> int: ...
    @property
    def measure(self) -> str: ...


Row = TypeVar("Row", bound=_Sized)


def shown_figures(found: Sequence[Row], measure: str) -> list[Row]:
    """All cases, macro, and of every grouping the largest categories in their order."""
    mine = [one for one in found if one.measure == measure]
    shown: list[Row] = []
    for grouping in dict.fromkeys(one.grouping for one in mine):
        members = [one for one in mine if one.grouping == grouping]
        largest = sorted(members, key=lambda one: -one.cases)[:_MOST_CATEGORIES]
        shown += [one for one in members if one in largest]
    return shown


def label_of(one: Figure) -> str:
    """What a row is called."""
    if one.grouping == ALL:
        return "all cases"
    return "macro" if one.grouping == MACRO else f"  {one.category}"


def percent(value: float, *, signed: bool = False) -> str:
    """A share as people read it."""
    return f"{round(100 * value, 1) + 0.0:{'+' if signed else ''}.1f}" if isfinite(value) else "–"


def bounds(low: float, high: float, *, signed: bool = False) -> str:
    """An interval, or nothing."""
    if not (isfinite(low) and isfinite(high)):
        return ""
    return f"[{percent(low, signed=signed)}, {percent(high, signed=signed)}]"


def _row(one: Figure) -> tuple[str, ...]:
    interval = bounds(one.low, one.high)
    return label_of(one), f"{one.cases:,}", percent(one.value), interval, percent(one.chance), percent(one.tied)
