"""Kinds of objects: drawn by code, named in the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from crosslens.core import UnknownNameError
from crosslens.synth.drawing.colours import COLOURS

# Importing a module registers its drawings.
from crosslens.synth.kinds import (  # noqa: F401
    belongings,
    creatures,
    figures,
    food,
    landmarks,
    outdoors,
    panels,
    people,
    quadrupeds,
)
from crosslens.synth.kinds.catalogue import CATALOGUE
from crosslens.synth.kinds.kind import DRAWINGS, Kind

__all__ = ["KINDS", "Kind", "kind_named", "kinds_of"]

_HUGE = "1.9"


def _kinds() -> Iterator[Kind]:
    for category, rows in CATALOGUE.items():
        for row in rows.strip().splitlines():
            cells = [cell.strip() for cell in row.split("|")]
            name, synset, also, riddle, size, colours = cells if len(cells) > 4 else (*cells, _HUGE, "grey")
            usual = tuple(colours.split(", ")) if colours else tuple(COLOURS)
            yield Kind(name, synset, category, tuple(also.split(", ")), riddle, float(size), usual, DRAWINGS[name])


KINDS: dict[str, Kind] = {kind.name: kind for kind in _kinds()}
"""Every kind by its name."""


def kind_named(name: str) -> Kind:
    """The kind of this name."""
    if name not in KINDS:
        raise UnknownNameError("kind", name, KINDS)
    return KINDS[name]


def kinds_of(*categories: str) -> tuple[Kind, ...]:
    """All kinds of these categories, in the order of the catalogue."""
    return tuple(kind for kind in KINDS.values() if kind.category in categories)
