"""Vehicles on land, on water and in the air."""

from __future__ import annotations

from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


def _wheel(pen: Pen, x: float, y: float, radius: float) -> None:
    pen.disc(x, y, radius, "tyre")
    pen.disc(x, y, radius * 0.5, "metal")


@drawing("car")
def _car(pen: Pen) -> None:
    pen.blob([(20, 58), (30, 36), (42, 32), (62, 32), (74, 40), (82, 58)], "main")
    pen.box(2, 54, 98, 80, "main", 10)
    pen.polygon([(31, 54), (38, 40), (50, 39), (50, 54)], "glass")
    pen.polygon([(54, 54), (54, 39), (65, 40), (74, 54)], "glass")
    pen.box(2, 68, 98, 72, "dark")
    pen.oval(95, 62, 3, 4, "cream")
    _wheel(pen, 25, 82, 12)
    _wheel(pen, 76, 82, 12)


@drawing("bus")
def _bus(pen: Pen) -> None:
    pen.box(0, 26, 100, 84, "main", 8)
    for x in (6, 24, 42, 60):
        pen.box(x, 36, x + 14, 54, "glass", 2)
    pen.box(80, 36, 96, 76, "glass", 2)
    pen.line([(88, 37), (88, 75)], 1.6, "deep")
    pen.box(0, 62, 78, 67, "pale")
    _wheel(pen, 22, 84, 10)
    _wheel(pen, 66, 84, 10)


@drawing("truck")
def _truck(pen: Pen) -> None:
    pen.box(0, 22, 62, 78, "main", 3)
    for x in (14, 30, 46):
        pen.line([(x, 26), (x, 74)], 1.8, "dark")
    pen.box(64, 40, 98, 78, "dark", 6)
    pen.box(74, 46, 95, 60, "glass", 3)
    pen.box(0, 76, 98, 82, "steel")
    for x in (16, 44, 82):
        _wheel(pen, x, 84, 11)


@drawing("bicycle")
def _bicycle(pen: Pen) -> None:
    for x in (20, 80):
        pen.ring(x, 72, 18, 4, "tyre")
        for end in ((0, 18), (18, 0), (13, 13), (13, -13)):
            pen.line([(x - end[0], 72 - end[1]), (x + end[0], 72 + end[1])], 1, "metal")
    pen.line([(20, 72), (38, 44), (70, 44), (50, 72), (20, 72)], 5, "main")
    pen.line([(38, 44), (50, 72)], 5, "main")
    pen.line([(70, 44), (80, 72)], 5, "main")
    pen.line([(70, 44), (67, 30), (78, 28)], 4, "ink")
    pen.line([(38, 44), (35, 34)], 4, "ink")
    pen.oval(35, 32, 9, 3.4, "ink")
    pen.disc(50, 72, 5, "dark")


@drawing("motorcycle")
def _motorcycle(pen: Pen) -> None:
    for x in (18, 82):
        pen.ring(x, 76, 15, 8, "tyre")
        pen.disc(x, 76, 5, "metal")
    pen.line([(82, 76), (68, 38), (58, 34)], 4.5, "steel")
    pen.line([(18, 76), (44, 66), (66, 62)], 6, "steel")
    pen.box(38, 60, 60, 80, "metal", 4)
    pen.line([(40, 80), (10, 84)], 4.5, "metal")
    pen.blob([(36, 48), (54, 42), (70, 46), (66, 62), (42, 62)], "main")
    pen.blob([(8, 50), (24, 46), (42, 54), (36, 64), (16, 60)], "main")
    pen.blob([(14, 46), (28, 44), (42, 52), (24, 54)], "ink")
    pen.disc(74, 44, 6, "cream")


@drawing("train")
def _train(pen: Pen) -> None:
    pen.box(60, 22, 96, 76, "main", 3)
    pen.box(56, 16, 100, 24, "dark", 2)
    pen.box(68, 32, 88, 50, "glass", 2)
    pen.box(8, 42, 64, 74, "main", 8)
    pen.polygon([(16, 42), (12, 20), (30, 20), (26, 42)], "dark")
    pen.disc(44, 42, 7, "gold")
    pen.box(4, 72, 98, 80, "deep")
    pen.polygon([(4, 78), (-6, 92), (14, 92), (14, 78)], "steel")
    for x in (26, 48):
        _wheel(pen, x, 86, 10)
    _wheel(pen, 78, 82, 15)
    for x, y, r in ((20, 10, 7), (32, 2, 9)):
        pen.disc(x, y, r, (226, 228, 232))


@drawing("sailboat")
def _sailboat(pen: Pen) -> None:
    pen.line([(50, 6), (50, 78)], 3, "wood")
    pen.polygon([(54, 8), (54, 68), (92, 68)], "main")
    pen.polygon([(46, 18), (46, 68), (16, 68)], "light")
    pen.blob([(4, 76), (96, 76), (82, 98), (20, 98)], "dark")
    pen.box(6, 74, 94, 80, "deep", 3)


@drawing("ship")
def _ship(pen: Pen) -> None:
    for x in (36, 54):
        pen.polygon([(x, 34), (x + 2, 10), (x + 12, 10), (x + 12, 34)], "dark")
        pen.box(x + 1, 10, x + 13, 17, "ink")
    pen.box(20, 34, 78, 50, "snow", 2)
    pen.box(14, 48, 86, 64, "cream", 2)
    for x in range(22, 84, 10):
        pen.disc(x, 56, 2.8, "sea")
    pen.polygon([(0, 62), (100, 62), (88, 96), (14, 96)], "main")
    pen.polygon([(8, 82), (93, 82), (88, 96), (14, 96)], "deep")


@drawing("airplane")
def _airplane(pen: Pen) -> None:
    pen.polygon([(4, 24), (16, 24), (28, 48), (12, 50)], "dark")
    pen.polygon([(46, 46), (34, 20), (44, 20), (64, 46)], "dark")
    pen.blob([(4, 48), (22, 44), (70, 42), (92, 46), (100, 54), (90, 60), (40, 62), (12, 58)], "main")
    pen.polygon([(44, 56), (66, 56), (38, 92), (26, 92)], "dark")
    for x in range(28, 78, 9):
        pen.disc(x, 50, 2.4, "snow")
    pen.polygon([(84, 46), (92, 47), (97, 52), (84, 51)], "glass")


@drawing("helicopter")
def _helicopter(pen: Pen) -> None:
    pen.line([(0, 46), (40, 56)], 6, "dark")
    pen.line([(2, 34), (2, 58)], 4, "ink")
    pen.line([(54, 24), (54, 40)], 4, "steel")
    pen.line([(12, 22), (98, 22)], 4, "ink")
    pen.oval(60, 58, 32, 23, "main")
    pen.blob([(66, 42), (82, 46), (90, 60), (66, 60)], "glass")
    pen.line([(44, 78), (42, 92)], 3, "steel")
    pen.line([(72, 78), (74, 92)], 3, "steel")
    pen.line([(30, 93), (90, 93)], 4, "ink")


@drawing("rocket")
def _rocket(pen: Pen) -> None:
    pen.blob([(40, 78), (60, 78), (56, 92), (50, 104), (44, 92)], "flame")
    pen.blob([(45, 78), (55, 78), (50, 94)], (252, 222, 90))
    pen.polygon([(34, 52), (18, 82), (36, 76)], "dark")
    pen.polygon([(66, 52), (82, 82), (64, 76)], "dark")
    pen.blob([(50, 0), (64, 24), (67, 52), (62, 80), (38, 80), (33, 52), (36, 24)], "main")
    pen.polygon([(50, 0), (60, 20), (40, 20)], "deep")
    pen.disc(50, 38, 9, "snow")
    pen.disc(50, 38, 6, "glass")


@drawing("hot-air balloon")
def _balloon(pen: Pen) -> None:
    pen.line([(36, 62), (44, 84)], 1.6, "bark")
    pen.line([(64, 62), (56, 84)], 1.6, "bark")
    pen.box(41, 82, 59, 98, "wood", 2)
    pen.blob([(50, 0), (84, 16), (86, 44), (62, 68), (38, 68), (14, 44), (16, 16)], "main")
    pen.blob([(50, 0), (62, 18), (63, 46), (56, 68), (44, 68), (37, 46), (38, 18)], "light")
    pen.blob([(50, 0), (54, 20), (54, 46), (52, 68), (48, 68), (46, 46), (46, 20)], "dark")


@drawing("tractor")
def _tractor(pen: Pen) -> None:
    pen.line([(78, 22), (78, 46)], 4, "steel")
    pen.box(24, 14, 58, 22, "dark", 3)
    pen.line([(28, 20), (28, 52)], 3.4, "dark")
    pen.line([(54, 20), (54, 52)], 3.4, "dark")
    pen.box(32, 24, 51, 46, "glass")
    pen.box(20, 48, 94, 74, "main", 5)
    pen.box(80, 54, 91, 66, "dark")
    pen.disc(28, 72, 25, "tyre")
    pen.disc(28, 72, 12, "gold")
    pen.disc(82, 84, 14, "tyre")
    pen.disc(82, 84, 6, "gold")
