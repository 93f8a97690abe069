"""Hard negatives as text: accuracies by category, what they mean, the largest failures; and two models compared."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite
from typing import TypeVar

import numpy as np

from crosslens.analyze import (
    ACCURACY,
    ALL_CASES,
    MACRO,
    ROUNDING,
    CategoryAccuracy,
    CategoryDifference,
    HardNegativesComparison,
    HardNegativesResult,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, percent
from crosslens.metrics import format_count

_MOST_CATEGORIES = 20
_INDENT = 4 * " "
Row = TypeVar("Row", CategoryAccuracy, CategoryDifference)


@RENDERERS.register("HardNegativesResult")
def hard_negatives_text(result: HardNegativesResult, width: int | None = None, failures: int = 5) -> str:
    """The accuracies, what they mean, and the largest failures."""
    negatives = result.negatives
    photos = len(np.unique(negatives.clusters)) if result.resampled == "photos" else 2 * len(negatives)
    head = (
        f"{result.model} on {negatives.name}: {format_count(len(negatives), 'case')}, {format_count(photos, 'photo')}"
    )
    parts = ["\n".join(textwrap.wrap(head, width or PAGE_WIDTH))]
    parts += [_grid(result, measure).text(width) for measure in negatives.measures]
    parts.append("\n".join(line for note in _notes(result) for line in textwrap.wrap(note, width or PAGE_WIDTH)))
    if failures and (listed := _failures_text(result, failures, width or PAGE_WIDTH)):
        parts.append(listed)
    return "\n\n".join(parts)


@RENDERERS.register("HardNegativesComparison")
def hard_negatives_comparison_text(result: HardNegativesComparison, width: int | None = None) -> str:
    """A table per measure, a row per category."""
    head = f"1st: {result.first}; 2nd: {result.second}. Difference 1st − 2nd in points."
    note = (
        "1st, 2nd: how many cases this model alone has right. p: a permutation test that swaps photos, adjusted "
        "for the number of rows (Holm)."
    )
    head, note = ("\n".join(textwrap.wrap(text, width or PAGE_WIDTH)) for text in (head, note))
    measures = dict.fromkeys(row.measure for row in result.differences)
    return "\n\n".join([head, *(_comparison_grid(result, measure).text(width) for measure in measures), note])


def shown_categories(rows: Sequence[Row], measure: str) -> list[Row]:
    """All cases, macro, and of every grouping the largest categories in their order."""
    rows = [row for row in rows if row.measure == measure]
    shown: list[Row] = []
    for grouping in dict.fromkeys(row.grouping for row in rows):
        members = [row for row in rows if row.grouping == grouping]
        largest = sorted(members, key=lambda row: -row.cases)[:_MOST_CATEGORIES]
        shown += [row for row in members if row in largest]
    return shown


def category_label(row: CategoryAccuracy) -> str:
    """What a row is called."""
    if row.grouping == ALL_CASES:
        return "all cases"
    return "macro" if row.grouping == MACRO else f"  {row.category}"


def interval_text(low: float, high: float, *, signed: bool = False) -> str:
    """An interval, or nothing."""
    if not (isfinite(low) and isfinite(high)):
        return ""
    return f"[{percent(low, signed=signed)}, {percent(high, signed=signed)}]"


def _grid(result: HardNegativesResult, measure: str) -> Grid:
    name = measure if measure == ACCURACY[0] else f"{measure} score"
    cells: list[tuple[str, ...]] = []
    before = ALL_CASES
    for row in shown_categories(result.figures, measure):
        if row.grouping not in (ALL_CASES, MACRO, before) and len(result.negatives.groupings) > 1:
            cells.append((f"by {row.grouping}", *[""] * 5))
        before = row.grouping
        shares = percent(row.value), interval_text(row.low, row.high), percent(row.chance), percent(row.tied)
        cells.append((category_label(row), f"{row.cases:,}", *shares))
    return Grid(("", "cases", name, "", "chance", "tied"), tuple(cells), "lrrlrr")


def _notes(result: HardNegativesResult) -> list[str]:
    negatives, rounded = result.negatives, result.outcomes.by_rounding
    bounded = any(isfinite(row.low) for row in result.figures)
    drawn = f", with {100 * result.level:g}% intervals over {result.resampled}" if bounded else ""
    notes = [f"In percent{drawn}. A case is right where the right one scores strictly higher; a tie is wrong."]
    if negatives.averaged is not None:
        least = f" of at least {negatives.fewest} cases" if negatives.fewest > 1 else ""
        notes.append(f"macro: the mean over the categories of {negatives.averaged!r}{least}, each counting the same.")
    first = negatives.measures[0]
    hidden = sum(row.measure == first for row in result.figures) - len(shown_categories(result.figures, first))
    if hidden:
        notes.append(f"{format_count(hidden, 'smaller category')} not shown; --json has all.")
    if rounded:
        notes.append(
            f"{format_count(rounded, 'outcome')} decided by less than {ROUNDING:g}, which may be "
            f"rounding alone: --tolerance {ROUNDING:g} counts them as ties."
        )
    if result.left_out:
        notes.append(f"{format_count(result.left_out, 'case')} without a score left out.")
    return [*notes, *negatives.notes]


def _failures_text(result: HardNegativesResult, most: int, width: int) -> str:
    failures = result.failures(most)
    if not failures.height:
        return ""
    lines = ["Furthest from right:"]
    for row in failures.iter_rows(named=True):
        margin = row["margin" if "margin" in row else "group_margin"]
        lines.append(f"  {margin:+.4g}  {row['case']}, {row.get('image', row.get('image_0'))}")
        for column in ("right", "wrong") if "right" in row else ("caption_0", "caption_1"):
            label = f"{column}: " if column in ("right", "wrong") else ""
            lines += textwrap.wrap(
                f"{label}{' '.join(row[column].split())}", width, initial_indent=_INDENT, subsequent_indent=2 * _INDENT
            )
    return "\n".join(lines)


def _comparison_grid(result: HardNegativesComparison, measure: str) -> Grid:
    single = measure == ACCURACY[0]
    cells = []
    for row in shown_categories(result.differences, measure):
        name = row.category if single else f"{row.grouping} {row.category}"
        title = "all cases" if row.grouping == ALL_CASES else f"  {name}"
        difference = f"{percent(row.difference, signed=True)}  {interval_text(row.low, row.high, signed=True)}".rstrip()
        alone = f"{row.only_first:,}", f"{row.only_second:,}"
        cells.append((title, f"{row.cases:,}", difference, *alone, f"{row.corrected:.4f}"))
    measured = "" if single else f"{measure} score"
    return Grid((measured, "cases", "difference", "1st", "2nd", "p"), tuple(cells), "lrlrrr")
