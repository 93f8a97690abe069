"""Food."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


@drawing("apple")
def _apple(pen: Pen) -> None:
    pen.curve([(50, 30), (51, 18), (57, 8)], 4, "bark")
    pen.oval(66, 14, 13, 6, "leaf", -20)
    pen.blob([(50, 30), (68, 22), (90, 40), (84, 76), (64, 97), (50, 92), (36, 97), (16, 76), (10, 40), (32, 22)])
    pen.oval(30, 48, 6, 12, "light", 20)


@drawing("banana")
def _banana(pen: Pen) -> None:
    pen.blob([(14, 22), (22, 18), (30, 48), (56, 70), (92, 66), (98, 72), (76, 88), (44, 86), (18, 58)], "main")
    pen.curve([(22, 30), (30, 58), (56, 78), (86, 74)], 2.6, "dark")
    pen.line([(17, 20), (14, 10)], 6, "bark")
    pen.disc(96, 70, 4, "bark")


@drawing("pear")
def _pear(pen: Pen) -> None:
    pen.curve([(50, 22), (52, 10), (58, 4)], 4, "bark")
    pen.blob([(50, 18), (64, 28), (68, 46), (84, 68), (72, 95), (50, 99), (28, 95), (16, 68), (32, 46), (36, 28)])
    pen.oval(34, 70, 6, 12, "light", 12)


@drawing("strawberry")
def _strawberry(pen: Pen) -> None:
    pen.blob([(50, 24), (80, 22), (90, 42), (70, 80), (50, 98), (30, 80), (10, 42), (20, 22)], "main")
    for x, y in ((30, 40), (50, 44), (70, 40), (38, 58), (60, 60), (50, 76), (22, 50), (78, 52)):
        pen.oval(x, y, 2.2, 3.4, "cream")
    for x in (24, 38, 50, 62, 76):
        pen.polygon([(50, 12), (x - 6, 22), (x, 34), (x + 6, 22)], "leaf")


@drawing("cherry")
def _cherry(pen: Pen) -> None:
    pen.curve([(46, 54), (50, 30), (66, 6)], 4, "leaf")
    pen.oval(80, 14, 18, 8, "leaf", 14)
    pen.disc(44, 70, 30, "main")
    pen.sector(46, 43, 9, 5, 0, 180, "dark")
    pen.disc(34, 60, 7, "light")


@drawing("bunch of grapes")
def _grape(pen: Pen) -> None:
    pen.line([(50, 24), (54, 4)], 4, "bark")
    pen.blob([(54, 14), (70, 2), (86, 10), (80, 24), (64, 24)], "leaf")
    for row, (y, count) in enumerate(((30, 4), (46, 4), (60, 3), (74, 2), (87, 1))):
        for column in range(count):
            x = 50 + (column - (count - 1) / 2) * 18
            pen.disc(x, y, 11, "dark" if (row + column) % 2 else "main")
            pen.disc(x - 3, y - 3, 2.6, "light")


@drawing("slice of watermelon")
def _watermelon(pen: Pen) -> None:
    """A slice: coloured flesh, green rind, dark seeds."""
    pen.sector(50, 30, 50, 56, 0, 180, (44, 122, 60))
    pen.sector(50, 30, 44, 49, 0, 180, "pale")
    pen.sector(50, 30, 41, 45, 0, 180, "main")
    for x, y in ((26, 40), (42, 44), (58, 44), (74, 40), (34, 56), (50, 60), (66, 56)):
        pen.oval(x, y, 2.2, 3.6, "ink")


@drawing("carrot")
def _carrot(pen: Pen) -> None:
    for x in (34, 50, 66):
        pen.line([(50, 28), (x, 4)], 6, "leaf")
    pen.blob([(36, 26), (50, 22), (64, 26), (62, 56), (50, 100), (38, 56)], "main")
    for y, half in ((42, 8), (56, 7), (70, 5)):
        pen.line([(50 - half, y), (50, y + 1)], 2.2, "dark")


@drawing("pizza")
def _pizza(pen: Pen) -> None:
    """A whole one from above; the plate around it has the colour."""
    pen.disc(50, 50, 50, "main")
    pen.disc(50, 50, 44, "light")
    pen.disc(50, 50, 39, (206, 140, 70))
    pen.disc(50, 50, 33, (250, 214, 110))
    for angle in range(0, 360, 60):
        pen.disc(*polar(50, 50, 20, angle + 14), 6.4, (190, 50, 40))
    pen.disc(50, 50, 6.4, (190, 50, 40))
    for angle in range(20, 380, 90):
        pen.oval(*polar(50, 50, 27, angle), 4, 2.2, "leaf", angle)


@drawing("cake")
def _cake(pen: Pen) -> None:
    for x in (38, 50, 62):
        pen.box(x - 2, 14, x + 2, 32, "cream")
        pen.oval(x, 9, 3, 5, "flame")
    pen.box(24, 32, 76, 62, "main", 3)
    pen.box(8, 60, 92, 94, "main", 3)
    for start, end, y in ((24, 76, 34), (8, 92, 62)):
        pen.box(start, y - 3, end, y + 4, "snow", 2)
        for x in range(start + 5, end, 10):
            pen.oval(x, y + 4, 4.6, 6, "snow")
    pen.box(2, 92, 98, 98, "metal", 3)


@drawing("ice cream cone")
def _ice_cream(pen: Pen) -> None:
    pen.polygon([(32, 50), (68, 50), (50, 100)], (214, 160, 92))
    for x in (38, 47, 56):
        pen.line([(x, 52), (x + 6, 72)], 1.6, "wood")
        pen.line([(x + 8, 52), (x, 70)], 1.6, "wood")
    pen.disc(50, 42, 20, "main")
    pen.disc(50, 22, 17, "light")
    pen.box(30, 46, 70, 53, "dark", 4)
    pen.disc(52, 5, 5, (206, 34, 50))


@drawing("hamburger")
def _hamburger(pen: Pen) -> None:
    """A stack between two halves of a bun; the bun has the colour."""
    pen.sector(50, 46, 46, 38, 180, 360, "main")
    for x, y in ((32, 24), (48, 18), (64, 22), (40, 34), (60, 34)):
        pen.oval(x, y, 3, 2, "pale")
    for x in range(10, 96, 16):
        pen.oval(x, 50, 10, 6, "leaf")
    pen.box(6, 52, 94, 58, (200, 60, 50), 3)
    pen.box(4, 58, 96, 72, (98, 58, 36), 6)
    pen.polygon([(10, 58), (60, 58), (46, 68), (30, 62)], (250, 200, 60))
    pen.box(6, 72, 94, 90, "main", 8)


@drawing("egg")
def _egg(pen: Pen) -> None:
    pen.blob([(50, 4), (70, 20), (78, 48), (64, 70), (36, 70), (22, 48), (30, 20)], "main")
    pen.oval(40, 28, 5, 10, "light", 15)
    pen.sector(50, 58, 34, 26, 0, 180, "glass")
    pen.box(44, 80, 56, 92, "glass")
    pen.oval(50, 94, 22, 5, "glass")


@drawing("mushroom")
def _mushroom(pen: Pen) -> None:
    pen.blob([(40, 50), (60, 50), (66, 94), (50, 99), (34, 94)], "cream")
    pen.sector(50, 54, 48, 50, 180, 360, "main")
    pen.box(2, 50, 98, 57, "dark", 3)
    for x, y, r in ((30, 34, 7), (54, 20, 8), (74, 38, 7), (50, 42, 4)):
        pen.oval(x, y, r, r * 0.8, "snow")


@drawing("loaf of bread")
def _bread(pen: Pen) -> None:
    pen.blob([(6, 62), (12, 42), (34, 36), (66, 36), (88, 42), (94, 62), (84, 82), (16, 82)], "main")
    for x in (30, 50, 70):
        pen.line([(x - 5, 58), (x + 5, 44)], 4.4, "pale")


@drawing("pineapple")
def _pineapple(pen: Pen) -> None:
    for x, y in ((30, 10), (70, 10), (40, 2), (60, 2), (50, -4)):
        pen.polygon([(44, 36), (x, y), (56, 36)], "leaf")
    pen.oval(50, 66, 27, 34, "main")
    for side in (-1, 1):
        for start, end in (((0, 34), (25, 62)), ((-12, 37), (21, 82)), ((-22, 48), (10, 94)), ((-26, 64), (-8, 97))):
            pen.line([(50 + side * start[0], start[1]), (50 + side * end[0], end[1])], 1.8, "dark")
