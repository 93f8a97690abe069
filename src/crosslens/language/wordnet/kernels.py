"""Compiled walks up the hierarchy. All release the GIL."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

Array = np.ndarray[Any, Any]

FAR = np.uint8(255)
"""No way. Real distances stay below 50."""

compiled = numba.njit(nogil=True, cache=True)


class Ways(NamedTuple):
    """The hypernyms of each synset at any distance, itself included, nearest first, and their distances.

    Those of synset ``s`` are at ``starts[s]:starts[s + 1]``. A ``rootless`` synset belongs to a part of speech whose
    hierarchies share no top; ``to_root`` is how far a simulated one is.
    """

    starts: Array
    above: Array
    steps: Array
    rootless: Array
    to_root: Array


@compiled
def _climb(starts: Array, targets: Array, synset: int, seen: Array, queue: Array, steps: Array) -> int:
    """Fill ``queue`` with ``synset`` and all above it, nearest first, and ``steps`` with the fewest steps to each."""
    queue[0], steps[0], seen[synset] = synset, 0, synset
    size, at = 1, 0
    while at < size:
        current = queue[at]
        for edge in range(starts[current], starts[current + 1]):
            above = targets[edge]
            if seen[above] != synset:
                seen[above] = synset
                queue[size], steps[size] = above, steps[at] + 1
                size += 1
        at += 1
    return size


@compiled
def climb_all(starts: Array, targets: Array) -> tuple[Array, Array, Array]:
    """The first three parts of :class:`Ways`, from the hypernyms of every synset."""
    count = starts.size - 1
    queue, steps = np.empty(count, np.int32), np.empty(count, np.uint8)
    first = np.zeros(count + 1, np.int64)
    seen = np.full(count, -1, np.int32)
    for synset in range(count):
        first[synset + 1] = first[synset] + _climb(starts, targets, synset, seen, queue, steps)
    all_above, all_steps = np.empty(first[count], np.int32), np.empty(first[count], np.uint8)
    seen[:] = -1
    for synset in range(count):
        size = _climb(starts, targets, synset, seen, queue, steps)
        all_above[first[synset] : first[synset] + size] = queue[:size]
        all_steps[first[synset] : first[synset] + size] = steps[:size]
    return first, all_above, all_steps


@compiled
def _mark(ways: Ways, synset: int, reached: Array) -> None:
    for at in range(ways.starts[synset], ways.starts[synset + 1]):
        reached[ways.above[at]] = ways.steps[at]


@compiled
def _unmark(ways: Ways, synset: int, reached: Array) -> None:
    for at in range(ways.starts[synset], ways.starts[synset + 1]):
        reached[ways.above[at]] = FAR


@compiled
def _distance(ways: Ways, marked: int, other: int, reached: Array) -> int:
    """Steps of the shortest way over a common hypernym; ``reached`` holds the ways up from ``marked``."""
    best = int(FAR)
    for at in range(ways.starts[other], ways.starts[other + 1]):
        best = min(best, int(reached[ways.above[at]]) + int(ways.steps[at]))
    if ways.rootless[marked] or ways.rootless[other]:
        best = min(best, int(ways.to_root[marked]) + int(ways.to_root[other]))
    return best


@compiled
def distance_matrix(ways: Ways, rows: Array, columns: Array) -> Array:
    """Steps between every row and every column."""
    out = np.empty((rows.size, columns.size), np.uint8)
    reached = np.full(ways.starts.size - 1, FAR, np.uint8)
    for i in range(rows.size):
        _mark(ways, rows[i], reached)
        for j in range(columns.size):
            out[i, j] = _distance(ways, rows[i], columns[j], reached)
        _unmark(ways, rows[i], reached)
    return out


@compiled
def distance_pairs(ways: Ways, left: Array, right: Array) -> Array:
    """Steps between ``left[p]`` and ``right[p]``."""
    out = np.empty(left.size, np.uint8)
    reached = np.full(ways.starts.size - 1, FAR, np.uint8)
    for p in range(left.size):
        _mark(ways, left[p], reached)
        out[p] = _distance(ways, left[p], right[p], reached)
        _unmark(ways, left[p], reached)
    return out
