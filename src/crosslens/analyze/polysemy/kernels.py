"""The compiled loop over the captions of neighbours: each vector is read once, and nothing is gathered."""

from __future__ import annotations

from math import acos, sqrt
from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

_compiled = numba.njit(nogil=True, cache=True)


@_compiled
def dot(left: Array, right: Array) -> float:
    """The sum of products in float64, in one fixed order: four running sums, which a processor adds side by side."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = len(left) - len(left) % 4
    for at in range(0, whole, 4):
        first += np.float64(left[at]) * np.float64(right[at])
        second += np.float64(left[at + 1]) * np.float64(right[at + 1])
        third += np.float64(left[at + 2]) * np.float64(right[at + 2])
        fourth += np.float64(left[at + 3]) * np.float64(right[at + 3])
    for at in range(whole, len(left)):
        first += np.float64(left[at]) * np.float64(right[at])
    return (first + second) + (third + fourth)


@_compiled
def row_lengths(vectors: Array, out: Array) -> None:
    """|v| of each row."""
    for row in range(len(vectors)):
        out[row] = sqrt(dot(vectors[row], vectors[row]))


@_compiled
def mean_angles(
    images: Array,
    captions: Array,
    lengths: Array,
    start: Array,
    rows: Array,
    neighbours: Array,
    last: Array,
    out: Array,
) -> None:
    """For each image the mean angle to the captions of its neighbours up to each column of ``last``; NaN: none.

    ``rows[start[image] : start[image + 1]]`` are an image's captions, ``lengths`` the captions' lengths.
    """
    for query in range(len(images)):
        own = sqrt(dot(images[query], images[query]))
        total, count, size = 0.0, 0, 0
        for column in range(last[-1] + 1):
            neighbour = neighbours[query, column]
            for at in range(start[neighbour], start[neighbour + 1]):
                length = own * lengths[rows[at]]
                cosine = dot(images[query], captions[rows[at]]) / length if length > 0 else 0.0
                total += acos(min(1.0, max(-1.0, cosine)))
            count += start[neighbour + 1] - start[neighbour]
            if column == last[size]:
                out[query, size] = total / count if count else np.nan
                size += 1
