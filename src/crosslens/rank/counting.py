"""Counting where a query has many hits: whole rows and columns of a tile, compared with a query's few relevant items.

The arguments are those of ``scan.py``. A function that runs out of room for undecided pairs returns where to continue
once they have been decided, and otherwise ``DONE``; and the number of undecided pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.rank.kernels import compiled

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs

STRIP = 64
"""Scores, or rows, that are counted before the undecided ones among them are noted down."""

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
            if here.size:
                more, doubtful = _weigh(row, here, low[p], high[p])
            else:
                more, doubtful = _count(row, low[p], high[p])
            above[p] += more
            if p == begin:
                seen[q] = more + doubtful
            if doubtful:
                for left in range(0, width, STRIP):
                    n = _note(row[left : left + STRIP], low[p], high[p], p, item + left, pairs, others, n)
    return DONE, n


@compiled
def _count(row: Array, low: Number, high: Number) -> tuple[Number, Number]:
    """How many scores are above for certain, and how many are in doubt."""
    surely, maybe = np.int32(0), np.int32(0)
    for j in range(row.size):
        surely = np.int32(surely + np.int32(row[j] > high))
        maybe = np.int32(maybe + np.int32(row[j] >= low))
    return surely, np.int32(maybe - surely)


@compiled
def _weigh(row: Array, weights: Array, low: Number, high: Number) -> tuple[Number, Number]:
    """How many items the scores that are above for certain stand for, and how many scores are in doubt."""
    surely, doubtful = np.int32(0), np.int32(0)
    for j in range(row.size):
        more = np.int32(row[j] > high)  # multiplied: a condition would keep the loop from being vectorised
        surely = np.int32(surely + more * weights[j])
        doubtful = np.int32(doubtful + np.int32(row[j] >= low) - more)
    return surely, doubtful


@compiled
def _note(strip: Array, low: Number, high: Number, p: int, item: int, pairs: Array, others: Array, n: int) -> int:
    """Note down the items of a strip that are in doubt."""
    if _count(strip, low, high)[1]:
        for j in range(strip.size):
            if low <= strip[j] <= high:
                pairs[n] = p
                others[n] = item + j
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
    more, doubtful = np.zeros(width, np.int32), np.zeros(width, np.int32)
    top = start
    while top < height and n + STRIP * width <= pairs.size:
        bottom = min(top + STRIP, height)
        for i in range(top, bottom):
            _add_row(tile[i], lowest, highest, weights[item + i] if weights.size else np.int32(1), more, doubtful)
        for left in range(0, width, STRIP):
            if _any(doubtful[left : left + STRIP]):
                for c in range(left, min(left + STRIP, width)):
                    if doubtful[c]:
                        seen[query + c] += doubtful[c] if nth == 0 else 0
                        doubtful[c] = 0
                        for i in range(top, bottom):
                            if lowest[c] <= tile[i, c] <= highest[c]:
                                pairs[n], others[n] = offsets[query + c] + nth, item + i
                                n += 1
        top = bottom
    for c in range(width):
        if more[c]:
            above[offsets[query + c] + nth] += more[c]
            seen[query + c] += more[c] if nth == 0 else 0
    return (top if top < height else DONE), n


@compiled
def _add_row(row: Array, low: Array, high: Array, weight: Number, more: Array, doubtful: Array) -> None:
    """Add a row's scores to the counts of all columns."""
    for j in range(row.size):
        surely = np.int32(row[j] > high[j])
        more[j] += surely * weight
        doubtful[j] += np.int32(row[j] >= low[j]) - surely


@compiled
def _any(strip: Array) -> Number:
    """Whether any number is not 0."""
    bits = np.int32(0)
    for j in range(strip.size):
        bits |= strip[j]
    return bits
