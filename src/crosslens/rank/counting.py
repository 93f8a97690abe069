"""Counting where a query has many hits: whole rows and columns of a tile, compared with a query's few relevant items.

The arguments are those of ``scan.py``. A function that runs out of room for undecided pairs returns where to continue
once they have been decided, and otherwise ``DONE``; and the number of undecided pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.rank.kernels import compiled
from crosslens.rank.masks import LANES, at_least, exceeds, lowest_bit, number_of_bits

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs

DONE = -1


@compiled
def count_rows(
    tile: Array, query: int, item: int, start: int, counted: Array,
    offsets: Array, low: Array, high: Array, above: Array, seen: Array, weights: Array,
    pairs: Array, others: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Count the scores of rows above each of their relevant items; continues from a row."""
    height, width = tile.shape
    here = weights[item : item + width]
    for i in range(start, height):
        if not counted[i]:
            continue
        row, q = tile[i], query + i
        begin, end = offsets[q], offsets[q + 1]
        if n + (end - begin) * width > pairs.size:
            return i, n
        for p in range(begin, end):
            more: Number = 0
            before = n
            for left in range(0, width, LANES):
                surely = exceeds(row, left, high[p])
                doubtful = at_least(row, left, low[p]) ^ surely
                more += number_of_bits(surely)
                n = _note(doubtful, p, item + left, pairs, others, n)
            if p == begin:
                seen[q] = more + n - before
            above[p] += _weigh(row, here, high[p]) if here.size else more
    return DONE, n


@compiled
def _weigh(row: Array, weights: Array, high: Number) -> Number:
    """How many items the scores that are above for certain stand for."""
    more = np.int32(0)
    for j in range(row.size):  # multiplied: a condition would keep the loop from being vectorised
        more = np.int32(more + np.int32(row[j] > high) * weights[j])
    return more


@compiled
def _note(doubtful: Number, p: int, item: int, pairs: Array, others: Array, n: int) -> int:
    """Note down the items in doubt."""
    while doubtful:
        pairs[n], others[n] = p, item + lowest_bit(doubtful)
        doubtful &= doubtful - np.uint64(1)
        n += 1
    return n


@compiled
def count_columns(
    tile: Array, query: int, item: int, start: int, nth: int, counted: Array,
    offsets: Array, low: Array, high: Array, above: Array, seen: Array, weights: Array,
    pairs: Array, others: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Count the scores of columns above their ``nth`` relevant items; continues from a row.

    Whole rows are compared with whole rows of bounds: walking down the columns would miss the cache at every step.
    """
    height, width = tile.shape
    lowest, highest = np.full(width, np.float32(np.inf)), np.full(width, np.float32(np.inf))
    for c in range(width):
        p = offsets[query + c] + nth
        if counted[c] and p < offsets[query + c + 1]:
            lowest[c], highest[c] = low[p], high[p]
    more = np.zeros(width, np.int32)
    i = start
    while i < height and n + width <= pairs.size:
        row = tile[i]
        _add_row(row, highest, weights[item + i] if weights.size else np.int32(1), more)
        for left in range(0, width, LANES):
            doubtful = at_least(row, left, lowest) ^ exceeds(row, left, highest)
            while doubtful:
                c = left + lowest_bit(doubtful)
                doubtful &= doubtful - np.uint64(1)
                pairs[n], others[n] = offsets[query + c] + nth, item + i
                n += 1
                seen[query + c] += nth == 0
        i += 1
    for c in range(width):
        if more[c]:
            above[offsets[query + c] + nth] += more[c]
            seen[query + c] += more[c] if nth == 0 else 0
    return (i if i < height else DONE), n


@compiled
def _add_row(row: Array, high: Array, weight: Number, more: Array) -> None:
    """Add a row's scores to the counts of all columns."""
    for j in range(row.size):
        more[j] += np.int32(row[j] > high[j]) * weight
