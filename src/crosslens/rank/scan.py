"""The compiled heart of a pass: look at a tile of scores once, while it is still in the cache.

For every query of the tile, count the items above its relevant items and collect candidates for its top list. Most
scores can be neither, which one vectorised comparison tells.

The arrays are passed one by one, since tuples of them take the compiler's dispatcher longer than a tile:

``offsets``            the relevant items of each query, sorted by score
``low``, ``high``      a score below ``low`` is below the relevant item for certain, one above ``high`` above it
``above``, ``upto``    counts: items found above this relevant item; above this one and those of its query before it
``keep``, ``slack``    the depth of the top lists; how far a tile's score may be off
``floor``, ``fill``    what a score must reach to be a candidate; how many there are (-1: too many near-ties, given up)
``scores``, ``items``  the candidates
``pairs``, ``doubted`` relevant items, and items whose order to them only exact scores can tell; ``n`` of them so far

Everything here stands in one file because the compiler's cache looks at one file at a time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from crosslens.rank.kernels import compiled

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs; Python's own types say nothing about that

STRIP = 64
"""Scores that are compared at once before any is looked at by itself."""

FEW_RELEVANT = 12
"""Up to this many relevant items of a query are compared with a row in turn; beyond, by binary search."""

# A call that passes a dozen arrays costs more than the few steps it is for.
_inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


@compiled
def scan(
    tile: Array, query: int, item: int, start: int,
    offsets: Array, low: Array, high: Array, above: Array, upto: Array,
    keep: int, slack: Array, floor: Array, fill: Array, scores: Array, items: Array,
    pairs: Array, doubted: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Scan a tile of queries × items whose corner is at ``query`` and ``item``, from its row ``start`` on.

    Returns the next row to scan (the tile's height when done) and ``n``: when there is no room for another row's
    doubtful pairs, they have to be settled before the scan goes on.
    """
    height, width = tile.shape
    scratch = np.empty(scores.shape[1], np.float32)
    flags = np.zeros((width + 7) // 8 * 8, np.uint8)
    eights = flags.view(np.uint64)
    for i in range(start, height):
        q = query + i
        begin, end = offsets[q], offsets[q + 1]
        if n + (end - begin) * width > pairs.size:
            return i, n
        row = tile[i]
        if floor[q] == -np.inf:
            floor[q] = _first_floor(row, keep, slack[q], scratch)
        bound = min(low[begin], floor[q]) if end > begin else floor[q]
        interesting = _flag(row, bound, flags)
        if interesting == 0:
            continue
        if end - begin <= FEW_RELEVANT and interesting > end - begin:
            n = _compare_with_all(row, item, begin, end, low, high, above, pairs, doubted, n)
            begin = end  # done; what is left is the top list
            if _flag(row, floor[q], flags) == 0:
                continue
        for e in range(eights.size):
            if eights[e]:
                for c in range(8 * e, 8 * e + 8):
                    if flags[c]:
                        n = _take(
                            row[c], item + c, q, begin, end, low, high, upto, keep, slack, floor, fill, scores, items,
                            pairs, doubted, n, scratch,
                        )  # fmt: skip
    return height, n


@compiled
def scan_columns(
    tile: Array, query: int, item: int, start: int,
    offsets: Array, low: Array, high: Array, above: Array, upto: Array,
    keep: int, slack: Array, floor: Array, fill: Array, scores: Array, items: Array,
    pairs: Array, doubted: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Like :func:`scan` for a tile of items × queries, as it lies; pays as long as few scores are interesting.

    Gives up with -1 before anything is counted if a sample of rows holds too many: for queries not seen before, say.
    """
    height, width = tile.shape
    scratch = np.empty(scores.shape[1], np.float32)
    flags = np.zeros((width + 7) // 8 * 8, np.uint8)
    eights = flags.view(np.uint64)
    bounds = floor[query : query + width].copy()
    for c in range(width):
        begin, end = offsets[query + c], offsets[query + c + 1]
        if begin < end:
            bounds[c] = min(bounds[c], low[begin])
    if start == 0:
        interesting: Number = 0
        sampled = 0
        for i in range(0, height, 32):
            sampled += width
            interesting += _flag_each(tile[i], bounds, flags)
        if interesting * 12 > sampled:
            return -1, n
    most = offsets[query + width] - offsets[query]
    for i in range(start, height):
        if n + most > pairs.size:
            return i, n
        row = tile[i]
        _flag_each(row, bounds, flags)
        for e in range(eights.size):
            if eights[e]:
                for c in range(8 * e, 8 * e + 8):
                    if flags[c]:
                        q = query + c
                        begin, end = offsets[q], offsets[q + 1]
                        n = _take(
                            row[c], item + i, q, begin, end, low, high, upto, keep, slack, floor, fill, scores, items,
                            pairs, doubted, n, scratch,
                        )  # fmt: skip
                        bounds[c] = min(floor[q], low[begin]) if begin < end else floor[q]
    return height, n


@compiled
def _flag(row: Array, bound: Number, flags: Array) -> Number:
    """Mark the scores that reach the bound, a byte each so that eight are looked at in one step; returns how many."""
    count = np.int32(0)
    for j in range(row.size):
        reached = np.uint8(row[j] >= bound)
        flags[j] = reached
        count = np.int32(count + reached)
    return count


@compiled
def _flag_each(row: Array, bounds: Array, flags: Array) -> Number:
    """Mark the scores that reach each its own bound; returns how many."""
    count = np.int32(0)
    for j in range(row.size):
        reached = np.uint8(row[j] >= bounds[j])
        flags[j] = reached
        count = np.int32(count + reached)
    return count


@_inlined
def _take(
    score: Number, item: int, q: int, begin: int, end: int, low: Array, high: Array, upto: Array,
    keep: int, slack: Array, floor: Array, fill: Array, scores: Array, items: Array,
    pairs: Array, doubted: Array, n: int, scratch: Array,
) -> int:  # fmt: skip
    """An interesting score: find its place among the relevant items, make it a candidate for the top list."""
    if begin < end and score >= low[begin]:
        p, upper = begin, end  # p becomes the first relevant item whose ``high`` the score does not exceed
        while p < upper:
            middle = (p + upper) // 2
            if high[middle] < score:
                p = middle + 1
            else:
                upper = middle
        if p > begin:
            upto[p - 1] += 1
        while p < end and low[p] <= score:
            pairs[n] = p
            doubted[n] = item
            n += 1
            p += 1
    if score >= floor[q]:
        last = fill[q]
        scores[q, last] = score
        items[q, last] = item
        fill[q] = last + 1
        if last + 1 == scores.shape[1]:
            fill[q], floor[q] = _compact(keep, slack[q], scores[q], items[q], scratch)
    return n


@_inlined
def _compare_with_all(
    row: Array, item: int, begin: int, end: int, low: Array, high: Array, above: Array,
    pairs: Array, doubted: Array, n: int,
) -> int:  # fmt: skip
    """Compare every score with every relevant item: free of branches, so vectorised."""
    for p in range(begin, end):
        lower, upper = low[p], high[p]
        surely, maybe = np.int32(0), np.int32(0)
        for j in range(row.size):
            surely = np.int32(surely + np.int32(row[j] > upper))
            maybe = np.int32(maybe + np.int32(row[j] >= lower))
        above[p] += surely
        if maybe == surely:
            continue
        for left in range(0, row.size, STRIP):
            strip = row[left : left + STRIP]
            within = np.int32(0)
            for j in range(strip.size):
                within = np.int32(within + np.int32((strip[j] >= lower) & (strip[j] <= upper)))
            if within == 0:
                continue
            for j in range(strip.size):
                if lower <= strip[j] <= upper:
                    pairs[n] = p
                    doubted[n] = item + left + j
                    n += 1
    return n


@compiled
def _first_floor(row: Array, keep: int, slack: Number, scratch: Array) -> Number:
    """A floor for a query seen for the first time: the ``keep``-th largest of the maxima of as many parts of the row.

    That many scores reach it, so nothing below can be in the top list; it spares the buffer most of the first row.
    """
    parts = scratch.size
    if row.size < 2 * parts:
        return np.float32(-np.inf)
    scratch[:] = row[:parts]
    for left in range(parts, row.size - parts + 1, parts):
        strip = row[left : left + parts]
        for j in range(parts):
            scratch[j] = strip[j] if strip[j] > scratch[j] else scratch[j]
    return np.float32(_largest(scratch, keep) - np.float32(2) * slack)


@compiled
def _compact(keep: int, slack: Number, scores: Array, items: Array, scratch: Array) -> tuple[int, Number]:
    """Drop the candidates that cannot be among the best ``keep``; returns how many stay, and the new floor.

    With exact scores (no slack) equal ones stay in order of arrival, which is gallery order: the tie rule. With
    inexact ones all within reach of the last place stay; if they fill the buffer, the query is given up here
    (-1) and ranked from exact scores later.
    """
    n = scores.size
    scratch[:] = scores
    last = _largest(scratch, keep)
    bound: Number = last
    spare: Number = n  # how many scores up to ``last`` may stay
    if slack > 0:
        bound = np.float32(last - np.float32(2) * slack)
    else:
        spare = keep
        for j in range(n):
            spare -= np.int32(scores[j] > last)
    kept = 0
    for j in range(n):
        if scores[j] > last or (scores[j] >= bound and spare > 0):
            spare -= np.int32(scores[j] <= last)
            scores[kept], items[kept] = scores[j], items[j]
            kept += 1
    if kept == n:
        return -1, np.float32(np.inf)
    return kept, (bound if slack > 0 else np.nextafter(last, np.float32(np.inf)))


@compiled
def _largest(values: Array, rank: int) -> Number:
    """The ``rank``-th largest value, by quickselect; reorders ``values``."""
    left, right, wanted = 0, values.size - 1, rank - 1
    while left < right:
        pivot = values[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            right = j
        elif wanted >= i:
            left = i
        else:
            break
    return values[wanted]


@compiled
def survivors(keep: int, slack: Array, fill: Array, scores: Array, items: Array) -> tuple[Array, Array]:
    """Join several workers' buffers (worker × query × place): the (query, item) pairs still in the running."""
    workers, queries, capacity = scores.shape
    rows = np.empty(np.maximum(fill, 0).sum(), np.int64)
    left = np.empty(rows.size, np.int64)
    pool = np.empty(workers * capacity, np.float32)
    count = 0
    for query in range(queries):
        n = 0
        for w in range(workers):
            for j in range(fill[w, query]):
                pool[n] = scores[w, query, j]
                n += 1
        bound = np.float32(-np.inf)
        if n > keep:
            bound = np.float32(_largest(pool[:n], keep) - np.float32(2) * slack[query])
        for w in range(workers):
            for j in range(fill[w, query]):
                if scores[w, query, j] >= bound:
                    rows[count] = query
                    left[count] = items[w, query, j]
                    count += 1
    return rows[:count], left[:count]
