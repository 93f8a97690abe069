"""Rankings with torch on a real Ray: nodes that say they have GPUs, killed workers and nodes, a killed driver.

No GPU is needed: a task that was given one and does not see it ranks on the CPU.
"""

from __future__ import annotations

import json
import signal
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import available_cores
from crosslens.rank import InnerProduct, rank_both, rank_queries, unit_rows
from crosslens.values import Relevance
from tests.engine.test_ray import (
    VECTORS,
    Faults,
    children_of,
    contents,
    data as data,
    own_environment as own_environment,
    run,
    started,
    started_cluster,
    wait_until,
)

torch = pytest.importorskip("torch")

from crosslens.rank.gpu import blocks, task_ranking  # noqa: E402

pytestmark = pytest.mark.slow


def vectors(images: int, captions: int) -> tuple[InnerProduct, Relevance]:
    """Captions of several images, copies of captions, and near-ties."""
    random = np.random.default_rng(0)
    left = random.standard_normal((images, 64), dtype=np.float32)
    right = np.repeat(left, captions // images, 0) + random.standard_normal((captions, 64), dtype=np.float32)
    right[1::7] = right[0:-1:7][: len(right[1::7])]
    names = tuple(f"i{row}" for row in range(images)), tuple(f"c{row}" for row in range(captions))
    image_of_caption, another = np.arange(captions) * images // captions, random.integers(0, images, captions)
    pairs = np.unique(np.concatenate([image_of_caption, another]) * captions + np.tile(np.arange(captions), 2))
    judged = Relevance.from_indices(*names, pairs // captions, pairs % captions)
    return InnerProduct(unit_rows(left), unit_rows(right), unit=True), judged


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("cuda", "cpu"):
        monkeypatch.setitem(blocks.LEAST_WORK, kind, 1)


def noted_in(folder: Path) -> Callable[[Any, Any], Any]:
    """Ranks a part, and notes on which node it does, and which GPUs it was given."""

    def rank_noted(work: Any, part: Any) -> Any:
        import ray

        from crosslens.rank.gpu.task_ranking import rank_product_part

        facts = {"node": ray.get_runtime_context().get_node_id(), "gpus": ray.get_gpu_ids()}
        (folder / uuid.uuid4().hex).write_text(json.dumps(facts))
        return rank_product_part(work, part)

    return rank_noted


def fingerprints(rankings: dict[str, Any]) -> dict[str, str]:
    return {name: ranking.fingerprint for name, ranking in rankings.items()}


@pytest.mark.parametrize("device", [None, "cpu"])
def test_tasks_run_where_gpus_are(
    small_tasks: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: Any
) -> None:
    """Two nodes with a GPU and one without: each task has a GPU of its own, unless the CPU is asked for."""
    monkeypatch.setattr(task_ranking, "rank_product_part", noted_in(tmp_path))
    scorer, judged = vectors(500, 2_500)
    expected = fingerprints(rank_both(scorer, judged))
    assert fingerprints(rank_both(scorer, judged, backend="torch", device="cpu")) == expected
    with started_cluster(2, gpus=1) as cluster, cl.use_engine("ray", cluster.address) as engine:
        assert engine.exceeds(10**6), "other nodes have cores"
        assert engine.exceeds(10**6, gpu=True)
        without = cluster.add_node(num_cpus=1).node_id
        wait_until(lambda: engine.slots() == 3)
        assert engine.slots(gpu=True) == 2
        for _ in range(2):
            assert fingerprints(rank_both(scorer, judged, backend="torch", device=device)) == expected
        sample = rank_queries(scorer, judged, "i2t", as_rows=True, backend="torch", device=device)
        assert sample.fingerprint == expected["i2t"]
    notes = [json.loads(file.read_text()) for file in tmp_path.iterdir() if file.is_file()]
    assert len(notes) == 3 * (8 if device is None else 12)
    nodes = Counter(note["node"] for note in notes)
    if device is None:
        assert without not in nodes
        assert all(len(note["gpus"]) == 1 for note in notes)
        assert len(nodes) == 2, "both GPUs are used"
    else:
        assert not any(note["gpus"] for note in notes)


def test_a_node_without_the_gpu_that_is_asked_for_is_named(small_tasks: None) -> None:
    scorer, judged = vectors(100, 500)
    refused = pytest.raises(cl.CrosslensError, match=r"on the node .+: cannot use the device 'cuda'")
    with started_cluster(1, gpus=1) as cluster, cl.use_engine("ray", cluster.address), refused:
        rank_both(scorer, judged, backend="torch", device="cuda")


def test_what_a_cluster_has_beside_this_process() -> None:
    with started_cluster(0) as cluster, cl.use_engine("ray", cluster.address) as engine:
        assert engine.exceeds(8), "cores may come"
        assert engine.exceeds(0, gpu=True), "GPUs may come"
        assert not engine.exceeds(1, gpu=True), "this process has some, and the cluster none"
    with cl.use_engine("ray") as engine:
        assert not engine.exceeds(available_cores())
        assert engine.exceeds(available_cores() - 1), "this process was given fewer than its machine has"
        assert not engine.exceeds(0, gpu=True) or torch.cuda.is_available()


def test_killed_workers_and_nodes_change_nothing(small_tasks: None) -> None:
    scorer, judged = vectors(2_000, 20_000)
    expected = fingerprints(rank_both(scorer, judged))
    with started_cluster(2, gpus=1) as cluster, cl.use_engine("ray", cluster.address):
        faults = Faults(cluster, gpus=1)
        faults.start()
        for _ in faults.until(6):
            assert fingerprints(rank_both(scorer, judged, backend="torch")) == expected
        faults.stop()
    assert faults.counts["node"] >= 1
    assert faults.counts["worker"] >= 4


def test_on_one_machine_nothing_is_different(data: Path) -> None:
    """A Ray of its own has no other devices than this process, which then ranks by itself."""
    words = ("evaluate", *VECTORS, "--score", "dot", "--backend", "torch", "-o", "run", "--json")
    local, remote = run(data / "local", *words), run(data / "ray", *words, "--engine", "ray")
    assert remote.returncode == 0, remote.stderr
    assert remote.stdout == local.stdout
    assert contents(data / "ray") == contents(data / "local")


SMALL = """
from crosslens.rank.gpu import blocks
blocks.LEAST_WORK.update(cuda=1, cpu=1)
blocks._TASKS_PER_DEVICE = 20
"""
PARTS = """
from crosslens.rank import parts
parts._FEWEST_QUERIES, parts.TILE = 100, 100
"""
SLOW = """
import time
from crosslens.rank import merged
merged.SECONDS_BETWEEN_CHECKPOINTS, merged.MOST_TIME_FOR_CHECKPOINTS = 1, 1e9
add = merged.Merged.add
merged.Merged.add = lambda *given: (add(*given), time.sleep(0.2))
"""
SAVED = """
write = merged.write_parts
merged.write_parts = lambda *given, **named: (write(*given, **named), open("../saved", "w"))
"""
NOTED = """
keep_in = merged.Merged.keep_in
def note(state, *given):
    keep_in(state, *given)
    open("resumed", "a").write(f"{state.done.sum()} ")
merged.Merged.keep_in = note
"""


@pytest.mark.parametrize(("backend", "queries"), [("torch", None), ("torch", 2_000), ("numpy", 2_000)])
def test_a_killed_command_resumes(data: Path, backend: str, queries: int | None) -> None:
    """The driver is killed -9; the cluster stays, and the run folder is that of a local run."""
    words = ("evaluate", *VECTORS, "--score", "dot", "--backend", backend, "-o", "run", "--json")
    words += () if queries is None else ("--queries", str(queries))
    patch = (SMALL if backend == "torch" else PARTS) + SLOW
    with started_cluster(2, gpus=1) as cluster:
        engine = ("--engine", "ray", "--ray-address", cluster.address)
        process = started(data / "ray", *words, *engine, patch=patch + SAVED)
        wait_until(lambda: (data / "saved").exists() or process.poll() is not None)
        below = children_of(process.pid)
        process.kill()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, errors
        wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in below), 180)
        again = started(data / "ray", *words, *engine, patch=patch + NOTED)
        printed, errors = again.communicate(timeout=300)
        assert again.returncode == 0, errors
    resumed = (data / "ray" / "resumed").read_text().split()
    assert int(resumed[0]) > 0
    (data / "ray" / "resumed").unlink()
    local = started(data / "local", *words)
    assert local.communicate(timeout=300)[0] == printed
    assert contents(data / "ray") == contents(data / "local")
