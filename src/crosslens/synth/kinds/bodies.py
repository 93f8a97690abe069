"""Bodies with joints: animals on four legs (one skeleton, many builds, five poses) and people, who have more poses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from crosslens.synth.drawing import Pen, Point, drawing

_POSES = ("standing", "running", "sitting", "jumping", "sleeping")


@dataclass(frozen=True)
class Build:
    """What makes a dog a dog: proportions, ears, tail, coat."""

    thick: float = 13.0
    leg: float = 28.0
    leg_width: float = 7.0
    neck: float = 10.0
    head: float = 12.0
    snout: float = 9.0
    ears: str = "pointed"
    tail: str = "long"
    coat: str = ""


@dataclass(frozen=True)
class _Pose:
    """Where the body lies, where the neck begins, and where each leg goes (hip, foot)."""

    body: Point
    turn: float
    shoulder: Point
    rump: Point
    legs: tuple[tuple[Point, Point], ...]


def _pose(name: str, build: Build) -> _Pose:
    y = 100 - build.leg - build.thick * 0.6
    hip = y + build.thick * 0.3
    low = 100 - build.thick
    ends: tuple[tuple[float, float, float, float], ...]
    if name == "running":
        ends = ((27, hip, 6, 94), (34, hip, 46, 99), (62, hip, 50, 99), (68, hip, 92, 92))
        return _Pose((46, y), -4, (68, y - 6), (20, y - 4), _legs(ends))
    if name == "sitting":
        ends = ((26, 86, 46, 97), (52, 66, 58, 98), (58, 64, 64, 98))
        return _Pose((42, 70), -52, (56, 48), (24, 88), _legs(ends))
    if name == "sleeping":
        ends = ((26, low + 4, 40, 97), (60, low + 4, 76, 97))
        return _Pose((44, low), 0, (66, low - 2), (18, low + 2), _legs(ends))
    ends = ((25, hip, 24, 98), (34, hip, 35, 98), (59, hip, 58, 98), (67, hip, 68, 98))
    return _Pose((46, y), 0, (68, y - 5), (20, y - 4), _legs(ends))


def _legs(ends: tuple[tuple[float, float, float, float], ...]) -> tuple[tuple[Point, Point], ...]:
    return tuple(((a, b), (c, d)) for a, b, c, d in ends)


def _draw_quadruped(pen: Pen, build: Build) -> None:
    """The animal in the pen's pose, looking to the right."""
    name = pen.pose or "standing"
    if name == "jumping":
        pen, name = pen.turned(-28), "running"
    pose = _pose(name, build)
    _tail(pen, build, pose.rump, name)
    for number, (start, end) in enumerate(pose.legs):
        pen.line([start, end], build.leg_width, "dark" if number % 2 == 0 else "main")
        if build.coat != "plain feet":
            pen.oval(end[0] + 1.5, end[1] - 1, build.leg_width * 0.62, 3, "deep")
    pen.oval(*pose.body, 28, build.thick, "main", pose.turn)
    if name == "sitting":
        pen.disc(33, 84, build.thick * 0.95, "main")
    _coat(pen, build, pose)
    _head(pen, build, pose, name)


def _head(pen: Pen, build: Build, pose: _Pose, name: str) -> None:
    x, y = pose.shoulder
    asleep = name == "sleeping"
    rise = 0.0 if asleep else build.neck
    at = (x + 8 + (8 if asleep else rise * 0.25), y - rise + (2 if asleep else -2))
    if asleep:
        at = (min(at[0], 84), min(at[1] + 4, 99 - build.head))
    pen.line([(x - 3, y + 2), at], build.head * (1.05 if build.neck < 25 else 0.8), "main")
    if build.coat == "mane":
        pen.disc(at[0] - 2, at[1] + 1, build.head * 1.65, "dark")
    if build.coat == "horse":
        pen.line([(x - 8, y), (at[0] - build.head * 0.7, at[1] - 3)], 6, "deep")
    _ears(pen, build, at, behind=True)
    pen.oval(*at, build.head, build.head * 0.88, "main")
    pen.oval(at[0] + build.snout, at[1] + build.head * 0.25, build.snout * 0.75, build.head * 0.48, "light")
    if build.ears != "trunk":
        pen.disc(at[0] + build.snout * 1.6, at[1] + build.head * 0.08, 2.4, "ink")
    _ears(pen, build, at, behind=False)
    eye = (at[0] + build.head * 0.25, at[1] - build.head * 0.25)
    if asleep:
        pen.arc(eye[0], eye[1], 3, 2.5, 10, 170, 1.6, "ink")
        for size, dx, dy in ((7, 2, -26), (5, -8, -17)):
            zx, zy = at[0] + dx, at[1] - build.head + dy + 14
            pen.line([(zx, zy), (zx + size, zy), (zx, zy + size), (zx + size, zy + size)], 1.8, "ink")
    else:
        pen.eye(*eye)


def _ears(pen: Pen, build: Build, at: Point, behind: bool) -> None:
    (x, y), r = at, build.head
    style = build.ears
    if style == "pointed" and behind:
        pen.polygon([(x - r * 0.9, y - r * 0.2), (x - r * 0.7, y - r * 1.5), (x - r * 0.05, y - r * 0.7)], "dark")
        pen.polygon([(x - r * 0.1, y - r * 0.7), (x + r * 0.45, y - r * 1.5), (x + r * 0.7, y - r * 0.4)], "main")
    elif style == "floppy" and not behind:
        pen.oval(x - r * 0.65, y + r * 0.2, r * 0.38, r * 0.85, "dark", 12)
    elif style == "round" and behind:
        pen.disc(x - r * 0.7, y - r * 0.7, r * 0.42, "dark")
        pen.disc(x + r * 0.35, y - r * 0.85, r * 0.42, "main")
    elif style == "long" and behind:
        pen.oval(x - r * 0.6, y - r * 1.7, r * 0.32, r * 1.2, "dark", -14)
        pen.oval(x + r * 0.1, y - r * 1.75, r * 0.32, r * 1.2, "main", 6)
        pen.oval(x + r * 0.1, y - r * 1.7, r * 0.15, r * 0.85, "rose", 6)
    elif style == "horns" and behind:
        pen.oval(x - r * 1.1, y - r * 0.4, r * 0.55, r * 0.28, "dark", 20)
        pen.curve([(x - r * 0.3, y - r * 0.7), (x - r * 0.5, y - r * 1.2), (x - r * 0.1, y - r * 1.6)], 3.4, "cream")
        pen.curve([(x + r * 0.3, y - r * 0.7), (x + r * 0.6, y - r * 1.2), (x + r * 0.4, y - r * 1.6)], 3.4, "cream")
    elif style == "antlers" and behind:
        for side in (-1, 1):
            pen.line([(x, y - r * 0.6), (x + side * r * 0.6, y - r * 2.2)], 2.4, "bark")
            pen.line([(x + side * r * 0.25, y - r * 1.2), (x + side * r * 1.1, y - r * 1.6)], 2.4, "bark")
    elif style == "knobs" and behind:
        for shift in (-0.5, 0.2):
            pen.line([(x + r * shift, y - r * 0.5), (x + r * shift, y - r * 1.5)], 2.4, "deep")
            pen.disc(x + r * shift, y - r * 1.5, 2.4, "deep")
    elif style == "trunk":
        _trunk(pen, at, r, behind)


def _trunk(pen: Pen, at: Point, r: float, behind: bool) -> None:
    x, y = at
    if behind:
        pen.curve([(x + r * 0.7, y), (x + r * 1.35, y + r), (x + r * 1.2, y + r * 2), (x + r * 1.6, y + r * 2.4)], 7)
        pen.curve(
            [(x + r * 0.7, y), (x + r * 1.35, y + r), (x + r * 1.2, y + r * 2), (x + r * 1.6, y + r * 2.4)], 6.4, "main"
        )
        pen.curve([(x + r * 0.6, y + r * 0.7), (x + r * 1.0, y + r * 1.3), (x + r * 1.6, y + r * 1.2)], 3, "snow")
    else:
        pen.oval(x - r * 0.75, y + r * 0.05, r * 0.72, r, "dark")


def _tail(pen: Pen, build: Build, rump: Point, name: str) -> None:
    x, y = rump
    low = name in ("sitting", "sleeping")
    end = (x - 14, min(y + 6, 96)) if low else (x - 12, y - 12)
    if build.tail == "long":
        pen.curve([(x + 3, y), (x - 8, y + (2 if low else -1)), end, (end[0] + 1, end[1] - 7)], 4.2, "dark")
    elif build.tail == "bushy":
        pen.line([(x + 3, y), end], 9, "dark")
        pen.disc(*end, 5, "pale")
    elif build.tail == "tuft":
        down = (x - 9, min(y + 24, 95))
        pen.curve([(x + 3, y), (x - 6, y + 4), down], 2.8, "dark")
        pen.oval(*down, 3.4, 6, "deep")
    elif build.tail == "flowing":
        pen.curve([(x + 3, y), (x - 7, y + 2), (x - 11, min(y + 26, 95))], 7, "deep")
    elif build.tail == "curl":
        pen.arc(x - 3, y, 5, 5, 0, 300, 2.6, "dark")
    elif build.tail == "puff":
        pen.disc(x, y + 2, 7, "pale")


def _coat(pen: Pen, build: Build, pose: _Pose) -> None:
    x, y = pose.body
    if build.coat == "spots":
        for dx, dy, wide in ((-14, -4, 6), (2, 4, 7), (14, -4, 5)):
            pen.oval(x + dx, y + dy, wide, wide * 0.8, "deep", 20)
    elif build.coat == "patches":
        for dx, dy, r in ((-18, -6, 3.2), (-10, 4, 3.6), (-3, -7, 3), (4, 2, 3.6), (12, -6, 3.2), (17, 4, 3)):
            pen.disc(x + dx, y + dy, r, "deep")
    elif build.coat == "stripes":
        for dx in (-18, -9, 0, 9, 18):
            pen.line([(x + dx, y - build.thick * 0.72), (x + dx - 2, y + build.thick * 0.6)], 3.4, "ink")
    elif build.coat == "wool":
        for dx, dy in ((-24, -2), (-16, -11), (-4, -14), (9, -12), (20, -8), (24, 3), (14, 10), (0, 12), (-14, 10)):
            pen.disc(x + dx, y + dy * build.thick / 14, 9, "main")
        pen.oval(x, y, 24, build.thick, "main")
        for dx, dy in ((-12, -3), (2, 3), (12, -4)):
            pen.arc(x + dx, y + dy, 4.5, 4, 20, 200, 1.6, "dark")


_BUILDS: dict[str, Build] = {
    "dog": Build(ears="floppy", snout=11, head=13),
    "cat": Build(thick=12, leg=24, snout=6, head=13, leg_width=6),
    "horse": Build(thick=14, leg=38, neck=24, head=10, snout=12, tail="flowing", coat="horse", leg_width=6),
    "cow": Build(thick=17, leg=26, neck=8, head=12, snout=11, ears="horns", tail="tuft", coat="spots"),
    "sheep": Build(thick=16, leg=22, neck=5, head=10, snout=7, ears="floppy", tail="puff", coat="wool", leg_width=5),
    "pig": Build(thick=19, leg=18, neck=3, head=13, snout=11, tail="curl", leg_width=8),
    "rabbit": Build(thick=16, leg=16, neck=10, head=12, snout=6, ears="long", tail="puff", leg_width=6),
    "elephant": Build(thick=23, leg=24, neck=4, head=15, snout=6, ears="trunk", tail="tuft", leg_width=11),
    "giraffe": Build(
        thick=12, leg=36, neck=44, head=8, snout=8, ears="knobs", tail="tuft", coat="patches", leg_width=5
    ),
    "zebra": Build(thick=14, leg=32, neck=20, head=10, snout=11, tail="tuft", coat="stripes", leg_width=6),
    "lion": Build(thick=15, leg=26, neck=10, head=11, snout=7, ears="round", tail="tuft", coat="mane", leg_width=8),
    "bear": Build(thick=20, leg=22, neck=5, head=13, snout=8, ears="round", tail="puff", leg_width=11),
    "deer": Build(thick=12, leg=36, neck=18, head=9, snout=9, ears="antlers", tail="puff", leg_width=5),
    "fox": Build(thick=11, leg=24, neck=9, head=11, snout=11, tail="bushy", leg_width=6),
}


for _name, _build in _BUILDS.items():
    drawing(_name, _POSES)(partial(_draw_quadruped, build=_build))


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
