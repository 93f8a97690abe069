"""How the changes from one run to another are shown: won and lost queries, causes, and the queries themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crosslens.core import (
    DIRECTION_LABELS,
    IMAGE_TO_TEXT,
    Cards,
    Figure,
    Part,
    PictureCard,
    Section,
    Shares,
    Table,
    Text,
)
from crosslens.statistics import PairedTest

if TYPE_CHECKING:
    from crosslens.explanations.changes.values import QueryChange, RunChanges, TopHit

_DIRECTIONS = {**DIRECTION_LABELS, "t2t": "text → image by its captions"}
_PRINTED = 3
"""Won queries, and lost ones, on a terminal."""


def change_sections(changes: RunChanges) -> Iterator[Section]:
    """The balance, what is wrong with top hits, and the queries that changed most."""
    second = changes.runs[1]
    equal = changes.queries - changes.wins - changes.losses
    where = f"{_DIRECTIONS.get(changes.direction, changes.direction)} on {changes.dataset}"
    before, after = changes.phi_means
    balance = Shares(
        title="Queries won and lost", about=f"{where}, {changes.queries:,} queries", groups=(second,),
        levels=("won", "equal", "lost"), counts=((changes.wins, equal, changes.losses),), heading="run",
    )  # fmt: skip
    text = Text.of(
        f"{where}, {changes.queries:,} queries: {changes.wins:,} won, {equal:,} equal, {changes.losses:,} lost. "
        f"A query is won where its first relevant item is ranked higher; φ is how much {_meaning(changes)}.",
        f"Mean reciprocal rank: {_tested(changes.ranks, Figure(None, scale=100.0, digits=1, unit=' points'))}.",
        f"φ of the top hits: {before:.3f} → {after:.3f}, {_tested(changes.phi, Figure(None, digits=3))}.",
    )
    parts: list[Part] = [balance, text]
    if changes.causes.height:
        parts.append(_causes(changes))
    missing = [image for image in changes.images if image not in changes.pictures]
    notes = list(changes.notes)
    if missing:
        reason = f": {changes.problem}" if changes.problem else ""
        notes.append(f"{len(missing):,} of {len(changes.images):,} pictures are missing{reason}.")
    yield Section(changes.title, (*parts, Text(tuple(notes), note=True)))
    yield _queries(changes, f"Queries that {second} wins", changes.wins, changes.won)
    yield _queries(changes, f"Queries that {second} loses", changes.losses, changes.lost)


def _meaning(changes: RunChanges) -> str:
    """What φ compares."""
    if changes.direction == IMAGE_TO_TEXT:
        return f"the top hit says what the captions of the query image say ({changes.phi_name})"
    return f"the query says what the captions of the top hit say ({changes.phi_name})"


def _tested(test: PairedTest, unit: Figure) -> str:
    difference = replace(unit, value=test.difference, low=test.low, high=test.high, signed=True)
    p = Figure.p(test.p_value, test.permutations).number
    return f"{difference}, p {f'< {p[1:]}' if p.startswith('<') else f'= {p}'}"


def _causes(changes: RunChanges) -> Table:
    lacking = "what it lacks of what the query mentions"
    if changes.direction == IMAGE_TO_TEXT:
        lacking = "what the retrieved caption mentions and the query image lacks"
    notes = (
        f"Queries whose top hit is not relevant, by {lacking}; a hit may have several faults.",
        "A near miss lacks nothing of it; of an unclear one, too little could be judged.",
        "The last two columns count won queries whose hit has the fault no more, and lost queries whose hit did not "
        "have it before.",
    )
    header = ("fault of the top hit", *changes.runs, "won: fault gone", "lost: fault new")
    return Table(header, tuple(changes.causes.iter_rows()), "lrrrr", title="Causes", notes=notes)


def _queries(changes: RunChanges, title: str, count: int, shown: Sequence[QueryChange]) -> Section:
    if not shown:
        return Section(title, (Text.of("None."),))
    words = "all of them" if len(shown) == count else f"the {len(shown):,} whose reciprocal rank changes most"
    lead = Text.of(f"{count:,} queries; {words}.", note=True)
    return Section(title, (lead, *(_query(changes, own, number < _PRINTED) for number, own in enumerate(shown))))


def _query(changes: RunChanges, change: QueryChange, printed: bool) -> Cards:
    """What was asked for, and the first hit of either run."""
    ranks = (("not listed" if hit.rank is None else f"{hit.rank:,}") for hit in (change.first, change.second))
    asked = "" if change.text is None else f": {change.text}"
    said = changes.captions.get(change.image) if change.text is None else None
    what = "Query image" if change.text is None else "Relevant image"
    wanted = PictureCard(f"{what} {change.image}", () if said is None else (said,), change.image)
    hits = (_hit(changes, hit, run) for hit, run in zip((change.first, change.second), changes.runs, strict=True))
    title = f"{change.query}, rank {' → '.join(ranks)}{asked}"
    return Cards(title, (wanted, *hits), changes.pictures, most=None if printed else 0)


def _hit(changes: RunChanges, hit: TopHit, run: str) -> PictureCard:
    """The first hit of a run: its picture, what it says, and what of the query it lacks."""
    said = hit.text or changes.captions.get(hit.image)
    faults = tuple(f"✗ {phrase}" for phrase in hit.wrong) or (", ".join(hit.causes),) * bool(hit.causes)
    phi = "" if hit.phi is None else f", φ {hit.phi:.2f}"
    return PictureCard(
        f"{run}{phi}, {'✓ relevant' if hit.right else 'not relevant'}", () if said is None else (said,), hit.image,
        mark="right" if hit.right else "", details=(*faults, hit.item),
    )  # fmt: skip
