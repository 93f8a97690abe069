"""Ranks are those of the slow reference, whatever the tile, the threads, the backend, the order or the score."""

from __future__ import annotations

from functools import cache
from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError
from crosslens.rank import ScoreMatrix, Scorer, rank_both, scorer_of
from crosslens.values import Embeddings, Relevance
from tests.rank import reference
from tests.tables import each_row, rest_slow


def random_relevance(rng: np.random.Generator, n: int, m: int, share: float) -> Relevance:
    pairs = rng.random((n, m)) < share
    pairs[0, 0] = True
    rows, columns = np.nonzero(pairs)
    return Relevance.from_indices(tuple(f"i{k}" for k in range(n)), tuple(f"c{k}" for k in range(m)), rows, columns)


def check(scores: np.ndarray, relevance: Relevance, rankings: dict) -> None:
    for name, matrix, judged in (("i2t", scores, relevance), ("t2i", scores.T, relevance.flip())):
        ranking = rankings[name]
        counts = list(zip(ranking.above.tolist(), ranking.tied.tolist(), ranking.tied_before.tolist(), strict=True))
        assert counts == reference.counts(matrix, judged)
        assert ranking.top_items.tolist() == reference.top(matrix, ranking.depth)
        rows = np.arange(len(matrix))[:, None]
        np.testing.assert_array_equal(ranking.top_scores, matrix[rows, ranking.top_items].astype(np.float32))


def exact_matrix(scorer) -> np.ndarray:
    n, m = scorer.shape
    rows, columns = np.divmod(np.arange(n * m), m)
    return scorer.exact(rows, columns).reshape(n, m)


@given(
    n=st.integers(1, 12), m=st.integers(1, 40), levels=st.integers(1, 30), share=st.floats(0, 1),
    depth=st.integers(1, 12), tile=st.integers(1, 16), threads=st.integers(1, 3), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_score_matrices_with_ties(n, m, levels, share, depth, tile, threads, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-levels, levels, (n, m)).astype(np.float32)
    relevance = random_relevance(rng, n, m, share)
    check(scores, relevance, rank_both(ScoreMatrix(scores), relevance, depth=depth, tile=tile, threads=threads))


@given(
    n=st.integers(1, 12), m=st.integers(1, 40), copies=st.integers(1, 10), share=st.floats(0, 1),
    tile=st.integers(1, 16), seed=st.integers(0, 2**32), score=st.sampled_from(["cosine", "dot"]),
)  # fmt: skip
def test_embeddings_with_duplicates(n, m, copies, share, tile, seed, score):
    """Few distinct vectors, so exact ties and near-ties are everywhere: float32 products alone would scatter them."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((copies, 24))[rng.integers(0, copies, n)]
    captions = rng.standard_normal((copies, 24))[rng.integers(0, copies, m)] * (3.0 if score == "cosine" else 1.0)
    scorer = scorer_of(Embeddings.of(images), Embeddings.of(captions), score)
    relevance = random_relevance(rng, n, m, share)
    check(exact_matrix(scorer), relevance, rank_both(scorer, relevance, depth=5, tile=tile, threads=2))


def many(seed: int = 0, n: int = 130, m: int = 410, d: int = 48) -> tuple[Embeddings, Embeddings]:
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, d)).astype(np.float32)
    captions = images[np.arange(m) % n] + 2 * rng.standard_normal((m, d)).astype(np.float32)
    captions[m // 2 : m // 2 + 60] = captions[0]  # more exact ties than any candidate buffer holds
    return Embeddings.of(images), Embeddings.of(captions)


WAYS = [
    ("numpy", None, 1), ("numpy", 7, 2), ("numpy", 64, 4), ("numpy", 500, 2),
    ("torch", None, None), ("torch", 61, None),
]  # fmt: skip
SHARES = (0.002, 0.02, 0.3)
"""Few relevant items, some, many."""


def check_larger_gallery(share, backend, tile, threads):
    """Wide rows: vectorised counting, binary search, full buffers, the exact fallback."""
    if backend == "torch":
        pytest.importorskip("torch")
    scorer, exact = scored_many()
    relevance = random_relevance(np.random.default_rng(1), *scorer.shape, share)
    rankings = rank_both(scorer, relevance, depth=10, backend=backend, tile=tile, threads=threads)
    check(exact, relevance, rankings)


@each_row(("way", "share"), zip(WAYS, cycle(SHARES)))
def test_larger_galleries(way, share):
    check_larger_gallery(share, *way)


@pytest.mark.slow
@each_row(("way", "share"), product(WAYS, SHARES))
def test_larger_galleries_every_way(way, share):
    check_larger_gallery(share, *way)


@cache
def scored_many() -> tuple[Scorer, np.ndarray]:
    """``many`` with its exact scores, which take long."""
    scorer = scorer_of(*many())
    return scorer, exact_matrix(scorer)


@pytest.mark.parametrize("share", rest_slow([0.002, 0.3]))
def test_more_rows_than_columns(share):
    images, captions = many()
    scorer = scorer_of(captions, images)
    relevance = random_relevance(np.random.default_rng(2), *scorer.shape, share)
    check(scored_many()[1].T, relevance, rank_both(scorer, relevance, tile=50, threads=3))


def test_torch_ranks_score_matrices_with_ties_alike():
    pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 40, (150, 300)).astype(np.float32)
    relevance = random_relevance(rng, 150, 300, 0.02)
    check(scores, relevance, rank_both(ScoreMatrix(scores), relevance, backend="torch", tile=64))


@given(
    n=st.integers(1, 12), m=st.integers(1, 30), distinct=st.integers(1, 8), share=st.floats(0, 1),
    depth=st.integers(1, 12), tile=st.integers(1, 16), seed=st.integers(0, 2**32),
    score=st.sampled_from(["max", "smooth-chamfer", "match", "matrix"]),
)  # fmt: skip
def test_torch_ranks_all_kinds_of_scores_alike(n, m, distinct, share, depth, tile, seed, score):
    """Sets of vectors, distributions and float64 matrices, with near-ties and exact ones."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    scorer = _any_scorer(rng, n, m, distinct, score)
    relevance = random_relevance(rng, n, m, share)
    numpy, torch = (rank_both(scorer, relevance, depth=depth, tile=tile, backend=name) for name in ("numpy", "torch"))
    for direction in ("i2t", "t2i"):
        for part in ("above", "tied", "tied_before", "top_items", "top_scores"):
            expected, computed = getattr(numpy[direction], part), getattr(torch[direction], part)
            np.testing.assert_array_equal(computed, expected)
            assert computed.dtype == expected.dtype


def _any_scorer(rng: np.random.Generator, n: int, m: int, distinct: int, score: str) -> Scorer:
    rows, columns = rng.integers(0, distinct, n), rng.integers(0, distinct, m)
    if score == "matrix":
        return ScoreMatrix(1 + 1e-9 * rng.standard_normal((distinct, distinct))[rows][:, columns])
    points = rng.standard_normal((2, distinct, 3, 8))
    if score != "match":
        return scorer_of(Embeddings.of(points[0][rows]), Embeddings.of(points[1][columns]), score)
    means, variance = points[:, :, 0], np.exp(points[:, :, 1])
    images, captions = (
        Embeddings(tuple(map(str, range(len(which)))), means[side][which], variance[side][which])
        for side, which in ((0, rows), (1, columns))
    )
    return scorer_of(images, captions, "match")


def test_exact_scores_are_the_float32_nearest_to_the_true_product():
    images, captions = many()
    scorer = scorer_of(images, captions, "dot")
    true = images.vectors.astype(np.float64) @ captions.vectors.astype(np.float64).T
    np.testing.assert_allclose(exact_matrix(scorer), true, rtol=6.1e-8)
    tile = scorer.tile(slice(0, 130), slice(0, 410))
    assert (np.abs(tile - exact_matrix(scorer)) <= scorer.row_slack[:, None]).all()
    assert (np.abs(tile - exact_matrix(scorer)) <= scorer.column_slack[None, :]).all()


def test_permuting_the_gallery_permutes_the_lists():
    images, captions = many()
    order = np.random.default_rng(4).permutation(len(captions.ids))
    relevance = random_relevance(np.random.default_rng(5), 130, 410, 0.01)
    items = np.argsort(order)[relevance.items]
    item_ids = tuple(relevance.item_ids[k] for k in order)
    shuffled = Relevance.from_indices(relevance.query_ids, item_ids, relevance.rows, items)
    plain = rank_both(scorer_of(images, captions), relevance)["i2t"]
    permuted = rank_both(scorer_of(images, Embeddings.of(captions.vectors[order])), shuffled)["i2t"]
    where = {(r, plain.item_ids[i]): k for k, (r, i) in enumerate(zip(plain.rows, plain.relevant, strict=True))}
    match = [where[r, permuted.item_ids[i]] for r, i in zip(permuted.rows, permuted.relevant, strict=True)]
    np.testing.assert_array_equal(permuted.above, plain.above[match])
    np.testing.assert_array_equal(permuted.tied, plain.tied[match])


@pytest.mark.parametrize("change", [
    lambda s: 1 + 1e-9 * s, lambda s: 1e9 + s, lambda s: np.round(s * 1000).astype(np.int64) + 2**40,
], ids=["fine", "far", "whole"])  # fmt: skip
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_score_matrices_are_ranked_in_their_own_precision(change, backend):
    """float32 could not tell any two of these apart."""
    if backend == "torch":
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    scores = change(rng.standard_normal((30, 150)))
    relevance = random_relevance(rng, 30, 150, 0.02)
    rankings = rank_both(ScoreMatrix(scores), relevance, depth=5, tile=40, backend=backend)
    for name, matrix, judged in (("i2t", scores, relevance), ("t2i", scores.T, relevance.flip())):
        ranking = rankings[name]
        counts = list(zip(ranking.above.tolist(), ranking.tied.tolist(), ranking.tied_before.tolist(), strict=True))
        assert counts == reference.counts(matrix, judged)
        assert ranking.top_items.tolist() == reference.top(matrix, 5)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_cosines_do_not_depend_on_the_size_of_vectors(size):
    images, captions = many()
    whole = exact_matrix(scorer_of(images, captions))
    scaled = Embeddings.of(images.vectors.astype(np.float64) * size)
    np.testing.assert_allclose(exact_matrix(scorer_of(scaled, captions)), whole, atol=1e-7)


def test_negative_scores_rank_like_any_other():
    scores = np.array([[-0.9, -0.1, -0.5]], np.float32)
    relevance = Relevance.from_indices(("q",), ("a", "b", "c"), np.array([0]), np.array([2]))
    ranking = rank_both(ScoreMatrix(scores), relevance, depth=3)["i2t"]
    assert ranking.above.tolist() == [1]
    assert ranking.top("q") == [("b", pytest.approx(-0.1)), ("c", pytest.approx(-0.5)), ("a", pytest.approx(-0.9))]


def test_judged_irrelevant_pairs_are_not_relevant():
    scores = np.array([[3.0, 2.0, 1.0]], np.float32)
    relevance = Relevance.from_indices(("q",), ("a", "b", "c"), np.array([0, 0]), np.array([0, 1]), [0.0, 2.0])
    ranking = rank_both(ScoreMatrix(scores), relevance)["i2t"]
    assert ranking.relevant.tolist() == [1]
    assert ranking.grades.tolist() == [2.0]
    assert ranking.above.tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth is 0\n  fix: use depth=1 or more"),
        ({"tile": 0}, "tile is 0"),
        ({"threads": -1}, "threads is -1"),
        ({"backend": "jax"}, "unknown backend 'jax'"),
        ({"device": "cuda"}, "the numpy backend cannot use the device 'cuda'\n  fix: use backend='torch'"),
    ],
)
def test_wrong_arguments(options, message):
    relevance = Relevance.from_indices(("q",), ("a",), np.array([0]), np.array([0]))
    with pytest.raises(CrosslensError) as raised:
        rank_both(ScoreMatrix(np.ones((1, 1), np.float32)), relevance, **options)
    assert str(raised.value).startswith(message)


def test_scores_of_another_shape_are_refused() -> None:
    relevance = Relevance.from_indices(("i0", "i1"), ("c0", "c1", "c2"), np.array([0, 1, 1]), np.arange(3))
    with pytest.raises(CrosslensError, match="scores of shape 3 × 2 for relevance of 2 × 3"):
        rank_both(ScoreMatrix(np.zeros((3, 2), np.float32)), relevance, depth=2)
