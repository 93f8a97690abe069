"""The compiled core of a pass: look at a tile of scores while it is still in the cache.

Most scores of a tile are of no interest: too low to be above a relevant item or in a top list. One vectorised
comparison with a *bound* per row and per column finds the others, the *hits* of both directions (:func:`find_hits`),
and :func:`take` looks at each by itself. Where a query would have many hits, its scores are counted instead, all of a
tile at once (``counting.py``). Which of the two a query gets follows from its last tile (:func:`plan`), and changes the
speed only.

What belongs to the queries is passed as plain arrays, since tuples of them take the compiler's dispatcher longer than a
tile does:

``offsets``            the relevant items of each query, sorted by score
``low``, ``high``      a score below ``low`` is below the relevant item for certain, one above ``high`` above it
``above``, ``upto``    counts: items found above this relevant item; above this one and those of its query before it
``seen``               how many scores of the last tile reached the lowest relevant item
``counted``            1 for the queries of this tile that are counted, 0 for those whose hits are taken
``weights``            how many items an item stands for; empty if each stands for itself
``keep``, ``slack``    the depth of the top lists; how far a tile's score may be off
``floor``, ``fill``    what a score must reach to be a candidate; how many there are (-1: too many near-ties)
``scores``, ``items``  the candidates
``pairs``, ``others``  relevant items, and items whose order to them only exact scores can tell; ``n`` of them so far

What calls each other is in one file because the compiler's cache looks at one file at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from crosslens.rank.kernels import compiled
from crosslens.storage import Array

LANES = 64
"""Scores that are compared at once."""

_MASK, _LANE = ir.IntType(LANES), ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_ALL_FIRST = ir.Constant(ir.VectorType(_LANE, LANES), None)


def _comparison(operator: str) -> Callable[..., Any]:
    """The function (scores, start, bound) → a bit for each of the next ``LANES`` scores, or of those that are left.

    Scores are a contiguous array of float32; ``start`` is a multiple of ``LANES``; the bound is a number, or an array
    like the scores with a bound for each.
    """

    def typed(_: Any, scores: Any, start: Any, bound: Any) -> Any:
        bound = bound if isinstance(bound, types.Array) else types.float32
        arrays = [argument for argument in (scores, bound) if isinstance(argument, types.Array)]
        if all(array.layout == "C" and array.dtype is types.float32 for array in arrays):
            return types.uint64(scores, types.intp, bound), generate
        return None  # other arrays do not compile

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        scores, size, start, bound = array.data, builder.extract_value(array.shape, 0), arguments[1], arguments[2]
        each = isinstance(signature.args[2], types.Array)
        if each:
            bound = context.make_array(signature.args[2])(context, builder, bound).data
        mask = cgutils.alloca_once_value(builder, _MASK(0))
        # The last scores are compared together with some before them, whose bits are shifted out.
        last = builder.sub(size, start.type(LANES))
        first = builder.select(builder.icmp_signed("<", last, start), last, start)
        with builder.if_else(builder.icmp_signed(">=", last, start.type(0))) as (enough, few):
            with enough:
                right = _vector(builder, bound, first) if each else _repeated(builder, bound)
                reached = builder.fcmp_ordered(operator, _vector(builder, scores, first), right)
                builder.store(builder.lshr(builder.bitcast(reached, _MASK), builder.sub(start, first)), mask)
            with few, cgutils.for_range(builder, size) as loop:
                right = builder.load(builder.gep(bound, [loop.index])) if each else bound
                reached = builder.fcmp_ordered(operator, builder.load(builder.gep(scores, [loop.index])), right)
                bit = builder.shl(builder.zext(reached, _MASK), loop.index)
                builder.store(builder.or_(builder.load(mask), bit), mask)
        return builder.load(mask)

    return cast(Callable[..., Any], intrinsic(typed))


def _vector(builder: Any, numbers: Any, start: Any) -> Any:
    """``LANES`` numbers from ``start`` on."""
    return builder.load(builder.bitcast(builder.gep(numbers, [start]), _VECTOR.as_pointer()), align=4)


def _repeated(builder: Any, number: Any) -> Any:
    """The number in all lanes."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _LANE(0))
    return builder.shuffle_vector(first, first, _ALL_FIRST)


def _number_of(instruction: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The function mask → number that an instruction computes."""

    def typed(_: Any, mask: Any) -> Any:
        return types.int64(types.uint64), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return instruction(builder, arguments[0])

    return cast(Callable[..., Any], intrinsic(typed))


at_least, exceeds = _comparison(">="), _comparison(">")
number_of_bits = _number_of(lambda builder, mask: builder.ctpop(mask))
# The lowest bit that is set. The instruction need not say what it does with an empty mask: nobody asks.
lowest_bit = _number_of(lambda builder, mask: builder.cttz(mask, ir.IntType(1)(1)))


Number = Any  # a machine number of the width the loop needs; Python's own types say nothing about that

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


FEW_RELEVANT = 12
"""Up to this many relevant items of a query are looked at one after the other; beyond, by binary search."""

HIT_COST = 128
"""Taking a hit takes about as long as counting this many scores against one relevant item."""

FEW_VALUES = 128
"""Among up to this many values the n-th largest is found by comparing each with all, several at a time."""


@compiled
def plan(
    together: bool, query: int, gallery: int, offsets: Array, low: Array, floor: Array,
    seen: Array, counted: Array, bounds: Array,
) -> int:  # fmt: skip
    """Decide which queries of a tile are counted (all ``together`` or none, or each by itself), and set all bounds.

    A score must reach its query's bound to be a hit; counted queries have only their top list left to fill. Returns the
    largest number of relevant items of a counted query.
    """
    size, worthwhile = counted.size, False
    if together:
        most, hits = 0, 0
        for q in range(query, query + size):
            relevant = offsets[q + 1] - offsets[q]
            if 0 < relevant <= FEW_RELEVANT:
                most = max(most, relevant)
                hits += seen[q]
        worthwhile = HIT_COST * hits > most * gallery * size
    largest = 0
    for c in range(size):
        q = query + c
        first, relevant = offsets[q], offsets[q + 1] - offsets[q]
        bounds[c] = floor[q]
        if not together:
            worthwhile = HIT_COST * seen[q] > relevant * gallery
        seen[q] = 0
        counted[c] = worthwhile and 0 < relevant <= FEW_RELEVANT
        if counted[c]:
            largest = max(largest, relevant)
        elif relevant and low[first] < bounds[c]:
            bounds[c] = low[first]
    return largest


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
def find_hits(
    tile: Array, start: int, row_bounds: Array, column_bounds: Array,
    row_queries: Array, row_items: Array, row_scores: Array,
    column_queries: Array, column_items: Array, column_scores: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Write down the hits of rows and of columns, row by row from ``start`` on.

    Returns ``DONE``, or the row to continue from once there is room again, and the numbers of hits in rows and columns.
    """
    height, width = tile.shape
    room = max(row_queries.size, column_queries.size) - 1  # a direction that is not asked needs none
    in_rows: Number = 0
    in_columns: Number = 0
    for i in range(start, height):
        if max(in_rows, in_columns) + width > room:
            return i, in_rows, in_columns
        row, bound = tile[i], row_bounds[i]
        for left in range(0, width, LANES):
            reached = at_least(row, left, bound) | at_least(row, left, column_bounds)
            while reached:
                c = left + lowest_bit(reached)
                reached &= reached - np.uint64(1)
                score = row[c]
                # Written either way: which of the two bounds was reached is a branch that nobody can predict.
                row_queries[in_rows], row_items[in_rows], row_scores[in_rows] = i, c, score
                in_rows += np.int64(score >= bound)
                column_queries[in_columns], column_items[in_columns], column_scores[in_columns] = c, i, score
                in_columns += np.int64(score >= column_bounds[c])
    return DONE, in_rows, in_columns


@compiled
def take(
    hit_queries: Array, hit_items: Array, hit_scores: Array, count: int, start: int,
    query: int, item: int, counted: Array,
    offsets: Array, low: Array, high: Array, upto: Array, seen: Array, weights: Array,
    keep: int, slack: Array, floor: Array, fill: Array, scores: Array, items: Array,
    pairs: Array, others: Array, n: int,
) -> tuple[int, int]:  # fmt: skip
    """Take each hit from ``start`` on: find its rank among the relevant items, make it a candidate for the top list.

    Returns ``DONE`` and ``n``; or, when there is no room for another hit's undecided pairs, the hit to continue from
    once they have been decided.
    """
    early = scores.shape[1] // 2  # a higher floor makes fewer hits
    begins, ends, seen, floor, fill = offsets[query:], offsets[query + 1 :], seen[query:], floor[query:], fill[query:]
    for h in range(start, count):
        c, score, other = hit_queries[h], hit_scores[h], item + hit_items[h]
        p, end = begins[c], ends[c]
        if p < end and not counted[c] and score >= low[p]:
            if n + end - p > pairs.size:
                return h, n
            seen[c] += 1
            begin = p
            p = _first_not_exceeded(high, begin, end, score)
            if p > begin:
                upto[p - 1] += weights[other] if weights.size else 1
            while p < end and low[p] <= score:
                pairs[n] = p
                others[n] = other
                n += 1
                p += 1
        if score >= floor[c]:
            q, last = query + c, fill[c]
            scores[q, last] = score
            items[q, last] = other
            last += 1
            fill[c] = last
            if last == early or last == scores.shape[1]:
                fill[c], floor[c] = _compact(keep, slack[q], last, scores[q], items[q])
    return DONE, n


@compiled
def _first_not_exceeded(high: Array, begin: Number, end: Number, score: Number) -> Number:
    """The first of a query's relevant items whose ``high`` the score does not exceed."""
    if end - begin <= FEW_RELEVANT:  # most hits are above the lowest only
        while begin < end and high[begin] < score:
            begin += 1
        return begin
    while begin < end:
        middle = (begin + end) // 2
        if high[middle] < score:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def _compact(keep: int, slack: Number, n: Number, scores: Array, items: Array) -> tuple[int, Number]:
    """Drop those of ``n`` candidates that cannot be among the best ``keep``; returns how many stay, and the new floor.

    With exact scores (no slack) equal ones stay in order of arrival, which is gallery order: the tie rule. With
    inexact ones all within reach of the last one stay; if they fill the buffer, the query is marked (-1) and
    ranked from exact scores later.
    """
    last = _largest(scores[:n], keep)
    bound: Number = last
    spare: Number = n  # how many scores up to ``last`` may stay
    if slack > 0:
        bound = np.float32(last - np.float32(2) * slack)
    else:
        spare = keep
        for j in range(n):
            spare -= np.int32(scores[j] > last)
    count: Number = 0
    for j in range(n):  # without branches that nobody can predict
        score, stays = scores[j], (scores[j] > last) | ((scores[j] >= bound) & (spare > 0))
        spare -= np.int64(stays & (score <= last))
        scores[count], items[count] = score, items[j]
        count += np.int64(stays)
    if count == scores.size:
        return -1, np.float32(np.inf)
    return count, (bound if slack > 0 else np.nextafter(last, np.float32(np.inf)))


@compiled
def _largest(values: Array, rank: int) -> Number:
    """The ``rank``-th largest value."""
    if values.size > FEW_VALUES:
        return _select(values.copy(), rank)
    smallest = np.float32(np.inf)
    for j in range(values.size):
        larger = _larger(values, values[j])
        if larger == rank - 1:
            return values[j]
        if larger < rank:  # the value is tied with others if no value has that many larger ones
            smallest = min(smallest, values[j])
    return smallest


@compiled
def _larger(values: Array, value: Number) -> Number:
    """How many values are larger than this one."""
    count = np.int32(0)
    for j in range(values.size):
        count = np.int32(count + np.int32(values[j] > value))
    return count


@compiled
def _select(values: Array, rank: int) -> Number:
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
    columns = np.empty(rows.size, np.int64)
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
                    columns[count] = items[w, query, j]
                    count += 1
    return rows[:count], columns[:count]
