"""Counterfactuals as people read them: the edit marked in the query, what it changed, how robust all queries are."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.explain.counterfactuals.result import Counterfactual, Counterfactuals, Radius
from crosslens.metrics.figures import count
from crosslens.perturb.edit import Perturbed
from crosslens.report.bars import bar
from crosslens.report.caption_changes import diff_html, diff_lines, page

_KINDS = (("right → wrong", True), ("wrong → right", False))
_BAR = 10


def counterfactuals_text(
    found: Counterfactuals, width: int | None = None, *, show: int = 5, colour: bool = False
) -> str:
    """The first edits, smallest first, then the summary where there are several queries."""
    parts = ["\n".join(textwrap.wrap(_head(found), width or PAGE_WIDTH))]
    parts += [counterfactual_text(one, colour=colour) for one in smallest(found, show)]
    if len(found) > show:
        parts.append(f"… and {count(len(found) - show, 'more query')} (--show N prints more)")
    if len(found) > 1:
        parts += [grid.text(width) for grid in (radius_grid(found), perturbation_grid(found)) if grid is not None]
        parts.append("\n".join(line for note in _notes(found) for line in textwrap.wrap(note, width or PAGE_WIDTH)))
    return "\n\n".join(part for part in parts if part)


def smallest(found: Counterfactuals, most: int | None = None) -> list[Counterfactual]:
    """The smallest flips first, then what was not flipped."""
    flips = sorted((one for one in found if one.flipped), key=lambda one: (one.characters, one.words))
    return [*flips, *(one for one in found if not one.flipped)][:most]


def counterfactual_text(one: Counterfactual, *, colour: bool = False) -> str:
    """One query: what happened, the edit as a diff, and what it did to the ranking."""
    lines = [f"{one.query}: {verdict(one)}"]
    if one.after is None:
        return "\n".join([*lines, f"    {one.before.text}"])
    lines += diff_lines(as_perturbed(one), colour=colour)
    facts = _facts(one)
    return "\n".join([*lines, *(f"    {fact}" for fact in facts)])


def verdict(one: Counterfactual) -> str:
    """In a sentence: flipped by what, or not, and how sure that is."""
    if one.flipped:
        return f"{one.kind} by {count(one.characters, 'character')} ({', '.join(one.perturbations)})"
    state = "right" if one.before.right else "wrong"
    if one.after is None:
        return f"stays {state}: these perturbations can change nothing in it"
    among = f"all {one.tried:,} edits" if one.exhaustive else f"{one.tried:,} of {one.candidates:,} edits"
    return f"stays {state}: no flip among {among}; the closest ({', '.join(one.perturbations)}):"


def as_perturbed(one: Counterfactual) -> Perturbed:
    """The edit in the form of any perturbation."""
    after = one.before.text if one.after is None else one.after.text
    return Perturbed(one.before.text, after, one.after is not None, "", one.edits)


def _facts(one: Counterfactual) -> list[str]:
    before, after = one.before, one.after
    assert after is not None
    top = f"top-1 {before.top} → {after.top}" if before.top != after.top else f"top-1 stays {before.top}"
    places = f"rank of its own image {before.rank:,} → {after.rank:,}"
    margins = f"margin {before.margin:+.4f} → {after.margin:+.4f}"
    return [top, f"{places}; {margins}", _effort(one)]


def _effort(one: Counterfactual) -> str:
    spent = count(one.encodings, "encoding")
    if not one.flipped:
        reach = f"every edit of up to {count(one.searched, 'character')} tried" if one.searched else ""
        return "; ".join(part for part in (spent, reach if not one.exhaustive else "") if part)
    if one.exhaustive:
        return f"{spent}; every edit of up to {count(one.characters, 'character')} tried: none is smaller"
    if one.complete:
        return f"{spent}; no edit of fewer characters flips it; not all as small were tried"
    return f"{spent}; not every possible edit was looked at"


def radius_grid(found: Counterfactuals) -> Grid | None:
    """The share of queries that an edit of at most so many characters flips; a range where the budget left it open."""
    if not found.steps:
        return None
    groups = [(kind, found.radii(right=right), len(found.of(right=right))) for kind, right in _KINDS]
    groups = [group for group in groups if group[2]]
    header = ("characters", *(part for kind, _, size in groups for part in (f"{kind} (of {size:,})", "")))
    rows = []
    for place, step in enumerate(found.steps):
        cells = [cell for _, radii, _ in groups for cell in (share(radii[place]), bar(radii[place].share, _BAR))]
        rows.append((f"≤ {step}", *cells))
    return Grid(header, tuple(rows), "r" + "l" * (len(header) - 1))


def share(radius: Radius) -> str:
    """``94.4 %``, or ``94.4 to 100.0 %`` where that is all that is known."""
    least, most = f"{100 * radius.share:.1f}", f"{100 * radius.at_most:.1f}"
    return f"{least} %" if radius.open == 0 else f"{least} to {most} %"


def perturbation_grid(found: Counterfactuals) -> Grid | None:
    """How many of the smallest flips each perturbation makes."""
    counts = [found.by_perturbation(right=right) for _, right in _KINDS]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: -sum(one.get(name, 0) for one in counts))
    if not names:
        return None
    rows = tuple((name, *(f"{one.get(name, 0):,}" for one in counts)) for name in names)
    return Grid(("smallest flip by", *(kind for kind, _ in _KINDS)), rows, "lrr")


def _head(found: Counterfactuals) -> str:
    return (
        f"{found.model} on {found.dataset}: {count(len(found), 'query')} ({found.direction}) among "
        f"{found.gallery:,} images, up to {count(found.budget, 'encoding')} each"
    )


def _notes(found: Counterfactuals) -> list[str]:
    flipped = sum(one.flipped for one in found)
    notes = [f"{flipped:,} of {count(len(found), 'query')} flipped by a single edit of a perturbation."]
    if any(radius.open for _, right in _KINDS for radius in found.radii(right=right)):
        notes.append("Where a range is given, the budget did not reach all edits: the share is between the two.")
    if any(len(one.perturbations) > 1 for one in found if one.flipped):
        notes.append("An edit that several perturbations make counts for each.")
    return notes


def counterfactuals_page(found: Counterfactuals) -> str:
    """A page that stands alone: the summary, then every query with its edit."""
    grids = [grid for grid in (radius_grid(found), perturbation_grid(found)) if grid is not None]
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in (_head(found), *_notes(found)))
    rows = "\n".join(map(_row, smallest(found)))
    queries = f"<table>\n<thead><tr><th>query</th><th>edit</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    return page(
        f"Counterfactuals: {found.dataset}", notes + "".join(map(_table, grids)) + "<h2>Queries</h2>\n" + queries
    )


def _row(one: Counterfactual) -> str:
    facts: Sequence[str] = [verdict(one), *(_facts(one) if one.after is not None else ())]
    about = "<br>".join(map(escape, facts))
    text = diff_html(as_perturbed(one))
    return f'<tr><td>{escape(one.query)}</td><td dir="auto">{text}\n<span class="why">{about}</span></td></tr>'


def _table(grid: Grid) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in grid.header)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows)
    return f'<table class="figures">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n'
