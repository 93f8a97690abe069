"""Food."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing, drawings

drawings("""
apple
    curve 4 bark: 50,30 51,18 57,8
    oval -20 leaf: 66,14 13,6
    blob main: 50,30 68,22 90,40 84,76 64,97 50,92 36,97 16,76 10,40 32,22
    oval 20 light: 30,48 6,12
banana
    blob main: 14,22 22,18 30,48 56,70 92,66 98,72 76,88 44,86 18,58
    curve 2.6 dark: 22,30 30,58 56,78 86,74
    line 6 bark: 17,20 14,10
    disc bark: 96,70 4
pear
    curve 4 bark: 50,22 52,10 58,4
    blob main: 50,18 64,28 68,46 84,68 72,95 50,99 28,95 16,68 32,46 36,28
    oval 12 light: 34,70 6,12
strawberry
    blob main: 50,24 80,22 90,42 70,80 50,98 30,80 10,42 20,22
    oval cream: 30,40 2.2,3.4 | 50,44 2.2,3.4 | 70,40 2.2,3.4 | 38,58 2.2,3.4 | 60,60 2.2,3.4 | 50,76 2.2,3.4
    oval cream: 22,50 2.2,3.4 | 78,52 2.2,3.4
    polygon leaf: 50,12 18,22 24,34 30,22 | 50,12 32,22 38,34 44,22 | 50,12 44,22 50,34 56,22
    polygon leaf: 50,12 56,22 62,34 68,22 | 50,12 70,22 76,34 82,22
cherry
    curve 4 leaf: 46,54 50,30 66,6
    oval 14 leaf: 80,14 18,8
    disc main: 44,70 30
    sector dark: 46,43 9,5 0,180
    disc light: 34,60 7
slice of watermelon
    sector 44,122,60: 50,30 50,56 0,180
    sector pale: 50,30 44,49 0,180
    sector main: 50,30 41,45 0,180
    oval ink: 26,40 2.2,3.6 | 42,44 2.2,3.6 | 58,44 2.2,3.6 | 74,40 2.2,3.6 | 34,56 2.2,3.6 | 50,60 2.2,3.6
    oval ink: 66,56 2.2,3.6
carrot
    line 6 leaf: 50,28 34,4 | 50,28 50,4 | 50,28 66,4
    blob main: 36,26 50,22 64,26 62,56 50,100 38,56
    line 2.2 dark: 42,42 50,43 | 43,56 50,57 | 45,70 50,71
cake
    box cream: 36,14 40,32 | 48,14 52,32 | 60,14 64,32
    oval flame: 38,9 3,5 | 50,9 3,5 | 62,9 3,5
    box 3 main: 24,32 76,62 | 8,60 92,94
    box 2 snow: 24,31 76,38 | 8,59 92,66
    oval snow: 29,38 4.6,6 | 39,38 4.6,6 | 49,38 4.6,6 | 59,38 4.6,6 | 69,38 4.6,6 | 13,66 4.6,6 | 23,66 4.6,6
    oval snow: 33,66 4.6,6 | 43,66 4.6,6 | 53,66 4.6,6 | 63,66 4.6,6 | 73,66 4.6,6 | 83,66 4.6,6
    box 3 metal: 2,92 98,98
ice cream cone
    polygon 214,160,92: 32,50 68,50 50,100
    line 1.6 wood: 38,52 44,72 | 46,52 38,70 | 47,52 53,72 | 55,52 47,70 | 56,52 62,72 | 64,52 56,70
    disc main: 50,42 20
    disc light: 50,22 17
    box 4 dark: 30,46 70,53
    disc 206,34,50: 52,5 5
hamburger
    sector main: 50,46 46,38 180,360
    oval pale: 32,24 3,2 | 48,18 3,2 | 64,22 3,2 | 40,34 3,2 | 60,34 3,2
    oval leaf: 10,50 10,6 | 26,50 10,6 | 42,50 10,6 | 58,50 10,6 | 74,50 10,6 | 90,50 10,6
    box 3 200,60,50: 6,52 94,58
    box 6 98,58,36: 4,58 96,72
    polygon 250,200,60: 10,58 60,58 46,68 30,62
    box 8 main: 6,72 94,90
egg
    blob main: 50,4 70,20 78,48 64,70 36,70 22,48 30,20
    oval 15 light: 40,28 5,10
    sector glass: 50,58 34,26 0,180
    box glass: 44,80 56,92
    oval glass: 50,94 22,5
loaf of bread
    blob main: 6,62 12,42 34,36 66,36 88,42 94,62 84,82 16,82
    line 4.4 pale: 25,58 35,44 | 45,58 55,44 | 65,58 75,44
pineapple
    polygon leaf: 44,36 30,10 56,36 | 44,36 70,10 56,36 | 44,36 40,2 56,36 | 44,36 60,2 56,36 | 44,36 50,-4 56,36
    oval main: 50,66 27,34
    line 1.8 dark: 50,34 25,62 | 62,37 29,82 | 72,48 40,94 | 76,64 58,97 | 50,34 75,62 | 38,37 71,82 | 28,48 60,94
    line 1.8 dark: 24,64 42,97
""")


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


@drawing("mushroom")
def _mushroom(pen: Pen) -> None:
    pen.blob([(40, 50), (60, 50), (66, 94), (50, 99), (34, 94)], "cream")
    pen.sector(50, 54, 48, 50, 180, 360, "main")
    pen.box(2, 50, 98, 57, "dark", 3)
    for x, y, r in ((30, 34, 7), (54, 20, 8), (74, 38, 7), (50, 42, 4)):
        pen.oval(x, y, r, r * 0.8, "snow")
