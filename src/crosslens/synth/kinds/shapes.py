"""Drawings that are more than a list of strokes: geometric figures, and objects with parts all around or in rows."""

from __future__ import annotations

from functools import partial

from crosslens.synth.drawing import Pen, Points, arc, drawing, ellipse, polar, regular, star

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


@drawing("flower")
def _flower(pen: Pen) -> None:
    pen.curve([(50, 40), (49, 70), (52, 99)], 4.4, "leaf")
    pen.oval(64, 76, 14, 6, "leaf", -32)
    pen.oval(36, 84, 14, 6, "leaf", 32)
    for angle in range(0, 360, 60):
        pen.disc(*polar(50, 32, 19, angle + 30), 13, "main")
    pen.disc(50, 32, 11, "gold")


@drawing("lighthouse")
def _lighthouse(pen: Pen) -> None:
    pen.polygon([(36, 30), (64, 30), (72, 96), (28, 96)], "snow")
    for y in (38, 58, 78):
        spread = (y - 30) / 66 * 8
        pen.polygon([(36 - spread, y), (64 + spread, y), (65.5 + spread, y + 11), (34.5 - spread, y + 11)], "main")
    pen.box(32, 26, 68, 31, "ink")
    pen.box(40, 14, 60, 26, (252, 226, 120))
    pen.polygon([(36, 15), (50, 2), (64, 15)], "main")
    pen.box(45, 84, 55, 96, "bark", 3)


@drawing("windmill")
def _windmill(pen: Pen) -> None:
    pen.polygon([(36, 40), (64, 40), (74, 98), (26, 98)], "main")
    pen.sector(50, 42, 16, 16, 180, 360, "deep")
    for angle in (35, 125, 215, 305):
        tip, side = polar(50, 36, 44, angle), polar(50, 36, 44, angle + 14)
        pen.polygon([polar(50, 36, 10, angle), tip, side, polar(50, 36, 12, angle + 50)], "cream")
        pen.line([(50, 36), tip], 2.4, "bark")
    pen.disc(50, 36, 4, "bark")
    pen.box(44, 78, 56, 98, "bark", 5)


@drawing("snowflake")
def _snowflake(pen: Pen) -> None:
    for angle in range(0, 360, 60):
        pen.line([(50, 50), polar(50, 50, 46, angle - 90)], 5, "main")
        for reach in (24, 36):
            start = polar(50, 50, reach, angle - 90)
            pen.line([start, polar(*start, 13, angle - 140)], 4, "main")
            pen.line([start, polar(*start, 13, angle - 40)], 4, "main")
    pen.polygon(star(50, 50, 10, 6, 0.6), "light")


@drawing("bird", ("perching", "flying"))
def _bird(pen: Pen) -> None:
    pen.polygon([(8, 52), (30, 50), (30, 66)], "dark")
    if pen.pose != "flying":
        pen.line([(48, 78), (46, 98)], 2.6, "gold")
        pen.line([(56, 78), (58, 98)], 2.6, "gold")
    pen.oval(50, 60, 28, 21, "main")
    pen.disc(74, 40, 15, "main")
    pen.polygon([(86, 36), (100, 42), (86, 48)], "flame")
    pen.oval(56, 68, 15, 9, "light")
    if pen.pose == "flying":
        pen.blob([(58, 56), (30, 50), (18, 6), (40, 18), (56, 36)], "dark")
    else:
        pen.blob([(60, 52), (36, 50), (16, 66), (36, 70), (54, 66)], "dark")
    pen.eye(77, 37, 3)


@drawing("fish", ("swimming",))
def _fish(pen: Pen) -> None:
    pen.polygon([(2, 30), (28, 50), (2, 72)], "dark")
    pen.polygon([(40, 34), (58, 18), (68, 34)], "dark")
    pen.oval(56, 50, 38, 23, "main")
    pen.polygon([(50, 68), (64, 66), (52, 80)], "dark")
    for x in (42, 54):
        pen.arc(x, 50, 6, 14, -70, 70, 2.4, "dark")
    pen.arc(92, 54, 6, 6, 90, 190, 2, "ink")
    pen.eye(79, 43, 4)


@drawing("bunch of grapes")
def _grape(pen: Pen) -> None:
    pen.line([(50, 24), (54, 4)], 4, "bark")
    pen.blob([(54, 14), (70, 2), (86, 10), (80, 24), (64, 24)], "leaf")
    for row, (y, count) in enumerate(((30, 4), (46, 4), (60, 3), (74, 2), (87, 1))):
        for column in range(count):
            x = 50 + (column - (count - 1) / 2) * 18
            pen.disc(x, y, 11, "dark" if (row + column) % 2 else "main")
            pen.disc(x - 3, y - 3, 2.6, "light")


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


@drawing("ball")
def _ball(pen: Pen) -> None:
    pen.disc(50, 50, 48, "main")
    for start in (-20, 100, 220):
        points = [(50, 44), *(polar(50, 50, 48, start + step) for step in range(0, 61, 10))]
        pen.polygon(points, "light")
    pen.disc(50, 44, 7, "dark")


@drawing("medal")
def _medal(pen: Pen) -> None:
    """On a ribbon; the ribbon has the colour."""
    pen.polygon([(26, 0), (46, 0), (58, 46), (42, 50)], "main")
    pen.polygon([(74, 0), (54, 0), (42, 46), (58, 50)], "dark")
    pen.disc(50, 70, 28, "gold")
    pen.disc(50, 70, 22, (250, 214, 110))
    pen.polygon(star(50, 70, 16), "gold")


@drawing("clock")
def _clock(pen: Pen) -> None:
    pen.disc(50, 50, 48, "main")
    pen.disc(50, 50, 39, "snow")
    for hour in range(12):
        pen.line([polar(50, 50, 33, hour * 30), polar(50, 50, 36, hour * 30)], 3 if hour % 3 == 0 else 1.6)
    pen.line([(50, 50), polar(50, 50, 20, -150)], 4.4)
    pen.line([(50, 50), polar(50, 50, 29, -30)], 3)
    pen.disc(50, 50, 3.6)


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


@drawing("Eiffel Tower")
def _eiffel_tower(pen: Pen) -> None:
    for side in (-1, 1):
        pen.polygon([(50 + side * 34, 100), (50 + side * 20, 100), (50 + side * 7, 62), (50 + side * 4, 30), (50, 30),
                     (50 + side * 3, 8), (50 + side * 9, 34), (50 + side * 14, 62)], "iron")  # fmt: skip
    pen.polygon([(46, 34), (54, 34), (51.5, 0), (48.5, 0)], "iron")
    pen.polygon([*arc(50, 100, 20, 18, 180, 360), (76, 100), (76, 74), (24, 74), (24, 100)], "iron")
    pen.box(30, 70, 70, 76, "iron")
    pen.box(38, 48, 62, 53, "iron")
    pen.line([(50, 4), (50, -12)], 2, "iron")
    for y in (58, 40, 26):
        half = 9 - (60 - y) * 0.14
        pen.line([(50 - half, y + 5), (50 + half, y - 5)], 1.2, "sand")
        pen.line([(50 + half, y + 5), (50 - half, y - 5)], 1.2, "sand")


@drawing("Pyramids of Giza")
def _pyramids(pen: Pen) -> None:
    for x, top, half in ((96, 44, 30), (10, 38, 36), (52, 14, 52)):
        pen.polygon([(x, top), (x + half, 94), (x - half, 94)], "sand")
        pen.polygon([(x, top), (x + half, 94), (x + half * 0.25, 94)], "dune")
        for step in (0.35, 0.55, 0.75):
            y = top + (94 - top) * step
            pen.line([(x - half * step * 0.8, y), (x + half * step * 0.1, y)], 1, "dune")


@drawing("Statue of Liberty")
def _statue_of_liberty(pen: Pen) -> None:
    pen.polygon([(30, 100), (34, 76), (66, 76), (70, 100)], "limestone")
    pen.box(32, 72, 68, 78, "umber")
    pen.polygon([(38, 74), (42, 32), (58, 32), (64, 74)], "copper")
    for x in (46, 52, 57):
        pen.line([(x, 44), (x + 1, 72)], 1.6, "verdigris")
    pen.line([(44, 34), (32, 16), (32, 0)], 6, "copper")
    pen.box(28, -4, 36, 0, "verdigris")
    pen.blob([(32, -18), (37, -9), (32, -3), (27, -9)], "flame")
    pen.line([(58, 36), (64, 50)], 6, "copper")
    pen.polygon([(60, 44), (70, 48), (64, 62), (56, 58)], "verdigris")
    pen.disc(50, 24, 8, "copper")
    for angle in range(-150, -20, 20):
        pen.line([polar(50, 20, 7, angle), polar(50, 20, 16, angle)], 2, "verdigris")


@drawing("Sydney Opera House")
def _opera_house(pen: Pen) -> None:
    pen.box(-12, 80, 112, 92, (190, 150, 130))
    for x, height, width in ((84, 34, 26), (0, 40, 30), (22, 56, 34), (50, 66, 36)):
        pen.polygon([(x, 81), *arc(x + width * 0.1, 81, width, height, 200, 285)[1:], (x + width * 0.75, 81)], "marble")
        pen.line([(x + width * 0.36, 81 - height * 0.96), (x + width * 0.75, 81)], 1.6, "plaster")
        pen.line([(x + width * 0.3, 81 - height * 0.9), (x + width * 0.3, 81)], 1.2, "plaster")


@drawing("Leaning Tower of Pisa")
def _tower_of_pisa(pen: Pen) -> None:
    pen = pen.turned(9)
    pen.box(40, -2, 60, 12, "marble", 2)
    for y in range(10, 94, 14):
        pen.box(34, y, 66, y + 13, "marble")
        pen.box(32, y - 1, 68, y + 2, "plaster")
        for x in range(38, 65, 6):
            pen.box(x - 1.8, y + 4, x + 1.8, y + 13, (146, 140, 132), 1.8)
    pen.box(30, 93, 70, 100, "plaster")


@drawing("Golden Gate Bridge")
def _golden_gate(pen: Pen) -> None:
    for x in (18, 82):
        for side in (-4, 4):
            pen.line([(x + side, 12), (x + side, 96)], 4, "vermilion")
        for y in (18, 34, 50):
            pen.line([(x - 4, y), (x + 4, y)], 3, "vermilion")
    for start, end, sag in (((18, 14), (82, 14), 48), ((-26, 62), (18, 14), 14), ((82, 14), (126, 62), 14)):
        (ax, ay), (bx, by) = start, end
        parts = [step / 12 for step in range(13)]
        cable = [(ax + (bx - ax) * t, ay + (by - ay) * t + sag * 4 * t * (1 - t)) for t in parts]
        pen.line(cable, 1.8, "vermilion")
        for point in cable[1:-1]:
            pen.line([point, (point[0], 66)], 0.9, "vermilion")
    pen.box(-28, 66, 128, 71, "vermilion")


@drawing("Arc de Triomphe")
def _arc_de_triomphe(pen: Pen) -> None:
    pen.box(-4, 8, 104, 28, "limestone", 1)
    pen.box(0, 26, 100, 98, "limestone")
    pen.box(-4, 30, 104, 35, "umber")
    pen.polygon([*arc(50, 62, 19, 19, 180, 360), (69, 98), (31, 98)], (96, 92, 90))
    for x in (6, 76):
        pen.box(x, 64, x + 18, 92, "dune")
        pen.box(x, 42, x + 18, 56, "dune")
