"""How two boxes of one picture stand to each other: left, right, above, below, inside, around, or at the same place."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RELATIONS = ("left", "right", "above", "below", "inside", "around", "at")
OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above", "inside": "around"} | {
    "around": "inside",
    "at": "at",
}
INSIDE = 0.9
"""A box lies inside a larger one that covers at least this share of it."""


def relation_number(one: Array, other: Array) -> int:
    """How box ``one`` stands to ``other``, as a place in ``RELATIONS``; x, y, width, height each.

    Inside where the larger box covers nine tenths of the smaller; otherwise the direction from centre to centre, along
    the axis on which they are further apart (across, where both are equal). Seen from the other box it is always the
    opposite relation.
    """
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    area, other_area = one[2] * one[3], other[2] * other[3]
    shared = across * down if across > 0 and down > 0 else 0.0
    if area != other_area and shared >= INSIDE * min(area, other_area):
        return 4 if area < other_area else 5
    right = (2 * one[0] + one[2]) - (2 * other[0] + other[2])
    below = (2 * one[1] + one[3]) - (2 * other[1] + other[3])
    if right == 0 and below == 0:
        return 6
    if abs(right) >= abs(below):
        return 0 if right < 0 else 1
    return 2 if below < 0 else 3


def relation(one: Array, other: Array) -> str:
    """How box ``one`` stands to ``other``."""
    return RELATIONS[relation_number(one, other)]


def relation_shares(ones: Array, others: Array) -> dict[str, float]:
    """Of all pairs of a box and another, the share that stands in each relation; those that none does are left out."""
    counts = [0] * len(RELATIONS)
    for one in ones:
        for other in others:
            counts[relation_number(one, other)] += 1
    return {name: count / (len(ones) * len(others)) for name, count in zip(RELATIONS, counts, strict=True) if count}


def common_share(one: dict[str, float], other: dict[str, float]) -> float:
    """How much of two distributions over relations is the same: the sum of the smaller shares, from 0 to 1."""
    return sum(min(one.get(name, 0.0), other.get(name, 0.0)) for name in RELATIONS)
