"""Bodies with joints: animals on four legs (one skeleton, many builds, five poses) and people, who have more poses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from crosslens.synth.drawing import Pen, Point, drawing, points, read_drawings, read_table

_POSES = ("standing", "running", "sitting", "jumping", "sleeping")


_PARTS = read_drawings("kinds/parts.txt") | read_drawings("kinds/props.txt")


def _draw_part(pen: Pen, name: str, **names: float) -> None:
    """What one of the tables has under a name; most poses have nothing to hold, and most coats are plain."""
    if name in _PARTS:
        _PARTS[name](pen, **names)


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
    hip, lying = y + build.thick * 0.3, 100 - build.thick
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
        body, shoulder, rump = (44, lying), (66, lying - 2), (18, lying + 2)
        legs = [(26, lying + 4, 40, 97), (60, lying + 4, 76, 97)]
    (x, y), low = rump, pose in ("sitting", "sleeping")
    u, v = (x - 14, min(y + 6, 96)) if low else (x - 12, y - 12)
    _draw_part(pen, f"{build.tail} tail", x=x, y=y, u=u, v=v, low=low)
    for number, (hip_x, hip_y, foot_x, foot_y) in enumerate(legs):
        pen.line([(hip_x, hip_y), (foot_x, foot_y)], build.leg_width, "dark" if number % 2 == 0 else "main")
        pen.oval(foot_x + 1.5, foot_y - 1, build.leg_width * 0.62, 3, "deep")
    pen.oval(*body, 28, build.thick, "main", turn)
    if pose == "sitting":
        pen.disc(33, 84, build.thick * 0.95, "main")
    _draw_part(pen, f"{build.coat} coat", x=body[0], y=body[1], thick=build.thick)
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
    ears = {"x": at[0], "y": at[1], "r": build.head}
    _draw_part(pen, f"{build.ears} ears behind", **ears)
    pen.oval(*at, build.head, build.head * 0.88, "main")
    pen.oval(at[0] + build.snout, at[1] + build.head * 0.25, build.snout * 0.75, build.head * 0.48, "light")
    if build.ears != "trunk":
        pen.disc(at[0] + build.snout * 1.6, at[1] + build.head * 0.08, 2.4, "ink")
    _draw_part(pen, f"{build.ears} ears before", **ears)
    eye = (at[0] + build.head * 0.25, at[1] - build.head * 0.25)
    if asleep:
        pen.arc(eye[0], eye[1], 3, 2.5, 10, 170, 1.6, "ink")
        for size, dx, dy in ((7, 2, -26), (5, -8, -17)):
            zx, zy = at[0] + dx, at[1] - build.head + dy + 14
            pen.line([(zx, zy), (zx + size, zy), (zx, zy + size), (zx + size, zy + size)], 1.8, "ink")
    else:
        pen.eye(*eye)


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


def _draw_person(pen: Pen, *, hair: str, dress: bool, head: float) -> None:
    """The figure in the pen's pose, looking to the right."""
    stance = _STANCES[pen.pose or "standing"]
    drop = stance.drop

    def shift(point: Point) -> Point:
        return point[0], point[1] + drop

    _draw_part(pen, f"behind {pen.pose}")
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
    _draw_part(pen, hair, drop=drop)
    pen.disc(50 + head * 0.42, 17 + drop, 1.7, "ink")
    pen.disc(50 - head * 0.05, 17 + drop, 1.7, "ink")
    pen.arc(50 + head * 0.2, 21 + drop, 4, 3.4, 20, 160, 1.6, (170, 60, 60))
    _draw_part(pen, f"before {pen.pose}")


for _name, _hair, _dress, _size in (
    ("man", "short hair", False, 12),
    ("woman", "long hair", True, 12),
    ("boy", "hair under a cap", False, 14),
    ("girl", "pigtails", True, 14),
):
    drawing(_name, tuple(_STANCES))(partial(_draw_person, hair=_hair, dress=_dress, head=_size))
