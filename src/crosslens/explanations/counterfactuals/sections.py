"""How counterfactuals are shown: the edit marked in the query, what it changed, how robust all queries are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crosslens.core import Cell, Diffs, Figure, Lines, Part, Section, Series, Table, Text, TextDiff
from crosslens.metrics import format_count
from crosslens.perturbations import diff_spans

if TYPE_CHECKING:
    from crosslens.explanations.counterfactuals.result import Counterfactual, Counterfactuals, Radius

_KINDS = (("right → wrong", True), ("wrong → right", False))


def counterfactual_sections(result: Counterfactuals) -> Iterator[Section]:
    """The edits, smallest first, then the summary where there are several queries."""
    head = (
        f"{result.model} on {result.dataset}: {format_count(len(result), 'query')} ({result.direction}) among "
        f"{result.gallery:,} images, up to {format_count(result.budget, 'encoding')} each"
    )
    flips = sorted((edit for edit in result if edit.flipped), key=lambda edit: (edit.characters, edit.words))
    diffs = map(edit_diff, [*flips, *(edit for edit in result if not edit.flipped)])
    more = f"… and {format_count(len(result) - result.shown, 'more query')} (--show N prints more)"
    parts: list[Part] = [Text.of(head), *_curve(result), Diffs(tuple(diffs), most=result.shown, rest=more)]
    if len(result) > 1:
        parts += [*_radius_table(result), *_perturbation_table(result), Text.of(*_notes(result))]
    yield Section("", tuple(parts))


def edit_diff(edit: Counterfactual) -> TextDiff:
    """One query: what happened, the edit, and what it did to the ranking."""
    before, after = edit.before, edit.after
    if after is None:
        return TextDiff(edit.query, diff_spans(before.text, ()), _verdict(edit))
    top = f"top-1 {before.top} → {after.top}" if before.top != after.top else f"top-1 stays {before.top}"
    places = f"rank of its own image {before.rank:,} → {after.rank:,}"
    margins = f"margin {before.margin:+.4f} → {after.margin:+.4f}"
    facts = (top, f"{places}; {margins}", _effort(edit))
    return TextDiff(edit.query, diff_spans(before.text, edit.edits), _verdict(edit), facts)


def _verdict(edit: Counterfactual) -> str:
    """In a sentence: flipped by what, or not, and how sure that is."""
    if edit.flipped:
        return f"{edit.kind} by {format_count(edit.characters, 'character')} ({', '.join(edit.perturbations)})"
    state = "right" if edit.before.right else "wrong"
    if edit.after is None:
        return f"stays {state}: these perturbations can change nothing in it"
    among = f"all {edit.tried:,} edits" if edit.exhaustive else f"{edit.tried:,} of {edit.candidates:,} edits"
    return f"stays {state}: no flip among {among}; the closest ({', '.join(edit.perturbations)}):"


def _effort(edit: Counterfactual) -> str:
    spent = format_count(edit.encodings, "encoding")
    if not edit.flipped:
        reach = f"every edit of up to {format_count(edit.searched, 'character')} tried" if edit.searched else ""
        return "; ".join(part for part in (spent, reach if not edit.exhaustive else "") if part)
    if edit.exhaustive:
        return f"{spent}; every edit of up to {format_count(edit.characters, 'character')} tried: none is smaller"
    if edit.complete:
        return f"{spent}; no edit of fewer characters flips it; not all as small were tried"
    return f"{spent}; not every possible edit was looked at"


def _groups(result: Counterfactuals) -> list[tuple[str, tuple[Radius, ...]]]:
    """The kinds of flips that there can be, and how many queries flip at each step."""
    kinds = ((kind, len(result.of(right=right)), result.radii(right=right)) for kind, right in _KINDS)
    return [(f"{kind} (of {queries:,})", radii) for kind, queries, radii in kinds if queries and radii]


def _curve(result: Counterfactuals) -> Iterator[Lines]:
    if len(result.steps) > 1:
        yield Lines(
            title="Queries that an edit of at most so many characters flips",
            about="In percent; a band where the budget did not reach all edits.",
            across=tuple(map(float, result.steps)),
            series=tuple(Series(kind, tuple(map(_share, radii))) for kind, radii in _groups(result)),
            axis="characters", limits=(0.0, 1.0),
        )  # fmt: skip


def _share(radius: Radius) -> Figure:
    ends = (radius.share, radius.at_most) if radius.open else (math.nan, math.nan)
    return Figure.percent(radius.share, *ends)


def _radius_table(result: Counterfactuals) -> Iterator[Table]:
    """The share of queries that an edit of at most so many characters flips; a range where the budget left it open."""
    rows: list[tuple[Cell, ...]] = []
    groups = _groups(result)
    for index, step in enumerate(result.steps):
        shares = ((radii[index].share, radii[index].at_most, radii[index].open) for _, radii in groups)
        cells = (
            f"{100 * least:.1f} to {100 * most:.1f} %" if open else f"{100 * least:.1f} %"
            for least, most, open in shares
        )
        rows.append((f"≤ {step}", *cells))
    if rows:
        yield Table(("characters", *(kind for kind, _ in groups)), tuple(rows), "r" + "l" * len(groups))


def _perturbation_table(result: Counterfactuals) -> Iterator[Table]:
    """How many of the smallest flips each perturbation makes."""
    counts = [result.by_perturbation(right=right) for _, right in _KINDS]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: -sum(flips.get(name, 0) for flips in counts))
    if names:
        rows: list[tuple[Cell, ...]] = [(name, *(flips.get(name, 0) for flips in counts)) for name in names]
        yield Table(("smallest flip by", *(kind for kind, _ in _KINDS)), tuple(rows), "lrr")


def _notes(result: Counterfactuals) -> Iterator[str]:
    """How many queries flipped, and how to read the tables."""
    flipped = sum(edit.flipped for edit in result)
    yield f"{flipped:,} of {format_count(len(result), 'query')} flipped by a single edit of a perturbation."
    if any(radius.open for _, radii in _groups(result) for radius in radii):
        yield "Where a range is given, the budget did not reach all edits: the share is between the two."
    if any(len(edit.perturbations) > 1 for edit in result if edit.flipped):
        yield "An edit that several perturbations make counts for each."
