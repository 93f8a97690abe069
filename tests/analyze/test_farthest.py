"""Farthest-point sampling equals a plain loop over all pairs, whatever the ties, scales, types and threads."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import farthest_points
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.values import Embeddings

Array = np.ndarray[Any, Any]


def distance(left: list[float], right: list[float], metric: str) -> float:
    """From the definition, one addition after the other."""
    if metric == "euclidean":
        total = 0.0
        for x, y in zip(left, right, strict=True):
            total += (x - y) * (x - y)
        return total
    product = first_square = second_square = 0.0
    for x, y in zip(left, right, strict=True):
        product += x * y
        first_square += x * x
        second_square += y * y
    if first_square == 0 or second_square == 0:
        return 0.0
    return -max(-1.0, min(1.0, product / math.sqrt(first_square * second_square)))


def slow(vectors: Array, first: int, count: int, metric: str) -> list[int]:
    rows = [[float(number) for number in row] for row in vectors]
    order = [first]
    nearest = [distance(row, rows[first], metric) for row in rows]
    while len(order) < count:
        best = -1
        for row, near in enumerate(nearest):
            if row not in order and (best < 0 or near > nearest[best]):
                best = row
        order.append(best)
        nearest = [min(near, distance(row, rows[best], metric)) for row, near in zip(rows, nearest, strict=True)]
    return order


def check(vectors: Array, count: int, metric: str, **options: Any) -> None:
    rows = farthest_points(vectors, count, metric=metric, **options)
    assert rows.tolist() == slow(vectors, int(rows[0]), count, metric)


@given(
    st.data(),
    st.sampled_from(["cosine", "euclidean"]),
    st.sampled_from([np.float32, np.float64, np.float16, np.int64]),
    st.sampled_from([0, 16]),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_ties_copies_and_zeros(
    data: Any, metric: str, dtype: Any, few_dimensions: int, batch: int, threads: int
) -> None:
    """With products and without, few picks at a time, with any number of threads."""
    n, d = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 5))
    numbers = data.draw(st.lists(st.integers(-2, 2), min_size=n * d, max_size=n * d))
    vectors = np.array(numbers, dtype).reshape(n, d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crosslens.analyze.farthest._FEW_DIMENSIONS", few_dimensions)
        patch.setattr("crosslens.analyze.farthest._BATCH", batch)
        patch.setattr("crosslens.rank.scorers.available_cores", lambda: threads)
        patch.setattr("crosslens.rank.scorers._ROW_NUMBERS", 7)
        check(vectors, data.draw(st.integers(1, n)), metric, seed=data.draw(st.integers(0, 5)))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_closer_than_float32_can_tell(metric: str) -> None:
    """Nearly equal vectors far from the origin: products in float32 order them at random."""
    rng = np.random.default_rng(4)
    vectors = 1 + 1e-7 * rng.standard_normal((120, 30))
    check(vectors, 60, metric)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("d", [1, 2, 40])
def test_clusters(metric: str, d: int) -> None:
    rng = np.random.default_rng(d)
    centres = rng.standard_normal((12, d))
    vectors = (centres[rng.integers(12, size=150)] + 0.05 * rng.standard_normal((150, d))).astype(np.float32)
    vectors[100:130] = vectors[:30]
    check(vectors, 140, metric)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_very_small_and_very_large_numbers(metric: str, size: float) -> None:
    vectors = np.random.default_rng(1).standard_normal((60, 20)) * size
    expected = farthest_points(vectors / size, 30, metric=metric)
    assert farthest_points(vectors, 30, metric=metric).tolist() == expected.tolist()


def vectorised(vectors: Array, first: int, count: int, metric: str) -> list[int]:
    """The same loop over whole columns: ``cumsum`` adds one number after the other."""
    rows = vectors.astype(np.float64)
    squares = np.cumsum(rows * rows, axis=1)[:, -1]
    rows_taken, nearest = [first], np.full(len(rows), np.inf)
    while len(rows_taken) < count:
        last = rows[rows_taken[-1]]
        if metric == "euclidean":
            distances = np.cumsum((rows - last) ** 2, axis=1)[:, -1]
        else:
            distances = -np.clip(
                np.cumsum(rows * last, axis=1)[:, -1] / np.sqrt(squares * squares[rows_taken[-1]]), -1, 1
            )
        nearest = np.minimum(nearest, distances)
        nearest[rows_taken] = -np.inf
        rows_taken.append(int(np.argmax(nearest)))
    return rows_taken


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("n", "d", "count"), [(1_500, 40, 200), pytest.param(8_000, 384, 150, marks=pytest.mark.slow)])
def test_many_rows(metric: str, n: int, d: int, count: int) -> None:
    rng = np.random.default_rng(n)
    vectors = rng.standard_normal((n // 20, d))[rng.integers(n // 20, size=n)]
    vectors = (vectors + 0.2 * rng.standard_normal((n, d))).astype(np.float32)
    rows = farthest_points(vectors, count, metric=metric)
    assert rows.tolist() == vectorised(vectors, int(rows[0]), count, metric)


def test_all_the_same_in_order() -> None:
    rows = farthest_points(np.ones((9, 3)), 9)
    assert rows[1:].tolist() == sorted(rows[1:])


def test_a_memory_mapped_file_and_embeddings(tmp_path: Path) -> None:
    vectors = np.random.default_rng(2).standard_normal((300, 30)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    expected = farthest_points(vectors, 50).tolist()
    assert farthest_points(mapped, 50).tolist() == expected
    assert farthest_points(Embeddings.of(mapped), 50).tolist() == expected


def test_the_seed_draws_the_first() -> None:
    vectors = np.random.default_rng(3).standard_normal((50, 4))
    firsts = {int(farthest_points(vectors, 1, seed=seed)[0]) for seed in range(20)}
    assert len(firsts) > 5
    assert farthest_points(vectors, 9, seed=4).tolist() == farthest_points(vectors, 9, seed=4).tolist()


def test_mistakes() -> None:
    vectors = np.eye(3)
    with pytest.raises(UsageError, match="count=4, but there are 3 vectors"):
        farthest_points(vectors, 4)
    with pytest.raises(UsageError, match="count=0"):
        farthest_points(vectors, 0)
    with pytest.raises(CrosslensError, match="metric 'manhattan'"):
        farthest_points(vectors, 2, metric="manhattan")
    with pytest.raises(InputError, match="NaN in vectors"):
        farthest_points(np.array([[1.0], [np.nan]]), 1)
    with pytest.raises(InputError, match="one vector per item"):
        farthest_points(np.ones((2, 2, 2)), 1)
    with pytest.raises(UsageError, match="distributions"):
        farthest_points(Embeddings(("a",), np.ones((1, 2)), np.ones((1, 2))), 1)
