"""How far apart two texts are, in characters."""

from __future__ import annotations

import numpy as np


def edit_distance(one: str, other: str) -> int:
    """The fewest characters to insert, delete, replace, or swap with their neighbour, to make one text the other.

    No character is edited twice (the *optimal string alignment* distance), so that two neighbours swapped cost 1.
    """
    one, other = _differing(one, other)
    if not one or not other:
        return len(one) + len(other)
    from crosslens.perturb.distance_kernel import aligned

    left, right = (np.array([ord(character) for character in text], np.int32) for text in (one, other))
    return int(aligned(left, right))


def _differing(one: str, other: str) -> tuple[str, str]:
    """Both texts without the beginning and the end that they share: the distance is the same, and found sooner."""
    shorter, start = min(len(one), len(other)), 0
    while start < shorter and one[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[start : len(one) - end], other[start : len(other) - end]
