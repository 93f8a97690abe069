"""The fused kernels (Triton): half-precision products whose scores are looked at while they are in registers.

``scan`` multiplies tiles, counts what is surely above each relevant item in both directions, and notes the few pairs
that half precision cannot decide or that may belong to a top list; scores are never stored. ``rescore`` decides the
noted pairs by float32 products; what is still in doubt goes to a list that float64 settles. ``keep_best`` cuts
the candidates of a query back and raises its floor.

Everything a kernel compares is proven: a score may be off by ``slack`` at most (see :mod:`crosslens.rank.gpu.rounded`),
and a pair within it of a relevant item's score is never counted here.
"""

from __future__ import annotations

import triton
import triton.language as tl

STEP = tl.constexpr(64)
GROUP = tl.constexpr(8)
"""How many dimensions are multiplied at a time, and how many rows of tiles share their columns in the cache."""


@triton.jit
def _product(left, right, row, column, dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    """One tile of products, in float32."""
    rows = row + tl.arange(0, height)
    columns = column + tl.arange(0, width)
    steps = tl.arange(0, STEP)
    a = left + rows[:, None].to(tl.int64) * dimension + steps[None, :]
    b = right + columns[None, :].to(tl.int64) * dimension + steps[:, None]
    scores = tl.zeros((height, width), tl.float32)
    for _ in range(0, dimension, STEP):
        scores = tl.dot(tl.load(a), tl.load(b), scores)
        a += STEP
        b += STEP
    return scores


@triton.jit
def _tile_of(tiles_down, tiles_across):
    """The tile of this program: neighbours in time share rows or columns."""
    program = tl.program_id(0)
    wide = GROUP * tiles_across
    first = (program // wide) * GROUP
    height = tl.minimum(tiles_down - first, GROUP)
    return first + (program % wide) % height, (program % wide) // height


@triton.jit
def maxima(
    left, right, out, count, stride, tiles_down, tiles_across,
    dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """The highest score of every row in each of some tiles, which lie ``stride`` tiles apart; none is cut off."""
    down, across = _tile_of(tiles_down, tiles_across)
    scores = _product(left, right, down * height, across * stride * width, dimension, height, width)
    rows = down * height + tl.arange(0, height)
    tl.store(out + rows.to(tl.int64) * tiles_across + across, tl.max(scores, axis=1), mask=rows < count)


@triton.jit
def scan(
    left, right, row_begin, row_end, column_begin, column_end, tiles_down, tiles_across,
    row_targets, row_widths, row_floor, row_above, row_count,
    column_targets, column_widths, column_floor, column_above, column_count,
    unit, slack, noted, words, dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    row_common: tl.constexpr, column_common: tl.constexpr,
):  # fmt: skip
    """Count a panel of tiles, and note what is to be looked at again: one bit per pair, ``words`` words per row.

    ``*_targets`` (widest × queries) hold the scores of relevant items, infinite where a query has fewer, ``*_widths``
    how many there are at most in each block of queries; the first ``*_common`` are compared in one go. All scores of a
    tile are ``unit`` times the true ones.
    """
    down, across = _tile_of(tiles_down, tiles_across)
    row, column = row_begin + down * height, column_begin + across * width
    scores = _product(left, right, row, column, dimension, height, width)
    rows, columns = row + tl.arange(0, height), column + tl.arange(0, width)
    valid_row, valid_column = rows < row_end, columns < column_end
    if (row + height > row_end) | (column + width > column_end):
        # NaN compares as false with everything.
        scores = tl.where(valid_row[:, None] & valid_column[None, :], scores, float("nan"))
    row_width = tl.load(row_widths + row // height)
    column_width = tl.load(column_widths + column // width)
    floor = tl.load(row_floor + rows, mask=valid_row, other=float("inf")) * unit - slack
    flags = scores >= floor[:, None]
    floor = tl.load(column_floor + columns, mask=valid_column, other=float("inf")) * unit - slack
    flags = flags | (scores >= floor[None, :])
    start = row_targets + rows
    for _ in tl.static_range(row_common):
        target = tl.load(start, mask=valid_row, other=float("inf")) * unit
        flags = flags | (tl.abs(scores - target[:, None]) <= slack)
        start += row_count
    other = column_targets + columns
    for _ in tl.static_range(column_common):
        score = tl.load(other, mask=valid_column, other=float("inf")) * unit
        flags = flags | (tl.abs(scores - score[None, :]) <= slack)
        other += column_count
    # What is noted is set to -inf, so that nothing below counts it.
    scores = tl.where(flags, float("-inf"), scores)
    for _ in range(row_common, row_width):
        target = tl.load(start, mask=valid_row, other=float("inf")) * unit
        scores = tl.where(tl.abs(scores - target[:, None]) <= slack, float("-inf"), scores)
        start += row_count
    for _ in range(column_common, column_width):
        score = tl.load(other, mask=valid_column, other=float("inf")) * unit
        scores = tl.where(tl.abs(scores - score[None, :]) <= slack, float("-inf"), scores)
        other += column_count
    bits = (scores == float("-inf")).to(tl.int32) << (tl.arange(0, width) % 32)[None, :]
    packed = tl.sum(tl.reshape(bits, (height, width // 32, 32)), axis=2)
    offsets = (rows - row_begin)[:, None] * words + across * (width // 32) + tl.arange(0, width // 32)[None, :]
    tl.store(noted + offsets, packed)
    start, counts = row_targets + rows, row_above + rows
    for _ in range(row_width):
        target = tl.load(start, mask=valid_row, other=float("inf")) * unit
        above = tl.sum((scores > target[:, None]).to(tl.int32), axis=1)
        tl.atomic_add(counts, above, mask=above > 0, sem="relaxed")
        start += row_count
        counts += row_count
    other, numbers = column_targets + columns, column_above + columns
    for _ in range(column_width):
        score = tl.load(other, mask=valid_column, other=float("inf")) * unit
        higher = tl.sum((scores > score[None, :]).to(tl.int32), axis=0)
        tl.atomic_add(numbers, higher, mask=higher > 0, sem="relaxed")
        other += column_count
        numbers += column_count


@triton.jit
def _ones(word):
    """How many bits are set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def unpack(noted, words, used, column_begin, items, counts, capacity, size: tl.constexpr):
    """The noted columns of one row as a list; past ``capacity`` only the count grows."""
    local = tl.program_id(0)
    lanes = tl.arange(0, size)
    word = tl.load(noted + local * words + lanes, mask=lanes < used, other=0).to(tl.uint32, bitcast=True)
    amount = _ones(word)
    slot = tl.cumsum(amount, 0) - amount
    tl.store(counts + local, tl.sum(amount))
    for _ in range(tl.max(amount)):
        active = word != 0
        lowest = word & (~word + 1)
        column = column_begin + lanes * 32 + _ones(lowest - 1)
        tl.store(items + local * capacity + slot, column, mask=active & (slot < capacity))
        word = word & (word - 1)
        slot += active.to(tl.int32)


@triton.jit
def _orderable(score):
    """An integer that sorts as the float32 does."""
    bits = score.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _score_of(key):
    bits = (key >> 32).to(tl.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _append(chosen, first, second, pairs, items, length, room):
    """Put the chosen entries behind a list that all programs share; past its room only the length grows."""
    flags = chosen.to(tl.int32)
    count = tl.sum(flags)
    if count > 0:
        slot = tl.atomic_add(length, count, sem="relaxed") + tl.cumsum(flags, 0) - 1
        tl.store(pairs + slot, first, mask=chosen & (slot < room))
        tl.store(items + slot, second, mask=chosen & (slot < room))


@triton.jit
def rescore(
    left, right, row_begin, noted, counts, capacity, overflow,
    row_offsets, row_scores, row_floor, row_above, row_keys, row_fill,
    column_offsets, column_scores, column_floor, column_above, column_keys, column_fill,
    row_pairs, row_items, row_length, column_pairs, column_items, column_length, room,
    width, slack, dimension: tl.constexpr, padded: tl.constexpr, size: tl.constexpr,
):  # fmt: skip
    """Decide the noted pairs of one row by float32 products; ``slack`` bounds their error."""
    local = tl.program_id(0)
    row = row_begin + local
    count = tl.load(counts + local)
    if count > capacity:
        tl.store(overflow, 1)
        count = capacity
    steps = tl.arange(0, padded)
    lanes = tl.arange(0, size)
    row_first, row_last = tl.load(row_offsets + row), tl.load(row_offsets + row + 1)
    floor = tl.load(row_floor + row) - slack
    fill = tl.load(row_fill + row)
    for start in range(0, count, size):
        valid = start + lanes < count
        item = tl.load(noted + local * capacity + start + lanes, mask=valid, other=0)
        score = tl.zeros((size,), tl.float32)
        for begin in range(0, dimension, padded):
            inside = begin + steps < dimension
            a = tl.load(left + row.to(tl.int64) * dimension + begin + steps, mask=inside, other=0.0)
            b = tl.load(
                right + item[:, None].to(tl.int64) * dimension + begin + steps[None, :],
                mask=valid[:, None] & inside[None, :], other=0.0,
            )  # fmt: skip
            score += tl.sum(a[None, :] * b, axis=1)
        for pair in range(row_first, row_last):
            target = tl.load(row_scores + pair)
            doubtful = valid & (tl.abs(score - target) <= slack)
            surely = tl.sum((valid & (score > target) & ~doubtful).to(tl.int32))
            tl.store(row_above + pair, tl.load(row_above + pair) + surely)
            _append(doubtful, tl.zeros((size,), tl.int32) + pair, item, row_pairs, row_items, row_length, room)
        first = tl.load(column_offsets + item, mask=valid, other=0)
        relevant = tl.load(column_offsets + item + 1, mask=valid, other=0) - first
        for nth in range(tl.max(relevant)):
            active = valid & (nth < relevant)
            target = tl.load(column_scores + first + nth, mask=active, other=float("inf"))
            doubtful = active & (tl.abs(score - target) <= slack)
            surely = active & (score > target) & ~doubtful
            tl.atomic_add(column_above + first + nth, 1, mask=surely, sem="relaxed")
            _append(
                doubtful,
                first + nth,
                tl.zeros((size,), tl.int32) + row,
                column_pairs,
                column_items,
                column_length,
                room,
            )
        key = _orderable(score).to(tl.int64) << 32
        good = valid & (score >= floor)
        slot = fill + tl.cumsum(good.to(tl.int32), 0) - 1
        tl.store(row_keys + row.to(tl.int64) * width + slot, key | item.to(tl.int64), mask=good & (slot < width))
        fill += tl.sum(good.to(tl.int32))
        good = valid & (score >= tl.load(column_floor + item, mask=valid, other=float("inf")) - slack)
        slot = tl.atomic_add(column_fill + item, 1, mask=good, sem="relaxed")
        tl.store(column_keys + item.to(tl.int64) * width + slot, key | row.to(tl.int64), mask=good & (slot < width))
    tl.store(row_fill + row, fill)


@triton.jit
def keep_best(keys, fill, floor, begin, keep, most, overflow, slack, width: tl.constexpr):
    """Sort the candidates of a query, if there are more than ``most``; drop those that cannot be in its list."""
    query = begin + tl.program_id(0)
    count = tl.load(fill + query)
    if count > width:
        tl.store(overflow, 1)
        count = width
    if count > most:
        lanes = tl.arange(0, width)
        start = keys + query.to(tl.int64) * width
        lowest = -0x7FFFFFFFFFFFFFFF
        key = tl.sort(tl.load(start + lanes, mask=lanes < count, other=lowest), descending=True)
        last = _score_of(tl.sum(tl.where(lanes == keep - 1, key, 0)))
        # The exact score of the last one is at most the slack lower; so is that of what may still belong to the list.
        kept = (lanes < count) & (_score_of(key) >= last - 2 * slack)
        tl.store(start + lanes, key, mask=kept)
        tl.store(fill + query, tl.sum(kept.to(tl.int32)))
        tl.store(floor + query, tl.maximum(tl.load(floor + query), last - slack))


@triton.jit
def exact_products(
    left, right, rows, columns, out, count, dimension: tl.constexpr, padded: tl.constexpr, size: tl.constexpr
):
    """Inner products of pairs, summed in float64, as float32."""
    lanes = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    valid = lanes < count
    row = tl.load(rows + lanes, mask=valid, other=0).to(tl.int64)
    column = tl.load(columns + lanes, mask=valid, other=0).to(tl.int64)
    steps = tl.arange(0, padded)
    total = tl.zeros((size,), tl.float64)
    for begin in range(0, dimension, padded):
        inside = valid[:, None] & (begin + steps < dimension)[None, :]
        a = tl.load(left + row[:, None] * dimension + begin + steps[None, :], mask=inside, other=0.0)
        b = tl.load(right + column[:, None] * dimension + begin + steps[None, :], mask=inside, other=0.0)
        total += tl.sum(a.to(tl.float64) * b.to(tl.float64), axis=1)
    tl.store(out + lanes, total.to(tl.float32), mask=valid)
