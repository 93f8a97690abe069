"""The compiled heart of a pass: look at a tile of scores once, while it is still in the cache.

For every query of the tile, count the items above its relevant items and collect candidates for its top list. What
takes most of the time is vectorised comparison; strips are passed as views of their own, since only loops that start
at zero are vectorised. Everything here stands in one file because the compiler's cache looks at one file at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Targets(NamedTuple):
    """The relevant items of each query (``offsets``), sorted by score, and how sure a tile can be about them."""

    offsets: Array
    low: Array  # an item scored below this is below the relevant one for certain
    high: Array  # an item scored above this is above it for certain


class Counts(NamedTuple):
    """Items found above a relevant one for certain; both are added up in the end."""

    above: Array  # ... this one
    upto: Array  # ... this one and those of its query that come before it


class Lists(NamedTuple):
    """Candidates for the top list of each query."""

    slack: Array  # how far a tile's score may be off
    floor: Array  # what a score must reach to be a candidate
    fill: Array  # how many there are; -1: too many near-ties, given up
    scores: Array
    items: Array


class Doubtful(NamedTuple):
    """Pairs, and items whose order to them only exact scores can tell."""

    pairs: Array
    items: Array


@compiled
def scan(
    tile: Array, query: int, item: int, start: int,
    targets: Targets, counts: Counts, lists: Lists, keep: int, doubtful: Doubtful, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Scan a tile of queries × items whose corner is at ``query`` and ``item``, from its row ``start`` on.

    Returns the next row to scan (the tile's height when done) and ``n``, the number of doubtful pairs so far: when
    there is no room for another row's, they have to be settled before the scan goes on.
    """
    height, width = tile.shape
    scratch = np.empty(lists.scores.shape[1], np.float32)
    for i in range(start, height):
        q = query + i
        begin, end = targets.offsets[q], targets.offsets[q + 1]
        if n + (end - begin) * width > doubtful.pairs.size:
            return i, n
        row = tile[i]
        if lists.floor[q] == -np.inf:
            lists.floor[q] = _first_floor(row, keep, lists.slack[q], scratch)
        lowest = targets.low[begin] if end > begin else np.float32(np.inf)
        reaching, hopeful = _count_two(row, lowest, lists.floor[q])
        if reaching:
            if end - begin <= FEW_RELEVANT and reaching > end - begin:
                n = _compare_with_all(row, item, begin, end, targets, counts, doubtful, n)
            else:
                n = _place_each(row, item, begin, end, targets, counts, doubtful, n)
        if hopeful:
            lists.fill[q], lists.floor[q] = _collect(
                row, item, keep, lists.slack[q], lists.floor[q], lists.fill[q],
                lists.scores[q], lists.items[q], scratch,
            )  # fmt: skip
    return height, n


@compiled
def scan_columns(
    tile: Array, query: int, item: int, start: int,
    targets: Targets, counts: Counts, lists: Lists, keep: int, doubtful: Doubtful, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Like :func:`scan` for a tile of items × queries, as it lies; pays as long as few scores are interesting.

    Gives up with -1 before anything is counted if a sample of rows holds too many: for queries not seen before, say.
    """
    height, width = tile.shape
    least = np.empty(width, np.float32)
    for c in range(width):
        begin = targets.offsets[query + c]
        least[c] = lists.floor[query + c]
        if targets.offsets[query + c + 1] > begin and targets.low[begin] < least[c]:
            least[c] = targets.low[begin]
    if start == 0:
        interesting: Number = 0
        sampled = 0
        for i in range(0, height, 32):
            sampled += width
            interesting += _count_each(tile[i], least)
        if interesting * 12 > sampled:
            return -1, n
    hits = np.empty(STRIP, np.int64)
    scratch = np.empty(lists.scores.shape[1], np.float32)
    most = targets.offsets[query + width] - targets.offsets[query]
    for i in range(start, height):
        if n + most > doubtful.pairs.size:
            return i, n
        for left in range(0, width, STRIP):
            strip, bounds = tile[i, left : left + STRIP], least[left : left + STRIP]
            found: Number = 0
            for j in range(strip.size):  # without branches, which would be mispredicted at every hit
                hits[found] = j
                found += np.int64(strip[j] >= bounds[j])
            for h in range(found):
                c = left + hits[h]
                score, q = tile[i, c], query + c
                begin, end = targets.offsets[q], targets.offsets[q + 1]
                if begin < end and score >= targets.low[begin]:
                    n = _place(score, item + i, begin, end, targets, counts, doubtful, n)
                if score >= lists.floor[q]:
                    last = lists.fill[q]
                    lists.scores[q, last] = score
                    lists.items[q, last] = item + i
                    lists.fill[q] = last + 1
                    if last + 1 == lists.scores.shape[1]:
                        lists.fill[q], lists.floor[q] = _compact(
                            keep, lists.slack[q], lists.scores[q], lists.items[q], scratch
                        )
                        least[c] = lists.floor[q] if begin == end else min(lists.floor[q], targets.low[begin])
    return height, n


@compiled
def _count(strip: Array, bound: Number) -> Number:
    """How many scores reach the bound; 32-bit sums keep the vectors short."""
    count = np.int32(0)
    for j in range(strip.size):
        count = np.int32(count + np.int32(strip[j] >= bound))
    return count


@compiled
def _count_each(row: Array, bounds: Array) -> Number:
    """How many scores reach each its own bound."""
    count = np.int32(0)
    for j in range(row.size):
        count = np.int32(count + np.int32(row[j] >= bounds[j]))
    return count


@_inlined
def _count_two(row: Array, one: Number, other: Number) -> tuple[Number, Number]:
    """How many scores reach each of two bounds."""
    first, second = np.int32(0), np.int32(0)
    for j in range(row.size):
        first = np.int32(first + np.int32(row[j] >= one))
        second = np.int32(second + np.int32(row[j] >= other))
    return first, second


@_inlined
def _compare_with_all(
    row: Array, item: int, begin: int, end: int, targets: Targets, counts: Counts, doubtful: Doubtful, n: int
) -> int:
    """Compare every score with every relevant item: free of branches, so vectorised."""
    for p in range(begin, end):
        lower, upper = targets.low[p], targets.high[p]
        surely, maybe = np.int32(0), np.int32(0)
        for j in range(row.size):
            surely = np.int32(surely + np.int32(row[j] > upper))
            maybe = np.int32(maybe + np.int32(row[j] >= lower))
        counts.above[p] += surely
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
                    doubtful.pairs[n] = p
                    doubtful.items[n] = item + left + j
                    n += 1
    return n


@_inlined
def _place_each(
    row: Array, item: int, begin: int, end: int, targets: Targets, counts: Counts, doubtful: Doubtful, n: int
) -> int:
    """Find the place of each interesting score by itself: for few of them, or many relevant items."""
    least = targets.low[begin]
    for left in range(0, row.size, STRIP):
        strip = row[left : left + STRIP]
        if _count(strip, least) == 0:
            continue
        for j in range(strip.size):
            if strip[j] >= least:
                n = _place(strip[j], item + left + j, begin, end, targets, counts, doubtful, n)
    return n


@_inlined
def _place(
    score: Number, item: int, begin: int, end: int, targets: Targets, counts: Counts, doubtful: Doubtful, n: int
) -> int:
    """Find the place of one score among the sorted relevant items of a query."""
    p, upper = begin, end  # p becomes the first relevant item whose ``high`` the score does not exceed
    while p < upper:
        middle = (p + upper) // 2
        if targets.high[middle] < score:
            p = middle + 1
        else:
            upper = middle
    if p > begin:
        counts.upto[p - 1] += 1
    while p < end and targets.low[p] <= score:
        doubtful.pairs[n] = p
        doubtful.items[n] = item
        n += 1
        p += 1
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


@_inlined
def _collect(
    row: Array, item: int, keep: int, slack: Number, reach: Number, n: int, scores: Array, items: Array, scratch: Array
) -> tuple[int, Number]:
    """Put every score that may belong to the query's top list into its buffer; raise the floor when that is full."""
    for left in range(0, row.size, STRIP):
        strip = row[left : left + STRIP]
        if _count(strip, reach) == 0:
            continue
        for j in range(strip.size):
            if strip[j] >= reach:
                scores[n] = strip[j]
                items[n] = item + left + j
                n += 1
                if n == scores.size:
                    n, reach = _compact(keep, slack, scores, items, scratch)
    return n, reach


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
