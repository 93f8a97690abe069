"""Things to write on; the text is the pen's."""

from __future__ import annotations

from crosslens.synth.handwriting import write_by_hand
from crosslens.synth.kinds.kind import drawing
from crosslens.synth.pen import Pen

_SLATE, _CHALK, _EDITOR, _CODE = (44, 74, 62), (238, 240, 232), (36, 40, 52), (214, 224, 236)


@drawing("sign")
def sign(pen: Pen) -> None:
    """A board on two posts."""
    for x in (22, 78):
        pen.line([(x, 50), (x, 96)], 6, "wood")
    pen.box(0, 14, 100, 58, "main", 5)
    pen.box(3, 17, 97, 55, "light", 4)
    pen.box(5, 19, 95, 53, "main", 3)
    pen.write(9, 22, 91, 50, pen.text, _on(pen), 0.5)


@drawing("poster")
def poster(pen: Pen) -> None:
    """A sheet with a coloured border."""
    pen.box(0, 12, 100, 90, "main", 1)
    pen.box(6, 18, 94, 84, "snow")
    pen.box(6, 18, 94, 26, "light")
    pen.box(6, 76, 94, 84, "light")
    pen.write(10, 34, 90, 68, pen.text, "ink", 0.5)


@drawing("billboard")
def billboard(pen: Pen) -> None:
    """A wide screen on one post, lamps on top."""
    pen.box(46, 54, 54, 98, "steel")
    for x in (20, 50, 80):
        pen.line([(x, 16), (x, 8), (x + 6, 6)], 1.8, "steel")
    pen.box(-10, 14, 110, 60, "ink", 2)
    pen.box(-7, 17, 107, 57, "main")
    pen.write(-2, 22, 102, 52, pen.text, _on(pen), 0.5)


@drawing("banner")
def banner(pen: Pen) -> None:
    """A strip of cloth with swallowtails."""
    pen.polygon([(-14, 36), (6, 36), (6, 70), (-14, 70), (-6, 53)], "dark")
    pen.polygon([(114, 36), (94, 36), (94, 70), (114, 70), (106, 53)], "dark")
    pen.box(0, 28, 100, 64, "main")
    pen.write(5, 32, 95, 60, pen.text, _on(pen), 0.5)


@drawing("shop")
def shop(pen: Pen) -> None:
    """A small front with an awning under its name."""
    pen.box(2, 34, 98, 98, "cream")
    pen.box(10, 62, 58, 90, "glass", 1)
    pen.box(66, 58, 90, 98, "wood", 1)
    pen.box(-2, 10, 102, 38, "main", 2)
    pen.write(4, 13, 96, 35, pen.text, _on(pen), 0.4)
    for number, x in enumerate(range(-2, 100, 13)):
        pen.box(x, 38, x + 13, 50, "main" if number % 2 else "snow")
        pen.sector(x + 6.5, 50, 6.5, 6, 0, 180, "main" if number % 2 else "snow")


@drawing("blackboard")
def blackboard(pen: Pen) -> None:
    """Chalk on slate; the frame has the colour."""
    pen.box(-20, 8, 120, 92, "main", 3)
    pen.box(-14, 14, 114, 86, _SLATE)
    pen.box(70, 86, 84, 89, _CHALK)
    write_by_hand(pen, (-8, 26, 108, 74), pen.text, _CHALK)


@drawing("sheet of paper")
def sheet(pen: Pen) -> None:
    """Ruled, written on with a pen of the colour."""
    pen.box(-20, 8, 120, 92, "snow", 1)
    for y in range(20, 92, 12):
        pen.line([(-18, y), (118, y)], 0.7, (186, 206, 232))
    pen.line([(-8, 9), (-8, 91)], 0.9, (236, 150, 150))
    write_by_hand(pen, (-2, 28, 114, 74), pen.text, "main")


@drawing("whiteboard")
def whiteboard(pen: Pen) -> None:
    """A white surface in a metal frame, written on with a marker of the colour."""
    pen.box(-20, 8, 120, 88, "steel", 2)
    pen.box(-17, 11, 117, 85, "snow")
    pen.box(-20, 86, 120, 92, "metal", 1)
    pen.box(40, 83, 58, 87, "main", 1)
    write_by_hand(pen, (-10, 26, 110, 72), pen.text, "main")


@drawing("computer screen")
def screen(pen: Pen) -> None:
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


def _on(pen: Pen) -> str:
    """Letters that show on the panel's colour."""
    red, green, blue = pen.colour
    return "ink" if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "snow"
