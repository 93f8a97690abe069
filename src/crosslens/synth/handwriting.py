"""Digits and signs as a hand writes them: strokes, never twice the same."""

from __future__ import annotations

from crosslens.core.seeds import stream
from crosslens.synth.geometry import Point, Points, arc, smooth
from crosslens.synth.pen import Pen, Tone

_GLYPHS: dict[str, tuple[Points, ...]] = {
    "0": ([(0.5, 0.0), (0.12, 0.25), (0.1, 0.7), (0.45, 1.0), (0.85, 0.75), (0.88, 0.28), (0.5, 0.0)],),
    "1": ([(0.25, 0.25), (0.58, 0.0), (0.56, 0.5), (0.55, 1.0)],),
    "2": ([(0.12, 0.25), (0.35, 0.02), (0.8, 0.1), (0.75, 0.45), (0.4, 0.75), (0.1, 1.0)], [(0.1, 1.0), (0.9, 0.97)]),
    "3": (
        [(0.15, 0.12), (0.5, 0.0), (0.82, 0.2), (0.45, 0.46)],
        [(0.45, 0.46), (0.88, 0.66), (0.62, 0.98), (0.1, 0.9)],
    ),
    "4": ([(0.6, 0.0), (0.35, 0.35), (0.08, 0.66)], [(0.08, 0.66), (0.95, 0.64)], [(0.68, 0.36), (0.66, 1.0)]),
    "5": (
        [(0.82, 0.02), (0.25, 0.04)],
        [(0.25, 0.04), (0.2, 0.42)],
        [(0.2, 0.42), (0.6, 0.36), (0.88, 0.62), (0.66, 0.95), (0.12, 0.94)],
    ),
    "6": ([(0.75, 0.02), (0.35, 0.25), (0.12, 0.7), (0.4, 1.0), (0.82, 0.84), (0.74, 0.54), (0.42, 0.5), (0.15, 0.7)],),
    "7": ([(0.1, 0.04), (0.9, 0.03)], [(0.9, 0.03), (0.6, 0.45), (0.4, 1.0)], [(0.36, 0.5), (0.78, 0.48)]),
    "8": (
        [
            (0.5, 0.46),
            (0.18, 0.22),
            (0.5, 0.0),
            (0.82, 0.2),
            (0.5, 0.46),
            (0.12, 0.74),
            (0.5, 1.0),
            (0.88, 0.74),
            (0.5, 0.46),
        ],
    ),
    "9": ([(0.84, 0.26), (0.5, 0.48), (0.16, 0.28), (0.44, 0.0), (0.84, 0.2), (0.84, 0.6), (0.6, 1.0)],),
    "+": ([(0.5, 0.25), (0.5, 0.8)], [(0.2, 0.52), (0.8, 0.52)]),
    "-": ([(0.15, 0.52), (0.85, 0.5)],),
    "×": ([(0.2, 0.28), (0.8, 0.78)], [(0.8, 0.28), (0.2, 0.78)]),
    "÷": ([(0.15, 0.52), (0.85, 0.5)], [(0.5, 0.27), (0.51, 0.28)], [(0.5, 0.76), (0.51, 0.77)]),
    "=": ([(0.15, 0.4), (0.85, 0.38)], [(0.15, 0.64), (0.85, 0.63)]),
    "?": ([(0.2, 0.2), (0.5, 0.0), (0.82, 0.2), (0.5, 0.5), (0.5, 0.7)], [(0.5, 0.95), (0.51, 0.96)]),
    "(": (arc(0.95, 0.5, 0.6, 0.62, 130, 230),),
    ")": (arc(0.05, 0.5, 0.6, 0.62, -50, 50),),
    " ": (),
}
"""Strokes in a box of 1 × 1, in the order a hand would make them."""

CHARACTERS = frozenset(_GLYPHS)
_WIDTH, _GAP, _SPACE = 0.62, 0.22, 0.24
_WOBBLE = 0.035


def write_by_hand(pen: Pen, box: tuple[float, float, float, float], text: str, fill: Tone) -> None:
    """Write one line as large as the box allows; another variant of the pen is another hand."""
    x0, y0, x1, y1 = box
    units = sum(_SPACE if character == " " else _WIDTH + _GAP for character in text)
    height = min(y1 - y0, (x1 - x0) / units)
    hand = stream(pen.variant, "hand")
    slant, weight = hand.uniform(-0.02, 0.2), hand.uniform(0.085, 0.12)
    x, top = (x0 + x1 - units * height) / 2, (y0 + y1 - height) / 2
    for place, character in enumerate(text):
        trembling = stream(pen.variant, "stroke", place, character)
        rise = trembling.uniform(-0.05, 0.05)
        for stroke in _GLYPHS[character]:
            wobble = trembling.normal(0, _WOBBLE, (len(stroke), 2))
            moved: list[Point] = [
                (
                    x + (a + da + slant * (1 - b)) * _WIDTH * height,
                    top + (b + db + rise) * height,
                )
                for (a, b), (da, db) in zip(stroke, wobble, strict=True)
            ]
            pen.line(smooth(moved, closed=False, steps=5), weight * height, fill)
        x += (_SPACE if character == " " else _WIDTH + _GAP) * height
