"""Birds, fish, insects and other creatures without four running legs."""

from __future__ import annotations

from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing, drawings

drawings("""
duck
    blob main: 6,56 24,64 48,62 76,60 86,72 74,92 34,94 12,80
    line 15 main: 72,68 74,44
    disc main: 74,36 17
    blob flame: 86,32 102,36 102,43 86,45
    blob dark: 28,70 52,68 64,74 46,86 30,82
    eye: 79,31 3
owl
    polygon dark: 26,30 22,4 46,18 | 74,30 78,4 54,18
    oval main: 50,60 32,38 | 50,36 30,24
    oval light: 50,74 18,20
    arc 1.6 dark: 42,66 4,3 0,180 | 50,66 4,3 0,180 | 58,66 4,3 0,180 | 42,76 4,3 0,180 | 50,76 4,3 0,180
    arc 1.6 dark: 58,76 4,3 0,180 | 42,86 4,3 0,180 | 50,86 4,3 0,180 | 58,86 4,3 0,180
    blob dark: 20,50 28,62 28,84 18,78 | 80,50 72,62 72,84 82,78
    disc cream: 37,36 12 | 63,36 12
    disc ink: 37,36 6 | 63,36 6
    disc snow: 39,34 2 | 65,34 2
    polygon gold: 45,44 55,44 50,54
    oval gold: 40,97 7,3 | 60,97 7,3
penguin
    oval flame: 40,97 10,4 | 60,97 10,4
    oval main: 50,60 27,37
    disc main: 50,24 20
    oval snow: 50,66 19,29 | 42,27 9,10 | 58,27 9,10
    oval 18 main: 20,60 6,22
    oval -18 main: 80,60 6,22
    disc ink: 42,25 3 | 58,25 3
    polygon flame: 44,31 56,31 50,39
chicken
    line 3 gold: 44,80 42,98 34,98 | 56,80 58,98 66,98
    blob main: 2,30 16,36 30,50 58,50 70,30 86,36 82,62 62,84 36,84 14,62
    disc 214,40,40: 66,16 6 | 73,12 6 | 80,16 6
    disc main: 74,28 13
    polygon gold: 85,25 97,30 85,35
    oval 214,40,40: 82,41 3.5,6
    blob dark: 28,58 52,56 58,66 40,76 26,70
    eye: 77,25 2.8
turtle
    oval light: 24,82 9,11 | 66,82 9,11 | 90,54 11,9
    polygon light: 4,80 18,70 18,80
    line 12 light: 76,70 88,58
    sector main: 46,78 40,46 180,360
    box 4 dark: 6,74 86,82
    polygon dark: 23,58 30,50 37,58 35,68 25,68 | 39,58 46,50 53,58 51,68 41,68 | 55,58 62,50 69,58 67,68 57,68
    eye: 93,51 2.6
frog
    oval -25 dark: 18,76 14,22
    oval dark: 14,94 14,5 | 86,94 14,5
    oval 25 dark: 82,76 14,22
    oval main: 50,68 32,28 | 50,44 34,22
    oval pale: 50,76 19,17
    disc main: 30,24 12 | 70,24 12
    disc snow: 30,23 8 | 70,23 8
    disc ink: 30,23 4 | 70,23 4
    arc 2.6 ink: 50,42 22,13 20,160
    oval main: 38,95 8,4 | 62,95 8,4
snake
    curve 14 main: 4,86 18,94 32,80 44,62 58,76 72,88 82,66 78,42
    curve 4 light: 4,87 18,95 32,81 44,63 58,77 72,89 82,67 78,43
    line 1.8 214,40,40: 86,26 98,20 | 98,20 104,22 | 98,20 102,14
    oval 30 main: 79,32 12,15
    eye: 82,28 3
butterfly
    blob main: 50,50 30,12 4,14 6,44 32,56 | 50,54 16,58 14,84 34,88 | 50,50 70,12 96,14 94,44 68,56
    blob main: 50,54 84,58 86,84 66,88
    disc pale: 21,31 8 | 79,31 8
    disc dark: 26,72 6 | 74,72 6
    curve 2 ink: 50,28 45,16 37,10 | 50,28 55,16 63,10
    oval ink: 50,54 4,27
    disc ink: 50,27 5
bee
    oval -25 glass: 42,24 12,22
    oval 20 glass: 60,24 12,22
    polygon ink: 8,60 20,54 20,66
    oval main: 48,60 34,24
    line 7 ink: 34,38 31,60 34,82 | 50,36 47,60 50,84 | 64,39 61,60 64,81
    disc ink: 82,56 14
    eye: 86,52 4
    curve 2 ink: 86,44 92,32 100,30
spider
    line 3.4 dark: 50,54 24,22 4,6 | 50,54 16,40 -2,36 | 50,54 16,62 -2,74 | 50,54 26,78 10,98 | 50,54 76,22 96,6
    line 3.4 dark: 50,54 84,40 102,36 | 50,54 84,62 102,74 | 50,54 74,78 90,98
    disc main: 50,64 21 | 50,40 13
    eye: 45,36 3.2 | 55,36 3.2
    oval light: 50,66 8,11
crab
    line 3.6 dark: 26,64 14,82 12,96 | 26,64 6,72 4,86 | 26,64 3,60 1,74 | 74,64 86,82 88,96 | 74,64 94,72 96,86
    line 3.6 dark: 74,64 97,60 99,74
    line 6 main: 24,56 10,38 | 76,56 90,38
    disc main: 8,26 13 | 92,26 13
    polygon deep: 8,27 13,10 1,12 | 92,27 87,10 99,12
    line 2.6 dark: 41,50 40,36 | 59,50 60,36
    eye: 40,34 4 | 60,34 4
    oval main: 50,66 32,20
    arc 2 ink: 50,68 14,7 20,160
snail
    blob tan: 4,94 30,84 66,84 78,62 76,46 88,42 96,54 90,82 72,98 20,99
    line 2.6 tan: 80,46 82,28 | 90,46 92,28
    disc ink: 82,27 3 | 92,27 3
    disc main: 44,58 32
    arc 4.5 deep: 44,58 22,22 0,300 | 46,58 12,12 120,420
    disc deep: 46,59 4
whale
    curve 3 glass: 70,34 70,18 60,10 | 70,34 70,18 80,10
    blob main: 2,38 14,46 22,36 26,54 46,40 76,36 98,54 94,78 66,90 34,84 14,62
    blob pale: 40,82 70,74 96,70 92,80 66,90
    polygon dark: 52,78 66,76 50,94
    eye: 84,60 3.2
    arc 2 ink: 92,62 12,8 60,160
dolphin
    polygon dark: 44,34 44,12 64,30
    blob main: 2,78 12,58 34,36 62,30 84,40 100,58 98,63 82,58 62,58 36,60 18,72
    polygon main: 16,64 -2,66 4,78 -4,92 14,84 22,68
    blob pale: 34,60 60,54 84,56 62,61
    polygon dark: 56,58 68,58 56,78
    eye: 80,46 2.6
bat
    polygon dark: 50,44 28,22 0,30 4,62 14,52 22,68 32,56 50,72 | 50,44 72,22 100,30 96,62 86,52 78,68 68,56 50,72
    polygon main: 47,34 37,14 35,38 | 53,34 63,14 65,38
    eye: 44,40 3 | 56,40 3
    oval main: 50,58 13,20
    disc main: 50,42 14
    eye: 44,40 3.2 | 56,40 3.2
    polygon snow: 45,49 49,49 47,55 | 51,49 55,49 53,55
""")


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
