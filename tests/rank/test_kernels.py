"""Compiled loops by themselves, where a whole ranking would hardly show a mistake."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numba.core.errors import TypingError

from crosslens.rank import scorer_of, top_lists
from crosslens.rank.kernels import compiled, pair_products, put_in_order
from crosslens.rank.scan import FEW_VALUES, LANES, _largest, at_least, exceeds, lowest_bit, number_of_bits
from crosslens.values import Embeddings


@pytest.mark.parametrize("dimension", [18, 64, 130, 514])
def test_a_pair_has_one_product_wherever_it_is(dimension):
    """All products cancel each other: what is left are rounding errors, which tell in which order they were added."""
    rng = np.random.default_rng(dimension)
    left, right = (np.tile(rng.standard_normal((2, dimension // 2), np.float32), 2) for _ in range(2))
    right[:, dimension // 2 :] *= -1
    order = rng.permutation(dimension)
    left, right = np.ascontiguousarray(left[:, order]), np.ascontiguousarray(right[:, order])
    added = left[0].astype(np.float64) * right[0]
    assert len({float(np.cumsum(rng.permutation(added))[-1]) for _ in range(20)}) > 1  # else this would show nothing

    rows, columns = rng.integers(0, 2, (2, 43))
    products: dict[tuple[int, int], set[float]] = {}
    for start in range(9):
        for end in range(start + 1, len(rows) + 1):
            out = np.empty(end - start, np.float32)
            pair_products(left, right, rows[start:end], columns[start:end], out)
            for row, column, product in zip(rows[start:end], columns[start:end], out, strict=True):
                products.setdefault((row, column), set()).add(float(product))
    assert [len(values) for values in products.values()] == [1] * 4


@given(size=st.integers(1, 3 * FEW_VALUES), levels=st.integers(1, 400), seed=st.integers(0, 2**32), data=st.data())
def test_the_nth_largest_value(size, levels, seed, data):
    values = np.random.default_rng(seed).integers(0, levels, size).astype(np.float32)
    rank = data.draw(st.integers(1, size))
    before = values.copy()
    assert _largest(values, rank) == np.sort(values)[-rank]
    np.testing.assert_array_equal(values, before)


@given(
    queries=st.integers(1, 6), most=st.integers(0, 30), depth=st.integers(1, 12), levels=st.integers(1, 20),
    seed=st.integers(0, 2**32),
)  # fmt: skip
def test_candidates_are_put_in_order(queries, most, depth, levels, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, queries, most))
    items = rng.permutation(1000)[:most]
    scores = rng.integers(0, levels, most).astype(np.float32)
    top_items, top_scores = np.full((queries, depth), -1, np.int64), np.full((queries, depth), np.nan, np.float32)
    put_in_order(rows, items, scores, top_items, top_scores)
    for query in range(queries):
        of_query = np.flatnonzero(rows == query)
        best = of_query[np.lexsort((items[of_query], -scores[of_query]))][:depth]
        assert top_items[query].tolist() == items[best].tolist() + [-1] * (depth - len(best))
        np.testing.assert_array_equal(top_scores[query][: len(best)], scores[best])


@pytest.mark.parametrize("depth", [1, 10, 60, 150])
@pytest.mark.parametrize("distinct", [40, 3000])
def test_top_lists_of_one_direction(depth, distinct):
    """Lists that are cut down early, often or never, some full of ties."""
    rng = np.random.default_rng(depth)
    queries, gallery = rng.standard_normal((50, 16)), rng.standard_normal((distinct, 16))
    scorer = scorer_of(Embeddings.of(queries), Embeddings.of(gallery[rng.integers(0, distinct, 2000)]))
    items, scores = top_lists(scorer, depth, tile=130, threads=2)
    exact = scorer.exact(*np.divmod(np.arange(50 * 2000), 2000)).reshape(50, 2000)
    expected = np.argsort(-exact, axis=1, kind="stable")[:, :depth]
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_array_equal(scores, np.take_along_axis(exact, expected, 1))


@compiled
def _masks(scores, bound, bounds):
    """Of every step through the scores: the bits of four comparisons, how many are set, and the lowest of them."""
    steps = -(-scores.size // LANES)
    masks = np.zeros((4, steps), np.uint64)
    numbers = np.zeros((2, steps), np.int64)
    for step in range(steps):
        start = step * LANES
        masks[0, step], masks[1, step] = at_least(scores, start, bound), exceeds(scores, start, bound)
        masks[2, step], masks[3, step] = at_least(scores, start, bounds), exceeds(scores, start, bounds)
        numbers[0, step] = number_of_bits(masks[0, step])
        numbers[1, step] = lowest_bit(masks[0, step]) if masks[0, step] else -1
    return masks, numbers


@given(size=st.integers(1, 3 * LANES + 2), levels=st.integers(1, 6), missing=st.booleans(), seed=st.integers(0, 2**32))
def test_scores_that_reach_a_bound_are_bits(size, levels, missing, seed):
    rng = np.random.default_rng(seed)
    scores, bounds = rng.integers(0, levels, (2, size)).astype(np.float32)
    if missing:
        scores[rng.integers(size)] = np.nan  # reaches nothing
    bound = np.float32(levels // 2)
    masks, (numbers, lowest) = _masks(scores, bound, bounds)
    for step, start in enumerate(range(0, size, LANES)):
        part, bound_of_item = scores[start : start + LANES], bounds[start : start + LANES]
        for mask, expected in zip(
            masks[:, step], (part >= bound, part > bound, part >= bound_of_item, part > bound_of_item), strict=True
        ):
            assert [int(mask) >> bit & 1 for bit in range(LANES)] == [*expected, *[0] * (LANES - len(part))]
        assert numbers[step] == (part >= bound).sum()
        assert lowest[step] == (np.argmax(part >= bound) if (part >= bound).any() else -1)


def test_only_contiguous_float32_scores_are_compared():
    scores = np.zeros((4, 200), np.float32)
    for unfit_scores in (scores[:, 0], scores[0].astype(np.float64)):
        with pytest.raises(TypingError):
            _masks(unfit_scores, np.float32(0), scores[0])
