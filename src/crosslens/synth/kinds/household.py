"""Furniture, vessels, lamps: what stands about in a home."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


@drawing("chair")
def _chair(pen: Pen) -> None:
    pen.line([(28, 56), (24, 4)], 7, "main")
    pen.box(24, 8, 32, 44, "dark", 3)
    pen.box(22, 52, 82, 62, "main", 4)
    for x in (28, 76):
        pen.line([(x, 60), (x, 97)], 6, "main")
    pen.line([(28, 80), (76, 80)], 3.4, "dark")


@drawing("table")
def _table(pen: Pen) -> None:
    for x in (22, 78):
        pen.line([(x, 48), (x, 88)], 5, "dark")
    pen.box(0, 40, 100, 52, "main", 3)
    pen.box(0, 48, 100, 52, "dark", 2)
    for x in (8, 92):
        pen.line([(x, 52), (x, 96)], 7, "main")


@drawing("sofa")
def _sofa(pen: Pen) -> None:
    for x in (14, 86):
        pen.box(x - 4, 84, x + 4, 94, "bark")
    pen.box(10, 26, 90, 70, "main", 10)
    pen.line([(50, 30), (50, 60)], 2, "dark")
    pen.box(16, 56, 49, 72, "light", 6)
    pen.box(51, 56, 84, 72, "light", 6)
    pen.box(6, 68, 94, 88, "main", 5)
    pen.box(0, 46, 17, 88, "dark", 8)
    pen.box(83, 46, 100, 88, "dark", 8)


@drawing("bed")
def _bed(pen: Pen) -> None:
    pen.box(0, 28, 8, 94, "wood", 3)
    pen.box(92, 48, 100, 94, "wood", 3)
    pen.box(6, 72, 94, 84, "wood")
    pen.box(6, 58, 94, 74, "snow", 5)
    pen.box(8, 46, 34, 62, "pale", 7)
    pen.blob([(30, 54), (60, 48), (94, 54), (95, 76), (30, 76)], "main")
    pen.line([(32, 58), (92, 58)], 2.4, "dark")


@drawing("lamp")
def _lamp(pen: Pen) -> None:
    """A table lamp; its shade has the colour."""
    pen.line([(50, 46), (50, 92)], 5, "gold")
    pen.oval(50, 94, 22, 5, "gold")
    pen.polygon([(34, 6), (66, 6), (86, 50), (14, 50)], "main")
    pen.polygon([(58, 6), (66, 6), (86, 50), (70, 50)], "dark")
    pen.line([(70, 50), (70, 62)], 1.6, "ink")
    pen.disc(70, 63, 2.6, "ink")


@drawing("clock")
def _clock(pen: Pen) -> None:
    pen.disc(50, 50, 48, "main")
    pen.disc(50, 50, 39, "snow")
    for hour in range(12):
        pen.line([polar(50, 50, 33, hour * 30), polar(50, 50, 36, hour * 30)], 3 if hour % 3 == 0 else 1.6)
    pen.line([(50, 50), polar(50, 50, 20, -150)], 4.4)
    pen.line([(50, 50), polar(50, 50, 29, -30)], 3)
    pen.disc(50, 50, 3.6)


@drawing("cup")
def _cup(pen: Pen) -> None:
    pen.ring(78, 62, 14, 7, "dark")
    pen.blob([(16, 38), (80, 38), (76, 80), (62, 96), (34, 96), (20, 80)], "main")
    pen.oval(48, 40, 32, 7, "deep")
    pen.oval(48, 41, 26, 4.6, "bark")
    for x in (36, 54):
        pen.curve([(x, 30), (x - 5, 22), (x + 4, 14), (x, 4)], 3, "metal")


@drawing("teapot")
def _teapot(pen: Pen) -> None:
    pen.ring(16, 60, 15, 6, "dark")
    pen.polygon([(72, 62), (90, 34), (100, 34), (80, 80)], "dark")
    pen.oval(50, 64, 36, 28, "main")
    pen.oval(50, 38, 22, 6, "dark")
    pen.disc(50, 28, 6, "dark")
    pen.box(32, 88, 68, 95, "dark", 2)
    pen.oval(36, 54, 8, 5, "light", -30)


@drawing("bottle")
def _bottle(pen: Pen) -> None:
    pen.blob([(42, 8), (58, 8), (58, 30), (70, 46), (71, 94), (50, 98), (29, 94), (30, 46), (42, 30)], "main")
    pen.box(41, 2, 59, 12, "bark", 2)
    pen.box(30, 56, 70, 80, "cream")
    pen.line([(36, 64), (64, 64)], 2.4, "deep")
    pen.line([(36, 72), (58, 72)], 2.4, "deep")


@drawing("vase")
def _vase(pen: Pen) -> None:
    pen.blob([(36, 10), (64, 10), (60, 28), (78, 52), (72, 82), (60, 98), (40, 98), (28, 82), (22, 52), (40, 28)])
    pen.box(32, 6, 68, 14, "dark", 3)
    pen.line([(25, 56), (75, 56)], 4, "light")
    pen.line([(26, 66), (74, 66)], 4, "dark")


@drawing("bowl")
def _bowl(pen: Pen) -> None:
    pen.sector(50, 44, 48, 46, 0, 180, "main")
    pen.oval(50, 44, 48, 9, "deep")
    pen.oval(50, 45, 42, 6, "dark")
    pen.box(34, 86, 66, 94, "dark", 3)
    pen.arc(50, 50, 38, 30, 110, 160, 3, "light")


@drawing("book")
def _book(pen: Pen) -> None:
    pen.box(16, 4, 84, 96, "main", 3)
    pen.box(16, 4, 28, 96, "dark", 3)
    pen.box(38, 20, 76, 34, "pale", 2)
    pen.line([(44, 27), (70, 27)], 2.4, "deep")
    pen.disc(57, 62, 13, "light")
    pen.box(80, 8, 85, 92, "cream")


@drawing("candle")
def _candle(pen: Pen) -> None:
    pen.box(37, 34, 63, 88, "main", 4)
    pen.blob([(37, 38), (63, 38), (61, 56), (56, 44), (48, 60), (42, 46)], "light")
    pen.line([(50, 36), (50, 26)], 2.4)
    pen.blob([(50, 2), (58, 16), (50, 28), (42, 16)], "flame")
    pen.blob([(50, 12), (54, 19), (50, 26), (46, 19)], (252, 230, 120))
    pen.oval(50, 90, 32, 7, "gold")
    pen.ring(84, 88, 7, 3.4, "gold")


@drawing("television")
def _television(pen: Pen) -> None:
    pen.line([(50, 26), (30, 4)], 3, "steel")
    pen.line([(50, 26), (70, 4)], 3, "steel")
    for x in (20, 80):
        pen.line([(x, 86), (x - 4 if x < 50 else x + 4, 97)], 5, "bark")
    pen.box(2, 24, 98, 90, "main", 8)
    pen.box(10, 32, 74, 82, "ink", 8)
    pen.box(13, 35, 71, 79, "glass", 7)
    pen.disc(86, 42, 5, "pale")
    pen.disc(86, 58, 5, "pale")


@drawing("laptop")
def _laptop(pen: Pen) -> None:
    pen.box(14, 16, 86, 72, "main", 4)
    pen.box(19, 21, 81, 67, "glass", 1)
    pen.polygon([(12, 72), (88, 72), (100, 88), (0, 88)], "dark")
    for y in (75.5, 79, 82.5):
        pen.line([(16 - (y - 72) * 0.5, y), (84 + (y - 72) * 0.5, y)], 1.4, "pale")


@drawing("telephone")
def _telephone(pen: Pen) -> None:
    pen.blob([(22, 46), (78, 46), (94, 84), (88, 94), (12, 94), (6, 84)], "main")
    pen.disc(50, 70, 17, "snow")
    for angle in range(0, 360, 45):
        pen.disc(*polar(50, 70, 11.5, angle), 2.6, "ink")
    pen.disc(50, 70, 5, "main")
    pen.curve([(10, 34), (30, 20), (70, 20), (90, 34)], 10, "dark")
    pen.box(2, 28, 22, 44, "dark", 6)
    pen.box(78, 28, 98, 44, "dark", 6)


@drawing("basket")
def _basket(pen: Pen) -> None:
    pen.arc(50, 48, 36, 42, 180, 360, 5, "dark")
    pen.polygon([(6, 46), (94, 46), (82, 96), (18, 96)], "main")
    for y in (56, 68, 80):
        for x in range(20, 84, 12):
            pen.line([(x, y), (x + 6, y)], 2.6, "dark")
    pen.box(2, 42, 98, 51, "dark", 4)
