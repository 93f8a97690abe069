"""Rankings, neighbours and similarities from tasks: the same as in one go, however they are cut, and after any loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import nearest_items
from crosslens.engine.ray_engine import pack, unpack
from crosslens.rank import InnerProduct, ScoreMatrix, Scorer, merged, parts, rank_both, rank_queries, scorer_of
from crosslens.rank.direction_state import Direction
from crosslens.rank.merged import Lists
from crosslens.similarity import matrix, prepare_dataset, relevance_matrix
from crosslens.values import Embeddings, Ranking, Relevance
from tests.engine.stand_in import Recorded, StandInEngine
from tests.tables import rest_slow

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_FEWEST_QUERIES", 1)
        patch.setattr(parts, "TILE", 5)
        yield


def ids(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(count))


def slow_ranking(scores: Array, relevance: Relevance, depth: int) -> dict[str, Array]:
    """Lists and counts of the rows, by sorting whole rows."""
    order = np.array([sorted(range(scores.shape[1]), key=lambda item: (-row[item], item))[:depth] for row in scores])
    counts = []
    for row, item in zip(relevance.rows, relevance.items, strict=True):
        row_scores, equal = scores[row], scores[row] == scores[row, item]
        counts.append((int((row_scores > row_scores[item]).sum()), int(equal.sum()) - 1, int(equal[:item].sum())))
    above, tied, before = np.array(counts).T
    return {"top_items": order, "above": above, "tied": tied, "tied_before": before}


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Array, Relevance]:
    """Scores with many ties, some of which only float64 can tell apart, and any number of relevant items."""
    rows, columns = draw(st.integers(1, 30)), draw(st.integers(1, 60))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    scores = random.integers(0, draw(st.sampled_from([2, 9, 1_000])), (rows, columns)) / 8
    if draw(st.booleans()):
        scores = scores + random.integers(0, 3, scores.shape) * 1e-12
    pairs = np.unique(random.integers(0, rows * columns, draw(st.integers(1, 80))))
    judged = Relevance.from_indices(ids("i", rows), ids("c", columns), pairs // columns, pairs % columns)
    return scores.astype(draw(st.sampled_from([np.float32, np.float64]))), judged


def assert_equal(first: dict[str, Ranking], second: dict[str, Ranking]) -> None:
    assert list(first) == list(second)
    for direction in first:
        assert first[direction].top_scores.dtype == second[direction].top_scores.dtype
        assert first[direction].fingerprint == second[direction].fingerprint


@given(matrices(), st.integers(1, 70), st.integers(1, 4))
def test_rankings_in_parts(case: tuple[Array, Relevance], depth: int, slots: int) -> None:
    scores, relevance = case
    with cl.use_engine(StandInEngine(slots)):
        ranked = rank_both(ScoreMatrix(scores), relevance, depth=depth)
    assert_equal(rank_both(ScoreMatrix(scores), relevance, depth=depth), ranked)
    for direction, expected in (
        ("i2t", slow_ranking(scores, relevance, depth)),
        ("t2i", slow_ranking(scores.T, relevance.flip(), depth)),
    ):
        for name, values in expected.items():
            np.testing.assert_array_equal(getattr(ranked[direction], name), values)


@given(matrices(), st.integers(1, 70), st.integers(1, 4), st.booleans())
def test_some_queries_in_parts(case: tuple[Array, Relevance], depth: int, slots: int, as_rows: bool) -> None:
    """Queries of one direction, as a sample of them is ranked."""
    scores, relevance = case
    judged = relevance if as_rows else relevance.flip()
    engine, progress = StandInEngine(slots), Recorded()
    with cl.use_engine(engine):
        ranked = rank_queries(ScoreMatrix(scores), judged, "i2t", as_rows=as_rows, depth=depth, progress=progress)
    local = rank_queries(ScoreMatrix(scores), judged, "i2t", as_rows=as_rows, depth=depth)
    assert ranked.fingerprint == local.fingerprint
    for name, values in slow_ranking(scores if as_rows else scores.T, judged, depth).items():
        np.testing.assert_array_equal(getattr(ranked, name), values)
        assert getattr(ranked, name).dtype == getattr(local, name).dtype
    assert engine.attempts["rank_part"]
    assert progress.steps["ranking i2t"] == len(judged.query_ids)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 4), st.integers(1, 12), st.integers(1, 12))
def test_vectors_that_occur_several_times(seed: int, depth: int, slots: int, left: int, right: int) -> None:
    """Few distinct vectors among many: one, in the extreme."""
    random = np.random.default_rng(seed)
    pool = random.integers(-2, 3, (max(left, right), 4)).astype(np.float32)
    rows, columns = pool[random.integers(0, left, 20)], pool[random.integers(0, right, 60)]
    scorer, relevance = InnerProduct(rows, columns), diagonal(20, 60)
    engine = StandInEngine(slots)
    with cl.use_engine(engine):
        ranked = rank_both(scorer, relevance, depth=depth)
    assert_equal(rank_both(scorer, relevance, depth=depth), ranked)
    scores = rows @ columns.T
    for direction, judged in (("i2t", relevance), ("t2i", relevance.flip())):
        whole = scores if direction == "i2t" else scores.T
        for name, values in slow_ranking(whole, judged, depth).items():
            np.testing.assert_array_equal(getattr(ranked[direction], name), values)


def scorers() -> dict[str, Scorer]:
    random = np.random.default_rng(3)
    single, several = random.standard_normal((40, 8)), random.standard_normal((40, 3, 8))
    captions = np.repeat(single, 3, 0) + random.standard_normal((120, 8))
    images, texts = ids("i", 40), ids("c", 120)
    return {
        name: scorer_of(Embeddings(images, left), Embeddings(texts, captions), name)
        for name, left in (("cosine", single), ("dot", single), ("max", several), ("smooth-chamfer", several))
    }


@pytest.mark.parametrize("score", rest_slow(["cosine", "smooth-chamfer", "dot", "max"], fast=2))
def test_every_kind_of_score(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")  # some hold functions, for which Ray has its own
    monkeypatch.setattr("tests.engine.stand_in.pack", lambda value: pack(value, cloudpickle.Pickler))
    scorer = scorers()[score]
    relevance = Relevance.from_indices(ids("i", 40), ids("c", 120), np.arange(120) // 3, np.arange(120))
    with cl.use_engine(StandInEngine()):
        ranked = rank_both(scorer, relevance, depth=7)
    assert_equal(rank_both(scorer, relevance, depth=7), ranked)


@given(st.integers(1, 6), st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 10_000), st.booleans())
def test_lists_merge_as_one_sorted_list(depth: int, pieces: list[int], seed: int, precise: bool) -> None:
    """Pieces of a gallery, in any order, each with its own lists, against whole rows sorted in Python."""
    gallery, precision = sum(pieces), np.float64 if precise else np.float32
    depth = min(depth, gallery)
    scores = np.random.default_rng(seed).integers(0, 4, (3, gallery)).astype(precision)
    lists = Lists(np.full((3, depth), -1), np.full((3, depth), np.nan, precision), np.zeros((3, 0), np.int64))
    starts = np.cumsum([0, *pieces])
    for number in np.random.default_rng(seed).permutation(len(pieces)):
        start = int(starts[number])
        piece = scores[:, start : start + pieces[number]]
        order = np.argsort(-piece, axis=1, kind="stable")[:, :depth]
        part = Lists(order.astype(np.int32), np.take_along_axis(piece, order, 1), np.zeros((3, 0), np.int64))
        lists.merge(slice(0, 3), slice(0, 0), part, start)
    for row, values in enumerate(scores):
        expected = sorted(range(gallery), key=lambda item: (-values[item], item))[:depth]
        assert lists.items[row].tolist() == expected
        assert lists.scores[row].tolist() == [values[item] for item in expected]


def test_results_of_a_part_are_small() -> None:
    """A list of the other axis takes 8 bytes per entry, and a relevant pair 3 counts of as many as they need."""
    scorer, judged = ScoreMatrix(np.random.default_rng(0).random((200, 300), np.float32)), diagonal(200, 300)
    rows, columns = (Direction.of(side, scorer, 10, as_rows=side is judged) for side in (judged, judged.flip()))
    work = parts.PartWork(scorer, (rows.nameless(), columns.nameless()), 1, 5)
    others = parts.rank_part(work, slice(100, 250))[0]
    assert others.items.shape == (200, 10)
    assert others.items.max() < 150, "positions within the block"
    assert others.nbytes == 200 * (10 * 8 + 3)


def test_the_bar_moves_to_its_end() -> None:
    progress = Recorded()
    with cl.use_engine(StandInEngine()):
        rank_both(ScoreMatrix(np.eye(20, 90)), diagonal(20, 90), progress=progress)
    assert progress.stages == [("ranking", 90)]
    assert progress.steps["ranking"] == 90


def diagonal(rows: int, columns: int) -> Relevance:
    return Relevance.from_indices(ids("i", rows), ids("c", columns), np.arange(rows), np.arange(rows))


def test_an_interrupted_ranking_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)
    scores, relevance = np.random.default_rng(0).integers(0, 9, (30, 100)) / 4, diagonal(30, 100)
    broken = StandInEngine(slots=5, stops_after=11)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(broken):
        rank_both(ScoreMatrix(scores), relevance, checkpoint=tmp_path / "checkpoint")
    resumed = StandInEngine(slots=2, dies=0.0)  # another cluster cuts other parts
    with cl.use_engine(resumed):
        ranked = rank_both(ScoreMatrix(scores), relevance, checkpoint=tmp_path / "checkpoint")
    assert_equal(rank_both(ScoreMatrix(scores), relevance), ranked)
    assert broken.results == 11
    assert resumed.results < 11, "what was done is not done again"


def test_a_checkpoint_of_other_scores_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)
    relevance = diagonal(30, 100)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(StandInEngine(stops_after=5)):
        rank_both(ScoreMatrix(np.eye(30, 100)), relevance, checkpoint=tmp_path / "checkpoint")
    others = np.random.default_rng(0).random((30, 100))
    with cl.use_engine(StandInEngine()):
        ranked = rank_both(ScoreMatrix(others), relevance, checkpoint=tmp_path / "checkpoint")
    assert_equal(rank_both(ScoreMatrix(others), relevance), ranked)


# Neighbours


@given(st.integers(2, 60), st.integers(1, 5), st.integers(0, 1_000), st.booleans())
def test_neighbours_in_parts(count: int, slots: int, seed: int, several: bool) -> None:
    random = np.random.default_rng(seed)
    queries = random.integers(-2, 3, (count, 4)).astype(np.float32)
    items = random.integers(-2, 3, (count, 2, 4)).astype(np.float32) if several else queries
    k, progress = int(random.integers(1, count)), Recorded()
    with cl.use_engine(StandInEngine(slots)):
        near = nearest_items(queries, items, k, without=np.arange(count), progress=progress)
    expected = nearest_items(queries, items, k, without=np.arange(count))
    np.testing.assert_array_equal(near.items, expected.items)
    np.testing.assert_array_equal(near.cosines, expected.cosines)
    assert progress.steps["nearest items"] == progress.stages[0][1]


# Similarities


DATASET = cl.Dataset.of(
    {f"i{number}": [f"a dog number {number} runs", f"a brown animal {number % 3} on grass"] for number in range(25)}
)


@pytest.mark.parametrize("phi", ["cider", "bleu", "rouge-l"])
def test_similarities_in_blocks(phi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = relevance_matrix(DATASET, phi, cache=False)
    monkeypatch.setattr(matrix, "_BLOCK_BYTES", 4 * 50 * 2)
    engine, progress = StandInEngine(), Recorded()
    with cl.use_engine(engine):
        computed = relevance_matrix(DATASET, phi, cache=False, progress=progress)
    np.testing.assert_array_equal(computed, expected)
    assert engine.results == 13
    assert progress.steps["similarity"] == 25


def test_a_small_similarity_uses_all_cores() -> None:
    engine = StandInEngine(slots=2)
    with cl.use_engine(engine):
        relevance_matrix(DATASET, "cider", cache=False)
    assert engine.results == 7, "blocks of 4 of the 25 rows"


def test_the_index_of_cider_travels() -> None:
    prepared = prepare_dataset(DATASET, "cider")
    sent = pack(prepared)
    arrived = unpack(sent)
    assert "_postings" in vars(arrived), "made once, and shared"
    np.testing.assert_array_equal(arrived.block(slice(3, 9)), prepared.block(slice(3, 9)))


def test_an_interrupted_matrix_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "_BLOCK_BYTES", 4 * 50 * 2)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(StandInEngine(stops_after=4)):
        relevance_matrix(DATASET, "cider", output=tmp_path / "phi.npy")
    resumed = StandInEngine()
    with cl.use_engine(resumed):
        relevance_matrix(DATASET, "cider", output=tmp_path / "phi.npy")
    assert resumed.results == 9
    relevance_matrix(DATASET, "cider", output=tmp_path / "local.npy")
    assert (tmp_path / "phi.npy").read_bytes() == (tmp_path / "local.npy").read_bytes()
