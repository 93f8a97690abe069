"""Vectors that occur more than once, and vectors at the ends of the number range: ranks are the slow reference's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.rank import InnerProduct, distinct, rank_both, scorer_of, tiles
from crosslens.rank.distinct import Copies
from crosslens.values import Embeddings
from tests.rank.test_exactness import check, random_relevance
from tests.tables import each_row

N, M, D = 40, 150, 24


def exact_products(images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """The float32 nearest to every inner product: products of float32 are exact in float64, and so is ``fsum``."""
    rows = [[float(x) for x in vector] for vector in captions]
    return np.array(
        [[math.fsum(float(a) * b for a, b in zip(image, row, strict=True)) for row in rows] for image in images]
    ).astype(np.float32)


def random(seed: int, n: int, m: int = D) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, m)).astype(np.float32)


def of_few(seed: int, n: int, kinds: int) -> np.ndarray:
    """``n`` vectors of which only ``kinds`` differ, in no order."""
    return random(seed, kinds)[np.random.default_rng(seed + 1).integers(0, kinds, n)]


def with_signs(n: int) -> np.ndarray:
    """Zeros of either sign, and a few numbers."""
    rng = np.random.default_rng(7)
    vectors = np.where(rng.random((n, D)) < 0.5, np.float32(0.0), np.float32(-0.0)).astype(np.float32)
    vectors[::3, 0] = rng.integers(-1, 2, len(vectors[::3]))
    return vectors


CASES = {
    "one caption": (random(0, N), of_few(1, M, 1)),
    "one image": (of_few(0, N, 1), random(1, M)),
    "one vector": (of_few(0, N, 1), of_few(0, M, 1)),
    "two captions": (random(0, N), of_few(1, M, 2)),
    "two images": (of_few(0, N, 2), random(1, M)),
    "two of each": (of_few(0, N, 2), of_few(1, M, 2)),
    "interleaved": (of_few(0, N, 15), of_few(1, M, 30)),
    "one frequent": (random(0, N), np.where(np.arange(M)[:, None] % 3 == 1, random(2, 1), random(1, M))),
    "opposite": (random(0, N), np.where(np.arange(M)[:, None] % 2 == 1, random(2, 1), -random(2, 1))),
    "zeros": (np.zeros((N, D), np.float32), np.zeros((M, D), np.float32)),
    "some zeros": (of_few(0, N, 6) * (np.arange(N)[:, None] % 4 > 0), random(1, M) * (np.arange(M)[:, None] % 3 > 0)),
    "signed zeros": (with_signs(N), with_signs(M)),
    "whole numbers": (np.round(random(0, N)), np.round(random(1, M))),
    "denormal products": (random(0, N) * np.float32(1e-20), random(1, M) * np.float32(1e-21)),
    "denormal products of few": (of_few(0, N, 9) * np.float32(1e-20), of_few(1, M, 9) * np.float32(1e-21)),
    "denormal vectors": (random(0, N) * np.float32(1e-40), random(1, M)),
    "vanishing products": (random(0, N) * np.float32(1e-30), random(1, M) * np.float32(1e-30)),
    "huge": (random(0, N) * np.float32(1e18), random(1, M) * np.float32(1e18)),
    "huge and few": (of_few(0, N, 3) * np.float32(1e18), of_few(1, M, 3) * np.float32(1e18)),
    "of many sizes": (random(0, N) * 10.0 ** (np.arange(N)[:, None] % 7 - 3), of_few(1, M, 70)),
}


@each_row("case", CASES)
def test_inner_products(case):
    images, captions = (Embeddings.of(vectors.astype(np.float32)) for vectors in CASES[case])
    scorer = scorer_of(images, captions, "dot")
    scores = exact_products(images.vectors, captions.vectors)
    relevance = random_relevance(np.random.default_rng(2), N, M, 0.03)
    fingerprints = set()
    for tile, threads in ((None, 1), (7, 3), (64, 2)):
        rankings = rank_both(scorer, relevance, depth=10, tile=tile, threads=threads)
        fingerprints.add((rankings["i2t"].fingerprint, rankings["t2i"].fingerprint))
    assert len(fingerprints) == 1
    check(scores, relevance, rankings)


@pytest.mark.parametrize("case", ["one caption", "one image", "two of each", "interleaved", "one frequent"])
def test_cosines_of_copies_equal_the_torch_backend(case):
    """torch knows nothing of copies."""
    pytest.importorskip("torch")
    scorer = scorer_of(*(Embeddings.of(vectors) for vectors in CASES[case]))
    relevance = random_relevance(np.random.default_rng(2), N, M, 0.03)
    ours, theirs = (rank_both(scorer, relevance, backend=backend) for backend in ("numpy", "torch"))
    for direction, ranking in ours.items():
        assert ranking.fingerprint == theirs[direction].fingerprint


@given(
    n=st.integers(1, 14), m=st.integers(1, 40), share=st.floats(0, 1), levels=st.integers(0, 2),
    depth=st.integers(1, 50), tile=st.integers(1, 16), threads=st.integers(1, 3), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_ties_between_copies_and_between_different_vectors(n, m, share, levels, depth, tile, threads, seed):
    """Vectors of three small whole numbers: many are the same, and many different ones have the same score."""
    rng = np.random.default_rng(seed)
    images, captions = (rng.integers(-levels, levels + 1, (size, 3)).astype(np.float32) for size in (n, m))
    relevance = random_relevance(rng, n, m, share)
    rankings = rank_both(InnerProduct(images, captions), relevance, depth=depth, tile=tile, threads=threads)
    check(images @ captions.T, relevance, rankings)


@pytest.mark.parametrize("kinds", [1, 3, 150])
def test_buffers_that_fill_up_are_emptied_in_between(kinds, monkeypatch):
    monkeypatch.setattr(tiles, "_UNDECIDED", 1)
    monkeypatch.setattr(tiles, "_HITS", 1)
    images, captions = np.round(random(0, N, 3)), np.round(of_few(1, M, kinds)[:, :3])
    for share in (0.02, 0.5):
        relevance = random_relevance(np.random.default_rng(2), N, M, share)
        rankings = rank_both(InnerProduct(images, captions), relevance, tile=33, threads=2)
        check(images @ captions.T, relevance, rankings)


@pytest.mark.parametrize("which", ["captions", "images", "both"])
def test_one_vector_for_all_costs_no_more_than_different_ones(which, monkeypatch):
    """Time is noisy; what takes it is not: scores computed in tiles, and exact scores of single pairs."""
    work = {"tiles": 0, "exact": 0}
    tile, exact = distinct.DistinctProduct.tile, InnerProduct.exact

    def counted_tile(self, rows, columns):
        work["tiles"] += (rows.stop - rows.start) * (columns.stop - columns.start)
        return tile(self, rows, columns)

    def counted_exact(self, rows, columns):
        work["exact"] += len(rows)
        return exact(self, rows, columns)

    monkeypatch.setattr(distinct.DistinctProduct, "tile", counted_tile)
    monkeypatch.setattr(InnerProduct, "exact", counted_exact)
    images = of_few(0, 100, 1) if which != "captions" else random(0, 100)
    captions = of_few(1, 500, 1) if which != "images" else random(1, 500)
    relevance = random_relevance(np.random.default_rng(2), 100, 500, 0.01)
    rank_both(scorer_of(Embeddings.of(images), Embeddings.of(captions)), relevance, tile=64)
    assert work["tiles"] <= 500
    assert work["exact"] <= 20 * 600  # all pairs would be 50,000, several times


def test_relevant_items_of_many_copies_do_not_take_memory_for_each_other():
    """All captions are one query with all their relevant images: a buffer for each pair of these would be 10⁹ bytes."""
    copies = 4_000
    relevance = random_relevance(np.random.default_rng(2), 4, copies, 1.0)
    rankings = rank_both(InnerProduct(random(0, 4), of_few(1, copies, 1)), relevance, depth=3)
    assert rankings["t2i"].above.reshape(copies, 4).sum(axis=1).tolist() == [6] * copies
    assert rankings["i2t"].tied.tolist() == [copies - 1] * 4 * copies
    assert rankings["i2t"].tied_before.tolist() == list(range(copies)) * 4


def groups_of(vectors: np.ndarray) -> list[list[int]]:
    by_bytes: dict[bytes, list[int]] = {}
    for index, vector in enumerate(vectors):
        by_bytes.setdefault(vector.tobytes(), []).append(index)
    return list(by_bytes.values())


def listed(copies: Copies) -> list[list[int]]:
    return [part.tolist() for part in np.split(copies.members, copies.offsets[1:-1])]


@given(n=st.integers(1, 40), d=st.integers(1, 20), levels=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_copies_are_vectors_of_the_same_bits(n, d, levels, seed):
    vectors = np.random.default_rng(seed).integers(-levels, levels + 1, (n, d)).astype(np.float32)
    vectors[::5] *= np.float32(-1)  # zeros of the other sign are other bits
    copies, expected = Copies.of(vectors), groups_of(vectors)
    if copies is None:
        assert len(expected) == n
    else:
        assert listed(copies) == expected
        assert [copies.group[index] for index in copies.first] == list(range(len(expected)))


def test_vectors_that_differ_in_one_number_are_no_copies():
    vectors = np.zeros((600, 600), np.float32)
    vectors[np.arange(600), np.arange(600)] = 1
    assert Copies.of(vectors) is None
    vectors[17] = vectors[401] = vectors[30]
    assert [part for part in listed(Copies.of(vectors)) if len(part) > 1] == [[17, 30, 401]]


def test_equal_hashes_of_different_vectors_do_no_harm(monkeypatch):
    monkeypatch.setattr(distinct, "_hashes", lambda bits, rows, columns: np.zeros(len(rows), np.uint64))
    vectors = of_few(0, 30, 4)
    for part in listed(Copies.of(vectors)):
        assert len(np.unique(vectors[part], axis=0)) == 1
    assert Copies.of(random(0, 30)) is None
