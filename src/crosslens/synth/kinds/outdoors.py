"""Plants, buildings, vehicles and other objects under the sky."""

from __future__ import annotations

from crosslens.synth.drawing.geometry import polar, star
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing, drawings

drawings("""
tree
    polygon bark: 42,98 45,58 55,58 58,98
    disc main: 32,44 22 | 68,44 22 | 50,26 26 | 50,50 22
    arc 2.4 dark: 38,34 7,6 20,160 | 60,26 7,6 20,160 | 64,48 7,6 20,160 | 40,54 7,6 20,160
pine tree
    box bark: 44,82 56,99
    polygon dark: 50,44 90,86 10,86
    polygon main: 50,22 82,62 18,62
    polygon light: 50,0 73,38 27,38
palm tree
    curve 7 wood: 44,99 46,74 54,50 58,30
    blob main: 58,30 30,12 8,36 23,32 | 58,30 34,26 22,62 32,52 | 58,30 80,12 98,38 93,33 | 58,30 80,30 92,62 90,54
    blob main: 58,30 50,16 50,2 54,17
    disc bark: 53,34 5 | 61,36 5
tulip
    line 4.4 leaf: 50,44 50,99
    blob leaf: 50,96 32,66 26,50 38,66 | 50,96 68,66 74,50 62,66
    polygon main: 26,4 38,20 50,2 62,20 74,4 74,30 62,48 38,48 26,30
    blob dark: 50,6 60,26 50,46 40,26
cactus
    line 24 main: 50,96 50,16
    line 13 main: 50,66 22,66 22,42 | 50,54 78,54 78,28
    line 1.8 pale: 44,24 44,29 | 56,34 56,39 | 44,46 44,51 | 56,76 56,81 | 44,80 44,85 | 22,48 22,53 | 78,36 78,41
    line 1.8 pale: 56,18 56,23
house
    box deep: 68,8 80,34
    box main: 12,44 88,98
    polygon deep: 2,46 50,6 98,46
    box 1 wood: 42,66 58,98
    disc gold: 55,83 1.8
    box glass: 18,56 34,74 | 66,56 82,74
    line 1.8 snow: 26,56 26,74 | 18,65 34,65 | 74,56 74,74 | 66,65 82,65
castle
    box main: 20,50 80,98 | 22,42 30,52 | 36,42 44,52 | 50,42 58,52 | 64,42 72,52 | 78,42 86,52
    box dark: 4,30 24,98 | 76,30 96,98
    polygon deep: 1,32 14,8 27,32 | 73,32 86,8 99,32
    line 1.8 ink: 14,10 14,-6 | 86,10 86,-6
    polygon 214,40,40: 14,-6 26,-2 14,3 | 86,-6 98,-2 86,3
    box 3 ink: 11,46 17,58 | 83,46 89,58
    box 10 ink: 40,68 60,98
    box ink: 40,84 60,98
tent
    polygon main: 50,12 100,94 0,94
    polygon deep: 50,12 68,94 32,94
    polygon light: 50,12 32,94 22,94
    line 3 wood: 50,12 47,3 | 50,12 54,3
cloud
    disc main: 24,58 18 | 46,44 24 | 72,52 20 | 86,62 13
    box 10 main: 8,56 98,76
    arc 2.4 light: 46,50 14,12 190,280
snowman
    disc snow: 50,74 25 | 50,38 18
    box 2 main: 30,16 70,23 | 37,-4 63,18
    box 5 main: 32,50 68,60
    box 3 main: 58,54 67,78
    disc ink: 44,34 2.2 | 57,34 2.2 | 48,68 2.2 | 48,78 2.2 | 48,88 2.2
    polygon flame: 50,38 68,42 50,44
    line 2.6 bark: 28,66 6,50 | 72,66 94,52
street lamp
    line 5 main: 50,36 50,96
    box 2 main: 38,92 62,99
    polygon 252,230,140: 38,10 62,10 58,36 42,36
    line 2.4 main: 38,10 42,36 | 62,10 58,36
    polygon main: 34,12 50,0 66,12
    box main: 40,34 60,39
fountain
    curve 3 glass: 50,30 41.6,10.8 36,56 | 50,30 32,14 20,56 | 50,30 58.4,10.8 64,56 | 50,30 68,14 80,56
    line 4 glass: 50,20 50,60
    sector main: 50,56 32,16 0,180
    box dark: 45,68 55,86
    sector main: 50,82 48,17 0,180
    box 3 dark: 2,78 98,84
leaf
    blob main: 50,2 76,26 80,54 50,82 20,54 24,26
    line 3.4 deep: 50,10 50,98
    line 2 deep: 50,38 66,26 | 50,38 34,26 | 50,52 66,40 | 50,52 34,40 | 50,66 66,54 | 50,66 34,54
planet
    oval -18 pale: 50,50 50,13
    oval -18 deep: 50,50 38,8
    disc main: 50,50 27
    oval -18 light: 46,40 16,4
    oval -18 dark: 54,62 15,3.5
    line 6 pale: 22,62 36,63 56,58 78,48
car
    blob main: 20,58 30,36 42,32 62,32 74,40 82,58
    box 10 main: 2,54 98,80
    polygon glass: 31,54 38,40 50,39 50,54 | 54,54 54,39 65,40 74,54
    box dark: 2,68 98,72
    oval cream: 95,62 3,4
    disc tyre: 25,82 12 | 76,82 12
    disc metal: 25,82 6 | 76,82 6
bus
    box 8 main: 0,26 100,84
    box 2 glass: 6,36 20,54 | 24,36 38,54 | 42,36 56,54 | 60,36 74,54 | 80,36 96,76
    line 1.6 deep: 88,37 88,75
    box pale: 0,62 78,67
    disc tyre: 22,84 10 | 66,84 10
    disc metal: 22,84 5 | 66,84 5
truck
    box 3 main: 0,22 62,78
    line 1.8 dark: 14,26 14,74 | 30,26 30,74 | 46,26 46,74
    box 6 dark: 64,40 98,78
    box 3 glass: 74,46 95,60
    box steel: 0,76 98,82
    disc tyre: 16,84 11 | 44,84 11 | 82,84 11
    disc metal: 16,84 5.5 | 44,84 5.5 | 82,84 5.5
bicycle
    ring 4 tyre: 20,72 18 | 80,72 18
    line 1 metal: 20,54 20,90 | 2,72 38,72 | 7,59 33,85 | 7,85 33,59 | 80,54 80,90 | 62,72 98,72 | 67,59 93,85
    line 1 metal: 67,85 93,59
    line 5 main: 20,72 38,44 70,44 50,72 20,72 | 38,44 50,72 | 70,44 80,72
    line 4 ink: 70,44 67,30 78,28 | 38,44 35,34
    oval ink: 35,32 9,3.4
    disc dark: 50,72 5
motorcycle
    ring 8 tyre: 18,76 15 | 82,76 15
    disc metal: 18,76 5 | 82,76 5
    line 4.5 steel: 82,76 68,38 58,34
    line 6 steel: 18,76 44,66 66,62
    box 4 metal: 38,60 60,80
    line 4.5 metal: 40,80 10,84
    blob main: 36,48 54,42 70,46 66,62 42,62 | 8,50 24,46 42,54 36,64 16,60
    blob ink: 14,46 28,44 42,52 24,54
    disc cream: 74,44 6
train
    box 3 main: 60,22 96,76
    box 2 dark: 56,16 100,24
    box 2 glass: 68,32 88,50
    box 8 main: 8,42 64,74
    polygon dark: 16,42 12,20 30,20 26,42
    disc gold: 44,42 7
    box deep: 4,72 98,80
    polygon steel: 4,78 -6,92 14,92 14,78
    disc tyre: 26,86 10 | 48,86 10 | 78,82 15
    disc metal: 26,86 5 | 48,86 5 | 78,82 7.5
    disc 226,228,232: 20,10 7 | 32,2 9
sailboat
    line 3 wood: 50,6 50,78
    polygon main: 54,8 54,68 92,68
    polygon light: 46,18 46,68 16,68
    blob dark: 4,76 96,76 82,98 20,98
    box 3 deep: 6,74 94,80
ship
    polygon dark: 36,34 38,10 48,10 48,34 | 54,34 56,10 66,10 66,34
    box ink: 37,10 49,17 | 55,10 67,17
    box 2 snow: 20,34 78,50
    box 2 cream: 14,48 86,64
    disc sea: 22,56 2.8 | 32,56 2.8 | 42,56 2.8 | 52,56 2.8 | 62,56 2.8 | 72,56 2.8 | 82,56 2.8
    polygon main: 0,62 100,62 88,96 14,96
    polygon deep: 8,82 93,82 88,96 14,96
airplane
    polygon dark: 4,24 16,24 28,48 12,50 | 46,46 34,20 44,20 64,46
    blob main: 4,48 22,44 70,42 92,46 100,54 90,60 40,62 12,58
    polygon dark: 44,56 66,56 38,92 26,92
    disc snow: 28,50 2.4 | 37,50 2.4 | 46,50 2.4 | 55,50 2.4 | 64,50 2.4 | 73,50 2.4
    polygon glass: 84,46 92,47 97,52 84,51
helicopter
    line 6 dark: 0,46 40,56
    line 4 steel: 54,24 54,40
    oval main: 60,58 32,23
    blob glass: 66,42 82,46 90,60 66,60
    line 3 steel: 44,78 42,92 | 72,78 74,92
    line 4 ink: 2,34 2,58 | 12,22 98,22 | 30,93 90,93
rocket
    blob flame: 40,78 60,78 56,92 50,104 44,92
    blob 252,222,90: 45,78 55,78 50,94
    polygon dark: 34,52 18,82 36,76 | 66,52 82,82 64,76
    blob main: 50,0 64,24 67,52 62,80 38,80 33,52 36,24
    polygon deep: 50,0 60,20 40,20
    disc snow: 50,38 9
    disc glass: 50,38 6
hot-air balloon
    line 1.6 bark: 36,62 44,84 | 64,62 56,84
    box 2 wood: 41,82 59,98
    blob main: 50,0 84,16 86,44 62,68 38,68 14,44 16,16
    blob light: 50,0 62,18 63,46 56,68 44,68 37,46 38,18
    blob dark: 50,0 54,20 54,46 52,68 48,68 46,46 46,20
tractor
    line 4 steel: 78,22 78,46
    box 3 dark: 24,14 58,22
    line 3.4 dark: 28,20 28,52 | 54,20 54,52
    box glass: 32,24 51,46
    box 5 main: 20,48 94,74
    box dark: 80,54 91,66
    disc tyre: 28,72 25 | 82,84 14
    disc gold: 28,72 12 | 82,84 6
""")


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


@drawing("traffic light")
def _traffic_light(pen: Pen) -> None:
    pen.box(46, 66, 54, 99, "steel")
    pen.box(32, 2, 68, 70, "main", 8)
    for y, lit in ((15, (226, 50, 44)), (36, (244, 190, 40)), (57, (60, 180, 80))):
        pen.disc(50, y, 10.4, "ink")
        pen.disc(50, y, 8.6, lit)


@drawing("snowflake")
def _snowflake(pen: Pen) -> None:
    for angle in range(0, 360, 60):
        pen.line([(50, 50), polar(50, 50, 46, angle - 90)], 5, "main")
        for reach in (24, 36):
            start = polar(50, 50, reach, angle - 90)
            pen.line([start, polar(*start, 13, angle - 140)], 4, "main")
            pen.line([start, polar(*start, 13, angle - 40)], 4, "main")
    pen.polygon(star(50, 50, 10, 6, 0.6), "light")
