"""Kinds of objects: what each is called, how large and of which colour it usually is, and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crosslens.core import UnknownNameError
from crosslens.synth.drawing import COLOURS, DRAWINGS, Drawing, drawing, read_drawings, read_table

# Importing a module registers its drawings.
from crosslens.synth.kinds import bodies, panels, shapes  # noqa: F401


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    ``also`` are other words for it, ``riddle`` says what it is without naming it; both end in a noun, so that they
    have a plural. ``size`` is the usual size beside other objects; ``colours`` are the usual ones, though it can be
    drawn in any.
    """

    name: str
    synset: str
    category: str
    also: tuple[str, ...]
    riddle: str
    size: float
    colours: tuple[str, ...]
    drawing: Drawing

    @property
    def poses(self) -> tuple[str, ...]:
        return self.drawing.poses


def _kinds() -> Iterator[Kind]:
    for group in ("belongings", "creatures", "food", "landmarks", "outdoors", "panels"):
        for name, draw in read_drawings(f"kinds/{group}.txt").items():
            drawing(name)(draw)
    for category, rows in read_table("kinds/catalogue.txt").items():
        for row in rows:
            cells = [cell.strip() for cell in row.split("|")]
            name, synset, also, riddle, size, colours = cells if len(cells) > 4 else (*cells, "1.9", "grey")
            usual = tuple(colours.split(", ")) if colours else tuple(COLOURS)
            yield Kind(name, synset, category, tuple(also.split(", ")), riddle, float(size), usual, DRAWINGS[name])


KINDS: dict[str, Kind] = {kind.name: kind for kind in _kinds()}
"""Every kind by its name."""
COLOURED: dict[str, str] = {
    "person": "{name} in {colour}",
    "snowman": "{name} with a {colour} hat and scarf",
    "pizza": "{name} on a {colour} plate",
    "lamp": "{name} with a {colour} shade",
    "clock": "{name} with a {colour} rim",
    "lighthouse": "{name} with {colour} bands",
    "pair of scissors": "{name} with {colour} handles",
    "hammer": "{name} with a {colour} handle",
    "medal": "{name} on a {colour} ribbon",
    "bed": "{name} with a {colour} blanket",
    "blackboard": "{name} with a {colour} frame",
    "computer screen": "{name} with a {colour} frame",
    "poster": "{name} with a {colour} border",
    "sheet of paper": "{name} with {colour} handwriting",
    "whiteboard": "{name} with {colour} handwriting",
}
"""How the colour is said where it is not that of the whole object, by kind or category."""


def kind_named(name: str) -> Kind:
    """The kind of this name."""
    if name not in KINDS:
        raise UnknownNameError("kind", name, KINDS)
    return KINDS[name]


def kinds_of(*categories: str) -> tuple[Kind, ...]:
    """All kinds of these categories, in the order of the catalogue."""
    return tuple(kind for kind in KINDS.values() if kind.category in categories)
