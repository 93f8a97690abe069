"""How hard negatives are shown: accuracies by category, what they mean, the largest failures, models compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crosslens.analyze.hard_negatives.cases import ACCURACY
from crosslens.analyze.hard_negatives.outcomes import ALL_CASES, MACRO, ROUNDING, CategoryAccuracy
from crosslens.core import Bars, Cards, Cell, Figure, Part, PictureCard, Presented, Section, Series, Table, Text
from crosslens.metrics import format_count

if TYPE_CHECKING:
    from crosslens.analyze.hard_negatives.result import (
        CategoryDifference,
        HardNegativesComparison,
        HardNegativesResult,
    )

_MOST_CATEGORIES = 20
Row = TypeVar("Row", "CategoryAccuracy", "CategoryDifference")


@dataclass(frozen=True)
class HardNegativesStudy(Presented):
    """Several models on the same cases: each model's accuracies, and its differences from the first.

    ``failures`` is how many of the worst are shown of each of the first ``seeing`` models; those behind are baselines.
    """

    results: tuple[HardNegativesResult, ...]
    comparisons: tuple[HardNegativesComparison, ...] = ()
    failures: int = 5
    seeing: int | None = None

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Hard negatives: {self.results[0].negatives.name}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """A chart per measure, then model by model, then the differences."""
        yield Section("", tuple(accuracy_bars(self.results, measure) for measure in self.results[0].negatives.measures))
        for number, result in enumerate(self.results):
            shown = self.failures if self.seeing is None or number < self.seeing else 0
            yield from result_sections(result, shown)
        for comparison in self.comparisons:
            yield from comparison.sections()

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "results": [result.as_dict(self.failures) for result in self.results],
            "comparisons": [comparison.as_dict() for comparison in self.comparisons],
        }


def result_sections(result: HardNegativesResult, failures: int = 5) -> Iterator[Section]:
    """One model: its accuracies, what they mean, and the largest failures."""
    negatives = result.negatives
    photos = len(np.unique(negatives.clusters)) if result.resampled == "photos" else 2 * len(negatives)
    cases = f"{format_count(len(negatives), 'case')}, {format_count(photos, 'photo')}"
    parts: list[Part] = [_accuracy_table(result, measure) for measure in negatives.measures]
    parts.append(Text(tuple(_notes(result)), note=True))
    if failures and (listed := result.failures(failures)).height:
        parts.append(Cards("Furthest from right:", tuple(_failure(row) for row in listed.iter_rows(named=True))))
    yield Section(f"{result.model} on {negatives.name}: {cases}", tuple(parts))


def comparison_sections(comparison: HardNegativesComparison) -> Iterator[Section]:
    """A table per measure, a row per category."""
    head = f"1st: {comparison.first}; 2nd: {comparison.second}. Difference 1st − 2nd in points."
    note = (
        "1st, 2nd: how many cases this model alone has right. p: a permutation test that swaps photos, adjusted "
        "for the number of rows (Holm)."
    )
    measures = dict.fromkeys(row.measure for row in comparison.differences)
    tables = (_difference_table(comparison, measure) for measure in measures)
    yield Section(head, (*tables, Text.of(note, note=True)))


def accuracy_bars(results: Sequence[HardNegativesResult], measure: str) -> Bars:
    """A bar per category and model, and a mark where guessing would end."""
    first = results[0]
    rows = shown_categories(first.figures, measure)
    counts = dict.fromkeys(format_count(len(result.negatives), "case") for result in results)
    if len(counts) > 1:  # cases left out for lack of a score
        counts = dict.fromkeys(f"{format_count(len(own.negatives), 'case')} ({own.model})" for own in results)
    facts = f"{', '.join(counts)}, {100 * first.level:g}% intervals over {first.resampled}"
    return Bars(
        title=f"{first.negatives.name}: {measured(measure)}",
        about=f"{facts}; ties are wrong; | is chance",
        groups=tuple(category_label(row, grouped=len(first.negatives.groupings) > 1) for row in rows),
        series=tuple(
            Series(result.model, tuple(map(accuracy, shown_categories(result.figures, measure)))) for result in results
        ),
        mark=Series("chance", tuple(Figure.percent(row.chance) for row in rows)),
        heading="category", axis="%", limits=(0.0, 1.0),
    )  # fmt: skip


def shown_categories(rows: Sequence[Row], measure: str) -> list[Row]:
    """All cases, macro, and of every grouping the largest categories in their order."""
    rows = [row for row in rows if row.measure == measure]
    shown: list[Row] = []
    for grouping in dict.fromkeys(row.grouping for row in rows):
        members = [row for row in rows if row.grouping == grouping]
        largest = sorted(members, key=lambda row: -row.cases)[:_MOST_CATEGORIES]
        shown += [row for row in members if row in largest]
    return shown


def category_label(row: CategoryAccuracy, *, grouped: bool = False) -> str:
    """What a row is called; categories of two groupings may share a name."""
    if row.grouping in (ALL_CASES, MACRO):
        return "all cases" if row.grouping == ALL_CASES else "macro"
    return f"{row.grouping}: {row.category}" if grouped else row.category


def accuracy(row: CategoryAccuracy) -> Figure:
    """The value with its interval."""
    return Figure.percent(row.value, row.low, row.high)


def measured(measure: str) -> str:
    """What a measure is called."""
    return measure if measure == ACCURACY[0] else f"{measure} score"


def _accuracy_table(result: HardNegativesResult, measure: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    before = ALL_CASES
    for row in shown_categories(result.figures, measure):
        if row.grouping not in (ALL_CASES, MACRO, before) and len(result.negatives.groupings) > 1:
            rows.append((f"by {row.grouping}", *[None] * 4))
        before = row.grouping
        label = category_label(row) if row.grouping in (ALL_CASES, MACRO) else f"  {row.category}"
        rows.append((label, row.cases, accuracy(row), Figure.percent(row.chance), Figure.percent(row.tied)))
    return Table(("", "cases", measured(measure), "chance", "tied"), tuple(rows), "lrrrr")


def _notes(result: HardNegativesResult) -> Iterator[str]:
    negatives, rounded = result.negatives, result.outcomes.by_rounding
    bounded = any(isfinite(row.low) for row in result.figures)
    drawn = f", with {100 * result.level:g}% intervals over {result.resampled}" if bounded else ""
    yield f"In percent{drawn}. A case is right where the right one scores strictly higher; a tie is wrong."
    if negatives.averaged is not None:
        least = f" of at least {negatives.fewest} cases" if negatives.fewest > 1 else ""
        yield f"macro: the mean over the categories of {negatives.averaged!r}{least}, each counting the same."
    first = negatives.measures[0]
    hidden = sum(row.measure == first for row in result.figures) - len(shown_categories(result.figures, first))
    if hidden:
        yield f"{format_count(hidden, 'smaller category')} not shown; --json has all."
    if rounded:
        yield (
            f"{format_count(rounded, 'outcome')} decided by less than {ROUNDING:g}, which may be "
            f"rounding alone: --tolerance {ROUNDING:g} counts them as ties."
        )
    if result.left_out:
        yield f"{format_count(result.left_out, 'case')} without a score left out."
    yield from negatives.notes


def _failure(row: dict[str, Any]) -> PictureCard:
    margin = row["margin" if "margin" in row else "group_margin"]
    image = row.get("image", row.get("image_0"))
    if "right" in row:
        lines = (f"right: {row['right']}", f"wrong: {row['wrong']}")
    else:
        lines = row["caption_0"], row["caption_1"]
    return PictureCard(f"{margin:+.4g}  {row['case']}, {image}", lines, image=image)


def _difference_table(comparison: HardNegativesComparison, measure: str) -> Table:
    single = measure == ACCURACY[0]
    rows = []
    for row in shown_categories(comparison.differences, measure):
        name = row.category if single else f"{row.grouping} {row.category}"
        title = "all cases" if row.grouping == ALL_CASES else f"  {name}"
        difference = Figure.percent(row.difference, row.low, row.high, signed=True)
        rows.append((title, row.cases, difference, row.only_first, row.only_second, Figure(row.corrected, digits=4)))
    return Table(("" if single else measured(measure), "cases", "difference", "1st", "2nd", "p"), tuple(rows), "lrlrrr")
