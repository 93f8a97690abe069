"""Depths and distances in the hierarchy of hypernyms, for whole arrays of synset ids; the walks release the GIL.

nltk's rules hold: a path climbs from both synsets to a common hypernym; nouns share one top, for the other parts of
speech one may be simulated, which lies one step above the *farthest* hypernym of each synset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np

from crosslens.language.wordnet.tables import NO_PATH, Links
from crosslens.storage import Array

FAR = np.uint8(NO_PATH)
compiled = numba.njit(nogil=True, cache=True)


@dataclass(frozen=True)
class Hierarchy:
    """Hypernyms (those of instances included) without circles, and which synsets are nouns."""

    hypernyms: Links
    nouns: Array

    @cached_property
    def min_depths(self) -> Array:
        """Per synset, the fewest steps to a top; 0 for a top."""
        return self._depths(np.minimum)

    @cached_property
    def max_depths(self) -> Array:
        """Per synset, the most steps to a top."""
        return self._depths(np.maximum)

    def distances(self, rows: Array, columns: Array, *, simulate_root: bool = True) -> Array:
        """Steps between every row and every column as bytes; ``NO_PATH`` where none connects them."""
        return np.asarray(distance_matrix(self._ways(simulate_root), rows, columns))

    def paired_distances(self, left: Array, right: Array, *, simulate_root: bool = True) -> Array:
        """Steps between ``left[p]`` and ``right[p]`` as bytes; ``NO_PATH`` where none connects them."""
        return np.asarray(distance_pairs(self._ways(simulate_root), left, right))

    def closure(self, synset: int) -> Array:
        """All synsets above ``synset``, nearest first."""
        starts = self._rooted.starts
        return self._rooted.above[starts[synset] + 1 : starts[synset + 1]]

    def _depths(self, choose: np.ufunc) -> Array:
        """Settle every synset from its hypernyms; what is unsettled after one round is settled in a later one."""
        counts = np.diff(self.hypernyms.starts)
        below = np.flatnonzero(counts)
        firsts = self.hypernyms.starts[below]
        depths = np.zeros(counts.size, dtype=np.int16)
        if choose is np.minimum:
            depths[below] = np.iinfo(np.int16).max - 1
        while True:
            new = choose.reduceat(depths[self.hypernyms.targets], firsts) + 1 if below.size else depths[below]
            if np.array_equal(new, depths[below]):
                depths.setflags(write=False)
                return depths
            depths[below] = new

    @cached_property
    def _rooted(self) -> Ways:
        starts, above, steps = climb_all(self.hypernyms.starts, self.hypernyms.targets)
        # Nearest first: the last of each is the farthest.
        to_root = steps[starts[1:] - 1] + np.uint8(1)
        return Ways(starts, above, steps, ~self.nouns, to_root)

    def _ways(self, simulate_root: bool) -> Ways:
        return self._rooted if simulate_root else self._rooted._replace(rootless=np.zeros_like(self.nouns))


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
