"""What people wear, carry, play with and work with."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar, star
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


@drawing("ball")
def _ball(pen: Pen) -> None:
    pen.disc(50, 50, 48, "main")
    for start in (-20, 100, 220):
        points = [(50, 44), *(polar(50, 50, 48, start + step) for step in range(0, 61, 10))]
        pen.polygon(points, "light")
    pen.disc(50, 44, 7, "dark")


@drawing("kite")
def _kite(pen: Pen) -> None:
    pen.curve([(50, 68), (42, 80), (56, 88), (46, 100)], 2.4, "ink")
    pen.polygon([(50, 0), (84, 30), (50, 70), (16, 30)], "main")
    pen.polygon([(50, 0), (84, 30), (50, 30)], "light")
    pen.polygon([(50, 30), (50, 70), (16, 30)], "dark")
    for x, y in ((44, 80), (54, 90)):
        pen.polygon([(x - 7, y - 4), (x + 7, y + 4), (x + 7, y - 4), (x - 7, y + 4)], "main")


@drawing("umbrella")
def _umbrella(pen: Pen) -> None:
    pen.line([(50, 6), (50, 86)], 4)
    pen.arc(58, 86, 8, 9, 0, 180, 4)
    pen.sector(50, 50, 48, 42, 180, 360, "main")
    pen.sector(50, 50, 17, 42, 180, 360, "light")
    for x in (18, 50, 82):
        pen.sector(x, 51, 16, 8, 180, 360, "dark")


@drawing("hat")
def _hat(pen: Pen) -> None:
    pen.oval(50, 82, 48, 11, "main")
    pen.polygon([(24, 14), (76, 14), (72, 80), (28, 80)], "main")
    pen.oval(50, 15, 26, 6, "light")
    pen.polygon([(26.6, 60), (73.4, 60), (72, 77), (28, 77)], "deep")


@drawing("shirt")
def _shirt(pen: Pen) -> None:
    pen.polygon([(32, 10), (68, 10), (98, 30), (88, 48), (74, 40), (74, 94), (26, 94), (26, 40), (12, 48), (2, 30)])
    pen.sector(50, 10, 16, 12, 0, 180, "deep")
    pen.line([(26, 40), (26, 60)], 2, "dark")
    pen.line([(74, 40), (74, 60)], 2, "dark")


@drawing("shoe")
def _shoe(pen: Pen) -> None:
    pen.blob([(8, 36), (34, 30), (44, 50), (70, 60), (94, 66), (98, 82), (6, 82)], "main")
    pen.box(2, 78, 100, 90, "snow", 5)
    for x, y in ((40, 46), (48, 52), (56, 56)):
        pen.line([(x - 5, y + 5), (x + 5, y - 4)], 3, "snow")
    pen.blob([(10, 48), (26, 50), (22, 74), (8, 74)], "dark")


@drawing("bag")
def _bag(pen: Pen) -> None:
    pen.arc(50, 36, 24, 30, 180, 360, 6, "dark")
    pen.blob([(14, 36), (86, 36), (96, 84), (84, 96), (16, 96), (4, 84)], "main")
    pen.polygon([(14, 36), (86, 36), (80, 60), (20, 60)], "dark")
    pen.box(43, 54, 57, 68, "gold", 3)


@drawing("glove")
def _glove(pen: Pen) -> None:
    for x, top in ((30, 20), (45, 8), (60, 10), (74, 24)):
        pen.line([(x, 60), (x, top)], 12, "main")
    pen.line([(32, 70), (12, 46)], 13, "main")
    pen.box(24, 46, 80, 84, "main", 10)
    pen.box(26, 80, 78, 97, "dark", 4)


@drawing("pair of glasses")
def _glasses(pen: Pen) -> None:
    for x in (24, 76):
        pen.disc(x, 54, 22, "main")
        pen.disc(x, 54, 16, "glass")
        pen.line([(x - 7, 58), (x + 3, 46)], 2.4, "snow")
    pen.arc(50, 54, 8, 8, 200, 340, 5, "main")
    pen.line([(4, 48), (-4, 40)], 5, "main")
    pen.line([(96, 48), (104, 40)], 5, "main")


@drawing("crown")
def _crown(pen: Pen) -> None:
    pen.polygon([(4, 84), (2, 30), (26, 56), (50, 14), (74, 56), (98, 30), (96, 84)], "main")
    pen.box(4, 78, 96, 92, "dark", 3)
    for x, y in ((2, 28), (50, 12), (98, 28)):
        pen.disc(x, y, 5.4, "light")
    for x in (24, 50, 76):
        pen.disc(x, 85, 4.4, "pale")


@drawing("key")
def _key(pen: Pen) -> None:
    pen.ring(24, 50, 17, 9, "main")
    pen.box(40, 45, 98, 55, "main", 2)
    pen.box(74, 54, 82, 70, "main")
    pen.box(88, 54, 96, 66, "main")
    pen.line([(44, 48), (94, 48)], 1.8, "light")


@drawing("bell")
def _bell(pen: Pen) -> None:
    pen.ring(50, 10, 6, 4, "dark")
    pen.disc(50, 88, 9, "deep")
    pen.blob([(50, 12), (68, 24), (74, 56), (90, 80), (10, 80), (26, 56), (32, 24)], "main")
    pen.box(6, 76, 94, 86, "dark", 5)
    pen.curve([(40, 28), (36, 46), (32, 60)], 4, "light")


@drawing("drum")
def _drum(pen: Pen) -> None:
    pen.line([(20, 6), (46, 36)], 3.4, "wood")
    pen.line([(82, 4), (56, 34)], 3.4, "wood")
    pen.box(8, 40, 92, 88, "main")
    pen.oval(50, 88, 42, 10, "main")
    for x in (8, 36, 64):
        pen.line([(x + 2, 46), (x + 14, 92), (x + 26, 46)], 2.4, "cream")
    pen.oval(50, 40, 42, 11, "gold")
    pen.oval(50, 39, 37, 8.4, "cream")


@drawing("guitar")
def _guitar(pen: Pen) -> None:
    pen.box(45, 8, 55, 60, "bark")
    pen.box(42, 0, 58, 12, "ink", 2)
    for y in (2, 7):
        pen.disc(40, y, 2.4, "metal")
        pen.disc(60, y, 2.4, "metal")
    pen.blob([(50, 46), (68, 46), (70, 58), (66, 66), (80, 82), (68, 99),
              (50, 100), (32, 99), (20, 82), (34, 66), (30, 58), (32, 46)])  # fmt: skip
    pen.disc(50, 68, 9, "ink")
    pen.box(38, 86, 62, 90, "ink")
    for x in (47, 50, 53):
        pen.line([(x, 10), (x, 87)], 0.9, "cream")


@drawing("trumpet")
def _trumpet(pen: Pen) -> None:
    pen.polygon([(66, 44), (100, 22), (100, 72), (66, 52)], "main")
    pen.line([(4, 48), (70, 48)], 6, "main")
    pen.box(24, 44, 62, 68, "main", 12)
    pen.box(30, 51, 56, 61, "pale", 6)
    for x in (34, 43, 52):
        pen.line([(x, 44), (x, 30)], 4.4, "dark")
        pen.box(x - 3.4, 26, x + 3.4, 30, "light", 1)
    pen.oval(3, 48, 3, 6, "dark")
    pen.oval(100, 47, 4, 25, "dark")


@drawing("pair of scissors")
def _scissors(pen: Pen) -> None:
    """Half open; the handles have the colour."""
    pen.polygon([(46, 56), (54, 52), (70, 2), (62, 4)], "metal")
    pen.polygon([(54, 56), (46, 52), (30, 2), (38, 4)], "steel")
    pen.line([(50, 54), (34, 72)], 8, "main")
    pen.line([(50, 54), (66, 72)], 8, "main")
    pen.ring(28, 82, 13, 8, "main")
    pen.ring(72, 82, 13, 8, "main")
    pen.disc(50, 54, 4, "ink")


@drawing("hammer")
def _hammer(pen: Pen) -> None:
    """The handle has the colour."""
    pen.line([(50, 30), (50, 94)], 12, "main")
    pen.line([(47, 62), (47, 92)], 2.4, "light")
    pen.box(20, 10, 72, 32, "steel", 3)
    pen.polygon([(70, 10), (98, 26), (92, 32), (70, 32)], "steel")
    pen.box(12, 8, 26, 34, "metal", 3)


@drawing("pencil")
def _pencil(pen: Pen) -> None:
    pen.polygon([(20, 66), (34, 80), (4, 96)], "cream")
    pen.polygon([(10, 82), (18, 90), (4, 96)], "ink")
    pen.polygon([(20, 66), (78, 8), (92, 22), (34, 80)], "main")
    pen.polygon([(25, 71), (83, 13), (87, 17), (29, 75)], "light")
    pen.polygon([(72, 14), (78, 8), (92, 22), (86, 28)], "metal")
    pen.polygon([(78, 8), (86, 0), (100, 14), (92, 22)], "rose")


@drawing("gift")
def _gift(pen: Pen) -> None:
    pen.box(8, 40, 92, 98, "main", 2)
    pen.box(2, 28, 98, 46, "dark", 3)
    pen.box(43, 28, 57, 98, "pale")
    pen.oval(36, 18, 15, 8, "pale", 22)
    pen.oval(64, 18, 15, 8, "pale", -22)
    pen.disc(50, 24, 6, "light")


@drawing("camera")
def _camera(pen: Pen) -> None:
    pen.box(34, 18, 66, 34, "dark", 4)
    pen.box(4, 28, 96, 86, "main", 8)
    pen.disc(50, 58, 24, "metal")
    pen.disc(50, 58, 19, "ink")
    pen.disc(50, 58, 11, "sea")
    pen.disc(45, 53, 4, "snow")
    pen.box(76, 36, 88, 44, "pale", 2)
    pen.box(12, 22, 24, 29, "dark", 2)


@drawing("skateboard")
def _skateboard(pen: Pen) -> None:
    for x in (26, 74):
        pen.disc(x, 74, 10, "tyre")
        pen.disc(x, 74, 4, "metal")
    pen.curve([(2, 44), (16, 58), (84, 58), (98, 44)], 9, "main")
    pen.line([(20, 56), (80, 56)], 2, "light")


@drawing("robot")
def _robot(pen: Pen) -> None:
    pen.line([(50, 14), (50, 2)], 3, "steel")
    pen.disc(50, 3, 4, (226, 60, 50))
    for x in (16, 84):
        pen.line([(x, 50), (x, 74)], 8, "dark")
        pen.disc(x, 78, 6, "steel")
    for x in (38, 62):
        pen.box(x - 7, 82, x + 7, 99, "dark", 3)
    pen.box(22, 44, 78, 86, "main", 5)
    pen.box(28, 12, 72, 42, "main", 6)
    for x in (40, 60):
        pen.disc(x, 24, 6, "cream")
        pen.disc(x, 24, 3, "ink")
    pen.line([(40, 35), (60, 35)], 3, "ink")
    pen.box(34, 52, 66, 70, "pale", 3)
    for x, lit in ((41, (226, 60, 50)), (50, (250, 200, 60)), (59, (70, 170, 90))):
        pen.disc(x, 61, 3.4, lit)


@drawing("teddy bear")
def _teddy_bear(pen: Pen) -> None:
    for side in (-1, 1):
        pen.disc(50 + side * 24, 12, 11, "main")
        pen.disc(50 + side * 24, 12, 6, "light")
        pen.oval(50 + side * 34, 58, 9, 17, "main", side * -35)
        pen.oval(50 + side * 24, 90, 16, 12, "main")
        pen.oval(50 + side * 28, 91, 7, 7, "light")
    pen.oval(50, 68, 27, 27, "main")
    pen.oval(50, 70, 16, 17, "light")
    pen.disc(50, 28, 26, "main")
    pen.oval(50, 36, 12, 9, "light")
    pen.disc(40, 23, 3.2, "ink")
    pen.disc(60, 23, 3.2, "ink")
    pen.oval(50, 32, 4.4, 3, "ink")


@drawing("medal")
def _medal(pen: Pen) -> None:
    """On a ribbon; the ribbon has the colour."""
    pen.polygon([(26, 0), (46, 0), (58, 46), (42, 50)], "main")
    pen.polygon([(74, 0), (54, 0), (42, 46), (58, 50)], "dark")
    pen.disc(50, 70, 28, "gold")
    pen.disc(50, 70, 22, (250, 214, 110))
    pen.polygon(star(50, 70, 16), "gold")
