"""The fused kernels (Triton): half-precision products whose scores are looked at while they are in registers.

``maxima`` and ``nth_best`` look for first floors of the top lists. ``scan`` multiplies tiles, counts what is surely
above each relevant item in both directions, and notes the few pairs that half precision cannot decide or that may
belong to a top list; scores are never stored. ``unpack`` makes lists of what is noted, ``rescore`` multiplies these
pairs in float32, ``decide`` counts and collects them; what is still in doubt goes to a list that float64 decides.
``keep_best`` cuts the candidates of a query back and raises its floor.

Everything a kernel compares is proven: a score may be off by ``slack`` at most
(see :mod:`crosslens.rank.gpu.direction`), and a pair within it of a relevant item's score is never counted here.
"""

from __future__ import annotations

import triton
import triton.language as tl

STEP = tl.constexpr(64)
GROUP = tl.constexpr(8)
"""How many dimensions are multiplied at a time, and how many rows of tiles share their columns in the cache."""
OUT = tl.constexpr(2.0**120)
"""A score that is taken out becomes at most -2**60; no other is below -2**40, where those past the end are put."""
EDGE = tl.constexpr(-(2.0**40))
TAKEN = tl.constexpr(-(2.0**-50))


@triton.jit
def _product(left, right, row, column, dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    """One tile of products, in float32."""
    scores = tl.zeros((height, width), tl.float32)
    for step in range(0, dimension, STEP):
        scores = tl.dot(left.load([row, step]), right.load([column, step]).T, scores)
    return scores


@triton.jit
def _tile_of(number, tiles_down, tiles_across):
    """Where a tile is: neighbours in time share rows or columns."""
    wide = GROUP * tiles_across
    first = (number // wide) * GROUP
    height = tl.minimum(tiles_down - first, GROUP)
    return first + (number % wide) % height, (number % wide) // height


@triton.jit
def maxima(
    left, right, scales, out, count, stride, tiles_down, tiles_across,
    dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr, equal: tl.constexpr,
):  # fmt: skip
    """The highest score of every row in each of some tiles, which lie ``stride`` tiles apart; none is cut off.

    Columns are multiplied by ``scales``, unless all are ``equal``.
    """
    down, across = _tile_of(tl.program_id(0), tiles_down, tiles_across)
    scores = _product(left, right, down * height, across * stride * width, dimension, height, width)
    if not equal:
        scores *= tl.load(scales + across * stride * width + tl.arange(0, width))[None, :]
    rows = down * height + tl.arange(0, height)
    tl.store(out + rows.to(tl.int64) * tiles_across + across, tl.max(scores, axis=1), mask=rows < count)


@triton.jit
def nth_best(scores, out, across, nth, width: tl.constexpr):
    """The ``nth`` highest number of a row, counted from 0."""
    row, lanes = tl.program_id(0), tl.arange(0, width)
    score = tl.load(scores + row.to(tl.int64) * across + lanes, mask=lanes < across, other=float("-inf"))
    tl.store(out + row, tl.sum(tl.where(lanes == nth, tl.sort(score, descending=True), 0.0)))


@triton.jit
def _ramp(scores, steep, offset, native: tl.constexpr):
    """``scores * steep + offset`` cut to 0 … 1: one instruction of a GPU, which the interpreter does not know."""
    if native:
        return tl.inline_asm_elementwise(
            "fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f", [scores, steep, offset], tl.float32, is_pure=True, pack=1
        )
    return tl.minimum(tl.maximum(scores * steep + offset, 0.0), 1.0)


@triton.jit
def _whole(number):
    """A whole number below 2²³ as an integer: adding moves it to the last bits, faster than a conversion."""
    return (number + 8388608.0).to(tl.int32, bitcast=True) & 0x7FFFFF


@triton.jit
def _take_out_near(scores, steep, offset, native: tl.constexpr):
    """Push scores that are within the slack of a relevant item's below all others: their ramp is neither 0 nor 1."""
    part = _ramp(scores, steep, offset, native)
    return scores - (part - part * part) * OUT


@triton.jit
def _halves_of_words(scores, height: tl.constexpr, width: tl.constexpr, native: tl.constexpr):
    """Which scores were taken out, 16 bits at a time.

    Bit 2 j + p of number h is column 64 (h // 4) + 8 j + 2 (h % 4) + p: columns that one thread holds, so that no bits
    travel between threads.
    """
    out = tl.reshape(_ramp(scores, TAKEN, -1.0, native), (height, width // 64, 8, 4, 2))
    out = tl.reshape(tl.permute(out, (0, 1, 3, 2, 4)), (height, width // 64, 4, 16))
    weights = tl.exp2(tl.arange(0, 16).to(tl.float32))
    return _whole(tl.sum(out * weights[None, None, None, :], axis=3)).to(tl.int16)


@triton.jit
def _ramps(scores, count, queries, valid, scale, number: tl.constexpr):
    """Where the ramps of the first relevant items of some queries begin."""
    offsets = ()
    for nth in tl.static_range(number):
        offsets = offsets + (_ramp_of(scores + nth * count, queries, valid, scale),)  # noqa: RUF005
    return offsets


@triton.jit
def _ramp_of(scores, queries, valid, scale):
    return 0.5 - tl.load(scores + queries, mask=valid, other=float("inf")) * scale


@triton.jit
def _add_by_row(counts, ramps, rows, valid):
    tl.atomic_add(counts + rows, _whole(tl.sum(ramps, axis=1)), mask=valid, sem="relaxed")


@triton.jit
def _add_by_column(counts, ramps, columns, valid, height: tl.constexpr, width: tl.constexpr):
    """Two neighbouring columns travel between threads as one number."""
    weights = (1.0 + 4095.0 * tl.arange(0, 2))[None, None, :]
    pairs = tl.sum(tl.reshape(ramps, (height, width // 2, 2)) * weights, axis=2)
    sums = _whole(tl.sum(pairs, axis=0))
    above = tl.reshape(tl.join(sums & 4095, sums >> 12), (width,))
    tl.atomic_add(counts + columns, above, mask=valid, sem="relaxed")


@triton.jit
def scan(
    left, right, row_begin, row_end, column_begin, column_end, tiles_down, tiles_across,
    row_targets, row_widths, row_floor, row_above, row_count, row_scales,
    column_targets, column_widths, column_floor, column_above, column_count, column_scales,
    scale, steep, noted, words, programs, dimension: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    row_common: tl.constexpr, row_more: tl.constexpr, column_common: tl.constexpr, column_more: tl.constexpr,
    whole: tl.constexpr, equal: tl.constexpr, native: tl.constexpr,
):  # fmt: skip
    """Count a panel of tiles, and note what is to be looked at again: one bit per pair, ``words`` words per row.

    ``*_targets`` (widest × queries) hold the scores of relevant items, infinite where a query has fewer. The first
    ``*_common`` are compared in unrolled loops; where any query has more (``*_more``), ``*_widths`` say how many there
    are at most in each block of queries. ``steep`` is 1 / (2 slack) for the scores of a tile, ``scale`` the same for
    true ones. Where vectors were not all multiplied by ``equal`` powers of two, ``*_scales`` hold them by query: of its
    own scores, then of those it is an item for. ``whole``: no tile reaches past the end.

    Comparing and selecting runs at half the speed of multiplying and adding. So a score is compared by a ramp, which
    is 0 where the score is surely below a relevant item's, 1 where it is surely above, and in between where it is in
    doubt; ramps of what is certain are summed. A program goes from tile to tile, so that the vectors of the next one
    arrive while this one is looked at.
    """
    for number in tl.range(tl.program_id(0), tiles_down * tiles_across, programs, flatten=True):
        down, across = _tile_of(number, tiles_down, tiles_across)
        row, column = row_begin + down * height, column_begin + across * width
        scores = _product(left, right, row, column, dimension, height, width)
        rows, columns = row + tl.arange(0, height), column + tl.arange(0, width)
        valid_row, valid_column = rows < row_end, columns < column_end
        # All loads first: each would be waited for at the next exchange between threads.
        if equal:
            row_scale, column_scale, row_steep, column_steep = scale, scale, steep, steep
        else:
            row_scale = tl.load(row_scales + rows, mask=valid_row, other=1.0)
            column_scale = tl.load(column_scales + columns, mask=valid_column, other=1.0)
            row_steep = tl.load(column_scales + column_count + columns, mask=valid_column, other=1.0)[None, :]
            column_steep = tl.load(row_scales + row_count + rows, mask=valid_row, other=1.0)[:, None]
        row_low = _ramp_of(row_floor, rows, valid_row, row_scale)
        column_low = _ramp_of(column_floor, columns, valid_column, column_scale)
        by_row = _ramps(row_targets, row_count, rows, valid_row, row_scale, row_common)
        by_column = _ramps(column_targets, column_count, columns, valid_column, column_scale, column_common)
        # What may be listed: its ramp is above 0 from the floor less the slack on.
        scores -= _ramp(scores, row_steep, row_low[:, None], native) * OUT
        scores -= _ramp(scores, column_steep, column_low[None, :], native) * OUT
        for nth in tl.static_range(row_common):
            scores = _take_out_near(scores, row_steep, by_row[nth][:, None], native)
        for nth in tl.static_range(column_common):
            scores = _take_out_near(scores, column_steep, by_column[nth][None, :], native)
        if row_more:
            for nth in range(row_common, tl.load(row_widths + row // height)):
                target = _ramp_of(row_targets + nth * row_count, rows, valid_row, row_scale)
                scores = _take_out_near(scores, row_steep, target[:, None], native)
        if column_more:
            for nth in range(column_common, tl.load(column_widths + column // width)):
                target = _ramp_of(column_targets + nth * column_count, columns, valid_column, column_scale)
                scores = _take_out_near(scores, column_steep, target[None, :], native)
        if not whole:
            scores = tl.where(valid_row[:, None] & valid_column[None, :], scores, EDGE)
        offsets = (
            (rows - row_begin)[:, None, None] * (2 * words)
            + across * (width // 16)
            + tl.arange(0, width // 64)[None, :, None] * 4
            + tl.arange(0, 4)[None, None, :]
        )
        tl.store(noted + offsets, _halves_of_words(scores, height, width, native))
        for nth in tl.static_range(row_common):
            above = _ramp(scores, row_steep, by_row[nth][:, None], native)
            _add_by_row(row_above + nth * row_count, above, rows, valid_row)
        for nth in tl.static_range(column_common):
            above = _ramp(scores, column_steep, by_column[nth][None, :], native)
            _add_by_column(column_above + nth * column_count, above, columns, valid_column, height, width)
        if row_more:
            for nth in range(row_common, tl.load(row_widths + row // height)):
                target = _ramp_of(row_targets + nth * row_count, rows, valid_row, row_scale)
                above = _ramp(scores, row_steep, target[:, None], native)
                _add_by_row(row_above + nth * row_count, above, rows, valid_row)
        if column_more:
            for nth in range(column_common, tl.load(column_widths + column // width)):
                target = _ramp_of(column_targets + nth * column_count, columns, valid_column, column_scale)
                above = _ramp(scores, column_steep, target[None, :], native)
                _add_by_column(column_above + nth * column_count, above, columns, valid_column, height, width)


@triton.jit
def _ones(word):
    """How many bits are set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def unpack(noted, words, used, column_begin, items, starts, counts, length, room, overflow, size: tl.constexpr):
    """The noted columns of one row as a list, in no order, behind those of other rows while there is room."""
    local = tl.program_id(0)
    lanes = tl.arange(0, size)
    word = tl.load(noted + local * words + lanes, mask=lanes < used, other=0).to(tl.uint32, bitcast=True)
    amount = _ones(word)
    count = tl.sum(amount)
    start = tl.atomic_add(length, count, sem="relaxed")
    if start + count > room:
        tl.store(overflow, 1)
    tl.store(starts + local, start)
    tl.store(counts + local, tl.where(start + count > room, 0, count))
    slot = start + tl.cumsum(amount, 0) - amount
    for _ in range(tl.max(amount)):
        active = word != 0
        lowest = word & (~word + 1)
        bit = _ones(lowest - 1)
        half = 2 * lanes + bit // 16
        column = column_begin + half // 4 * 64 + bit % 16 // 2 * 8 + half % 4 * 2 + bit % 2
        tl.store(items + slot, column, mask=active & (slot < room))
        word = word & (word - 1)
        slot += active.to(tl.int32)


@triton.jit
def _orderable(score):
    """An integer that sorts as the float32 does."""
    bits = score.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _score_of(bits):
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
    left, right, row_begin, noted, starts, counts, scores,
    dimension: tl.constexpr, padded: tl.constexpr, size: tl.constexpr,
):  # fmt: skip
    """Float32 products of the noted pairs of a row."""
    local = tl.program_id(0)
    first, count = tl.load(starts + local), tl.load(counts + local)
    lanes = tl.arange(0, size)
    steps = tl.arange(0, padded)
    a = left + (row_begin + local).to(tl.int64) * dimension
    for start in range(0, count, size):
        valid = start + lanes < count
        item = tl.load(noted + first + start + lanes, mask=valid, other=0)
        b = right + item.to(tl.int64)[:, None] * dimension
        products = tl.zeros((size, padded), tl.float32)
        for begin in tl.static_range(0, dimension, padded):
            if begin + padded <= dimension:
                products += tl.load(a + begin + steps)[None, :] * tl.load(b + (begin + steps)[None, :])
            else:
                inside = (begin + steps < dimension)[None, :]
                part = tl.load(b + (begin + steps)[None, :], mask=inside, other=0.0)
                products += tl.load(a + begin + steps[None, :], mask=inside, other=0.0) * part
        tl.store(scores + first + start + lanes, tl.sum(products, axis=1), mask=valid)


@triton.jit
def decide(
    row_begin, noted, starts, counts, scores,
    row_offsets, row_scores, row_floor, row_above, row_keys, row_fill,
    column_offsets, column_scores, column_floor, column_above, column_keys, column_fill,
    row_pairs, row_items, row_length, column_pairs, column_items, column_length, room,
    width, row_slack, column_slack, size: tl.constexpr,
):  # fmt: skip
    """Count and collect the noted pairs of one row by their float32 scores; ``*_slack`` bound the error of these."""
    local = tl.program_id(0)
    row = row_begin + local
    begin, count = tl.load(starts + local), tl.load(counts + local)
    lanes = tl.arange(0, size)
    row_first, row_last = tl.load(row_offsets + row), tl.load(row_offsets + row + 1)
    slack = tl.load(row_slack + row)
    floor = tl.load(row_floor + row) - slack
    fill = tl.load(row_fill + row)
    for start in range(0, count, size):
        valid = start + lanes < count
        item = tl.load(noted + begin + start + lanes, mask=valid, other=0)
        score = tl.load(scores + begin + start + lanes, mask=valid, other=0.0)
        for pair in range(row_first, row_last):
            target = tl.load(row_scores + pair)
            doubtful = valid & (tl.abs(score - target) <= slack)
            surely = tl.sum((valid & (score > target) & ~doubtful).to(tl.int32))
            tl.store(row_above + pair, tl.load(row_above + pair) + surely)
            _append(doubtful, tl.zeros((size,), tl.int32) + pair, item, row_pairs, row_items, row_length, room)
        other = tl.load(column_slack + item, mask=valid, other=0.0)
        first = tl.load(column_offsets + item, mask=valid, other=0)
        relevant = tl.load(column_offsets + item + 1, mask=valid, other=0) - first
        for nth in range(tl.max(relevant)):
            active = valid & (nth < relevant)
            target = tl.load(column_scores + first + nth, mask=active, other=float("inf"))
            doubtful = active & (tl.abs(score - target) <= other)
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
        good = valid & (score >= tl.load(column_floor + item, mask=valid, other=float("inf")) - other)
        slot = tl.atomic_add(column_fill + item, 1, mask=good, sem="relaxed")
        tl.store(column_keys + item.to(tl.int64) * width + slot, key | row.to(tl.int64), mask=good & (slot < width))
    tl.store(row_fill + row, fill)


@triton.jit
def keep_best(keys, fill, floor, begin, keep, slacks, width: tl.constexpr):
    """Drop the candidates of a query that cannot be in its list, and raise its floor; not where some are missing."""
    query = begin + tl.program_id(0)
    count = tl.load(fill + query)
    if (count > keep) & (count <= width):
        slack = tl.load(slacks + query)
        lanes = tl.arange(0, width)
        start = keys + query.to(tl.int64) * width
        listed = lanes < count
        key = tl.load(start + lanes, mask=listed, other=0)
        ordered = tl.sort(tl.where(listed, (key >> 32).to(tl.int32), -0x7FFFFFFF), descending=True)
        last = _score_of(tl.sum(tl.where(lanes == keep - 1, ordered, 0)))
        # The exact score of the last one is at most the slack lower; so is that of what may still belong to the list.
        kept = listed & (_score_of((key >> 32).to(tl.int32)) >= last - 2 * slack)
        tl.debug_barrier()  # all keys are read before any is overwritten
        tl.store(start + tl.cumsum(kept.to(tl.int32), 0) - 1, key, mask=kept)
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
