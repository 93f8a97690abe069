"""The compiled core of a pass: look at a tile of scores once, while it is still in the cache.

Most scores of a tile are of no interest: too low to be above a relevant item or in a top list. One vectorised
comparison with a *bound* per query finds the others, the *hits* (:func:`find_hits`), and :func:`take` looks
at each by itself. Where too many scores are hits, :func:`compare_rows` counts whole rows first.

What belongs to the queries is passed as plain arrays, since tuples of them take the compiler's dispatcher longer than a
tile does:

``offsets``            the relevant items of each query, sorted by score
``low``, ``high``      a score below ``low`` is below the relevant item for certain, one above ``high`` above it
``above``, ``upto``    counts: items found above this relevant item; above this one and those of its query before it
``keep``, ``slack``    the depth of the top lists; how far a tile's score may be off
``floor``, ``fill``    what a score must reach to be a candidate; how many there are (-1: too many near-ties)
``scores``, ``items``  the candidates
``pairs``, ``others``  relevant items, and items whose order to them only exact scores can tell; ``n`` of them so far

Everything here is in one file because the compiler's cache looks at one file at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.rank.kernels import compiled

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs; Python's own types say nothing about that

FEW_RELEVANT = 12
"""Up to this many relevant items of a query are compared with a whole row in turn; beyond, by binary search."""

DONE = -1


@compiled
def bounds_of(query: int, size: int, offsets: Array, low: Array, floor: Array, counted: Array) -> Array:
    """What a score must reach to be of interest, per query; counted ones have only their top list left to fill."""
    bounds = np.empty(size, np.float32)
    for c in range(size):
        q = query + c
        bounds[c] = floor[q]
        if offsets[q] < offsets[q + 1] and not counted[c] and low[offsets[q]] < bounds[c]:
            bounds[c] = low[offsets[q]]
    return bounds


@compiled
def first_floors(tile: Array, in_rows: bool, query: int, keep: int, slack: Array, floor: Array) -> None:
    """Give the queries of their first tile a floor: the ``keep``-th largest of the maxima of a few dozen parts of it.

    That many scores reach it, so nothing below can be in the top list; without it all of the tile would be hits.
    """
    height, width = tile.shape
    size, gallery = (height, width) if in_rows else (width, height)
    parts = 2 * keep + 28
    length = gallery // parts
    if length < 2:
        return
    best = np.empty(parts, np.float32)
    maxima = np.full((parts, 1 if in_rows else width), np.float32(-np.inf))
    for part in range(0 if in_rows else parts):
        largest = maxima[part]
        for i in range(part * length, (part + 1) * length):
            row = tile[i]
            for c in range(width):
                largest[c] = row[c] if row[c] > largest[c] else largest[c]
    for c in range(size):
        q = query + c
        if floor[q] > -np.inf:
            continue
        if in_rows:
            best[:] = tile[c, :parts]
            for left in range(parts, parts * length, parts):
                strip = tile[c, left : left + parts]
                for j in range(parts):
                    best[j] = strip[j] if strip[j] > best[j] else best[j]
        else:
            best[:] = maxima[:, c]
        floor[q] = np.float32(_largest(best, keep) - np.float32(2) * slack[q])


@compiled
def find_hits(tile: Array, in_rows: bool, bounds: Array, most: int, queries: Array, items: Array, scores: Array) -> int:
    """Write down the hits of a tile, whose queries lie in rows or in columns; -1 if there are more than ``most``."""
    height, width = tile.shape
    flags = np.zeros((width + 7) // 8 * 8, np.uint8)
    eights = flags.view(np.uint64)  # a byte for each score, so that eight are looked at in one step
    count = 0
    for i in range(height):
        row = tile[i]
        flagged = _flag(row, bounds[i], flags) if in_rows else _flag_each(row, bounds, flags)
        if flagged == 0:
            continue
        if count + flagged > most:
            return -1
        for e in range(eights.size):
            if eights[e]:
                for c in range(8 * e, 8 * e + 8):
                    if flags[c]:
                        queries[count], items[count] = (i, c) if in_rows else (c, i)
                        scores[count] = row[c]
                        count += 1
    return count


@compiled
def _flag(row: Array, bound: Number, flags: Array) -> Number:
    """Mark the scores that reach the bound; returns how many."""
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


@compiled
def take(
    hit_queries: Array, hit_items: Array, hit_scores: Array, count: int, start: int,
    query: int, item: int, counted: Array,
    offsets: Array, low: Array, high: Array, upto: Array,
    keep: int, slack: Array, floor: Array, fill: Array, scores: Array, items: Array,
    pairs: Array, others: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Take each hit from ``start`` on: find its rank among the relevant items, make it a candidate for the top list.

    Returns ``DONE`` and ``n``; or, when there is no room for another hit's undecided pairs, the hit to continue from
    once they have been decided.
    """
    scratch = np.empty(scores.shape[1], np.float32)
    for h in range(start, count):
        q, score = query + hit_queries[h], hit_scores[h]
        p, end = offsets[q], offsets[q + 1]
        if p < end and not counted[hit_queries[h]] and score >= low[p]:
            if n + end - p > pairs.size:
                return h, n
            begin, upper = p, end  # p becomes the first relevant item whose ``high`` the score does not exceed
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
                others[n] = item + hit_items[h]
                n += 1
                p += 1
        if score >= floor[q]:
            last = fill[q]
            scores[q, last] = score
            items[q, last] = item + hit_items[h]
            fill[q] = last + 1
            if last + 1 == scores.shape[1]:
                fill[q], floor[q] = _compact(keep, slack[q], scores[q], items[q], scratch)
    return DONE, n


@compiled
def compare_rows(
    tile: Array, query: int, item: int, start: int,
    offsets: Array, low: Array, high: Array, above: Array, counted: Array,
    pairs: Array, others: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """For a tile of queries × items full of hits: compare whole rows with each of a query's few relevant items.

    Marks the queries it has counted. Returns like :func:`take`, with the row to continue from.
    """
    height, width = tile.shape
    for i in range(start, height):
        row, q = tile[i], query + i
        begin, end = offsets[q], offsets[q + 1]
        if end - begin > FEW_RELEVANT:
            continue
        if n + (end - begin) * width > pairs.size:
            return i, n
        counted[i] = 1
        for p in range(begin, end):
            lower, upper = low[p], high[p]
            surely, maybe = np.int32(0), np.int32(0)
            for j in range(width):
                surely = np.int32(surely + np.int32(row[j] > upper))
                maybe = np.int32(maybe + np.int32(row[j] >= lower))
            above[p] += surely
            if maybe > surely:
                for j in range(width):
                    if lower <= row[j] <= upper:
                        pairs[n] = p
                        others[n] = item + j
                        n += 1
    return DONE, n


@compiled
def _compact(keep: int, slack: Number, scores: Array, items: Array, scratch: Array) -> tuple[int, Number]:
    """Drop the candidates that cannot be among the best ``keep``; returns how many stay, and the new floor.

    With exact scores (no slack) equal ones stay in order of arrival, which is gallery order: the tie rule. With
    inexact ones all within reach of the last one stay; if they fill the buffer, the query is marked (-1) and
    ranked from exact scores later.
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
    left, right, target = 0, values.size - 1, rank - 1
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
        if target <= j:
            right = j
        elif target >= i:
            left = i
        else:
            break
    return values[target]


@compiled
def survivors(keep: int, slack: Array, fill: Array, scores: Array, items: Array) -> tuple[Array, Array]:
    """Join several workers' buffers (worker × query × candidate): the (query, item) pairs that may be in a top list."""
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
