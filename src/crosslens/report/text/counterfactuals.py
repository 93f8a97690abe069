"""Counterfactuals as text: the edit marked in the query, what it changed, how robust all queries are."""

from __future__ import annotations

import textwrap

from crosslens.core import PAGE_WIDTH, Grid, printable_line
from crosslens.explanations import Counterfactual, Counterfactuals, Radius
from crosslens.metrics import format_count
from crosslens.perturbations import Perturbed
from crosslens.report.text.caption_changes import diff_lines
from crosslens.report.text.runs import text_bar

_KINDS = (("right → wrong", True), ("wrong → right", False))
_BAR = 10


def counterfactuals_text(
    result: Counterfactuals, width: int | None = None, *, show: int = 5, colour: bool = False
) -> str:
    """The first edits, smallest first, then the summary where there are several queries."""
    parts = ["\n".join(textwrap.wrap(printable_line(counterfactuals_head(result)), width or PAGE_WIDTH))]
    parts += [counterfactual_text(edit, colour=colour) for edit in smallest_first(result, show)]
    if len(result) > show:
        parts.append(f"… and {format_count(len(result) - show, 'more query')} (--show N prints more)")
    if len(result) > 1:
        parts += [grid.text(width) for grid in (radius_grid(result), perturbation_grid(result)) if grid is not None]
        parts.append(
            "\n".join(
                textwrap.fill(note, width or PAGE_WIDTH) for note in map(printable_line, counterfactuals_notes(result))
            )
        )
    return "\n\n".join(part for part in parts if part)


def smallest_first(result: Counterfactuals, most: int | None = None) -> list[Counterfactual]:
    """The smallest flips first, then what was not flipped."""
    flips = sorted((edit for edit in result if edit.flipped), key=lambda edit: (edit.characters, edit.words))
    return [*flips, *(edit for edit in result if not edit.flipped)][:most]


def counterfactual_text(edit: Counterfactual, *, colour: bool = False) -> str:
    """One query: what happened, the edit as a diff, and what it did to the ranking."""
    lines = [printable_line(f"{edit.query}: {verdict(edit)}")]
    if edit.after is None:
        return "\n".join([*lines, f"    {printable_line(edit.before.text)}"])
    lines += diff_lines(as_perturbed(edit), colour=colour)
    return "\n".join([*lines, *(f"    {printable_line(fact)}" for fact in edit_facts(edit))])


def verdict(edit: Counterfactual) -> str:
    """In a sentence: flipped by what, or not, and how sure that is."""
    if edit.flipped:
        return f"{edit.kind} by {format_count(edit.characters, 'character')} ({', '.join(edit.perturbations)})"
    state = "right" if edit.before.right else "wrong"
    if edit.after is None:
        return f"stays {state}: these perturbations can change nothing in it"
    among = f"all {edit.tried:,} edits" if edit.exhaustive else f"{edit.tried:,} of {edit.candidates:,} edits"
    return f"stays {state}: no flip among {among}; the closest ({', '.join(edit.perturbations)}):"


def as_perturbed(edit: Counterfactual) -> Perturbed:
    """The edit in the form of any perturbation."""
    after = edit.before.text if edit.after is None else edit.after.text
    return Perturbed(edit.before.text, after, edit.after is not None, "", edit.edits)


def edit_facts(edit: Counterfactual) -> list[str]:
    """Top-1, rank and margin before and after, and how thorough the search was."""
    before, after = edit.before, edit.after
    assert after is not None
    top = f"top-1 {before.top} → {after.top}" if before.top != after.top else f"top-1 stays {before.top}"
    places = f"rank of its own image {before.rank:,} → {after.rank:,}"
    margins = f"margin {before.margin:+.4f} → {after.margin:+.4f}"
    return [top, f"{places}; {margins}", _effort(edit)]


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


def radius_grid(result: Counterfactuals) -> Grid | None:
    """The share of queries that an edit of at most so many characters flips; a range where the budget left it open."""
    if not result.steps:
        return None
    groups = [(kind, result.radii(right=right), len(result.of(right=right))) for kind, right in _KINDS]
    groups = [group for group in groups if group[2]]
    header = ("characters", *(part for kind, _, size in groups for part in (f"{kind} (of {size:,})", "")))
    rows = []
    for index, step in enumerate(result.steps):
        radii = [group_radii[index] for _, group_radii, _ in groups]
        cells = [cell for radius in radii for cell in (radius_share(radius), text_bar(radius.share, _BAR))]
        rows.append((f"≤ {step}", *cells))
    return Grid(header, tuple(rows), "r" + "l" * (len(header) - 1))


def radius_share(radius: Radius) -> str:
    """``94.4 %``, or ``94.4 to 100.0 %`` where that is all that is known."""
    least, most = f"{100 * radius.share:.1f}", f"{100 * radius.at_most:.1f}"
    return f"{least} %" if radius.open == 0 else f"{least} to {most} %"


def perturbation_grid(result: Counterfactuals) -> Grid | None:
    """How many of the smallest flips each perturbation makes."""
    counts = [result.by_perturbation(right=right) for _, right in _KINDS]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: -sum(flips.get(name, 0) for flips in counts))
    if not names:
        return None
    rows = tuple((name, *(f"{flips.get(name, 0):,}" for flips in counts)) for name in names)
    return Grid(("smallest flip by", *(kind for kind, _ in _KINDS)), rows, "lrr")


def counterfactuals_head(result: Counterfactuals) -> str:
    """The model, the dataset, how many queries."""
    return (
        f"{result.model} on {result.dataset}: {format_count(len(result), 'query')} ({result.direction}) among "
        f"{result.gallery:,} images, up to {format_count(result.budget, 'encoding')} each"
    )


def counterfactuals_notes(result: Counterfactuals) -> list[str]:
    """How many queries flipped, and how to read the tables."""
    flipped = sum(edit.flipped for edit in result)
    notes = [f"{flipped:,} of {format_count(len(result), 'query')} flipped by a single edit of a perturbation."]
    if any(radius.open for _, right in _KINDS for radius in result.radii(right=right)):
        notes.append("Where a range is given, the budget did not reach all edits: the share is between the two.")
    if any(len(edit.perturbations) > 1 for edit in result if edit.flipped):
        notes.append("An edit that several perturbations make counts for each.")
    return notes
