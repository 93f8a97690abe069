"""Bodies with joints: animals on four legs (one skeleton, many builds, five poses) and people, who have more poses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from crosslens.synth.drawing import Pen, Point, drawing, points, read_drawings, read_table

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


def _draw_quadruped(pen: Pen, build: Build) -> None:
    """The animal in the pen's pose, looking to the right."""
    pose = pen.pose or "standing"
    if pose == "jumping":
        pen, pose = pen.turned(-28), "running"
    y = 100 - build.leg - build.thick * 0.6
    hip, low = y + build.thick * 0.3, 100 - build.thick
    # Where the body lies, where the neck begins, and where each leg goes: x and y of hip and foot.
    body, turn, shoulder, rump = (46.0, y), 0, (68.0, y - 5), (20.0, y - 4)
    legs = [(25, hip, 24, 98), (34, hip, 35, 98), (59, hip, 58, 98), (67, hip, 68, 98)]
    if pose == "running":
        turn, shoulder = -4, (68, y - 6)
        legs = [(27, hip, 6, 94), (34, hip, 46, 99), (62, hip, 50, 99), (68, hip, 92, 92)]
    elif pose == "sitting":
        body, turn, shoulder, rump = (42, 70), -52, (56, 48), (24, 88)
        legs = [(26, 86, 46, 97), (52, 66, 58, 98), (58, 64, 64, 98)]
    elif pose == "sleeping":
        body, shoulder, rump = (44, low), (66, low - 2), (18, low + 2)
        legs = [(26, low + 4, 40, 97), (60, low + 4, 76, 97)]
    _tail(pen, build, rump, pose)
    for number, (hip_x, hip_y, foot_x, foot_y) in enumerate(legs):
        pen.line([(hip_x, hip_y), (foot_x, foot_y)], build.leg_width, "dark" if number % 2 == 0 else "main")
        pen.oval(foot_x + 1.5, foot_y - 1, build.leg_width * 0.62, 3, "deep")
    pen.oval(*body, 28, build.thick, "main", turn)
    if pose == "sitting":
        pen.disc(33, 84, build.thick * 0.95, "main")
    _coat(pen, build, body)
    _head(pen, build, shoulder, asleep=pose == "sleeping")


def _head(pen: Pen, build: Build, shoulder: Point, asleep: bool) -> None:
    x, y = shoulder
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
    elif style == "trunk" and behind:
        trunk = [(x + r * 0.7, y), (x + r * 1.35, y + r), (x + r * 1.2, y + r * 2), (x + r * 1.6, y + r * 2.4)]
        pen.curve(trunk, 7)
        pen.curve(trunk, 6.4, "main")
        pen.curve([(x + r * 0.6, y + r * 0.7), (x + r * 1.0, y + r * 1.3), (x + r * 1.6, y + r * 1.2)], 3, "snow")
    elif style == "trunk":
        pen.oval(x - r * 0.75, y + r * 0.05, r * 0.72, r, "dark")


def _tail(pen: Pen, build: Build, rump: Point, pose: str) -> None:
    x, y = rump
    low = pose in ("sitting", "sleeping")
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


def _coat(pen: Pen, build: Build, body: Point) -> None:
    x, y = body
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


for _name, (_row,) in read_table("kinds/builds.txt").items():
    _fields: dict[str, Any] = dict(item.split("=") for item in _row.split())
    _fields |= {_field: float(_value) for _field, _value in _fields.items() if not _value.isalpha()}
    drawing(_name, _POSES)(partial(_draw_quadruped, build=Build(**_fields)))


_HIP, _SHOULDER = (50.0, 62.0), (50.0, 34.0)


class Stance(NamedTuple):
    """Elbow and hand of both arms, knee and foot of both legs, and how far the whole figure is lowered."""

    arms: list[list[Point]]
    legs: list[list[Point]]
    drop: float = 0.0


_STANCES = {
    pose: Stance(list(map(points, arms.split("|"))), list(map(points, legs.split("|"))), *map(float, drop))
    for pose, (arms, legs, *drop) in read_table("kinds/stances.txt").items()
}
_PROPS = read_drawings("kinds/props.txt")


def _draw_person(pen: Pen, *, hair: str, dress: bool, head: float) -> None:
    """The figure in the pen's pose, looking to the right."""
    stance = _STANCES[pen.pose or "standing"]
    drop = stance.drop

    def shift(point: Point) -> Point:
        return point[0], point[1] + drop

    if behind := _PROPS.get(f"behind {pen.pose}"):
        behind(pen)
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
    if hair == "short":
        pen.sector(50, 16 + drop, 12.5, 12.5, 180, 360, "bark")
    elif hair == "long":
        pen.sector(50, 17 + drop, 13.5, 14, 175, 365, "bark")
        pen.blob([(38, 14 + drop), (42, 14 + drop), (42, 38 + drop), (34, 40 + drop)], "bark")
    elif hair == "under a cap":
        pen.sector(50, 14 + drop, 13.5, 12, 180, 360, "dark")
        pen.box(50, 11 + drop, 70, 15 + drop, "deep", 2)
    else:
        pen.sector(50, 16 + drop, 13.5, 13, 180, 360, "gold")
        for x in (34, 66):
            pen.oval(x, 20 + drop, 4.5, 8, "gold", 20 if x < 50 else -20)
    pen.disc(50 + head * 0.42, 17 + drop, 1.7, "ink")
    pen.disc(50 - head * 0.05, 17 + drop, 1.7, "ink")
    pen.arc(50 + head * 0.2, 21 + drop, 4, 3.4, 20, 160, 1.6, (170, 60, 60))
    if before := _PROPS.get(f"before {pen.pose}"):
        before(pen)


for _name, _hair, _dress, _size in (
    ("man", "short", False, 12),
    ("woman", "long", True, 12),
    ("boy", "under a cap", False, 14),
    ("girl", "pigtails", True, 14),
):
    drawing(_name, tuple(_STANCES))(partial(_draw_person, hair=_hair, dress=_dress, head=_size))
