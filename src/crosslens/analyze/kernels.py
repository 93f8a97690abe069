"""Compiled loops: farthest-point sampling, and the angles between images and the captions of their neighbours.

A *distance* of farthest points orders rows and is exact: sums in float64 over the dimensions in ascending order, so
that it is a property of two rows alone. For cosines it is minus the cosine, from -1 to 1; for Euclidean distances it is
the square. Sums of several picks are taken side by side, which is fast and changes no sum.

What is known of each row is passed as plain arrays:

``bounds``  its distance to the nearest pick is at most this; ``-inf``: it is a pick itself
``seen``    how many of the picks the bound accounts for
``known``   whether the bound is that distance itself, over the picks it accounts for
``heap``    all rows, the largest bound first (a binary heap), of equal ones the lowest row
"""

from __future__ import annotations

from math import acos, sqrt
from typing import Any

import numba
import numpy as np

from crosslens.rank import cosine_of  # the compiler's cache misses changes of it: edit this file as well

Array = np.ndarray[Any, Any]

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

_LANES = 64  # picks whose sums are taken side by side


@compiled
def least_distance(
    vector: Array, square: float, picks: Array, squares: Array, begin: int, end: int, cosine: bool, sums: Array
) -> float:
    """The least distance of a (scaled) vector to the picks from ``begin`` to ``end``.

    ``picks`` has a column per pick; ``sums`` has a place for each of ``_LANES`` numbers.
    """
    least = np.inf
    for first in range(begin, end, _LANES):
        last = min(first + _LANES, end)
        sums[:] = 0.0
        lanes = sums[: last - first]
        for j in range(vector.size):
            value, coordinates = vector[j], picks[j, first:last]
            if cosine:
                for p in range(lanes.size):
                    lanes[p] += value * coordinates[p]
            else:
                for p in range(lanes.size):
                    step = value - coordinates[p]
                    lanes[p] += step * step
        for p in range(lanes.size):
            distance = -cosine_of(lanes[p], square, squares[first + p]) if cosine else lanes[p]
            least = min(least, distance)
        if least == (-1.0 if cosine else 0.0):
            break
    return least


@compiled
def lower_bounds(
    products: Array, row_squares: Array, squares: Array, slack: Array, cosine: bool, picks: int,
    bounds: Array, included: Array, exact: Array,
) -> None:  # fmt: skip
    """Account for new picks by their inexact ``products`` with every row, each off by at most the row's ``slack``."""
    for i in range(products.shape[0]):
        if included[i] == picks:
            continue
        row = products[i]
        if cosine:
            largest = np.float32(-np.inf)
            for p in range(row.size):
                largest = row[p] if row[p] > largest else largest
            least = np.float64(-largest)
        else:
            least = np.float64(np.inf)
            for p in range(row.size):
                part = squares[p] - 2.0 * row[p]
                least = part if part < least else least
            least += row_squares[i]
        included[i] = picks
        if least - slack[i] < bounds[i]:  # otherwise the new picks are certainly no nearer
            exact[i] = False
            bounds[i] = min(bounds[i], least + slack[i])


@compiled
def lower_exactly(
    vectors: Array, scale: Array, row_squares: Array, picks: Array, squares: Array, begin: int, end: int, cosine: bool,
    bounds: Array, included: Array,
) -> None:  # fmt: skip
    """Account for the picks from ``begin`` to ``end`` by exact distances."""
    sums, vector = np.empty(_LANES), np.empty(vectors.shape[1])
    for i in range(vectors.shape[0]):
        _load(vectors, i, scale, vector)
        bounds[i] = min(bounds[i], least_distance(vector, row_squares[i], picks, squares, begin, end, cosine, sums))
        included[i] = end


@compiled
def _load(vectors: Array, row: int, scale: Array, out: Array) -> None:
    for j in range(out.size):
        out[j] = np.float64(vectors[row, j]) * scale[row]


@compiled
def build_heap(heap: Array, bounds: Array) -> None:
    """Put the rows in the order of a heap."""
    for index in range(heap.size // 2 - 1, -1, -1):
        _sink(heap, bounds, index)


@compiled
def _sink(heap: Array, bounds: Array, index: int) -> None:
    """Move a row whose bound is too low for its index down to where it belongs."""
    row = heap[index]
    while True:
        child = 2 * index + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and _is_farther(heap[child + 1], heap[child], bounds):
            child += 1
        if not _is_farther(heap[child], row, bounds):
            break
        heap[index] = heap[child]
        index = child
    heap[index] = row


@compiled
def _is_farther(row: int, other: int, bounds: Array) -> bool:
    """Equal bounds: the lower row comes first, which is the rule for ties."""
    return bounds[row] > bounds[other] or (bounds[row] == bounds[other] and row < other)


@compiled
def choose(
    vectors: Array, scale: Array, row_squares: Array, cosine: bool,
    heap: Array, bounds: Array, included: Array, exact: Array,
    order: Array, picks: Array, squares: Array, number: int, end: int, work: int,
) -> int:  # fmt: skip
    """Choose further picks, from ``number`` up to ``end`` of them; returns how many there are now.

    The row with the largest bound is the next pick if its bound is its distance over all picks. Otherwise the bound is
    lowered, first by the picks it does not account for, and if it is still the largest, to the distance itself. Stops
    when that has taken ``work`` multiplications and there are new picks that all bounds could be lowered by.
    """
    sums, vector, begin = np.empty(_LANES), np.empty(vectors.shape[1]), number
    while number < end and (work > 0 or number == begin):
        row = heap[0]
        _load(vectors, row, scale, vector)
        if exact[row] and included[row] == number:
            order[number], picks[:, number], squares[number] = row, vector, row_squares[row]
            number += 1
            bounds[row] = -np.inf
        else:
            first = included[row] if included[row] < number else 0
            least = least_distance(vector, row_squares[row], picks, squares, first, number, cosine, sums)
            exact[row] |= first == 0
            bounds[row] = least if first == 0 else min(bounds[row], least)
            work -= (number - first) * vector.size
            included[row] = number
        _sink(heap, bounds, 0)
    return number


@compiled
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


@compiled
def row_lengths(vectors: Array, out: Array) -> None:
    """|v| of each row."""
    for row in range(len(vectors)):
        out[row] = sqrt(dot(vectors[row], vectors[row]))


@compiled
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
        image_length = sqrt(dot(images[query], images[query]))
        total, count, size = 0.0, 0, 0
        for column in range(last[-1] + 1):
            neighbour = neighbours[query, column]
            for at in range(start[neighbour], start[neighbour + 1]):
                length = image_length * lengths[rows[at]]
                cosine = dot(images[query], captions[rows[at]]) / length if length > 0 else 0.0
                total += acos(min(1.0, max(-1.0, cosine)))
            count += start[neighbour + 1] - start[neighbour]
            if column == last[size]:
                out[query, size] = total / count if count else np.nan
                size += 1
