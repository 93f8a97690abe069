"""The table of an edit distance, filled by compiled code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]


@numba.njit(nogil=True, cache=True)
def aligned(left: Array, right: Array) -> int:
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
