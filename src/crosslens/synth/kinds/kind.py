"""What a kind of object is: how it is drawn, what it is called, how large and of which colour it usually is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crosslens.synth.drawing.pen import Pen

Draw = Callable[[Pen], None]


@dataclass(frozen=True)
class Drawing:
    """How a kind is drawn, and the poses its drawing knows; the first is the usual one."""

    draw: Draw
    poses: tuple[str, ...] = ()


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
        """What it can be doing."""
        return self.drawing.poses


DRAWINGS: dict[str, Drawing] = {}
"""Every drawing by the name of its kind."""


def drawing(name: str, poses: tuple[str, ...] = ()) -> Callable[[Draw], Draw]:
    """Register a function as the drawing of a kind; its words are in the catalogue."""

    def register(draw: Draw) -> Draw:
        assert name not in DRAWINGS, name
        DRAWINGS[name] = Drawing(draw, poses)
        return draw

    return register
