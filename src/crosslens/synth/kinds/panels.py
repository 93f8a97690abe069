"""Objects to write on; the text is the pen's. Sums are written by hand: in strokes, never twice the same."""

from __future__ import annotations

from crosslens.storage import random_stream
from crosslens.synth.drawing import Pen, Point, Points, Tone, arc, drawing, points, read_table, smooth

_GLYPHS = {
    character: [points(stroke) for stroke in row.split("|")]
    for character, (row,) in read_table("kinds/handwriting.txt").items()
} | {"(": [arc(0.95, 0.5, 0.6, 0.62, 130, 230)], ")": [arc(0.05, 0.5, 0.6, 0.62, -50, 50)], " ": []}

_WIDTH, _GAP, _SPACE = 0.62, 0.22, 0.24
_WOBBLE = 0.035


_SHAPES: dict[str, Points] = {
    "▭": [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)],
    "□": [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)],
    "△": [(0, 1), (0.35, 0), (1, 1), (0, 1)],
}
"""Outlines in a box of 1 × 1; a triangle's peak is above 0.35."""
_LABEL = 13.0


def _draw_figure(pen: Pen, box: tuple[float, float, float, float], text: str, fill: Tone) -> None:
    """A figure such as ``▭ 7 × 4`` to scale, with its lengths at its sides and a question mark."""
    sign, width, _, height = text.split()
    x0, y0, x1, y1 = box[0] + 2 * _LABEL, box[1] - 0.6 * _LABEL, box[2] - _LABEL, box[3] - 0.8 * _LABEL
    unit = min((x1 - x0) / int(width), (y1 - y0) / int(height))
    across, down = max(unit * int(width), 1.6 * _LABEL), max(unit * int(height), 1.4 * _LABEL)
    left, top = (x0 + x1 - across) / 2, (y0 + y1 - down) / 2
    trembling = random_stream(pen.variant, "figure")

    def moved(points: Points) -> Points:
        wobble = trembling.normal(0, _WOBBLE / 3, (len(points), 2))
        return [
            (left + (a + da) * across, top + (b + db) * down) for (a, b), (da, db) in zip(points, wobble, strict=True)
        ]

    pen.line(moved(_SHAPES[sign]), 1.6, fill)
    side = left - 1.5 * _LABEL
    if sign == "△":
        for start in (0.08, 0.32, 0.56, 0.8):
            pen.line(moved([(0.35, start), (0.35, start + 0.12)]), 1.1, fill)
        side = left + 0.35 * across + 1
    middle, below = top + down / 2, top + down + 2
    _write_by_hand(pen, (left, below, left + across, below + _LABEL), width, fill)
    lift = _LABEL * 0.1 if sign == "△" else -_LABEL / 2
    _write_by_hand(pen, (side, middle + lift, side + 1.4 * _LABEL, middle + lift + _LABEL * 0.9), height, fill)
    if sign != "△":
        _write_by_hand(pen, (left, middle - _LABEL / 2, left + across, middle + _LABEL / 2), "?", fill)
    else:
        _write_by_hand(pen, (left + across, top, left + across + _LABEL, top + _LABEL), "?", fill)


def _write_by_hand(pen: Pen, box: tuple[float, float, float, float], text: str, fill: Tone) -> None:
    """Write one line as large as the box allows, or draw a figure; another variant of the pen is another hand."""
    if text[:1] in _SHAPES:
        _draw_figure(pen, box, text, fill)
        return
    x0, y0, x1, y1 = box
    units = sum(_SPACE if character == " " else _WIDTH + _GAP for character in text)
    height = min(y1 - y0, (x1 - x0) / units)
    hand = random_stream(pen.variant, "hand")
    slant, weight = hand.uniform(-0.02, 0.2), hand.uniform(0.085, 0.12)
    x, top = (x0 + x1 - units * height) / 2, (y0 + y1 - height) / 2
    for index, character in enumerate(text):
        trembling = random_stream(pen.variant, "stroke", index, character)
        rise = trembling.uniform(-0.05, 0.05)
        for stroke in _GLYPHS[character]:
            wobble = trembling.normal(0, _WOBBLE, (len(stroke), 2))
            moved: list[Point] = [
                (x + (a + da + slant * (1 - b)) * _WIDTH * height, top + (b + db + rise) * height)
                for (a, b), (da, db) in zip(stroke, wobble, strict=True)
            ]
            pen.line(smooth(moved, closed=False, steps=5), weight * height, fill)
        x += (_SPACE if character == " " else _WIDTH + _GAP) * height


_SLATE, _CHALK, _EDITOR, _CODE = (44, 74, 62), (238, 240, 232), (36, 40, 52), (214, 224, 236)


@drawing("shop")
def _shop(pen: Pen) -> None:
    pen.box(2, 34, 98, 98, "cream")
    pen.box(10, 62, 58, 90, "glass", 1)
    pen.box(66, 58, 90, 98, "wood", 1)
    pen.box(-2, 10, 102, 38, "main", 2)
    pen.write(4, 13, 96, 35, "contrast", 0.4)
    for number, x in enumerate(range(-2, 100, 13)):
        pen.box(x, 38, x + 13, 50, "main" if number % 2 else "snow")
        pen.sector(x + 6.5, 50, 6.5, 6, 0, 180, "main" if number % 2 else "snow")


@drawing("blackboard")
def _blackboard(pen: Pen) -> None:
    """Chalk on slate; the frame has the colour."""
    pen.box(-20, 8, 120, 92, "main", 3)
    pen.box(-14, 14, 114, 86, _SLATE)
    pen.box(70, 86, 84, 89, _CHALK)
    _write_by_hand(pen, (-8, 26, 108, 74), pen.text, _CHALK)


@drawing("sheet of paper")
def _sheet(pen: Pen) -> None:
    """Ruled, written on with a pen of the colour."""
    pen.box(-20, 8, 120, 92, "snow", 1)
    for y in range(20, 92, 12):
        pen.line([(-18, y), (118, y)], 0.7, (186, 206, 232))
    pen.line([(-8, 9), (-8, 91)], 0.9, (236, 150, 150))
    _write_by_hand(pen, (-2, 28, 114, 74), pen.text, "main")


@drawing("whiteboard")
def _whiteboard(pen: Pen) -> None:
    """A white surface in a metal frame, written on with a marker of the colour."""
    pen.box(-20, 8, 120, 88, "steel", 2)
    pen.box(-17, 11, 117, 85, "snow")
    pen.box(-20, 86, 120, 92, "metal", 1)
    pen.box(40, 83, 58, 87, "main", 1)
    _write_by_hand(pen, (-10, 26, 110, 72), pen.text, "main")


@drawing("computer screen")
def _screen(pen: Pen) -> None:
    """An editor window; the frame has the colour."""
    lines = pen.text.split("\n")
    columns, rows = max(14, *map(len, lines)), max(4, len(lines))
    size = min(128 / (columns * 0.62), 68 / (rows * 1.25))
    pen.polygon([(40, 92), (60, 92), (66, 104), (34, 104)], "dark")
    pen.box(-22, 2, 122, 94, "main", 4)
    pen.box(-18, 6, 118, 90, _EDITOR, 1)
    for x, lamp in ((-13, (236, 94, 86)), (-8, (246, 192, 70)), (-3, (96, 196, 90))):
        pen.disc(x, 11, 1.7, lamp)
    pen.type(-14, 17, pen.text, size, _CODE)
