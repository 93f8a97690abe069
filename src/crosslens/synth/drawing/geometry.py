"""Outlines as lists of points: every shape of the drawing language ends as a polygon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

Point = tuple[float, float]
Points = Sequence[Point]
_ROUND = 30
"""Corners of a circle."""


def ellipse(x: float, y: float, rx: float, ry: float, turn: float = 0.0, corners: int = _ROUND) -> list[Point]:
    """An ellipse around (x, y), turned by ``turn`` degrees clockwise."""
    if not turn:
        return [(x + rx * across, y + ry * down) for across, down in _circle(corners)]
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return [
        (x + rx * across * cos - ry * down * sin, y + rx * across * sin + ry * down * cos)
        for across, down in _circle(corners)
    ]


@cache
def _circle(corners: int) -> tuple[Point, ...]:
    angles = (2 * math.pi * corner / corners for corner in range(corners))
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


def arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    """Points along an ellipse from ``start`` to ``end`` degrees, 0 to the right, clockwise as pictures have y down."""
    steps = max(6, round(abs(end - start) / 12))
    angles = (math.radians(start + (end - start) * step / steps) for step in range(steps + 1))
    return [(x + rx * math.cos(angle), y + ry * math.sin(angle)) for angle in angles]


def rounded_box(x0: float, y0: float, x1: float, y1: float, radius: float) -> list[Point]:
    """A rectangle with round corners."""
    if radius <= 0:
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    r = min(radius, (x1 - x0) / 2, (y1 - y0) / 2)
    return [
        *arc(x1 - r, y0 + r, r, r, -90, 0),
        *arc(x1 - r, y1 - r, r, r, 0, 90),
        *arc(x0 + r, y1 - r, r, r, 90, 180),
        *arc(x0 + r, y0 + r, r, r, 180, 270),
    ]


def regular(x: float, y: float, radius: float, corners: int, first: float = -90) -> list[Point]:
    """A regular polygon, its first corner in the direction ``first``."""
    return [polar(x, y, radius, first + 360 * corner / corners) for corner in range(corners)]


def star(x: float, y: float, radius: float, points: int = 5, depth: float = 0.42) -> list[Point]:
    """A star with one point up; ``depth`` is how far its notches reach out."""
    return [
        polar(x, y, radius * (1 if half % 2 == 0 else depth), -90 + 180 * half / points) for half in range(2 * points)
    ]


def polar(x: float, y: float, radius: float, angle: float) -> Point:
    """The point at this distance and direction (degrees, clockwise from the right)."""
    return x + radius * math.cos(math.radians(angle)), y + radius * math.sin(math.radians(angle))


def smooth(points: Points, closed: bool, steps: int = 6) -> list[Point]:
    """A smooth curve through all the points (Catmull–Rom)."""
    count = len(points)
    curve: list[Point] = []
    for here in range(count if closed else count - 1):
        if closed:
            corners = [points[(here + shift) % count] for shift in (-1, 0, 1, 2)]
        else:
            corners = [points[min(max(here + shift, 0), count - 1)] for shift in (-1, 0, 1, 2)]
        curve.extend(_between(corners, steps))
    return curve if closed else [*curve, points[-1]]


def _between(corners: Points, steps: int) -> Iterator[Point]:
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = corners
    for step in range(steps):
        t = step / steps
        yield (
            bx + 0.5 * t * (cx - ax + t * (2 * ax - 5 * bx + 4 * cx - dx + t * (3 * (bx - cx) + dx - ax))),
            by + 0.5 * t * (cy - ay + t * (2 * ay - 5 * by + 4 * cy - dy + t * (3 * (by - cy) + dy - ay))),
        )


def thick(points: Points, width: float) -> Iterator[list[Point]]:
    """The polygons that make up a line with round ends and joints."""
    half = width / 2
    for x, y in points:
        yield ellipse(x, y, half, half, corners=12)
    for (ax, ay), (bx, by) in pairwise(points):
        length = math.hypot(bx - ax, by - ay)
        if length > 0:
            across, down = -(by - ay) / length * half, (bx - ax) / length * half
            yield [
                (ax + across, ay + down),
                (bx + across, by + down),
                (bx - across, by - down),
                (ax - across, ay - down),
            ]
