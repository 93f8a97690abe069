"""Rankings with torch in tasks: those of one go, bit for bit, however they are cut, after losses and interruptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import crosslens as cl
from crosslens.engine import LocalEngine
from crosslens.engine.ray_engine import pack
from crosslens.rank import InnerProduct, ScoreMatrix, merged, parts, rank_both, scorer_of, unit_rows
from crosslens.values import Ranking, Relevance
from tests.engine.stand_in import Recorded, StandInEngine
from tests.rank.test_exactness import check, exact_matrix, many, random_relevance
from tests.tables import rest_slow

torch = pytest.importorskip("torch")

from crosslens.rank import task_blocks  # noqa: E402
from crosslens.rank.gpu import blocks, task_ranking  # noqa: E402
from crosslens.rank.gpu.task_ranking import TaskDevice, device_of_tasks  # noqa: E402
from crosslens.rank.merged import Blocks  # noqa: E402
from tests.rank.test_gpu import KINDS, vectors_of  # noqa: E402

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True, scope="module")
def small_tasks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(blocks.LEAST_WORK, "cpu", 1)
        patch.setattr(task_ranking, "_PAIR_BYTES", 1 << 13)
        yield


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every result."""
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)


def assert_equal(first: dict[str, Ranking], second: dict[str, Ranking]) -> None:
    assert list(first) == list(second)
    for direction in first:
        assert first[direction].top_scores.dtype == second[direction].top_scores.dtype
        assert first[direction].fingerprint == second[direction].fingerprint


def ranked_in_tasks(scorer: Any, relevance: Any, engine: StandInEngine, **options: Any) -> dict[str, Ranking]:
    with cl.use_engine(engine):
        return rank_both(scorer, relevance, backend="torch", **options)


# The same ranking


@settings(max_examples=settings.default.max_examples // 2)
@given(
    n=st.integers(1, 14), m=st.integers(1, 40), levels=st.integers(1, 4), share=st.floats(0.01, 1),
    depth=st.integers(1, 12), tile=st.none() | st.integers(1, 16), seed=st.integers(0, 2**32), slots=st.integers(1, 5),
)  # fmt: skip
def test_ties_copies_and_any_number_of_relevant_items(n, m, levels, share, depth, tile, seed, slots):
    """Small whole numbers: relevant items in other tasks, lists longer than a block, queries without any."""
    rng = np.random.default_rng(seed)
    images, captions = (np.float32(rng.integers(-levels, levels + 1, (count, 3))) for count in (n, m))
    relevance, scorer = random_relevance(rng, n, m, share), InnerProduct(images, captions)
    if not relevance.grades.any():
        return
    engine = StandInEngine(slots, seed=seed)
    ranked = ranked_in_tasks(scorer, relevance, engine, depth=depth, tile=tile)
    check(exact_matrix(scorer), relevance, ranked)
    assert_equal(rank_both(scorer, relevance, depth=depth), ranked)
    assert_equal(rank_both(scorer, relevance, depth=depth, backend="torch", device="cpu"), ranked)
    assert engine.attempts["rank_product_part"]


@pytest.mark.parametrize("kind", rest_slow(KINDS))
def test_all_kinds_of_vectors(kind):
    images, captions, relevance = vectors_of(kind, 40, 130, 24, seed=3)
    scorer, engine = InnerProduct(images, captions), StandInEngine()
    ranked = ranked_in_tasks(scorer, relevance, engine, depth=5)
    check(exact_matrix(scorer), relevance, ranked)
    assert engine.results > 12, "twelve parts, and relevant pairs"


def test_directions_with_relevant_items_of_their_own():
    rng = np.random.default_rng(5)
    images, captions = (np.float32(rng.integers(-2, 3, (count, 4))) for count in (20, 30))
    both = {"i2t": random_relevance(rng, 20, 30, 0.1), "t2i": random_relevance(rng, 20, 30, 0.2).flip()}
    scorer = InnerProduct(images, captions)
    assert_equal(rank_both(scorer, both), ranked_in_tasks(scorer, both, StandInEngine()))


def test_a_worker_whose_device_holds_less_cuts_its_part(monkeypatch):
    scorer = scorer_of(*many(n=60, m=200))
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    expected = rank_both(scorer, relevance)
    monkeypatch.setenv("CROSSLENS_MAX_DEVICE_BYTES", "900000")
    cut, plan = [], task_ranking.BlockRanking.__init__

    def noted(ranking, *given):
        plan(ranking, *given)
        cut.append(ranking.merged.done.size)

    monkeypatch.setattr(task_ranking.BlockRanking, "__init__", noted)
    assert_equal(expected, ranked_in_tasks(scorer, relevance, StandInEngine(slots=1)))
    assert min(cut) > 1


def test_a_device_that_runs_out_of_memory_is_named_with_its_node(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr("crosslens.rank.gpu.block_ranking.rank_pair", full)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    with pytest.raises(cl.CrosslensError, match=r"on the node .+: the device cpu has run out of memory"):
        ranked_in_tasks(scorer, relevance, StandInEngine(dies=0.0))


def test_other_scores_are_ranked_in_tasks_on_cores(monkeypatch):
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 1)
    monkeypatch.setattr(parts, "TILE", 5)
    scores = np.random.default_rng(0).integers(0, 9, (30, 80)) / 4
    relevance, engine = random_relevance(np.random.default_rng(1), 30, 80, 0.1), StandInEngine()
    ranked = ranked_in_tasks(ScoreMatrix(scores), relevance, engine)
    assert_equal(rank_both(ScoreMatrix(scores), relevance, backend="torch", device="cpu"), ranked)
    assert engine.attempts["rank_part"]


def test_the_bar_moves_to_its_end():
    progress, scorer = Recorded(), scorer_of(*many(n=65, m=205))
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    ranked_in_tasks(scorer, relevance, StandInEngine(slots=2), progress=progress)
    assert progress.stages == [("ranking", 8)]
    assert progress.steps["ranking"] == 8


@pytest.mark.parametrize("stored", rest_slow([True, False]))
def test_vectors_in_files_travel_by_name_and_ids_not_at_all(tmp_path, stored):
    rng = np.random.default_rng(0)
    images, captions = (unit_rows(rng.standard_normal((count, 64))) for count in (300, 900))
    relevance = Relevance.from_indices(
        tuple(f"{'image' * 99}{row}" for row in range(300)), tuple(f"{'text' * 99}{row}" for row in range(900)),
        np.arange(900) // 3, np.arange(900),
    )  # fmt: skip
    if stored:
        for name, array in (("i", images), ("c", captions)):
            np.save(tmp_path / f"{name}.npy", array)
        images, captions = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "ic")
    engine, scorer = StandInEngine(), InnerProduct(images, captions, unit=True)
    ranked_in_tasks(scorer, relevance, engine)
    size = 4 * 64 * 1200
    calls = 2  # the relevant pairs of both directions are the same; then the parts
    assert engine.travelled < 9_000 if stored else calls * size < engine.travelled < calls * size + 9_000
    part = next(_parts(scorer, relevance))
    assert pack(part).size < 20 * 1200 * 2 + 2_000


def _parts(scorer: InnerProduct, relevance: Relevance) -> Iterator[Any]:
    from crosslens.rank.gpu.blocks import ProductPart, Products

    products = Products((scorer.rows, scorer.columns), (relevance, relevance.flip()), 10)
    targets = np.zeros(900, np.float32), np.zeros(900, np.float32)
    yield ProductPart.of(products, targets, (slice(0, 300), slice(0, 900)))


# Interruptions


def test_an_interrupted_ranking_resumes(tmp_path, checkpoints):
    scorer = scorer_of(*many(n=65, m=205))
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    whole = StandInEngine(slots=5, dies=0.0)
    ranked_in_tasks(scorer, relevance, whole)
    assert whole.attempts["rank_product_part"] == 20
    broken = StandInEngine(slots=5, stops_after=whole.attempts["score_pairs"] + 11)
    with pytest.raises(KeyboardInterrupt):
        ranked_in_tasks(scorer, relevance, broken, checkpoint=tmp_path / "c")
    resumed, progress = StandInEngine(slots=2, dies=0.0), Recorded()  # another cluster goes on with the same blocks
    ranked = ranked_in_tasks(scorer, relevance, resumed, checkpoint=tmp_path / "c", progress=progress)
    assert_equal(rank_both(scorer, relevance), ranked)
    assert resumed.attempts["rank_product_part"] == 9, "what was done is not done again"
    assert progress.steps["ranking"] == 20


@pytest.mark.parametrize("first", rest_slow(["here", "tasks"]))
def test_tasks_go_on_with_what_this_machine_began_and_the_other_way_round(tmp_path, checkpoints, monkeypatch, first):
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    expected = rank_both(scorer, relevance)
    engines: dict[str, Any] = {"tasks": StandInEngine(dies=0.0), "here": LocalEngine()}
    monkeypatch.setattr("crosslens.rank.gpu.block_ranking.plan_blocks", lambda shape, *_: Blocks(shape, (50, 100), 1))
    add = merged.Merged.add
    (second,) = engines.keys() - {first}
    rank = partial(rank_both, scorer, relevance, backend="torch", device="cpu", checkpoint=tmp_path / "c")
    pairs, most = [], 5

    def noted(state, pair, result):
        add(state, pair, result)
        if state.blocks.shape == scorer.shape:  # not within a task
            pairs.append(pair)
        if len(pairs) == most:
            raise KeyboardInterrupt

    monkeypatch.setattr(merged.Merged, "add", noted)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(engines[first]):
        rank()
    most, progress = 10**9, Recorded()
    with cl.use_engine(engines[second]):
        assert_equal(expected, rank(progress=progress))
    assert len(pairs) == len(set(pairs)) == progress.stages[-1][1] // (100 if second == "here" else 1)


# Where tasks run


class Cluster(StandInEngine):
    """So many GPUs, on nodes of this machine or on others."""

    def __init__(self, gpus: int, others: bool) -> None:
        super().__init__()
        self._gpus, self._others = gpus, others

    def slots(self, *, gpu: bool = False) -> int:
        return self._gpus if gpu else 16

    def exceeds(self, in_process: int, *, gpu: bool = False) -> bool:
        return self._others or (self._gpus > in_process if gpu else in_process < 16)


HUGE, SMALL = 10**17, 10**13


@pytest.mark.parametrize(("visible", "cluster", "name", "work", "expected"), [
    (0, (8, True), None, HUGE, TaskDevice(None, True)),
    (0, (8, True), "cuda", HUGE, TaskDevice("cuda", True)),
    (0, (8, True), "cpu", HUGE, TaskDevice("cpu", False)),
    (0, (0, True), None, HUGE, TaskDevice("cpu", False)),
    (0, (0, True), "cuda", HUGE, TaskDevice("cuda", True)),  # nodes with GPUs may come
    (0, (8, True), None, SMALL, TaskDevice(None, True)),
    (2, (8, True), None, HUGE, TaskDevice(None, True)),
    (2, (8, True), None, SMALL, None),  # the GPUs here have done it before those there have started
    (2, (2, False), None, HUGE, None),
    (2, (2, False), "cuda", HUGE, None),
    (2, (8, True), "cuda:1", HUGE, None),
    (2, (8, True), "cuda:0,cuda:1", HUGE, None),
])  # fmt: skip
def test_where_a_ranking_runs(monkeypatch, visible, cluster, name, work, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: visible)
    assert device_of_tasks(Cluster(*cluster), name, work) == expected
    assert device_of_tasks(LocalEngine(), name, work) is None


@given(
    n=st.integers(1, 10**9), m=st.integers(1, 10**9), dimension=st.integers(1, 2048), devices=st.integers(1, 1_000),
    kind=st.sampled_from(["cuda", "cpu"]),
)  # fmt: skip
def test_tasks_cover_everything_and_are_as_many_for_each_device(n, m, dimension, devices, kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(blocks.LEAST_WORK, "cpu", 1 << 33)
        planned = task_blocks((n, m), dimension, devices, kind)
    assert all(1 <= size <= length for size, length in zip(planned.size, (n, m), strict=True))
    counts = [-(-length // size) for length, size in zip((n, m), planned.size, strict=True)]
    work, number = n * m * dimension, counts[0] * counts[1]
    most = blocks._MOST_TASK_WORK[kind]
    assert planned.size[0] * planned.size[1] * dimension <= max(most, 4 * dimension) * 1.1 or max(planned.size) < 2_000
    if work < blocks.LEAST_WORK["cuda"]:
        assert kind == "cpu" or number == 1
    if work > 8 * devices * blocks.LEAST_WORK["cuda"]:
        assert number >= devices or min(n, m) < 2 * devices


def test_blocks_of_tasks_are_as_square_as_can_be():
    assert task_blocks((10**6, 10**6), 512, 1, "cuda").size == (500_000, 500_000)
    million = task_blocks((2 * 10**6, 8 * 10**6), 512, 16, "cuda")  # 64 tasks, 4 × 16
    assert million.size == (500_000, 500_000)
    few = task_blocks((10_000, 10**9), 512, 16, "cuda")
    assert few.size[0] == 10_000
