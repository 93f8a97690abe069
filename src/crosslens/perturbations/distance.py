"""How far apart two texts are, in characters."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


def edit_distance(left: str, right: str) -> int:
    """The fewest characters to insert, delete, replace, or swap with their neighbour, to turn one text into the other.

    No character is edited twice (the *optimal string alignment* distance), so that two neighbours swapped cost 1.
    """
    left, right = _without_shared_ends(left, right)
    if not left or not right:
        return len(left) + len(right)
    return int(_aligned(*(np.array([ord(character) for character in text], np.int32) for text in (left, right))))


def _without_shared_ends(left: str, right: str) -> tuple[str, str]:
    """Both texts without the beginning and the end that they share: the distance is the same, and found sooner."""
    shorter, start = min(len(left), len(right)), 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return left[start : len(left) - end], right[start : len(right) - end]


@numba.njit(nogil=True, cache=True)
def _aligned(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> int:
    """The optimal string alignment distance of two rows of characters, in three rows of the table at a time."""
    before = np.zeros(right.size + 1, np.int64)
    above = np.arange(right.size + 1)
    here = np.zeros(right.size + 1, np.int64)
    for row in range(1, left.size + 1):
        here[0] = row
        for column in range(1, right.size + 1):
            same = left[row - 1] == right[column - 1]
            best = min(above[column] + 1, here[column - 1] + 1, above[column - 1] + (0 if same else 1))
            if row > 1 and column > 1 and left[row - 1] == right[column - 2] and left[row - 2] == right[column - 1]:
                best = min(best, before[column - 2] + 1)
            here[column] = best
        before, above, here = above, here, before
    return int(above[-1])
