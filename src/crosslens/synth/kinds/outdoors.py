"""Plants, buildings and other objects under the sky."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar, star
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


@drawing("tree")
def _tree(pen: Pen) -> None:
    pen.polygon([(42, 98), (45, 58), (55, 58), (58, 98)], "bark")
    for x, y, r in ((32, 44, 22), (68, 44, 22), (50, 26, 26), (50, 50, 22)):
        pen.disc(x, y, r, "main")
    for x, y in ((38, 34), (60, 26), (64, 48), (40, 54)):
        pen.arc(x, y, 7, 6, 20, 160, 2.4, "dark")


@drawing("pine tree")
def _pine(pen: Pen) -> None:
    pen.box(44, 82, 56, 99, "bark")
    for top, bottom, half, shade in ((44, 86, 40, "dark"), (22, 62, 32, "main"), (0, 38, 23, "light")):
        pen.polygon([(50, top), (50 + half, bottom), (50 - half, bottom)], shade)


@drawing("palm tree")
def _palm(pen: Pen) -> None:
    pen.curve([(44, 99), (46, 74), (54, 50), (58, 30)], 7, "wood")
    for x, y, lift_x, lift_y in (
        (8, 36, 30, 12),
        (22, 62, 34, 26),
        (98, 38, 80, 12),
        (92, 62, 80, 30),
        (50, 2, 50, 16),
    ):
        pen.blob([(58, 30), (lift_x, lift_y), (x, y), ((lift_x + x) / 2 + 4, (lift_y + y) / 2 + 8)], "main")
    for x, y in ((53, 34), (61, 36)):
        pen.disc(x, y, 5, "bark")


@drawing("flower")
def _flower(pen: Pen) -> None:
    pen.curve([(50, 40), (49, 70), (52, 99)], 4.4, "leaf")
    pen.oval(64, 76, 14, 6, "leaf", -32)
    pen.oval(36, 84, 14, 6, "leaf", 32)
    for angle in range(0, 360, 60):
        pen.disc(*polar(50, 32, 19, angle + 30), 13, "main")
    pen.disc(50, 32, 11, "gold")


@drawing("tulip")
def _tulip(pen: Pen) -> None:
    pen.line([(50, 44), (50, 99)], 4.4, "leaf")
    pen.blob([(50, 96), (32, 66), (26, 50), (38, 66)], "leaf")
    pen.blob([(50, 96), (68, 66), (74, 50), (62, 66)], "leaf")
    pen.polygon([(26, 4), (38, 20), (50, 2), (62, 20), (74, 4), (74, 30), (62, 48), (38, 48), (26, 30)], "main")
    pen.blob([(50, 6), (60, 26), (50, 46), (40, 26)], "dark")


@drawing("cactus")
def _cactus(pen: Pen) -> None:
    pen.line([(50, 96), (50, 16)], 24, "main")
    pen.line([(50, 66), (22, 66), (22, 42)], 13, "main")
    pen.line([(50, 54), (78, 54), (78, 28)], 13, "main")
    for x, y in ((44, 24), (56, 34), (44, 46), (56, 76), (44, 80), (22, 48), (78, 36), (56, 18)):
        pen.line([(x, y), (x, y + 5)], 1.8, "pale")


@drawing("house")
def _house(pen: Pen) -> None:
    pen.box(68, 8, 80, 34, "deep")
    pen.box(12, 44, 88, 98, "main")
    pen.polygon([(2, 46), (50, 6), (98, 46)], "deep")
    pen.box(42, 66, 58, 98, "wood", 1)
    pen.disc(55, 83, 1.8, "gold")
    for x in (18, 66):
        pen.box(x, 56, x + 16, 74, "glass")
        pen.line([(x + 8, 56), (x + 8, 74)], 1.8, "snow")
        pen.line([(x, 65), (x + 16, 65)], 1.8, "snow")


@drawing("castle")
def _castle(pen: Pen) -> None:
    pen.box(20, 50, 80, 98, "main")
    for x in range(22, 80, 14):
        pen.box(x, 42, x + 8, 52, "main")
    for x in (4, 76):
        pen.box(x, 30, x + 20, 98, "dark")
        pen.polygon([(x - 3, 32), (x + 10, 8), (x + 23, 32)], "deep")
        pen.line([(x + 10, 10), (x + 10, -6)], 1.8, "ink")
        pen.polygon([(x + 10, -6), (x + 22, -2), (x + 10, 3)], (214, 40, 40))
        pen.box(x + 7, 46, x + 13, 58, "ink", 3)
    pen.box(40, 68, 60, 98, "ink", 10)
    pen.box(40, 84, 60, 98, "ink")


@drawing("tent")
def _tent(pen: Pen) -> None:
    pen.polygon([(50, 12), (100, 94), (0, 94)], "main")
    pen.polygon([(50, 12), (68, 94), (32, 94)], "deep")
    pen.polygon([(50, 12), (32, 94), (22, 94)], "light")
    pen.line([(50, 12), (47, 3)], 3, "wood")
    pen.line([(50, 12), (54, 3)], 3, "wood")


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


@drawing("cloud")
def _cloud(pen: Pen) -> None:
    for x, y, r in ((24, 58, 18), (46, 44, 24), (72, 52, 20), (86, 62, 13)):
        pen.disc(x, y, r, "main")
    pen.box(8, 56, 98, 76, "main", 10)
    pen.arc(46, 50, 14, 12, 190, 280, 2.4, "light")


@drawing("snowman")
def _snowman(pen: Pen) -> None:
    """Two balls of snow; the scarf and the hat have the colour."""
    pen.disc(50, 74, 25, "snow")
    pen.disc(50, 38, 18, "snow")
    pen.box(30, 16, 70, 23, "main", 2)
    pen.box(37, -4, 63, 18, "main", 2)
    pen.box(32, 50, 68, 60, "main", 5)
    pen.box(58, 54, 67, 78, "main", 3)
    pen.disc(44, 34, 2.2, "ink")
    pen.disc(57, 34, 2.2, "ink")
    pen.polygon([(50, 38), (68, 42), (50, 44)], "flame")
    for y in (68, 78, 88):
        pen.disc(48, y, 2.2, "ink")
    pen.line([(28, 66), (6, 50)], 2.6, "bark")
    pen.line([(72, 66), (94, 52)], 2.6, "bark")


@drawing("street lamp")
def _street_lamp(pen: Pen) -> None:
    pen.line([(50, 36), (50, 96)], 5, "main")
    pen.box(38, 92, 62, 99, "main", 2)
    pen.polygon([(38, 10), (62, 10), (58, 36), (42, 36)], (252, 230, 140))
    pen.line([(38, 10), (42, 36)], 2.4, "main")
    pen.line([(62, 10), (58, 36)], 2.4, "main")
    pen.polygon([(34, 12), (50, 0), (66, 12)], "main")
    pen.box(40, 34, 60, 39, "main")


@drawing("traffic light")
def _traffic_light(pen: Pen) -> None:
    pen.box(46, 66, 54, 99, "steel")
    pen.box(32, 2, 68, 70, "main", 8)
    for y, lit in ((15, (226, 50, 44)), (36, (244, 190, 40)), (57, (60, 180, 80))):
        pen.disc(50, y, 10.4, "ink")
        pen.disc(50, y, 8.6, lit)


@drawing("fountain")
def _fountain(pen: Pen) -> None:
    for side in (-1, 1):
        for reach in (14, 30):
            pen.curve([(50, 30), (50 + side * reach * 0.6, 8 + reach * 0.2), (50 + side * reach, 56)], 3, "glass")
    pen.line([(50, 20), (50, 60)], 4, "glass")
    pen.sector(50, 56, 32, 16, 0, 180, "main")
    pen.box(45, 68, 55, 86, "dark")
    pen.sector(50, 82, 48, 17, 0, 180, "main")
    pen.box(2, 78, 98, 84, "dark", 3)


@drawing("leaf")
def _leaf(pen: Pen) -> None:
    pen.blob([(50, 2), (76, 26), (80, 54), (50, 82), (20, 54), (24, 26)], "main")
    pen.line([(50, 10), (50, 98)], 3.4, "deep")
    for y in (30, 44, 58):
        pen.line([(50, y + 8), (66, y - 4)], 2, "deep")
        pen.line([(50, y + 8), (34, y - 4)], 2, "deep")


@drawing("planet")
def _planet(pen: Pen) -> None:
    pen.oval(50, 50, 50, 13, "pale", -18)
    pen.oval(50, 50, 38, 8, "deep", -18)
    pen.disc(50, 50, 27, "main")
    pen.oval(46, 40, 16, 4, "light", -18)
    pen.oval(54, 62, 15, 3.5, "dark", -18)
    pen.line([(22, 62), (36, 63), (56, 58), (78, 48)], 6, "pale")


@drawing("snowflake")
def _snowflake(pen: Pen) -> None:
    for angle in range(0, 360, 60):
        pen.line([(50, 50), polar(50, 50, 46, angle - 90)], 5, "main")
        for reach in (24, 36):
            start = polar(50, 50, reach, angle - 90)
            pen.line([start, polar(*start, 13, angle - 140)], 4, "main")
            pen.line([start, polar(*start, 13, angle - 40)], 4, "main")
    pen.polygon(star(50, 50, 10, 6, 0.6), "light")
