"""Compiled inner loops. Each looks at a tile of scores once, while it is still in the cache.

All of them release the GIL and write only to what their caller owns, so that one Python thread per core can run them.
Strips are passed as views of their own: only loops that start at zero are vectorised by the compiler.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs; Python's own types say nothing about that

STRIP = 64
"""Scores that are compared at once before any is looked at by itself."""

FEW_RELEVANT = 12
"""Up to this many relevant items of a query are compared with a row in turn; beyond, by binary search."""

BLOCK = 16

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
# Sums of float64 products may be reordered for speed: the result is rounded to float32 afterwards.
_reassociated = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_reassociated
def pair_products(left: Array, right: Array, rows: Array, columns: Array, out: Array) -> None:
    """``out[p]`` = inner product of ``left[rows[p]]`` and ``right[columns[p]]``, summed in float64, as float32."""
    for p in range(rows.size):
        a, b = left[rows[p]], right[columns[p]]
        total = 0.0
        for j in range(a.size):
            total += np.float64(a[j]) * np.float64(b[j])
        out[p] = np.float32(total)


@_compiled
def scan(
    tile: Array,  # scores, queries × items, float32
    first_query: int,
    first_item: int,
    start: int,  # row of the tile to begin with
    offsets: Array,  # relevant pairs of each query, sorted by target
    low: Array,  # an item scored below this is below the relevant one for certain
    high: Array,  # an item scored above this is above it for certain
    above: Array,  # counts, added to: items surely above this pair
    above_upto: Array,  # likewise: items surely above this pair and the query's pairs before it
    doubtful_pair: Array,  # out: the pair ...
    doubtful_item: Array,  # ... and the item whose order only exact scores can tell
    doubtful: int,  # how many of them there are already
    keep: int,  # depth of the top lists
    slack: Array,
    floor: Array,  # a score must reach this to be a candidate for a query's top list
    fill: Array,
    candidate_score: Array,
    candidate_item: Array,
) -> tuple[int, int]:
    """Count and collect; returns the next row to scan (the tile's height when done) and the number of doubtful pairs.

    One vectorised comparison tells whether a row, or a strip of it, holds anything that could be above a relevant
    item or in the top list; only then is it looked at closely.
    """
    height, width = tile.shape
    scratch = np.empty(candidate_score.shape[1], np.float32)
    for i in range(start, height):
        query = first_query + i
        begin, end = offsets[query], offsets[query + 1]
        if doubtful + (end - begin) * width > doubtful_pair.size:
            return i, doubtful
        row = tile[i]
        if floor[query] == -np.inf:
            floor[query] = _first_floor(row, keep, slack[query], scratch)
        reaching, hopeful = _count_two(row, low[begin] if end > begin else np.float32(np.inf), floor[query])
        if reaching:
            if reaching * 8 > width and end - begin <= FEW_RELEVANT:
                doubtful = _count_all(
                    row, first_item, begin, end, low, high, above, doubtful_pair, doubtful_item, doubtful
                )
            else:
                doubtful = _place_each(
                    row, first_item, begin, end, low, high, above_upto, doubtful_pair, doubtful_item, doubtful
                )
        if hopeful:
            fill[query], floor[query] = _collect(
                row, first_item, keep, slack[query], floor[query], fill[query],
                candidate_score[query], candidate_item[query], scratch,
            )  # fmt: skip
    return height, doubtful


@_compiled
def _count(strip: Array, bound: Number) -> Number:
    """How many scores reach the bound; 32-bit sums keep the vectors short."""
    count = np.int32(0)
    for j in range(strip.size):
        count = np.int32(count + np.int32(strip[j] >= bound))
    return count


@_compiled
def _count_two(row: Array, one: Number, other: Number) -> tuple[Number, Number]:
    """How many scores reach each of two bounds."""
    first, second = np.int32(0), np.int32(0)
    for j in range(row.size):
        first = np.int32(first + np.int32(row[j] >= one))
        second = np.int32(second + np.int32(row[j] >= other))
    return first, second


@_compiled
def _count_all(
    row: Array, first_item: int, begin: int, end: int, low: Array, high: Array, above: Array,
    doubtful_pair: Array, doubtful_item: Array, doubtful: int,
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
                    doubtful_pair[doubtful] = p
                    doubtful_item[doubtful] = first_item + left + j
                    doubtful += 1
    return doubtful


@_compiled
def _place_each(
    row: Array, first_item: int, begin: int, end: int, low: Array, high: Array, above_upto: Array,
    doubtful_pair: Array, doubtful_item: Array, doubtful: int,
) -> int:  # fmt: skip
    """Find the place of each score among the sorted targets: for few interesting scores, or many relevant items."""
    least = low[begin]
    for left in range(0, row.size, STRIP):
        strip = row[left : left + STRIP]
        if _count(strip, least) == 0:
            continue
        for j in range(strip.size):
            score = strip[j]
            if score < least:
                continue
            p, upper = begin, end  # p becomes the first relevant item whose ``high`` the score does not exceed
            while p < upper:
                middle = (p + upper) // 2
                if high[middle] < score:
                    p = middle + 1
                else:
                    upper = middle
            if p > begin:
                above_upto[p - 1] += 1
            while p < end and low[p] <= score:
                doubtful_pair[doubtful] = p
                doubtful_item[doubtful] = first_item + left + j
                doubtful += 1
                p += 1
    return doubtful


@_compiled
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


@_compiled
def _collect(
    row: Array, first_item: int, keep: int, slack: Number, reach: Number, n: int,
    scores: Array, items: Array, scratch: Array,
) -> tuple[int, Number]:  # fmt: skip
    """Put every score that may belong to the query's top list into its buffer; raise the floor when that is full."""
    for left in range(0, row.size, STRIP):
        strip = row[left : left + STRIP]
        if _count(strip, reach) == 0:
            continue
        for j in range(strip.size):
            if strip[j] >= reach:
                scores[n] = strip[j]
                items[n] = first_item + left + j
                n += 1
                if n == scores.size:
                    n, reach = _compact(keep, slack, scores, items, scratch)
    return n, reach


@_compiled
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


@_compiled
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


@_compiled
def survivors(
    keep: int, slack: Array, fill: Array, candidate_score: Array, candidate_item: Array
) -> tuple[Array, Array]:
    """Join several workers' buffers (worker × query × place): the (query, item) pairs still in the running."""
    workers, queries, capacity = candidate_score.shape
    rows = np.empty(np.maximum(fill, 0).sum(), np.int64)
    items = np.empty(rows.size, np.int64)
    pool = np.empty(workers * capacity, np.float32)
    count = 0
    for query in range(queries):
        n = 0
        for w in range(workers):
            for j in range(fill[w, query]):
                pool[n] = candidate_score[w, query, j]
                n += 1
        bound = np.float32(-np.inf)
        if n > keep:
            bound = np.float32(_largest(pool[:n], keep) - np.float32(2) * slack[query])
        for w in range(workers):
            for j in range(fill[w, query]):
                if candidate_score[w, query, j] >= bound:
                    rows[count] = query
                    items[count] = candidate_item[w, query, j]
                    count += 1
    return rows[:count], items[:count]


@_compiled
def settle(
    pairs: Array, items: Array, scores: Array, targets: Array, relevant: Array, above: Array, tied: Array, before: Array
) -> None:
    """Order the doubtful pairs by exact scores: above, tied, or tied with a lower index."""
    for d in range(pairs.size):
        p = pairs[d]
        if scores[d] > targets[p]:
            above[p] += 1
        elif scores[d] == targets[p] and items[d] != relevant[p]:
            tied[p] += 1
            before[p] += np.int64(items[d] < relevant[p])


@_compiled
def transpose(tile: Array) -> Array:
    """A transposed copy, in blocks: walking down whole columns would miss the cache at every step."""
    height, width = tile.shape
    out = np.empty((width, height), tile.dtype)
    for top in range(0, height, BLOCK):
        for left in range(0, width, BLOCK):
            for j in range(left, min(left + BLOCK, width)):
                for i in range(top, min(top + BLOCK, height)):
                    out[j, i] = tile[i, j]
    return out


@_reassociated
def unit_rows(vectors: Array, out: Array) -> int:
    """Scale every vector to length 1; returns the first row that has none, or -1. Rounded once, from float64."""
    for i in range(vectors.shape[0]):
        vector, unit = vectors[i], out[i]
        total = 0.0
        for j in range(vector.size):
            total += np.float64(vector[j]) * np.float64(vector[j])
        if total == 0.0:
            return i
        length = np.sqrt(total)
        for j in range(vector.size):
            unit[j] = np.float32(np.float64(vector[j]) / length)
    return -1
