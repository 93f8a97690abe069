"""What a kind of object is: how it is drawn, what it is called, how large and of which colour it usually is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from crosslens.synth.drawing.pen import Pen

Draw = Callable[[Pen], None]
_Stroke = tuple[str, list[Any], dict[str, Any]]
"""A method of the pen, its positional and its keyword arguments."""
_THROUGH_POINTS = ("polygon", "blob", "line", "curve")
_MEASURES = {"box": "radius", "oval": "turn"}
"""What the number before the fill means, where it is not the width."""


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


def drawings(table: str) -> None:
    """Register drawings that are strokes alone: the name of a kind, then an indented row for each stroke.

    ``line 3 gold: 44,80 42,98 | 56,80 58,98`` calls the pen's ``line`` twice: of width 3, in gold, through two points
    each. The number is the radius of a box's corners and the turn of an oval; a fill can be red, green and blue.
    """
    strokes: list[_Stroke] = []
    for row in table.strip().splitlines():
        if row.startswith(" "):
            strokes += _read_strokes(row)
        else:
            strokes = []
            drawing(row)(partial(_draw_strokes, strokes=strokes))


def _read_strokes(row: str) -> Iterator[_Stroke]:
    style, _, outlines = row.partition(":")
    shape, *details = style.split()
    keywords: dict[str, Any] = {}
    for detail in details:
        if detail.isalpha():
            keywords["fill"] = detail
        elif "," in detail:
            keywords["fill"] = tuple(map(int, detail.split(",")))
        else:
            keywords[_MEASURES.get(shape, "width")] = float(detail)
    for outline in outlines.split("|"):
        numbers = [float(number) for number in outline.replace(",", " ").split()]
        if shape in _THROUGH_POINTS:
            yield shape, [list(zip(numbers[::2], numbers[1::2], strict=True))], keywords
        else:
            yield shape, numbers, keywords


def _draw_strokes(pen: Pen, strokes: Sequence[_Stroke]) -> None:
    for shape, arguments, keywords in strokes:
        getattr(pen, shape)(*arguments, **keywords)
