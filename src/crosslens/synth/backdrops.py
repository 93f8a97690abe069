"""Backdrops: drawn places, skies and surfaces, the words for them, and where objects can stand in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crosslens.storage import random_stream
from crosslens.synth.drawing import RGB, Pen, Surface

if TYPE_CHECKING:
    from PIL import Image


Draw = Callable[["Brush"], None]


class Brush(Pen):
    """A pen for a whole picture of 100 × 100 units, with a random stream of its own for details."""

    def __init__(self, surface: Surface, size: int, random: np.random.Generator) -> None:
        super().__init__(surface, size / 100)
        self.random = random

    def between(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))

    def sky(self, bottom: float, above: RGB, below: RGB) -> None:
        """A gradient from the upper edge down to ``bottom``."""
        self.surface.gradient(0, bottom * self.unit, (above, below))

    def ground(self, top: float, above: RGB, below: RGB) -> None:
        """A gradient from ``top`` down to the lower edge."""
        self.surface.gradient(top * self.unit, 100 * self.unit, (above, below))

    def cloudlet(self, x: float, y: float, size: float, colour: RGB) -> None:
        for dx, dy, r in ((-1.0, 0.1, 0.6), (0.0, -0.2, 0.8), (0.9, 0.05, 0.65)):
            self.oval(x + dx * size, y + dy * size, r * size, r * size * 0.7, colour)


@dataclass(frozen=True)
class Backdrop:
    """A place. ``at``, ``also`` and ``riddle`` end a sentence: on a beach, by the seaside, where waves come to rest.

    ``floor`` is the height, in units from the top, below which objects stand; 0 where they float.
    """

    name: str
    group: str
    at: str
    also: str
    riddle: str
    floor: float
    draw: Draw


BACKDROPS: dict[str, Backdrop] = {}
"""Every backdrop by its name."""


def backdrop(group: str, words: str, floor: float = 0.0) -> Callable[[Draw], Draw]:
    """Register a drawing as a backdrop; ``words`` are name | at | also | riddle."""
    name, at, also, riddle = words.split(" | ")

    def register(draw: Draw) -> Draw:
        assert name not in BACKDROPS, name
        BACKDROPS[name] = Backdrop(name, group, at, also, riddle, floor, draw)
        return draw

    return register


_SKY, _HAZE = (120, 184, 232), (214, 234, 246)
_WHITE = (250, 250, 252)


@backdrop("place", "beach | on a beach | by the seaside | where waves come to rest", floor=64)
def _beach(brush: Brush) -> None:
    brush.sky(42, _SKY, _HAZE)
    brush.disc(brush.between(12, 88), brush.between(10, 20), 7, (255, 226, 110))
    brush.box(0, 40, 100, 62, (46, 140, 190))
    for y in (46, 52):
        for x in range(0, 100, 20):
            brush.arc(x + brush.between(0, 8), y, 4, 1.4, 200, 340, 0.7, (150, 206, 230))
    brush.ground(60, (244, 224, 170), (226, 196, 134))
    brush.curve([(0, 61), (25, 63), (50, 60), (75, 63), (100, 61)], 2, _WHITE)
    shell = brush.between(6, 90)
    brush.polygon([(shell - 4, 94), (shell + 4, 94), (shell, 90)], (232, 150, 120))


@backdrop("place", "street | on a street | beside the road in town | where the traffic hums", floor=68)
def _street(brush: Brush) -> None:
    brush.sky(60, (168, 204, 232), (226, 236, 242))
    x = -brush.between(0, 10)
    tones = [(196, 150, 128), (178, 176, 188), (206, 190, 150), (160, 176, 166), (190, 160, 170)]
    number = int(brush.random.integers(len(tones)))
    while x < 100:
        width, top = brush.between(17, 26), brush.between(16, 34)
        brush.box(x, top, x + width, 62, tones[number % len(tones)])
        for row in range(round(top) + 5, 54, 11):
            for column in (0.18, 0.6):
                brush.box(x + width * column, row, x + width * (column + 0.2), row + 6, (94, 116, 140))
        x += width + 1
        number += 1
    brush.box(0, 60, 100, 67, (186, 184, 180))
    brush.ground(67, (92, 94, 100), (74, 76, 82))
    for start in range(-4, 100, 22):
        brush.box(start, 82, start + 12, 84.5, (238, 236, 220))


@backdrop("place", "kitchen | in a kitchen | among pots and cupboards | where dinner is made", floor=76)
def _kitchen(brush: Brush) -> None:
    brush.sky(76, (248, 238, 214), (242, 228, 198))
    for x in range(2, 62, 20):
        brush.box(x, 6, x + 18, 28, (150, 186, 176), 1)
        brush.disc(x + 15, 24, 0.9, (70, 80, 80))
    brush.box(66, 4, 96, 30, (200, 226, 242), 1)
    brush.line([(81, 4), (81, 30)], 1.2, _WHITE)
    brush.line([(66, 17), (96, 17)], 1.2, _WHITE)
    brush.box(0, 44, 100, 48, (164, 120, 84))
    for x in range(0, 100, 25):
        brush.box(x + 0.6, 48, x + 24.4, 76, (150, 186, 176))
        brush.line([(x + 9, 52), (x + 16, 52)], 1, (70, 80, 80))
    stove = 25 * int(brush.random.integers(0, 4))
    brush.box(stove + 1, 44, stove + 24, 76, (208, 212, 216))
    brush.box(stove + 4, 56, stove + 21, 71, (60, 64, 72), 1)
    for x in (6, 12, 18):
        brush.disc(stove + x, 50.5, 1.4, (60, 64, 72))
    brush.line([(stove + 6, 42), (stove + 18, 42)], 3.4, (96, 100, 108))
    for row in range(3):
        for column in range(-1, 9):
            shade = (232, 226, 214) if (row + column) % 2 else (190, 182, 168)
            brush.box(column * 13, 76 + row * 8, column * 13 + 13, 84 + row * 8, shade)


@backdrop("place", "forest | in a forest | deep in the woods | where the trees whisper", floor=72)
def _forest(brush: Brush) -> None:
    brush.sky(74, (120, 170, 120), (176, 206, 150))
    for layer, shade, leaf in ((0, (112, 134, 100), (84, 138, 88)), (1, (98, 76, 54), (52, 112, 66))):
        for step in range(7):
            x = step * 16 - 4 + brush.between(-4, 4) + layer * 7
            width = 2.4 + layer * 2
            brush.box(x - width / 2, 18, x + width / 2, 74 + layer * 3, shade)
            for _ in range(3):
                brush.disc(x + brush.between(-7, 7), brush.between(2, 24), 8 + layer * 2, leaf)
    brush.ground(72, (86, 128, 70), (60, 98, 54))
    for _ in range(14):
        x, y = brush.between(0, 100), brush.between(76, 99)
        brush.line([(x, y), (x + 1, y - 3)], 0.7, (122, 166, 84))


@backdrop("place", "snowy field | in the snow | in a wintry landscape | where winter rules", floor=62)
def _snow(brush: Brush) -> None:
    brush.sky(64, (168, 190, 214), (222, 230, 240))
    brush.blob([(-20, 70), (10, 48), (46, 56), (70, 46), (124, 64), (120, 110), (-20, 110)], (226, 234, 244))
    for x in (12, 84):
        where = x + brush.between(-6, 6)
        for top, half in ((42, 3.6), (48, 5), (54, 6.4)):
            brush.polygon([(where, top), (where + half, top + 9), (where - half, top + 9)], (86, 124, 110))
            brush.polygon([(where, top), (where + half * 0.5, top + 4), (where - half * 0.5, top + 4)], _WHITE)
    brush.ground(66, (244, 247, 252), (226, 234, 246))
    for _ in range(34):
        brush.disc(brush.between(0, 100), brush.between(0, 64), brush.between(0.5, 1.1), _WHITE)


@backdrop("place", "city at night | in a city at night | downtown after dark | where neon replaces the sun", floor=74)
def _night_city(brush: Brush) -> None:
    brush.sky(76, (18, 22, 52), (54, 48, 96))
    brush.disc(brush.between(14, 86), brush.between(8, 14), 5, (244, 240, 210))
    for _ in range(20):
        brush.disc(brush.between(0, 100), brush.between(0, 34), 0.5, (230, 230, 240))
    x = -2.0
    while x < 100:
        width, top = brush.between(11, 17), brush.between(22, 48)
        brush.box(x, top, x + width, 76, (34, 36, 60))
        for row in range(round(top) + 3, 70, 6):
            for column in range(2, round(width) - 2, 4):
                if brush.random.random() < 0.6:
                    brush.box(x + column, row, x + column + 2, row + 3, (250, 216, 120))
        x += width + 0.8
    brush.ground(74, (58, 58, 74), (40, 40, 54))
    for start in range(0, 100, 24):
        brush.box(start, 87, start + 12, 88.6, (200, 190, 130))


@backdrop("place", "desert | in a desert | among the dunes | where rain is only a rumour", floor=58)
def _desert(brush: Brush) -> None:
    brush.sky(62, (250, 206, 140), (254, 236, 196))
    brush.disc(brush.between(16, 84), brush.between(12, 22), 8, (255, 244, 200))
    brush.blob([(-20, 66), (14, 46), (40, 58), (70, 44), (120, 62), (120, 110), (-20, 110)], (232, 180, 108))
    brush.blob([(-20, 80), (24, 60), (60, 68), (120, 58), (120, 120), (-20, 120)], (220, 162, 88))
    for _ in range(5):
        x, y = brush.between(0, 90), brush.between(72, 98)
        brush.curve([(x, y), (x + 5, y - 1.4), (x + 11, y)], 0.7, (196, 140, 70))


@backdrop("place", "living room | in a living room | inside a cosy home | where the family gathers", floor=74)
def _living_room(brush: Brush) -> None:
    brush.sky(74, (234, 214, 190), (226, 204, 178))
    for x in range(0, 100, 10):
        brush.line([(x, 0), (x, 70)], 0.6, (218, 194, 166))
    side = brush.random.random() < 0.5
    window, picture = (8, 64) if side else (60, 10)
    brush.box(window, 10, window + 30, 42, _WHITE, 1)
    brush.box(window + 2, 12, window + 28, 40, (176, 214, 240))
    brush.line([(window + 15, 10), (window + 15, 42)], 1.4, _WHITE)
    for edge in (window - 4, window + 28):
        brush.box(edge, 8, edge + 6, 48, (172, 84, 84), 1)
    brush.box(picture, 14, picture + 24, 34, (128, 92, 60), 1)
    brush.box(picture + 2, 16, picture + 22, 32, (190, 214, 196))
    brush.polygon([(picture + 4, 32), (picture + 10, 21), (picture + 16, 32)], (110, 140, 120))
    brush.box(0, 70, 100, 74, (250, 244, 232))
    brush.ground(74, (176, 128, 84), (150, 104, 66))
    brush.oval(50, 89, 40, 8, (150, 70, 76))
    brush.oval(50, 89, 34, 6, (186, 104, 100))


@backdrop("place", "meadow | in a meadow | on a flowery lawn | where grasshoppers sing", floor=60)
def _meadow(brush: Brush) -> None:
    brush.sky(62, _SKY, (220, 240, 250))
    for cloud in (18, 72):
        brush.cloudlet(cloud + brush.between(-8, 8), brush.between(10, 22), 7, _WHITE)
    brush.blob([(-20, 66), (20, 54), (60, 60), (120, 52), (120, 110), (-20, 110)], (140, 194, 96))
    brush.ground(66, (120, 180, 82), (92, 152, 62))
    for _ in range(26):
        x, y = brush.between(0, 100), brush.between(68, 99)
        tint = [(250, 240, 250), (250, 220, 100), (236, 150, 180)][int(brush.random.integers(3))]
        brush.disc(x, y, 0.9, tint)


@backdrop("place", "open sea | on the open sea | far out on the water | where no land is in sight", floor=52)
def _open_sea(brush: Brush) -> None:
    brush.sky(46, (136, 190, 230), (226, 240, 248))
    brush.cloudlet(brush.between(14, 86), brush.between(10, 18), 8, _WHITE)
    brush.ground(44, (40, 120, 180), (16, 70, 130))
    for row in range(7):
        for column in range(5):
            x, y = column * 24 + (row % 2) * 12 + brush.between(-3, 3), 50 + row * 7.4
            brush.arc(x, y, 4.4, 1.8, 195, 345, 0.8, (122, 184, 222))


@backdrop("place", "underwater | under water | below the surface of the sea | where bubbles rise")
def _underwater(brush: Brush) -> None:
    brush.sky(92, (70, 170, 210), (14, 74, 130))
    for ray in (14, 46, 78):
        x = ray + brush.between(-8, 8)
        brush.polygon([(x, 0), (x + 8, 0), (x - 8, 92), (x - 20, 92)], (64, 152, 194))
    brush.ground(88, (206, 188, 136), (180, 160, 110))
    for _ in range(7):
        x = brush.between(2, 98)
        brush.curve([(x, 92), (x - 2, 84), (x + 2, 76), (x - 1, brush.between(62, 72))], 1.8, (44, 134, 98))
    for _ in range(14):
        brush.ring(brush.between(2, 98), brush.between(4, 80), brush.between(0.8, 1.8), 0.5, (186, 226, 240))


@backdrop("place", "mountains | in the mountains | below the high peaks | where the air grows thin", floor=66)
def _mountains(brush: Brush) -> None:
    brush.sky(66, (132, 180, 226), (226, 238, 246))
    for peak, top, half in ((16, 22, 30), (82, 18, 34), (50, 10, 34)):
        x = peak + brush.between(-5, 5)
        brush.polygon([(x, top), (x + half, 70), (x - half, 70)], (128, 134, 154))
        brush.polygon([(x, top), (x + half, 70), (x + half * 0.2, 70)], (104, 110, 132))
        cap = 0.28
        drop = (70 - top) * cap
        brush.polygon(
            [(x, top), (x + half * cap, top + drop), (x + half * 0.1, top + drop * 0.8), (x, top + drop * 1.2),
             (x - half * 0.12, top + drop * 0.8), (x - half * cap, top + drop)], _WHITE
        )  # fmt: skip
    brush.ground(66, (116, 164, 96), (88, 136, 74))


@backdrop("place", "outer space | in outer space | among the stars | where nobody hears a sound")
def _space(brush: Brush) -> None:
    brush.sky(100, (14, 12, 34), (30, 22, 62))
    for _ in range(70):
        size = brush.between(0.25, 0.8)
        brush.disc(brush.between(0, 100), brush.between(0, 100), size, (236, 236, 250))
    brush.blob([(-10, 86), (20, 64), (60, 60), (110, 30), (110, 44), (64, 74), (22, 82), (-10, 104)], (44, 34, 84))


@backdrop("place", "classroom | in a classroom | in front of the school desks | where lessons are learnt", floor=78)
def _classroom(brush: Brush) -> None:
    brush.sky(78, (238, 232, 206), (230, 222, 192))
    brush.box(16, 12, 84, 46, (150, 106, 66), 1)
    brush.box(18, 14, 82, 44, (52, 92, 74))
    for y in (22, 30):
        brush.line([(24, y), (24 + brush.between(16, 34), y)], 0.8, (214, 224, 216))
    brush.box(0, 3, 100, 8, (250, 250, 246))
    for x in range(4, 100, 8):
        tint = [(214, 90, 80), (80, 130, 200), (90, 160, 90), (230, 170, 60)][(x // 8) % 4]
        brush.box(x, 4, x + 4, 7, tint)
    for x in (4, 38, 72):
        brush.box(x, 60, x + 24, 63, (190, 140, 90))
        brush.line([(x + 3, 63), (x + 3, 78)], 1.4, (120, 120, 126))
        brush.line([(x + 21, 63), (x + 21, 78)], 1.4, (120, 120, 126))
    brush.ground(78, (196, 172, 136), (172, 148, 112))


@backdrop("place", "farm | on a farm | in front of a barn | where the rooster is the alarm clock", floor=66)
def _farm(brush: Brush) -> None:
    brush.sky(64, (150, 200, 236), (228, 242, 248))
    brush.blob([(-20, 66), (30, 52), (70, 58), (120, 50), (120, 80), (-20, 80)], (150, 190, 100))
    barn = brush.between(8, 58)
    brush.box(barn, 34, barn + 32, 64, (168, 56, 48))
    brush.polygon([(barn - 3, 36), (barn + 4, 22), (barn + 16, 15), (barn + 28, 22), (barn + 35, 36)], (110, 44, 42))
    brush.box(barn + 10, 46, barn + 22, 64, (240, 232, 220))
    brush.line([(barn + 10, 46), (barn + 22, 64)], 1, (168, 56, 48))
    brush.line([(barn + 22, 46), (barn + 10, 64)], 1, (168, 56, 48))
    brush.ground(64, (166, 188, 92), (136, 150, 70))
    for x in range(-2, 104, 9):
        brush.box(x, 60, x + 1.6, 70, (240, 236, 226))
    for y in (62, 66):
        brush.box(0, y, 100, y + 1.3, (240, 236, 226))


@backdrop("place", "garden | in a garden | among hedges and flower beds | where the roses are pruned", floor=70)
def _garden(brush: Brush) -> None:
    brush.sky(48, (140, 196, 234), (224, 240, 248))
    for x in range(-4, 108, 9):
        brush.disc(x, 44 + brush.between(-2, 2), 8, (62, 122, 66))
    brush.box(0, 44, 100, 62, (62, 122, 66))
    brush.ground(60, (134, 190, 98), (104, 162, 76))
    brush.box(0, 60, 100, 65, (112, 80, 54))
    for x in range(3, 100, 6):
        tint = [(226, 70, 80), (250, 210, 80), (190, 110, 200), (250, 250, 250)][int(brush.random.integers(4))]
        brush.line([(x, 63), (x, 58)], 0.8, (60, 130, 60))
        brush.disc(x, 57, 1.9, tint)
    brush.polygon([(44, 65), (56, 65), (74, 100), (26, 100)], (212, 196, 166))


@backdrop("place", "bathroom | in a bathroom | between tiles and taps | where ducks are made of rubber", floor=78)
def _bathroom(brush: Brush) -> None:
    brush.sky(78, (206, 232, 236), (196, 224, 230))
    for step in range(0, 101, 10):
        brush.line([(step, 0), (step, 78)], 0.5, (236, 246, 248))
        brush.line([(0, step * 0.78), (100, step * 0.78)], 0.5, (236, 246, 248))
    tub_at_left = brush.random.random() < 0.5
    tub, mirror = (2, 66) if tub_at_left else (44, 14)
    brush.box(mirror, 10, mirror + 20, 36, (240, 244, 246), 4)
    brush.box(mirror + 2, 12, mirror + 18, 34, (176, 206, 222), 3)
    brush.box(tub, 50, tub + 54, 76, _WHITE, 8)
    brush.box(tub - 2, 48, tub + 56, 53, (226, 232, 236), 2)
    brush.line([(tub + 6, 48), (tub + 6, 38), (tub + 11, 38)], 1.6, (150, 158, 166))
    brush.ground(78, (148, 178, 190), (124, 156, 170))


@backdrop("surface", "white paper | on white paper | on an empty page | on a field without a footprint")
def _white_paper(brush: Brush) -> None:
    brush.sky(100, (252, 252, 250), (244, 244, 240))


@backdrop("surface", "graph paper | on graph paper | on a sheet of little squares | on an engineer's favourite ground")
def _graph_paper(brush: Brush) -> None:
    brush.sky(100, (250, 252, 254), (246, 250, 252))
    for step in range(0, 101, 5):
        width = 0.7 if step % 25 == 0 else 0.35
        brush.line([(step, 0), (step, 100)], width, (170, 204, 228))
        brush.line([(0, step), (100, step)], width, (170, 204, 228))


@backdrop("surface", "wooden board | on a wooden board | on bare planks | on what was once a tree")
def _wooden_board(brush: Brush) -> None:
    for row in range(5):
        tint = round(brush.between(-8, 8))
        brush.box(0, row * 20, 100, row * 20 + 20, (206 + tint, 166 + tint, 114 + tint))
        brush.line([(0, row * 20), (100, row * 20)], 0.6, (150, 110, 66))
        for _ in range(3):
            x, y = brush.between(0, 80), row * 20 + brush.between(4, 16)
            brush.curve([(x, y), (x + 8, y + 1), (x + 18, y - 0.5)], 0.5, (176, 134, 84))


@backdrop("surface", "brick wall | against a brick wall | before a wall of bricks | before a mason's patient work")
def _brick_wall(brush: Brush) -> None:
    brush.sky(100, (222, 206, 192), (214, 198, 184))
    for row in range(13):
        for column in range(-1, 7):
            tint = round(brush.between(-12, 12))
            x = column * 17 + (8.5 if row % 2 else 0)
            brush.box(x, row * 8, x + 16, row * 8 + 7, (188 + tint, 118 + tint, 96 + tint))


@backdrop(
    "surface",
    "striped wallpaper | on striped wallpaper | in front of a wall with stripes | on a wall dressed like a deckchair",
)
def _striped_wallpaper(brush: Brush) -> None:
    first, second = [
        ((250, 236, 210), (240, 214, 176)),
        ((224, 238, 246), (198, 222, 238)),
        ((236, 226, 244), (218, 202, 232)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for x in range(0, 100, 20):
        brush.box(x, 0, x + 10, 100, second)


@backdrop(
    "surface",
    "dotted wallpaper | on dotted wallpaper | in front of a wall with dots | on a wall that seems to have measles",
)
def _dotted_wallpaper(brush: Brush) -> None:
    first, second = [
        ((250, 226, 230), (240, 190, 204)),
        ((226, 244, 232), (186, 220, 198)),
        ((250, 244, 214), (236, 218, 160)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for row in range(13):
        for column in range(12):
            brush.disc(column * 9 + (4.5 if row % 2 else 0), row * 8 + 3, 1.4, second)


@backdrop("surface", "tiled wall | on a tiled wall | on glazed tiles | on a wall that is easy to wipe")
def _tiled_wall(brush: Brush) -> None:
    brush.sky(100, (216, 226, 228), (216, 226, 228))
    for row in range(6):
        for column in range(6):
            tint = round(brush.between(-5, 5))
            brush.box(
                column * 17 + 0.6,
                row * 17 + 0.6,
                column * 17 + 16.4,
                row * 17 + 16.4,
                (236 + tint, 244 + tint, 244 + tint),
            )


@backdrop("surface", "blue carpet | on a blue carpet | on a woven blue rug | on a floor soft as moss")
def _blue_carpet(brush: Brush) -> None:
    brush.sky(100, (150, 176, 206), (134, 160, 194))
    brush.box(3, 3, 97, 97, (118, 146, 184))
    brush.box(6, 6, 94, 94, (146, 172, 204))
    for _ in range(90):
        x, y = brush.between(7, 92), brush.between(8, 92)
        brush.line([(x, y), (x + 1.2, y + 0.6)], 0.4, (168, 192, 220))


@backdrop("sky", "blue sky | under a blue sky | on a fine day | in weather made for postcards", floor=78)
def _blue_sky(brush: Brush) -> None:
    brush.sky(80, (84, 158, 226), (206, 230, 246))
    brush.disc(brush.between(10, 90), brush.between(8, 18), 6, (255, 228, 120))
    brush.ground(78, (132, 176, 96), (108, 152, 78))


@backdrop("sky", "sunset | at sunset | in the evening light | while the day says goodbye", floor=78)
def _sunset(brush: Brush) -> None:
    brush.sky(80, (116, 74, 140), (252, 168, 92))
    brush.disc(brush.between(20, 80), 74, 10, (255, 214, 120))
    brush.ground(78, (92, 72, 84), (66, 52, 66))


@backdrop("sky", "starry night | under a starry sky | in the middle of the night | while the town is asleep", floor=78)
def _starry_night(brush: Brush) -> None:
    brush.sky(80, (16, 22, 58), (52, 62, 116))
    brush.disc(brush.between(12, 88), brush.between(10, 20), 6, (246, 242, 214))
    for _ in range(44):
        brush.disc(brush.between(0, 100), brush.between(0, 70), brush.between(0.3, 0.7), (240, 240, 250))
    brush.ground(78, (44, 52, 74), (32, 38, 58))


@backdrop("sky", "cloudy sky | under grey clouds | on an overcast day | while rain makes up its mind", floor=78)
def _cloudy_sky(brush: Brush) -> None:
    brush.sky(80, (156, 164, 174), (206, 212, 218))
    for step in range(7):
        shade = 170 + 8 * (step % 3)
        brush.cloudlet(step * 17 + brush.between(-5, 5), brush.between(6, 26), 9, (shade, shade + 4, shade + 10))
    brush.ground(78, (126, 144, 110), (104, 122, 92))


@backdrop("sky", "rain | in the rain | in wet weather | while the gutters sing", floor=78)
def _rain(brush: Brush) -> None:
    brush.sky(80, (104, 118, 140), (164, 176, 190))
    brush.ground(78, (96, 110, 112), (76, 90, 96))
    for _ in range(70):
        x, y = brush.between(0, 104), brush.between(0, 96)
        brush.line([(x, y), (x - 1.2, y + 4)], 0.5, (206, 222, 240))


def backdrops_of(*groups: str) -> tuple[Backdrop, ...]:
    """All backdrops of these groups (``place``, ``sky``, ``surface``)."""
    return tuple(backdrop for backdrop in BACKDROPS.values() if backdrop.group in groups)


def paint(name: str, size: int, variant: int) -> Image.Image:
    """The backdrop as a square picture; another variant has other clouds, houses, planks."""
    surface = Surface(size, size, (255, 255, 255))
    BACKDROPS[name].draw(Brush(surface, size, random_stream(variant, "backdrop", name)))
    return surface.reduced()
