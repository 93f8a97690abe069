"""Rankings in blocks and on several devices are those of the slow reference, whatever the blocks, and resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError
from crosslens.engine import SilentProgress
from crosslens.rank import InnerProduct, merged, rank_both, scorer_of
from crosslens.storage import ShardedBlocks
from crosslens.values import Embeddings, Relevance
from tests.rank.test_checkpoint import Interrupting
from tests.rank.test_exactness import check, exact_matrix, many, random_relevance
from tests.tables import rest_slow

torch = pytest.importorskip("torch")

from crosslens.rank.gpu import block_ranking, blocks  # noqa: E402
from crosslens.rank.gpu.blocks import Products  # noqa: E402
from crosslens.rank.merged import Blocks  # noqa: E402
from tests.rank.test_gpu import KINDS, vectors_of  # noqa: E402

NAMES = ("i2t", "t2i")
CPU = torch.device("cpu")


def rank_in_blocks(
    monkeypatch: Any,
    scorer: InnerProduct,
    relevance: Relevance,
    size: tuple[int, int],
    *,
    depth: int = 10,
    devices: int = 1,
    tile: int | None = None,
    progress: Any = None,
    checkpoint: Any = None,
) -> dict[str, Any]:
    """Rank with blocks of this size, whatever the memory."""
    outer = 0 if scorer.shape[0] > scorer.shape[1] else 1
    monkeypatch.setattr(block_ranking, "plan_blocks", lambda shape, *_: Blocks(shape, size, outer))
    monkeypatch.setitem(blocks.LEAST_WORK, "cuda", 1)
    products, where = products_of(scorer, relevance, depth, tile), [CPU] * devices
    return block_ranking.rank_on_devices(scorer, products, NAMES, where, progress or SilentProgress(), checkpoint)


def products_of(scorer: InnerProduct, relevance: Relevance, depth: int = 10, tile: int | None = None) -> Products:
    both = relevance.relevant(), relevance.flip().relevant()
    return Products((scorer.rows, scorer.columns), both, depth, tile)


@pytest.mark.parametrize("devices", rest_slow([3, 1]))
@pytest.mark.parametrize("kind", rest_slow(KINDS, fast=3))
def test_all_kinds_of_vectors(monkeypatch, kind, devices):
    images, captions, relevance = vectors_of(kind, 40, 130, 24, seed=3)
    scorer = InnerProduct(images, captions)
    for size in ((40, 130), (13, 50)):
        rankings = rank_in_blocks(monkeypatch, scorer, relevance, size, depth=5, devices=devices)
        check(exact_matrix(scorer), relevance, rankings)


@given(
    n=st.integers(1, 12), m=st.integers(1, 40), levels=st.integers(1, 4), share=st.floats(0, 1),
    depth=st.integers(1, 12), tile=st.none() | st.integers(1, 16), seed=st.integers(0, 2**32),
    height=st.integers(1, 12), width=st.integers(1, 40), devices=st.integers(1, 3),
)  # fmt: skip
def test_ties_across_the_borders_of_blocks(n, m, levels, share, depth, tile, seed, height, width, devices):
    """Small whole numbers: relevant items in other blocks, lists longer than a block, queries without any."""
    rng = np.random.default_rng(seed)
    images, captions = (np.float32(rng.integers(-levels, levels + 1, (count, 3))) for count in (n, m))
    relevance, scorer = random_relevance(rng, n, m, share), InnerProduct(images, captions)
    with pytest.MonkeyPatch.context() as patch:
        rankings = rank_in_blocks(patch, scorer, relevance, (height, width), depth=depth, tile=tile, devices=devices)
    check(exact_matrix(scorer), relevance, rankings)


def test_directions_with_relevant_items_of_their_own():
    """The two directions need not be the same pairs seen from both sides."""
    rng = np.random.default_rng(5)
    images, captions = (np.float32(rng.integers(-2, 3, (count, 4))) for count in (20, 30))
    first, second = random_relevance(rng, 20, 30, 0.1), random_relevance(rng, 20, 30, 0.2).flip()
    scorer = InnerProduct(images, captions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_ranking, "plan_blocks", lambda shape, *_: Blocks(shape, (6, 7), 1))
        rankings = rank_both(scorer, {"i2t": first, "t2i": second}, backend="torch", device="cpu")
    for name, expected in rank_both(scorer, {"i2t": first, "t2i": second}).items():
        assert rankings[name].fingerprint == expected.fingerprint


@pytest.mark.parametrize("kind", rest_slow(["f2", "f4"]))
def test_a_limit_on_device_memory_streams_stored_vectors(monkeypatch, kind):
    rng = np.random.default_rng(2)
    images, captions = (rng.standard_normal((count, 16)).astype(kind) for count in (50, 150))
    sharded = [
        Embeddings([f"{name}{row}" for row in range(len(side))], ShardedBlocks.of(np.array_split(side, 4)))
        for name, side in (("i", images), ("c", captions))
    ]
    monkeypatch.setenv("CROSSLENS_MAX_VECTOR_BYTES", "1000")
    scorer = scorer_of(*sharded)
    relevance = random_relevance(rng, 50, 150, 0.02)
    expected = rank_both(scorer, relevance)
    monkeypatch.delenv("CROSSLENS_MAX_VECTOR_BYTES")
    monkeypatch.setenv("CROSSLENS_MAX_DEVICE_BYTES", "400000")
    plans = []
    plan = block_ranking.plan_blocks
    monkeypatch.setattr(block_ranking, "plan_blocks", lambda *asked: plans.append(plan(*asked)) or plans[-1])
    rankings = rank_both(scorer, relevance, backend="torch", device="cpu")
    assert min(plans[0].counts) > 1
    for name in NAMES:
        assert rankings[name].fingerprint == expected[name].fingerprint


@pytest.mark.parametrize("devices", rest_slow([2, 1]))
def test_no_more_blocks_are_held_than_were_planned(monkeypatch, devices):
    held, most, lock = {}, 0, threading.Lock()
    empty = block_ranking.Upload._empty

    def counted(self, vectors, part):
        nonlocal most
        block = empty(self, vectors, part)
        with lock:
            number = len(held)
            held[number] = block.numel() * 4
            most = max(most, sum(held.values()))
        weakref.finalize(block, held.__setitem__, number, 0)
        return block

    monkeypatch.setattr(block_ranking.Upload, "_empty", counted)
    scorer = scorer_of(*many(n=130, m=410, d=48))
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    rank_in_blocks(monkeypatch, scorer, relevance, (30, 100), devices=devices)
    assert most <= devices * 4 * 48 * (100 + 2 * 30)


def test_the_next_block_is_copied_while_one_is_ranked(monkeypatch):
    """Two blocks stay, five pass; the last that passed the first is the first to pass the second."""
    copied, rank, fill = threading.Semaphore(0), block_ranking.rank_pair, block_ranking.Upload._fill
    expected = iter([3, 1, 1, 1, 0, 2, 1, 1, 1, 0])  # copies that begin before or while each pair is ranked

    def counted_fill(*given):
        copied.release()
        return fill(*given)

    def patient_rank(*given):
        for _ in range(next(expected)):
            assert copied.acquire(timeout=10), "nothing is copied ahead"
        return rank(*given)

    monkeypatch.setattr(block_ranking.Upload, "_fill", counted_fill)
    monkeypatch.setattr(block_ranking, "rank_pair", patient_rank)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    rank_in_blocks(monkeypatch, scorer, relevance, (26, 205))
    assert next(expected, None) is None
    assert not copied.acquire(blocking=False), "a block was copied twice"


class Failing:
    """Vectors of which some cannot be read."""

    dtype = np.dtype(np.float32)

    def __init__(self, array: np.ndarray, bad: int) -> None:
        self.array, self.shape, self.bad = array, array.shape, bad

    def block(self, start: int, stop: int) -> np.ndarray:
        if start <= self.bad < stop and stop - start < len(self.array):
            raise CrosslensError(f"cannot read row {self.bad}", fix="encode it again")
        return self.array[start:stop]

    def rows(self, rows: np.ndarray) -> np.ndarray:
        return self.array[rows]

    def location(self, row: int) -> tuple[str | None, int]:
        return None, row


@pytest.mark.parametrize(("bad", "axis"), rest_slow([(399, 0), (99, 1), (0, 0), (0, 1), (99, 0), (399, 1)], fast=2))
def test_an_error_on_one_device_ends_all(monkeypatch, bad, axis):
    rng = np.random.default_rng(0)
    images, captions = (np.float32(rng.standard_normal((400, 8))) for _ in range(2))
    sides = (Failing(images, bad), captions) if axis == 0 else (images, Failing(captions, bad))
    relevance = random_relevance(rng, 400, 400, 0.001)
    before = threading.active_count()
    with pytest.raises(CrosslensError, match=f"cannot read row {bad}"):
        rank_in_blocks(monkeypatch, InnerProduct(*sides), relevance, (60, 60), devices=3)
    assert threading.active_count() == before


def test_a_pass_that_fails_ends_those_of_other_devices_within_a_step(monkeypatch):
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    started = threading.Barrier(2)

    numbers = iter(range(2))

    def failing(directions, tile, progress, **_):
        number = next(numbers)
        started.wait(5)
        if number == 0:
            raise RuntimeError("the device is gone")
        progress.start("ranking", 1)
        for _ in range(1000):
            progress.advance(0)
            time.sleep(0.01)
        raise AssertionError("never stopped")

    monkeypatch.setattr(block_ranking, "rank_pair", failing)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="the device is gone"):
        rank_in_blocks(monkeypatch, scorer, relevance, (130, 205), devices=2)
    assert time.monotonic() - began < 5


def test_memory_that_runs_out_says_what_to_do(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(block_ranking, "rank_pair", full)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    with pytest.raises(CrosslensError, match="the device cpu has run out of memory") as raised:
        rank_both(scorer, relevance, backend="torch", device="cpu")
    assert "CROSSLENS_MAX_DEVICE_BYTES" in str(raised.value)


@pytest.mark.parametrize(("devices", "resumed_devices"), rest_slow([(2, 1), (1, 3), (1, 1)]))
def test_an_interrupted_ranking_resumes(tmp_path, monkeypatch, devices, resumed_devices):
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    expected = rank_both(scorer, relevance)
    folder, left = tmp_path / "c", []
    for after in (250, 550, 850):
        with pytest.raises(KeyboardInterrupt):
            rank_in_blocks(
                monkeypatch, scorer, relevance, (50, 60), devices=devices, checkpoint=folder,
                progress=Interrupting(after),
            )  # fmt: skip
        ranking = block_ranking.BlockRanking(products_of(scorer, relevance), [CPU])
        ranking.keep_in(folder, scorer)
        left.append(len(ranking.merged.todo()))
    assert 21 > left[0] > left[1] > left[2] > 0
    # Blocks of the stored ranking are taken, whatever would be planned now.
    watching = Interrupting(10**9)
    resumed = rank_in_blocks(
        monkeypatch, scorer, relevance, (130, 410), devices=resumed_devices, checkpoint=folder, progress=watching
    )
    assert watching.seen == watching.total == 2100
    for name in NAMES:
        assert resumed[name].fingerprint == expected[name].fingerprint


@pytest.mark.parametrize("change", rest_slow(["vectors", "memory", "depth", "relevance"]))
def test_the_checkpoint_of_another_ranking_is_not_taken(tmp_path, monkeypatch, change):
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    with pytest.raises(KeyboardInterrupt):
        rank_in_blocks(monkeypatch, scorer, relevance, (50, 60), checkpoint=tmp_path / "c", progress=Interrupting(500))
    stopped_scorer = scorer_of(*many(seed=1)) if change == "vectors" else scorer
    judged = random_relevance(np.random.default_rng(1), *scorer.shape, 0.02) if change == "relevance" else relevance
    depth = 7 if change == "depth" else 10
    if change == "memory":
        monkeypatch.setattr(block_ranking, "device_memory", lambda _: 50_000)
    watching = Counting()
    rankings = rank_in_blocks(
        monkeypatch, stopped_scorer, judged, (40, 90), depth=depth, checkpoint=tmp_path / "c", progress=watching
    )
    assert (watching.notes, watching.seen) == ([], watching.total)
    assert rankings["i2t"].fingerprint == rank_both(stopped_scorer, judged, depth=depth)["i2t"].fingerprint


class Counting:
    """What was done, and what was said of work that goes on."""

    def __init__(self) -> None:
        self.total = self.seen = 0
        self.notes: list[str] = []

    def start(self, label: str, total: int) -> None:
        self.total = total

    def advance(self, steps: int = 1) -> None:
        self.seen += steps

    def finish(self) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(("least", "used"), [(10**14, 1), (130 * 410 * 48 // 2, 2), (1, 4)])
def test_a_small_ranking_does_not_start_all_devices(monkeypatch, least, used):
    asked = []
    plan = block_ranking.plan_blocks
    monkeypatch.setattr(block_ranking, "plan_blocks", lambda *given: asked.append(given[-1]) or plan(*given))
    monkeypatch.setitem(blocks.LEAST_WORK, "cuda", least)
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.01)
    rankings = block_ranking.rank_on_devices(scorer, products_of(scorer, relevance), NAMES, [CPU] * 4, SilentProgress())
    assert asked == [used]
    check(exact_matrix(scorer), relevance, rankings)


INTERRUPTED = """
import sys
import numpy as np
import torch
from crosslens.engine import SilentProgress
from crosslens.rank import InnerProduct
from crosslens.rank.gpu import block_ranking, blocks
from tests.rank.test_gpu import vectors_of
from tests.rank.test_gpu_blocks import products_of

class Started(SilentProgress):
    def advance(self, steps=1):
        if steps:
            print("started", flush=True)

blocks.LEAST_WORK["cuda"] = 1
images, captions, relevance = vectors_of("random", 20_000, 20_000, 64, seed=0)
scorer = InnerProduct(images, captions)
block_ranking.rank_on_devices(
    scorer, products_of(scorer, relevance), ("i2t", "t2i"), [torch.device("cpu")] * 2, Started()
)
"""


@pytest.mark.slow
def test_ctrl_c_ends_all_devices() -> None:
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(root / "src"), str(root), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - began < 20
    assert errors.strip().endswith("KeyboardInterrupt")


FUSED = """
from dataclasses import replace
import pytest
from crosslens.engine import SilentProgress
from crosslens.rank import InnerProduct
from crosslens.rank.gpu import block_ranking
from crosslens.rank.gpu import fused_pass
from tests.rank.test_exactness import check, exact_matrix
from tests.rank.test_gpu import vectors_of
from tests.rank.test_gpu_blocks import CPU, NAMES, products_of, rank_in_blocks

fused_pass.TILE = {"height": 64, "width": 64}
fused_pass._PANEL, fused_pass._WIDTH = 1_024, 64
block_ranking.SMALLEST = 32
outcomes = []
whole = block_ranking.fused_pass
block_ranking.fused_pass = lambda *given: outcomes.append(whole(*given)) or outcomes[-1]
images, captions, relevance = vectors_of("copies", 40, 80, 24, seed=1)
scorer = InnerProduct(images, captions)
with pytest.MonkeyPatch.context() as patch:
    rankings = rank_in_blocks(patch, scorer, relevance, (40, 40), depth=2)
    alone = replace(products_of(scorer, relevance, 2), axes=(0,))  # the queries of one direction
    ranked = block_ranking.rank_on_devices(scorer, alone, NAMES, [CPU], SilentProgress())
check(exact_matrix(scorer), relevance, rankings)
assert ranked["i2t"].fingerprint == rankings["i2t"].fingerprint
print(outcomes)
"""


@pytest.mark.slow
def test_fused_kernels_rank_blocks_in_the_interpreter() -> None:
    pytest.importorskip("triton")
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(root / "src"), str(root), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", FUSED], capture_output=True, text=True, env=environment, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[[], [], [], []]"
