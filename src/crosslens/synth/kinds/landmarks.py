"""Famous places, each by the few lines that everybody knows it by; they keep their own colours."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import Point, arc, polar
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing

_IRON, _SAND, _SHADE, _MARBLE, _LINE = (122, 98, 78), (224, 190, 126), (188, 150, 92), (244, 240, 232), (190, 184, 172)
_COPPER, _COPPER_DARK, _RED = (126, 186, 164), (92, 148, 130), (198, 70, 48)
_STONE, _STONE_DARK = (206, 188, 156), (150, 130, 102)


@drawing("Eiffel Tower")
def _eiffel_tower(pen: Pen) -> None:
    for side in (-1, 1):
        pen.polygon([(50 + side * 34, 100), (50 + side * 20, 100), (50 + side * 7, 62), (50 + side * 4, 30), (50, 30),
                     (50 + side * 3, 8), (50 + side * 9, 34), (50 + side * 14, 62)], _IRON)  # fmt: skip
    pen.polygon([(46, 34), (54, 34), (51.5, 0), (48.5, 0)], _IRON)
    pen.polygon([*arc(50, 100, 20, 18, 180, 360), (76, 100), (76, 74), (24, 74), (24, 100)], _IRON)
    pen.box(30, 70, 70, 76, _IRON)
    pen.box(38, 48, 62, 53, _IRON)
    pen.line([(50, 4), (50, -12)], 2, _IRON)
    for y in (58, 40, 26):
        half = 9 - (60 - y) * 0.14
        pen.line([(50 - half, y + 5), (50 + half, y - 5)], 1.2, _SAND)
        pen.line([(50 + half, y + 5), (50 - half, y - 5)], 1.2, _SAND)


@drawing("Pyramids of Giza")
def _pyramids(pen: Pen) -> None:
    for x, top, half in ((96, 44, 30), (10, 38, 36), (52, 14, 52)):
        pen.polygon([(x, top), (x + half, 94), (x - half, 94)], _SAND)
        pen.polygon([(x, top), (x + half, 94), (x + half * 0.25, 94)], _SHADE)
        for step in (0.35, 0.55, 0.75):
            y = top + (94 - top) * step
            pen.line([(x - half * step * 0.8, y), (x + half * step * 0.1, y)], 1, _SHADE)


@drawing("Big Ben")
def _big_ben(pen: Pen) -> None:
    pen.box(34, 30, 66, 100, _STONE)
    for x in (40, 50, 60):
        pen.line([(x, 62), (x, 98)], 2, _STONE_DARK)
    pen.box(31, 26, 69, 58, _SHADE)
    pen.disc(50, 42, 13, "ink")
    pen.disc(50, 42, 11.4, "snow")
    pen.line([(50, 42), (50, 34)], 2)
    pen.line([(50, 42), (56, 45)], 2)
    pen.box(34, 16, 66, 27, _STONE)
    pen.polygon([(33, 17), (67, 17), (58, 0), (42, 0)], (92, 108, 104))
    pen.polygon([(43, 1), (57, 1), (50, -18)], (92, 108, 104))


@drawing("Taj Mahal")
def _taj_mahal(pen: Pen) -> None:
    for x in (-8, 108):
        pen.box(x - 3, 24, x + 3, 92, _MARBLE)
        pen.sector(x, 24, 5, 8, 180, 360, _LINE)
        pen.box(x - 5, 46, x + 5, 49, _LINE)
    pen.box(-16, 90, 116, 100, _LINE)
    pen.box(10, 52, 90, 92, _MARBLE)
    for x in (24, 76):
        pen.blob([(x, 34), (x + 9, 44), (x + 7, 54), (x - 7, 54), (x - 9, 44)], _MARBLE)
    pen.blob([(50, 2), (60, 14), (72, 30), (66, 50), (34, 50), (28, 30), (40, 14)], _MARBLE)
    pen.line([(50, 6), (50, -8)], 2, "gold")
    pen.box(36, 46, 64, 92, _MARBLE)
    pen.line([(28, 51), (72, 51)], 1.6, _LINE)
    pen.polygon([(42, 92), (42, 68), (50, 58), (58, 68), (58, 92)], (120, 128, 146))
    for x in (22, 78):
        for y in (62, 80):
            pen.polygon([(x - 5, y + 8), (x - 5, y), (x, y - 5), (x + 5, y), (x + 5, y + 8)], (150, 156, 170))
    pen.line([(36, 47), (36, 92)], 1.2, _LINE)
    pen.line([(64, 47), (64, 92)], 1.2, _LINE)


@drawing("Statue of Liberty")
def _statue_of_liberty(pen: Pen) -> None:
    pen.polygon([(30, 100), (34, 76), (66, 76), (70, 100)], _STONE)
    pen.box(32, 72, 68, 78, _STONE_DARK)
    pen.polygon([(38, 74), (42, 32), (58, 32), (64, 74)], _COPPER)
    for x in (46, 52, 57):
        pen.line([(x, 44), (x + 1, 72)], 1.6, _COPPER_DARK)
    pen.line([(44, 34), (32, 16), (32, 0)], 6, _COPPER)
    pen.box(28, -4, 36, 0, _COPPER_DARK)
    pen.blob([(32, -18), (37, -9), (32, -3), (27, -9)], "flame")
    pen.line([(58, 36), (64, 50)], 6, _COPPER)
    pen.polygon([(60, 44), (70, 48), (64, 62), (56, 58)], _COPPER_DARK)
    pen.disc(50, 24, 8, _COPPER)
    for angle in range(-150, -20, 20):
        pen.line([polar(50, 20, 7, angle), polar(50, 20, 16, angle)], 2, _COPPER_DARK)


@drawing("Sydney Opera House")
def _opera_house(pen: Pen) -> None:
    pen.box(-12, 80, 112, 92, (190, 150, 130))
    for x, height, width in ((84, 34, 26), (0, 40, 30), (22, 56, 34), (50, 66, 36)):
        pen.polygon([(x, 81), *arc(x + width * 0.1, 81, width, height, 200, 285)[1:], (x + width * 0.75, 81)], _MARBLE)
        pen.line([(x + width * 0.36, 81 - height * 0.96), (x + width * 0.75, 81)], 1.6, _LINE)
        pen.line([(x + width * 0.3, 81 - height * 0.9), (x + width * 0.3, 81)], 1.2, _LINE)


@drawing("Leaning Tower of Pisa")
def _tower_of_pisa(pen: Pen) -> None:
    pen = pen.turned(9)
    pen.box(40, -2, 60, 12, _MARBLE, 2)
    for y in range(10, 94, 14):
        pen.box(34, y, 66, y + 13, _MARBLE)
        pen.box(32, y - 1, 68, y + 2, _LINE)
        for x in range(38, 65, 6):
            pen.box(x - 1.8, y + 4, x + 1.8, y + 13, (146, 140, 132), 1.8)
    pen.box(30, 93, 70, 100, _LINE)


@drawing("Colosseum")
def _colosseum(pen: Pen) -> None:
    pen.blob(
        [(-6, 28), (20, 18), (56, 20), (62, 40), (90, 46), (106, 52), (106, 92), (80, 98), (20, 98), (-6, 92)], _STONE
    )
    for y, last in ((36, 58), (58, 98), (80, 98)):
        for x in range(4, last, 13):
            pen.box(x - 4, y - 3, x + 4, y + 12, _STONE_DARK, 4)
    for y in (50, 72):
        pen.line([(-6, y), (106 if y > 60 else 62, y)], 1.8, _SHADE)


@drawing("Golden Gate Bridge")
def _golden_gate(pen: Pen) -> None:
    for x in (18, 82):
        for side in (-4, 4):
            pen.line([(x + side, 12), (x + side, 96)], 4, _RED)
        for y in (18, 34, 50):
            pen.line([(x - 4, y), (x + 4, y)], 3, _RED)
    for start, end, sag in (((18, 14), (82, 14), 48), ((-26, 62), (18, 14), 14), ((82, 14), (126, 62), 14)):
        cable = _hanging(start, end, sag)
        pen.line(cable, 1.8, _RED)
        for point in cable[1:-1]:
            pen.line([point, (point[0], 66)], 0.9, _RED)
    pen.box(-28, 66, 128, 71, _RED)


def _hanging(start: Point, end: Point, sag: float) -> list[Point]:
    """A cable between two points that hangs through."""
    (ax, ay), (bx, by) = start, end
    parts = [step / 12 for step in range(13)]
    return [(ax + (bx - ax) * t, ay + (by - ay) * t + sag * 4 * t * (1 - t)) for t in parts]


@drawing("Stonehenge")
def _stonehenge(pen: Pen) -> None:
    grey, dark = (158, 156, 150), (112, 110, 106)
    for x, top in ((-6, 50), (106, 54)):
        pen.blob([(x - 6, top), (x + 6, top + 2), (x + 8, 96), (x - 8, 96)], dark)
    for x in (22, 58):
        for shift in (-11, 11):
            pen.blob([(x + shift - 6, 36), (x + shift + 6, 36), (x + shift + 7, 97), (x + shift - 7, 97)], grey)
            pen.line([(x + shift + 4, 44), (x + shift + 4, 90)], 2, dark)
        pen.blob([(x - 20, 26), (x + 20, 24), (x + 20, 37), (x - 20, 38)], dark)
    pen.blob([(82, 40), (92, 42), (95, 97), (80, 97)], grey)


@drawing("Christ the Redeemer")
def _christ_the_redeemer(pen: Pen) -> None:
    pen.polygon([(10, 106), (34, 84), (66, 84), (90, 106)], (74, 116, 70))
    pen.polygon([(40, 90), (43, 30), (57, 30), (60, 90)], _MARBLE)
    pen.polygon([(44, 30), (-6, 30), (-6, 35), (20, 42), (42, 46)], _MARBLE)
    pen.polygon([(56, 30), (106, 30), (106, 35), (80, 42), (58, 46)], _MARBLE)
    pen.oval(50, 18, 7, 9, _MARBLE)
    for x in (46, 50, 54):
        pen.line([(x, 44), (x, 86)], 1.2, _LINE)
    pen.box(38, 84, 62, 90, _LINE)


@drawing("Parthenon")
def _parthenon(pen: Pen) -> None:
    pen.polygon([(50, 10), (108, 36), (-8, 36)], _STONE)
    pen.polygon([(50, 16), (90, 33), (10, 33)], _SHADE)
    pen.box(-6, 36, 106, 44, _STONE)
    for x in range(0, 108, 14):
        pen.box(x - 4, 44, x + 5, 88, _MARBLE)
        pen.line([(x + 2, 46), (x + 2, 86)], 1.4, _LINE)
    for row, y in enumerate((88, 93)):
        pen.box(-10 - row * 4, y, 110 + row * 4, y + 6, _STONE if row else _SHADE)


@drawing("Mount Fuji")
def _mount_fuji(pen: Pen) -> None:
    pen.blob([(40, 16), (60, 16), (84, 56), (128, 92), (-28, 92), (16, 56)], (92, 112, 152))
    pen.polygon(
        [(39, 15), (61, 15), (76, 44), (68, 38), (62, 50), (54, 40), (46, 52), (39, 40), (32, 48), (24, 44)], "snow"
    )
    pen.box(-28, 88, 128, 94, (74, 94, 130), 3)


@drawing("Arc de Triomphe")
def _arc_de_triomphe(pen: Pen) -> None:
    pen.box(-4, 8, 104, 28, _STONE, 1)
    pen.box(0, 26, 100, 98, _STONE)
    pen.box(-4, 30, 104, 35, _STONE_DARK)
    pen.polygon([*arc(50, 62, 19, 19, 180, 360), (69, 98), (31, 98)], (96, 92, 90))
    for x in (6, 76):
        pen.box(x, 64, x + 18, 92, _SHADE)
        pen.box(x, 42, x + 18, 56, _SHADE)
