"""Birds, fish, insects and other creatures without four running legs."""

from __future__ import annotations

from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing


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


@drawing("duck")
def _duck(pen: Pen) -> None:
    pen.blob([(6, 56), (24, 64), (48, 62), (76, 60), (86, 72), (74, 92), (34, 94), (12, 80)], "main")
    pen.line([(72, 68), (74, 44)], 15, "main")
    pen.disc(74, 36, 17, "main")
    pen.blob([(86, 32), (102, 36), (102, 43), (86, 45)], "flame")
    pen.blob([(28, 70), (52, 68), (64, 74), (46, 86), (30, 82)], "dark")
    pen.eye(79, 31, 3)


@drawing("owl")
def _owl(pen: Pen) -> None:
    pen.polygon([(26, 30), (22, 4), (46, 18)], "dark")
    pen.polygon([(74, 30), (78, 4), (54, 18)], "dark")
    pen.oval(50, 60, 32, 38, "main")
    pen.oval(50, 36, 30, 24, "main")
    pen.oval(50, 74, 18, 20, "light")
    for y in (66, 76, 86):
        for x in (42, 50, 58):
            pen.arc(x, y, 4, 3, 0, 180, 1.6, "dark")
    pen.blob([(20, 50), (28, 62), (28, 84), (18, 78)], "dark")
    pen.blob([(80, 50), (72, 62), (72, 84), (82, 78)], "dark")
    for x in (37, 63):
        pen.disc(x, 36, 12, "cream")
        pen.disc(x, 36, 6, "ink")
        pen.disc(x + 2, 34, 2, "snow")
    pen.polygon([(45, 44), (55, 44), (50, 54)], "gold")
    for x in (40, 60):
        pen.oval(x, 97, 7, 3, "gold")


@drawing("penguin")
def _penguin(pen: Pen) -> None:
    for x in (40, 60):
        pen.oval(x, 97, 10, 4, "flame")
    pen.oval(50, 60, 27, 37, "main")
    pen.disc(50, 24, 20, "main")
    pen.oval(50, 66, 19, 29, "snow")
    pen.oval(42, 27, 9, 10, "snow")
    pen.oval(58, 27, 9, 10, "snow")
    pen.oval(20, 60, 6, 22, "main", 18)
    pen.oval(80, 60, 6, 22, "main", -18)
    pen.disc(42, 25, 3, "ink")
    pen.disc(58, 25, 3, "ink")
    pen.polygon([(44, 31), (56, 31), (50, 39)], "flame")


@drawing("chicken")
def _chicken(pen: Pen) -> None:
    pen.line([(44, 80), (42, 98), (34, 98)], 3, "gold")
    pen.line([(56, 80), (58, 98), (66, 98)], 3, "gold")
    pen.blob([(2, 30), (16, 36), (30, 50), (58, 50), (70, 30), (86, 36), (82, 62), (62, 84), (36, 84), (14, 62)])
    for x, y in ((66, 16), (73, 12), (80, 16)):
        pen.disc(x, y, 6, (214, 40, 40))
    pen.disc(74, 28, 13, "main")
    pen.polygon([(85, 25), (97, 30), (85, 35)], "gold")
    pen.oval(82, 41, 3.5, 6, (214, 40, 40))
    pen.blob([(28, 58), (52, 56), (58, 66), (40, 76), (26, 70)], "dark")
    pen.eye(77, 25, 2.8)


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


@drawing("turtle")
def _turtle(pen: Pen) -> None:
    for x in (24, 66):
        pen.oval(x, 82, 9, 11, "light")
    pen.polygon([(4, 80), (18, 70), (18, 80)], "light")
    pen.line([(76, 70), (88, 58)], 12, "light")
    pen.oval(90, 54, 11, 9, "light")
    pen.sector(46, 78, 40, 46, 180, 360, "main")
    pen.box(6, 74, 86, 82, "dark", 4)
    for x in (30, 46, 62):
        pen.polygon([(x - 7, 58), (x, 50), (x + 7, 58), (x + 5, 68), (x - 5, 68)], "dark")
    pen.eye(93, 51, 2.6)


@drawing("frog")
def _frog(pen: Pen) -> None:
    for side in (-1, 1):
        pen.oval(50 + side * 32, 76, 14, 22, "dark", side * 25)
        pen.oval(50 + side * 36, 94, 14, 5, "dark")
    pen.oval(50, 68, 32, 28, "main")
    pen.oval(50, 44, 34, 22, "main")
    pen.oval(50, 76, 19, 17, "pale")
    for x in (30, 70):
        pen.disc(x, 24, 12, "main")
        pen.disc(x, 23, 8, "snow")
        pen.disc(x, 23, 4, "ink")
    pen.arc(50, 42, 22, 13, 20, 160, 2.6, "ink")
    for x in (38, 62):
        pen.oval(x, 95, 8, 4, "main")


@drawing("snake")
def _snake(pen: Pen) -> None:
    path = [(4, 86), (18, 94), (32, 80), (44, 62), (58, 76), (72, 88), (82, 66), (78, 42)]
    pen.curve(path, 14, "main")
    pen.curve([(x, y + 1) for x, y in path], 4, "light")
    pen.line([(86, 26), (98, 20)], 1.8, (214, 40, 40))
    pen.line([(98, 20), (104, 22)], 1.8, (214, 40, 40))
    pen.line([(98, 20), (102, 14)], 1.8, (214, 40, 40))
    pen.oval(79, 32, 12, 15, "main", 30)
    pen.eye(82, 28, 3)


@drawing("butterfly")
def _butterfly(pen: Pen) -> None:
    for side in (-1, 1):
        pen.blob([(50, 50), (50 + side * 20, 12), (50 + side * 46, 14), (50 + side * 44, 44), (50 + side * 18, 56)])
        pen.blob([(50, 54), (50 + side * 34, 58), (50 + side * 36, 84), (50 + side * 16, 88)], "main")
        pen.disc(50 + side * 29, 31, 8, "pale")
        pen.disc(50 + side * 24, 72, 6, "dark")
        pen.curve([(50, 28), (50 + side * 5, 16), (50 + side * 13, 10)], 2, "ink")
    pen.oval(50, 54, 4, 27, "ink")
    pen.disc(50, 27, 5, "ink")


@drawing("bee")
def _bee(pen: Pen) -> None:
    pen.oval(42, 24, 12, 22, "glass", -25)
    pen.oval(60, 24, 12, 22, "glass", 20)
    pen.polygon([(8, 60), (20, 54), (20, 66)], "ink")
    pen.oval(48, 60, 34, 24, "main")
    for x, half in ((34, 22), (50, 24), (64, 21)):
        pen.line([(x, 60 - half), (x - 3, 60), (x, 60 + half)], 7, "ink")
    pen.disc(82, 56, 14, "ink")
    pen.eye(86, 52, 4)
    pen.curve([(86, 44), (92, 32), (100, 30)], 2, "ink")


@drawing("spider")
def _spider(pen: Pen) -> None:
    for side in (-1, 1):
        for knee, foot in (((26, 22), (46, 6)), ((34, 40), (52, 36)), ((34, 62), (52, 74)), ((24, 78), (40, 98))):
            pen.line([(50, 54), (50 + side * knee[0], knee[1]), (50 + side * foot[0], foot[1])], 3.4, "dark")
    pen.disc(50, 64, 21, "main")
    pen.disc(50, 40, 13, "main")
    for x in (45, 55):
        pen.eye(x, 36, 3.2)
    pen.oval(50, 66, 8, 11, "light")


@drawing("crab")
def _crab(pen: Pen) -> None:
    for side in (-1, 1):
        for x, y in ((36, 90), (44, 80), (47, 68)):
            pen.line([(50 + side * 24, 64), (50 + side * x, y - 8), (50 + side * (x + 2), y + 6)], 3.6, "dark")
        pen.line([(50 + side * 26, 56), (50 + side * 40, 38)], 6, "main")
        pen.disc(50 + side * 42, 26, 13, "main")
        pen.polygon([(50 + side * 42, 27), (50 + side * 37, 10), (50 + side * 49, 12)], "deep")
        pen.line([(50 + side * 9, 50), (50 + side * 10, 36)], 2.6, "dark")
        pen.eye(50 + side * 10, 34, 4)
    pen.oval(50, 66, 32, 20, "main")
    pen.arc(50, 68, 14, 7, 20, 160, 2, "ink")


@drawing("snail")
def _snail(pen: Pen) -> None:
    pen.blob([(4, 94), (30, 84), (66, 84), (78, 62), (76, 46), (88, 42), (96, 54), (90, 82), (72, 98), (20, 99)], "tan")
    for x in (82, 92):
        pen.line([(x - 2, 46), (x, 28)], 2.6, "tan")
        pen.disc(x, 27, 3, "ink")
    pen.disc(44, 58, 32, "main")
    pen.arc(44, 58, 22, 22, 0, 300, 4.5, "deep")
    pen.arc(46, 58, 12, 12, 120, 420, 4.5, "deep")
    pen.disc(46, 59, 4, "deep")


@drawing("whale")
def _whale(pen: Pen) -> None:
    pen.curve([(70, 34), (70, 18), (60, 10)], 3, "glass")
    pen.curve([(70, 34), (70, 18), (80, 10)], 3, "glass")
    pen.blob(
        [(2, 38), (14, 46), (22, 36), (26, 54), (46, 40), (76, 36), (98, 54), (94, 78), (66, 90), (34, 84), (14, 62)]
    )
    pen.blob([(40, 82), (70, 74), (96, 70), (92, 80), (66, 90)], "pale")
    pen.polygon([(52, 78), (66, 76), (50, 94)], "dark")
    pen.eye(84, 60, 3.2)
    pen.arc(92, 62, 12, 8, 60, 160, 2, "ink")


@drawing("octopus")
def _octopus(pen: Pen) -> None:
    for x, end in ((22, 2), (34, 22), (46, 40), (56, 62), (68, 80), (78, 98)):
        pen.curve([(50 + (x - 50) * 0.7, 52), (x, 74), (end, 88), (end + (6 if end < 50 else -6), 97)], 8, "main")
    pen.oval(50, 36, 31, 33, "main")
    for x in (38, 62):
        pen.disc(x, 42, 8, "snow")
        pen.disc(x, 43, 4, "ink")
    pen.arc(50, 54, 9, 5, 20, 160, 2.2, "ink")
    for x, y in ((34, 18), (52, 12), (66, 22)):
        pen.disc(x, y, 3.4, "light")


@drawing("dolphin")
def _dolphin(pen: Pen) -> None:
    pen.polygon([(44, 34), (44, 12), (64, 30)], "dark")
    pen.blob(
        [(2, 78), (12, 58), (34, 36), (62, 30), (84, 40), (100, 58), (98, 63), (82, 58), (62, 58), (36, 60), (18, 72)]
    )
    pen.polygon([(16, 64), (-2, 66), (4, 78), (-4, 92), (14, 84), (22, 68)], "main")
    pen.blob([(34, 60), (60, 54), (84, 56), (62, 61)], "pale")
    pen.polygon([(56, 58), (68, 58), (56, 78)], "dark")
    pen.eye(80, 46, 2.6)


@drawing("bat")
def _bat(pen: Pen) -> None:
    for side in (-1, 1):
        pen.polygon(
            [(50, 44), (50 + side * 22, 22), (50 + side * 50, 30), (50 + side * 46, 62), (50 + side * 36, 52),
             (50 + side * 28, 68), (50 + side * 18, 56), (50, 72)], "dark"
        )  # fmt: skip
        pen.polygon([(50 + side * 3, 34), (50 + side * 13, 14), (50 + side * 15, 38)], "main")
        pen.eye(50 + side * 6, 40, 3)
    pen.oval(50, 58, 13, 20, "main")
    pen.disc(50, 42, 14, "main")
    for side in (-1, 1):
        pen.eye(50 + side * 6, 40, 3.2)
    pen.polygon([(45, 49), (49, 49), (47, 55)], "snow")
    pen.polygon([(51, 49), (55, 49), (53, 55)], "snow")
