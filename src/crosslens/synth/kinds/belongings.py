"""What people wear, carry, play and work with, and what stands about in their homes."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar, star
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing, drawings

drawings("""
kite
    curve 2.4 ink: 50,68 42,80 56,88 46,100
    polygon main: 50,0 84,30 50,70 16,30 | 37,76 51,84 51,76 37,84 | 47,86 61,94 61,86 47,94
    polygon light: 50,0 84,30 50,30
    polygon dark: 50,30 50,70 16,30
umbrella
    line 4 ink: 50,6 50,86
    arc 4 ink: 58,86 8,9 0,180
    sector main: 50,50 48,42 180,360
    sector light: 50,50 17,42 180,360
    sector dark: 18,51 16,8 180,360 | 50,51 16,8 180,360 | 82,51 16,8 180,360
hat
    oval main: 50,82 48,11
    polygon main: 24,14 76,14 72,80 28,80
    oval light: 50,15 26,6
    polygon deep: 26.6,60 73.4,60 72,77 28,77
shirt
    polygon main: 32,10 68,10 98,30 88,48 74,40 74,94 26,94 26,40 12,48 2,30
    sector deep: 50,10 16,12 0,180
    line 2 dark: 26,40 26,60 | 74,40 74,60
shoe
    blob main: 8,36 34,30 44,50 70,60 94,66 98,82 6,82
    box 5 snow: 2,78 100,90
    line 3 snow: 35,51 45,42 | 43,57 53,48 | 51,61 61,52
    blob dark: 10,48 26,50 22,74 8,74
bag
    arc 6 dark: 50,36 24,30 180,360
    blob main: 14,36 86,36 96,84 84,96 16,96 4,84
    polygon dark: 14,36 86,36 80,60 20,60
    box 3 gold: 43,54 57,68
glove
    line 12 main: 30,60 30,20 | 45,60 45,8 | 60,60 60,10 | 74,60 74,24
    line 13 main: 32,70 12,46
    box 10 main: 24,46 80,84
    box 4 dark: 26,80 78,97
pair of glasses
    disc main: 24,54 22 | 76,54 22
    disc glass: 24,54 16 | 76,54 16
    line 2.4 snow: 17,58 27,46 | 69,58 79,46
    arc 5 main: 50,54 8,8 200,340
    line 5 main: 4,48 -4,40 | 96,48 104,40
crown
    polygon main: 4,84 2,30 26,56 50,14 74,56 98,30 96,84
    box 3 dark: 4,78 96,92
    disc light: 2,28 5.4 | 50,12 5.4 | 98,28 5.4
    disc pale: 24,85 4.4 | 50,85 4.4 | 76,85 4.4
key
    ring 9 main: 24,50 17
    box 2 main: 40,45 98,55
    box main: 74,54 82,70 | 88,54 96,66
    line 1.8 light: 44,48 94,48
bell
    ring 4 dark: 50,10 6
    disc deep: 50,88 9
    blob main: 50,12 68,24 74,56 90,80 10,80 26,56 32,24
    box 5 dark: 6,76 94,86
    curve 4 light: 40,28 36,46 32,60
drum
    line 3.4 wood: 20,6 46,36 | 82,4 56,34
    box main: 8,40 92,88
    oval main: 50,88 42,10
    line 2.4 cream: 10,46 22,92 34,46 | 38,46 50,92 62,46 | 66,46 78,92 90,46
    oval gold: 50,40 42,11
    oval cream: 50,39 37,8.4
guitar
    box bark: 45,8 55,60
    box 2 ink: 42,0 58,12
    disc metal: 40,2 2.4 | 60,2 2.4 | 40,7 2.4 | 60,7 2.4
    blob main: 50,46 68,46 70,58 66,66 80,82 68,99 50,100 32,99 20,82 34,66 30,58 32,46
    disc ink: 50,68 9
    box ink: 38,86 62,90
    line 0.9 cream: 47,10 47,87 | 50,10 50,87 | 53,10 53,87
trumpet
    polygon main: 66,44 100,22 100,72 66,52
    line 6 main: 4,48 70,48
    box 12 main: 24,44 62,68
    box 6 pale: 30,51 56,61
    line 4.4 dark: 34,44 34,30
    box 1 light: 30.6,26 37.4,30
    line 4.4 dark: 43,44 43,30
    box 1 light: 39.6,26 46.4,30
    line 4.4 dark: 52,44 52,30
    box 1 light: 48.6,26 55.4,30
    oval dark: 3,48 3,6 | 100,47 4,25
pair of scissors
    polygon metal: 46,56 54,52 70,2 62,4
    polygon steel: 54,56 46,52 30,2 38,4
    line 8 main: 50,54 34,72 | 50,54 66,72
    ring 8 main: 28,82 13 | 72,82 13
    disc ink: 50,54 4
hammer
    line 12 main: 50,30 50,94
    line 2.4 light: 47,62 47,92
    box 3 steel: 20,10 72,32
    polygon steel: 70,10 98,26 92,32 70,32
    box 3 metal: 12,8 26,34
pencil
    polygon cream: 20,66 34,80 4,96
    polygon ink: 10,82 18,90 4,96
    polygon main: 20,66 78,8 92,22 34,80
    polygon light: 25,71 83,13 87,17 29,75
    polygon metal: 72,14 78,8 92,22 86,28
    polygon rose: 78,8 86,0 100,14 92,22
gift
    box 2 main: 8,40 92,98
    box 3 dark: 2,28 98,46
    box pale: 43,28 57,98
    oval 22 pale: 36,18 15,8
    oval -22 pale: 64,18 15,8
    disc light: 50,24 6
camera
    box 4 dark: 34,18 66,34
    box 8 main: 4,28 96,86
    disc metal: 50,58 24
    disc ink: 50,58 19
    disc sea: 50,58 11
    disc snow: 45,53 4
    box 2 pale: 76,36 88,44
    box 2 dark: 12,22 24,29
skateboard
    disc tyre: 26,74 10 | 74,74 10
    disc metal: 26,74 4 | 74,74 4
    curve 9 main: 2,44 16,58 84,58 98,44
    line 2 light: 20,56 80,56
robot
    line 3 steel: 50,14 50,2
    line 8 dark: 16,50 16,74 | 84,50 84,74
    disc steel: 16,78 6 | 84,78 6
    box 3 dark: 31,82 45,99 | 55,82 69,99
    box 5 main: 22,44 78,86
    box 6 main: 28,12 72,42
    disc cream: 40,24 6 | 60,24 6
    disc ink: 40,24 3 | 60,24 3
    line 3 ink: 40,35 60,35
    box 3 pale: 34,52 66,70
    disc 226,60,50: 50,3 4 | 41,61 3.4
    disc 250,200,60: 50,61 3.4
    disc 70,170,90: 59,61 3.4
teddy bear
    disc main: 26,12 11 | 74,12 11
    disc light: 26,12 6 | 74,12 6
    oval 35 main: 16,58 9,17
    oval main: 26,90 16,12 | 74,90 16,12
    oval light: 22,91 7,7 | 78,91 7,7
    oval -35 main: 84,58 9,17
    oval main: 50,68 27,27
    oval light: 50,70 16,17
    disc main: 50,28 26
    oval light: 50,36 12,9
    disc ink: 40,23 3.2 | 60,23 3.2
    oval ink: 50,32 4.4,3
chair
    line 7 main: 28,56 24,4
    box 3 dark: 24,8 32,44
    box 4 main: 22,52 82,62
    line 6 main: 28,60 28,97 | 76,60 76,97
    line 3.4 dark: 28,80 76,80
table
    line 5 dark: 22,48 22,88 | 78,48 78,88
    box 3 main: 0,40 100,52
    box 2 dark: 0,48 100,52
    line 7 main: 8,52 8,96 | 92,52 92,96
sofa
    box bark: 10,84 18,94 | 82,84 90,94
    box 10 main: 10,26 90,70
    line 2 dark: 50,30 50,60
    box 6 light: 16,56 49,72 | 51,56 84,72
    box 5 main: 6,68 94,88
    box 8 dark: 0,46 17,88 | 83,46 100,88
bed
    box 3 wood: 0,28 8,94 | 92,48 100,94
    box wood: 6,72 94,84
    box 5 snow: 6,58 94,74
    box 7 pale: 8,46 34,62
    blob main: 30,54 60,48 94,54 95,76 30,76
    line 2.4 dark: 32,58 92,58
lamp
    line 5 gold: 50,46 50,92
    oval gold: 50,94 22,5
    polygon main: 34,6 66,6 86,50 14,50
    polygon dark: 58,6 66,6 86,50 70,50
    line 1.6 ink: 70,50 70,62
    disc ink: 70,63 2.6
cup
    ring 7 dark: 78,62 14
    blob main: 16,38 80,38 76,80 62,96 34,96 20,80
    oval deep: 48,40 32,7
    oval bark: 48,41 26,4.6
    curve 3 metal: 36,30 31,22 40,14 36,4 | 54,30 49,22 58,14 54,4
teapot
    ring 6 dark: 16,60 15
    polygon dark: 72,62 90,34 100,34 80,80
    oval main: 50,64 36,28
    oval dark: 50,38 22,6
    disc dark: 50,28 6
    box 2 dark: 32,88 68,95
    oval -30 light: 36,54 8,5
bottle
    blob main: 42,8 58,8 58,30 70,46 71,94 50,98 29,94 30,46 42,30
    box 2 bark: 41,2 59,12
    box cream: 30,56 70,80
    line 2.4 deep: 36,64 64,64 | 36,72 58,72
vase
    blob main: 36,10 64,10 60,28 78,52 72,82 60,98 40,98 28,82 22,52 40,28
    box 3 dark: 32,6 68,14
    line 4 light: 25,56 75,56
    line 4 dark: 26,66 74,66
bowl
    sector main: 50,44 48,46 0,180
    oval deep: 50,44 48,9
    oval dark: 50,45 42,6
    box 3 dark: 34,86 66,94
    arc 3 light: 50,50 38,30 110,160
book
    box 3 main: 16,4 84,96
    box 3 dark: 16,4 28,96
    box 2 pale: 38,20 76,34
    line 2.4 deep: 44,27 70,27
    disc light: 57,62 13
    box cream: 80,8 85,92
candle
    box 4 main: 37,34 63,88
    blob light: 37,38 63,38 61,56 56,44 48,60 42,46
    line 2.4 ink: 50,36 50,26
    blob flame: 50,2 58,16 50,28 42,16
    blob 252,230,120: 50,12 54,19 50,26 46,19
    oval gold: 50,90 32,7
    ring 3.4 gold: 84,88 7
television
    line 3 steel: 50,26 30,4 | 50,26 70,4
    line 5 bark: 20,86 16,97 | 80,86 84,97
    box 8 main: 2,24 98,90
    box 8 ink: 10,32 74,82
    box 7 glass: 13,35 71,79
    disc pale: 86,42 5 | 86,58 5
laptop
    box 4 main: 14,16 86,72
    box 1 glass: 19,21 81,67
    polygon dark: 12,72 88,72 100,88 0,88
    line 1.4 pale: 14.25,75.5 85.75,75.5 | 12.5,79 87.5,79 | 10.75,82.5 89.25,82.5
basket
    arc 5 dark: 50,48 36,42 180,360
    polygon main: 6,46 94,46 82,96 18,96
    line 2.6 dark: 20,56 26,56 | 32,56 38,56 | 44,56 50,56 | 56,56 62,56 | 68,56 74,56 | 80,56 86,56 | 20,68 26,68
    line 2.6 dark: 32,68 38,68 | 44,68 50,68 | 56,68 62,68 | 68,68 74,68 | 80,68 86,68 | 20,80 26,80 | 32,80 38,80
    line 2.6 dark: 44,80 50,80 | 56,80 62,80 | 68,80 74,80 | 80,80 86,80
    box 4 dark: 2,42 98,51
""")


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
