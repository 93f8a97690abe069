"""People: one skeleton of joints, many poses; the colour is that of their clothes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from crosslens.synth.drawing.geometry import Point
from crosslens.synth.drawing.pen import Pen
from crosslens.synth.kinds.kind import drawing

_HIP, _SHOULDER = (50.0, 62.0), (50.0, 34.0)


@dataclass(frozen=True)
class Stance:
    """Elbow and hand of both arms, knee and foot of both legs, and how far the whole figure is lowered."""

    arms: tuple[tuple[Point, Point], tuple[Point, Point]]
    legs: tuple[tuple[Point, Point], tuple[Point, Point]]
    drop: float = 0.0


_UPRIGHT = (((45, 80), (44, 97)), ((55, 80), (56, 97)))
_STANCES: dict[str, Stance] = {
    "standing": Stance((((38, 48), (36, 62)), ((62, 48), (64, 62))), _UPRIGHT),
    "waving": Stance((((38, 48), (36, 62)), ((66, 28), (72, 8))), _UPRIGHT),
    "running": Stance((((34, 46), (42, 58)), ((66, 44), (76, 34))), (((38, 78), (18, 84)), ((66, 72), (66, 96)))),
    "jumping": Stance((((34, 22), (26, 6)), ((66, 22), (74, 6))), (((36, 76), (40, 92)), ((64, 76), (60, 92)))),
    "sitting": Stance((((40, 48), (48, 60)), ((60, 48), (66, 60))), (((70, 64), (70, 86)), ((76, 66), (78, 86))), 12),
    "dancing": Stance((((32, 38), (24, 20)), ((68, 42), (80, 50))), (((40, 78), (34, 97)), ((66, 74), (56, 86)))),
    "kicking a ball": Stance(
        (((36, 44), (26, 52)), ((64, 42), (72, 34))), (((46, 80), (42, 97)), ((64, 74), (82, 84)))
    ),
    "reading a book": Stance((((40, 48), (54, 50)), ((62, 50), (64, 46))), _UPRIGHT),
    "holding an umbrella": Stance((((38, 48), (36, 62)), ((62, 46), (72, 38))), _UPRIGHT),
    "riding a bicycle": Stance(
        (((42, 46), (70, 50)), ((58, 46), (72, 50))), (((62, 70), (52, 86)), ((66, 68), (60, 80)))
    ),
    "lifting weights": Stance((((34, 24), (30, 2)), ((66, 24), (70, 2))), (((43, 80), (40, 97)), ((57, 80), (60, 97)))),
    "flying a kite": Stance((((38, 48), (36, 62)), ((64, 30), (74, 20))), (((45, 80), (40, 97)), ((56, 80), (60, 97)))),
}
"""What people can be doing, as the end of a sentence: "a girl is … ."""

_BALL, _BOOK, _BRASS = (240, 240, 238), (150, 60, 50), (90, 96, 108)


def _draw_person(pen: Pen, *, hair: Callable[[Pen, float], None], dress: bool, head: float) -> None:
    """The figure in the pen's pose, looking to the right."""
    stance = _STANCES[pen.pose or "standing"]
    drop = stance.drop

    def shift(point: Point) -> Point:
        return point[0], point[1] + drop

    _behind(pen)
    for knee, foot in stance.legs:
        pen.line([shift(_HIP), shift(knee), shift(foot)], 8, "skin" if dress else (70, 74, 96))
        pen.oval(foot[0] + 2.5, foot[1] + drop + 0.5, 6, 3.4, "ink")
    back, front = stance.arms
    pen.line([shift(_SHOULDER), *map(shift, back)], 6, "skin")
    pen.line([shift(_SHOULDER), shift(back[0])], 7.5, "dark")
    if dress:
        pen.blob([(44, 32 + drop), (56, 32 + drop), (62, 54 + drop), (70, 74 + drop), (30, 74 + drop), (38, 54 + drop)])
    else:
        pen.box(39, 30 + drop, 61, 66 + drop, "main", 8)
    pen.line([shift(_SHOULDER), *map(shift, front)], 6, "skin")
    pen.line([shift(_SHOULDER), shift(front[0])], 7.5, "dark")
    pen.disc(front[1][0], front[1][1] + drop, 3.6, "skin")
    pen.disc(50, 18 + drop, head, "skin")
    hair(pen, drop)
    pen.disc(50 + head * 0.42, 17 + drop, 1.7, "ink")
    pen.disc(50 - head * 0.05, 17 + drop, 1.7, "ink")
    pen.arc(50 + head * 0.2, 21 + drop, 4, 3.4, 20, 160, 1.6, (170, 60, 60))
    _before(pen)


def _behind(pen: Pen) -> None:
    if pen.pose == "sitting":
        pen.box(28, 76, 62, 82, "wood", 2)
        pen.line([(32, 80), (32, 98)], 4, "wood")
        pen.line([(58, 80), (58, 98)], 4, "wood")
        pen.line([(30, 78), (28, 44)], 4, "wood")
    elif pen.pose == "riding a bicycle":
        for x in (26, 80):
            pen.ring(x, 88, 13, 3, "tyre")
        pen.line([(26, 88), (44, 70), (70, 70), (80, 88)], 2.8, "steel")
        pen.line([(44, 70), (54, 88), (70, 70)], 2.8, "steel")
        pen.line([(26, 88), (54, 88)], 2.8, "steel")
        pen.line([(70, 70), (70, 54), (76, 52)], 2.8, "steel")


def _before(pen: Pen) -> None:
    if pen.pose == "kicking a ball":
        pen.disc(95, 86, 8, _BALL)
        pen.disc(95, 86, 3, "ink")
    elif pen.pose == "reading a book":
        pen.polygon([(52, 40), (62, 44), (62, 58), (52, 54)], _BOOK)
        pen.polygon([(72, 38), (62, 44), (62, 58), (72, 52)], "cream")
    elif pen.pose == "holding an umbrella":
        pen.line([(72, 40), (72, -6)], 2.4, "ink")
        pen.sector(72, 2, 34, 24, 180, 360, "dark")
        pen.sector(72, 2, 12, 24, 180, 360, "light")
    elif pen.pose == "lifting weights":
        pen.line([(8, -1), (92, -1)], 3.4, _BRASS)
        for x in (8, 92):
            pen.box(x - 4, -15, x + 4, 13, "ink", 2)
    elif pen.pose == "flying a kite":
        pen.curve([(74, 20), (88, 6), (100, -4)], 1.2, "ink")
        pen.polygon([(92, -4), (106, -22), (118, -6), (104, 10)], "light")
        pen.line([(106, -22), (104, 10)], 1.2, "deep")


def _short_hair(pen: Pen, drop: float) -> None:
    pen.sector(50, 16 + drop, 12.5, 12.5, 180, 360, "bark")


def _long_hair(pen: Pen, drop: float) -> None:
    pen.sector(50, 17 + drop, 13.5, 14, 175, 365, "bark")
    pen.blob([(38, 14 + drop), (42, 14 + drop), (42, 38 + drop), (34, 40 + drop)], "bark")


def _cap(pen: Pen, drop: float) -> None:
    pen.sector(50, 14 + drop, 13.5, 12, 180, 360, "dark")
    pen.box(50, 11 + drop, 70, 15 + drop, "deep", 2)


def _pigtails(pen: Pen, drop: float) -> None:
    pen.sector(50, 16 + drop, 13.5, 13, 180, 360, "gold")
    for x in (34, 66):
        pen.oval(x, 20 + drop, 4.5, 8, "gold", 20 if x < 50 else -20)


for _name, _hair, _dress, _size in (
    ("man", _short_hair, False, 12),
    ("woman", _long_hair, True, 12),
    ("boy", _cap, False, 14),
    ("girl", _pigtails, True, 14),
):
    drawing(_name, tuple(_STANCES))(partial(_draw_person, hair=_hair, dress=_dress, head=_size))
