"""Nearest items equal a plain loop over all pairs, whatever the ties, scales, types, tiles and threads."""

from __future__ import annotations

import math
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import ApproximateSearch, farthest_points, nearest_items
from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.rank import Cosines, ScaledRows, top_lists
from crosslens.values import Embeddings

Array = np.ndarray[Any, Any]


def cosine(left: list[float], right: list[float]) -> float:
    """From the definition, one addition after the other."""
    product = first_square = second_square = 0.0
    for x, y in zip(left, right, strict=True):
        product += x * y
        first_square += x * x
        second_square += y * y
    return (
        max(-1.0, min(1.0, product / math.sqrt(first_square * second_square)))
        if first_square * second_square > 0
        else 0.0
    )


def slow(queries: Array, items: Array, k: int, without: Array | None = None) -> tuple[list[list[int]], Array]:
    left, right = queries.astype(np.float64).tolist(), items.astype(np.float64).tolist()
    positions, values = [], []
    for number, query in enumerate(left):
        cosines = [max(cosine(query, vector) for vector in (item if items.ndim == 3 else [item])) for item in right]
        allowed = [i for i in range(len(right)) if without is None or i != without[number]]
        best = sorted(allowed, key=lambda i: (-cosines[i], i))[:k]
        positions.append(best)
        values.append([cosines[i] for i in best])
    return positions, np.array(values).reshape(len(left), k)


def check(queries: Array, items: Array, k: int, without: Array | None = None, **options: Any) -> None:
    nearest = nearest_items(queries, items, k, without=without, **options)
    positions, values = slow(queries, items, k, without)
    assert nearest.items.tolist() == positions
    assert np.array_equal(nearest.cosines, values)  # to the last bit
    assert nearest.recall is None


def clustered(n: int, d: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, n // 12), d))
    vectors = centres[rng.integers(len(centres), size=n)] + 0.1 * rng.standard_normal((n, d))
    vectors[: n // 5] = vectors[n // 5 : 2 * (n // 5)]
    return vectors.astype(np.float32)


@given(st.data(), st.sampled_from([np.float32, np.float64, np.float16, np.int64]), st.integers(1, 3))
def test_ties_copies_and_zeros(data: Any, dtype: Any, several: int) -> None:
    n, m, d = (data.draw(st.integers(1, most)) for most in (6, 20, 4))
    numbers = data.draw(st.lists(st.integers(-2, 2), min_size=(n + m * several) * d, max_size=(n + m * several) * d))
    vectors = np.array(numbers, dtype).reshape(-1, d)
    items = vectors[n:].reshape(m, several, d) if several > 1 else vectors[n:]
    without = np.array(data.draw(st.lists(st.integers(-1, m - 1), min_size=n, max_size=n)))
    most = m - int((without >= 0).any())
    if most:
        check(vectors[:n], items, data.draw(st.integers(1, most)), without, tile=data.draw(st.integers(1, 9)))


@pytest.mark.parametrize(("d", "tile"), [(1, None), (7, 16), (60, 50)])
def test_clusters_with_copies(d: int, tile: int | None) -> None:
    vectors = clustered(120, d, d)
    check(vectors, vectors, 15, np.arange(120), tile=tile)


def test_many_items() -> None:
    """``cumsum`` adds one number after the other, as the definition does."""
    vectors = clustered(3_000, 40, 11)
    rows, queries = vectors.astype(np.float64), range(0, 3_000, 60)
    squares = np.cumsum(rows * rows, axis=1)[:, -1]
    nearest = nearest_items(vectors[queries], vectors, 100)
    for number, query in enumerate(queries):
        cosines = np.clip(np.cumsum(rows * rows[query], axis=1)[:, -1] / np.sqrt(squares * squares[query]), -1, 1)
        expected = np.argsort(-cosines, kind="stable")[:100]
        assert np.array_equal(nearest.items[number], expected)
        assert np.array_equal(nearest.cosines[number], cosines[expected])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_items(tmp_path: Path) -> None:
    file = np.lib.format.open_memmap(tmp_path / "v.npy", "w+", np.float32, (400_000, 64))
    rng = np.random.default_rng(0)
    for start in range(0, len(file), 50_000):
        file[start : start + 50_000] = rng.standard_normal((50_000, 64))
    nearest_items(file[:10], file[:2_000], 5)
    for search in (lambda: nearest_items(file[:50], file, 20), lambda: farthest_points(file, 300)):
        tracemalloc.start()
        search()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < file.nbytes / 2  # the file is 100 MB


def test_every_other_item() -> None:
    vectors = clustered(40, 5, 0)
    check(vectors, vectors, 39, np.arange(40))


def test_more_ties_than_candidates_are_kept() -> None:
    vectors = np.ones((300, 6), np.float32)
    vectors[250:] = clustered(50, 6, 1)
    check(vectors[:4], vectors, 3, tile=64)
    check(vectors[:4] * 3, vectors, 270, tile=64)


def test_few_queries_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.neighbours._QUERIES", 7)
    vectors = clustered(60, 9, 2)
    check(vectors, vectors, 5, np.arange(60))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int) -> None:
    rows = ScaledRows(clustered(400, 12, 3))
    expected = top_lists(Cosines(rows, np.arange(50), rows), 20)
    listed = top_lists(Cosines(rows, np.arange(50), rows), 20, tile=32, threads=threads)
    assert all(np.array_equal(*pair) for pair in zip(expected, listed, strict=True))


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_very_small_and_very_large_numbers(size: float) -> None:
    vectors = clustered(50, 8, 4).astype(np.float64)
    expected, scaled = nearest_items(vectors, vectors, 9), nearest_items(vectors * size, vectors, 9)
    np.testing.assert_allclose(scaled.cosines, expected.cosines, rtol=1e-13)


def test_copies_have_cosine_one() -> None:
    vectors = np.random.default_rng(5).standard_normal((200, 33)).astype(np.float32)
    assert (nearest_items(vectors, vectors * np.float32(4), 1).cosines == 1).all()


def test_memory_mapped_files_and_embeddings(tmp_path: Path) -> None:
    vectors = clustered(200, 16, 6)
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    expected = nearest_items(vectors, vectors, 7)
    for given_items in (mapped, Embeddings.of(mapped)):
        nearest = nearest_items(given_items, given_items, 7)
        assert np.array_equal(nearest.items, expected.items)
        assert np.array_equal(nearest.cosines, expected.cosines)


def test_progress_reaches_its_total() -> None:
    class Counted:
        total = done = 0

        def start(self, label: str, total: int) -> None:
            self.total = total

        def advance(self, steps: int = 1) -> None:
            self.done += steps

        def finish(self) -> None: ...

    counted, vectors = Counted(), clustered(90, 4, 7)
    nearest_items(vectors, vectors, 3, tile=20, progress=counted)
    assert counted.done == counted.total == 5


def test_wrong_input_is_refused() -> None:
    vectors = np.eye(3)
    with pytest.raises(InputError, match="NaN in queries"):
        nearest_items(np.full((1, 3), np.nan), vectors, 1)
    with pytest.raises(InputError, match="infinity in items"):
        nearest_items(vectors, np.full((1, 3), np.inf), 1)
    with pytest.raises(UsageError, match="4 neighbours among 3 other items"):
        nearest_items(vectors, vectors, 4)
    with pytest.raises(UsageError, match="several vectors"):
        nearest_items(np.ones((2, 2, 3)), vectors, 1)


# faiss


def test_as_faiss_finds_them() -> None:
    faiss = pytest.importorskip("faiss")
    vectors = clustered(2_000, 48, 8)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(48)
    index.add(units)
    scores, _ = index.search(units[:200], 50)
    nearest = nearest_items(vectors[:200], vectors, 50)
    np.testing.assert_allclose(nearest.cosines, scores, atol=2e-6)  # positions of equal scores are faiss's own choice


def test_approximate_neighbours_with_their_recall() -> None:
    pytest.importorskip("faiss")
    vectors = clustered(3_000, 24, 9)
    rows = np.arange(len(vectors))
    exact = nearest_items(vectors, vectors, 10, without=rows)
    few, all_lists = (
        nearest_items(vectors, vectors, 10, without=rows, approximate=ApproximateSearch(probes=probes, sample=3_000))
        for probes in (1, 10_000)
    )
    assert all_lists.recall == 1.0
    assert np.array_equal(all_lists.cosines, exact.cosines)
    # The recall, counted anew: a listed item is right if it is as near as the last of the true ones.
    right = sum(float(value) >= float(exact.cosines[row, -1]) for row in range(3_000) for value in few.cosines[row])
    assert few.recall == pytest.approx(right / 30_000)
    assert 0.3 < few.recall < 1.0
    assert not (few.items == rows[:, None]).any()
    assert all(len(set(row)) == 10 for row in few.items.tolist())
    assert (np.diff(few.cosines, axis=1) <= 0).all()
    again = nearest_items(vectors, vectors, 10, without=rows, approximate=ApproximateSearch(probes=1, sample=3_000))
    assert np.array_equal(few.items, again.items)


def test_approximate_search_among_few_items_is_complete() -> None:
    pytest.importorskip("faiss")
    vectors = clustered(30, 4, 10)
    search = ApproximateSearch(lists=10, probes=1)
    nearest = nearest_items(vectors, vectors, 25, approximate=search)
    assert nearest.recall == 1.0  # no list holds 25 items: these queries are searched exactly
    assert np.array_equal(nearest.items, nearest_items(vectors, vectors, 25).items)


def test_mistakes_about_approximate_search(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.eye(3)
    with pytest.raises(UsageError, match="probes is 0"):
        ApproximateSearch(probes=0)
    with pytest.raises(UsageError, match="one vector per item"):
        nearest_items(vectors, np.ones((2, 2, 3)), 1, approximate=True)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match="faiss-cpu"):
        nearest_items(vectors, vectors, 1, approximate=True)
