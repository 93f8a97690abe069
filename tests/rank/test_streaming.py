"""Vectors beyond the memory limit are read in blocks, and ranked exactly as those in memory are."""

from __future__ import annotations

import math
import operator
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import nearest_items
from crosslens.core import InputError
from crosslens.data import read_vectors
from crosslens.pipeline import evaluate
from crosslens.rank import FloatBlocks, InnerProduct, rank_both, score_functions, scorer_of
from crosslens.storage import ArrayBlocks, ShardedBlocks
from crosslens.values import Dataset, Embeddings
from tests.rank.test_exactness import check, exact_matrix, random_relevance

LIMIT = "CROSSLENS_MAX_VECTOR_BYTES"


def sharded(array: np.ndarray, prefix: str, parts: int) -> Embeddings:
    ids = [f"{prefix}{row}" for row in range(len(array))]
    return Embeddings(ids, ShardedBlocks.of(np.array_split(array, parts)))


@given(
    n=st.integers(1, 12), m=st.integers(1, 40), d=st.integers(1, 9), copies=st.integers(1, 10),
    room=st.integers(1, 400),
    tile=st.integers(1, 16), parts=st.integers(1, 4), seed=st.integers(0, 2**32),
    score=st.sampled_from(["cosine", "dot", "max", "smooth-chamfer"]), kind=st.sampled_from(["f2", "f4", "f8"]),
)  # fmt: skip
def test_streamed_ranks_are_those_of_the_widened_numbers(n, m, d, copies, room, tile, parts, seed, score, kind):
    rng = np.random.default_rng(seed)
    # Copies and small whole numbers: many scores are equal, or nearly.
    images, captions = (rng.integers(1, 4, (size, d)).repeat(copies, 0)[:size].astype(kind) for size in (n, m))
    relevance = random_relevance(rng, n, m, 0.2)
    wide = [Embeddings([f"{side}{row}" for row in range(len(array))], array.astype(np.float64))
            for side, array in (("i", images), ("c", captions))]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LIMIT, str(10**9))
        reference = exact_matrix(scorer_of(*wide, score))
        patch.setenv(LIMIT, str(room))
        scorer = scorer_of(sharded(images, "i", parts), sharded(captions, "c", parts), score)
        streamed = [type(side) for side in (scorer.rows, scorer.columns)].count(FloatBlocks)
        assert streamed == 2 - (4 * d * min(n, m) <= room) - (4 * d * (n + m) <= room)
        check(reference, relevance, rank_both(scorer, relevance, depth=5, tile=tile, threads=2))


def plain_scores(images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """Cosines by their definition, in Python's own numbers, rounded to float32 where crosslens does."""

    def unit(row: np.ndarray) -> list[float]:
        length = math.sqrt(math.fsum(float(value) ** 2 for value in row))
        return [float(np.float32(float(value) / length)) for value in row]

    left, right = ([unit(row) for row in side] for side in (images, captions))
    return np.array([[np.float32(math.fsum(map(operator.mul, a, b))) for b in right] for a in left])


@given(
    n=st.integers(1, 9), each=st.integers(1, 5), d=st.integers(1, 12), parts=st.integers(1, 4),
    room=st.integers(1, 600), scale=st.sampled_from([2.0**-20, 1.0, 2.0**12]), queries=st.none() | st.integers(1, 9),
    seed=st.integers(0, 2**32),
)  # fmt: skip
def test_float16_in_files_is_ranked_as_its_numbers_are(n, each, d, parts, room, scale, queries, seed):
    """Ranks of relevant items and top lists, from shards, against a count over scores in Python's own numbers."""
    rng = np.random.default_rng(seed)
    images = (scale * rng.standard_normal((n, d))).astype(np.float16)
    captions = (scale * rng.standard_normal((n * each, d))).astype(np.float16)
    for side in (images, captions):
        side[~side.any(axis=1)] = 1  # a vector of zeros has no cosine
    captions[: n * each // 2] = captions[-(n * each // 2) :][: n * each // 2]  # copies: ties
    scores = plain_scores(images, captions)
    dataset = Dataset.of({f"i{row}": [f"text {row} {k}" for k in range(each)] for row in range(n)})
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(LIMIT, str(room))
        vectors = {}
        for name, side, values in (("images", "image", images), ("captions", "caption", captions)):
            (Path(folder) / name).mkdir()
            for number, part in enumerate(np.array_split(values, parts)):
                np.save(Path(folder) / name / f"part_{number}.npy", part)
            vectors[name] = read_vectors(Path(folder) / name, side)
        run = evaluate(dataset, **vectors, queries=queries, metrics="MRR", resamples=0, depth=3, cache=False)
        for direction, of in (("i2t", scores), ("t2i", scores.T)):
            ranking = run.rankings[direction]
            ids = dataset.image_ids if direction == "i2t" else dataset.caption_ids
            for query, name in enumerate(ranking.query_ids):
                row = of[ids.index(name)]
                best = sorted(range(len(row)), key=lambda item: (-row[item], item))
                assert list(ranking.top_items[query]) == best[:3]
                for pair in range(ranking.offsets[query], ranking.offsets[query + 1]):
                    item = ranking.relevant[pair]
                    assert ranking.above[pair] == sum(value > row[item] for value in row)
                    assert ranking.tied[pair] == sum(value == row[item] for value in row) - 1


def test_float16_has_the_ranking_of_the_same_numbers_in_float32_and_float64():
    rng = np.random.default_rng(3)
    images, captions = (rng.standard_normal((size, 64)).astype(np.float16) for size in (300, 900))
    captions[100:200] = captions[:100]
    relevance = random_relevance(rng, 300, 900, 0.01)
    rankings = [
        rank_both(scorer_of(sharded(images.astype(kind), "i", 3), sharded(captions.astype(kind), "c", 7)), relevance)
        for kind in (np.float16, np.float32, np.float64)
    ]
    for name in ("i2t", "t2i"):
        assert len({ranking[name].fingerprint for ranking in rankings}) == 1


def test_the_smaller_side_is_held_in_memory_first(monkeypatch):
    monkeypatch.setenv(LIMIT, "200")
    images, captions = sharded(np.ones((4, 8), np.float16), "i", 2), sharded(np.ones((40, 8), np.float16), "c", 2)
    for scorer in (scorer_of(images, captions), scorer_of(captions, images)):
        sides = {side.shape[0]: type(side) for side in (scorer.rows, scorer.columns)}
        assert sides == {4: ArrayBlocks, 40: FloatBlocks}
    assert scorer.arrays is None


def test_plain_float32_is_never_copied(monkeypatch):
    monkeypatch.setenv(LIMIT, "1")
    array = np.random.default_rng(0).random((30, 4), np.float32)
    scorer = scorer_of(Embeddings.of(array), Embeddings.of(array), "dot")
    assert isinstance(scorer, InnerProduct)
    assert isinstance(scorer.rows, ArrayBlocks)
    assert np.shares_memory(scorer.rows.array, array)


def test_a_block_is_converted_once_for_all_tiles_that_need_it():
    reads = []

    class Counting(ArrayBlocks):
        def block(self, start: int, stop: int) -> np.ndarray:
            reads.append((start, stop))
            return super().block(start, stop)

    source = FloatBlocks(Counting(np.ones((10, 2), np.float16)), lambda block: block.astype(np.float32))
    for _ in range(3):
        source.block(0, 5)
    source.block(5, 10)
    assert reads == [(0, 5), (5, 10)]


@pytest.mark.parametrize("room", ["1", "1000000"])
def test_a_vector_of_zeros_is_named_with_shard_and_row(monkeypatch, room):
    monkeypatch.setenv(LIMIT, room)
    captions = np.ones((9, 4), np.float16)
    captions[7] = 0
    names = [f"text_emb_{number}.npy" for number in range(3)]
    texts = Embeddings([f"c{row}" for row in range(9)], ShardedBlocks.of(np.array_split(captions, 3), names))
    relevance = random_relevance(np.random.default_rng(0), 2, 9, 0.5)
    with pytest.raises(InputError, match=r"text_emb_2\.npy, row 1: a vector of zeros"):
        rank_both(scorer_of(sharded(np.ones((2, 4), np.float16), "i", 1), texts), relevance, tile=2)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64])
def test_neighbours_of_items_with_several_vectors(kind):
    rng = np.random.default_rng(6)
    queries, items = rng.integers(-9, 9, (30, 5)).astype(kind), rng.integers(-9, 9, (50, 3, 5)).astype(kind)
    whole = nearest_items(queries.astype(np.float64), items.astype(np.float64), 6)
    streamed = nearest_items(sharded(queries, "q", 3), sharded(items, "i", 4), 6, tile=7)
    np.testing.assert_array_equal(streamed.items, whole.items)
    np.testing.assert_array_equal(streamed.cosines, whole.cosines)


def test_a_long_side_is_held_only_beside_another_long_one(monkeypatch):
    monkeypatch.setattr(score_functions, "_SMALL", 100)
    few, some, many = (sharded(np.ones((rows, 4), np.float16), "x", 2) for rows in (2, 10, 80))
    assert isinstance(scorer_of(few, many).columns, FloatBlocks)
    assert isinstance(scorer_of(many, few).rows, FloatBlocks)
    assert isinstance(scorer_of(some, many).columns, ArrayBlocks)


def test_neighbours_of_shards_are_those_of_the_array():
    rng = np.random.default_rng(5)
    array = rng.standard_normal((200, 16)).astype(np.float16)
    array[50:60] = array[:10]
    wide = nearest_items(array.astype(np.float64), array.astype(np.float64), 7)
    streamed = nearest_items(sharded(array, "q", 3), sharded(array, "i", 6), 7, tile=13)
    np.testing.assert_array_equal(streamed.items, wide.items)
    np.testing.assert_array_equal(streamed.cosines, wide.cosines)
