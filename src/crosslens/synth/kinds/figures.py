"""Geometric figures."""

from __future__ import annotations

from functools import partial

from crosslens.synth.drawing.geometry import Points, arc, ellipse, regular, star
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing

_CROSS = [(36, 2), (64, 2), (64, 36), (98, 36), (98, 64), (64, 64),
          (64, 98), (36, 98), (36, 64), (2, 64), (2, 36), (36, 36)]  # fmt: skip
_FIGURES: dict[str, Points] = {
    "circle": ellipse(50, 50, 50, 50),
    "square": [(4, 4), (96, 4), (96, 96), (4, 96)],
    "rectangle": [(0, 24), (100, 24), (100, 76), (0, 76)],
    "triangle": [(50, 6), (100, 94), (0, 94)],
    "ellipse": ellipse(50, 50, 50, 29),
    "rhombus": [(50, 0), (84, 50), (50, 100), (16, 50)],
    "pentagon": regular(50, 52, 50, 5),
    "hexagon": regular(50, 50, 50, 6, 0),
    "octagon": regular(50, 50, 52, 8, 22.5),
    "star": star(50, 52, 52),
    "cross": _CROSS,
    "arrow": [(0, 36), (56, 36), (56, 12), (100, 50), (56, 88), (56, 64), (0, 64)],
    "crescent": [*arc(46, 50, 46, 46, 50, 310), *reversed(arc(62, 50, 37, 37, 78, 282))],
    "heart": [*arc(27, 30, 25, 26, 150, 350), *arc(73, 30, 25, 26, 190, 390), (50, 98)],
    "trapezoid": [(26, 18), (74, 18), (100, 82), (0, 82)],
    "semicircle": arc(50, 74, 50, 50, 180, 360),
}


for _name, _outline in _FIGURES.items():
    drawing(_name)(partial(Pen.polygon, points=_outline))
