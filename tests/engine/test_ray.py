"""A real Ray: several nodes on this machine, whose workers and nodes are killed while they work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.rank import InnerProduct, parts, rank_both, unit_rows
from crosslens.similarity import matrix, relevance_matrix
from crosslens.values import Relevance

pytestmark = pytest.mark.slow

FAULTS = 20
SOURCE = Path(cl.__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="pip install 'crosslens[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))  # Ray may be in a folder of it
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))


@contextmanager
def started_cluster(nodes: int, gpus: int = 0) -> Iterator[Any]:
    """A head that runs no tasks, and so many nodes of one core; they say that they have so many GPUs each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)  # nodes come from threads
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, num_gpus=gpus)
        yield cluster
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()


def workers_of(node: Any) -> list[int]:
    """The processes of a node that run a task now."""
    raylet = node.all_processes["raylet"][0].process.pid
    workers = []
    for folder in Path("/proc").iterdir():
        try:
            title = (folder / "cmdline").read_bytes() if folder.name.isdecimal() else b""
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) if title else 0
        except OSError:
            continue
        if title.startswith(b"ray::crosslens") and parent == raylet:
            workers.append(int(folder.name))
    return workers


class Faults(threading.Thread):
    """Kills workers, and now and then a whole node, for which another comes later."""

    def __init__(self, cluster: Any, gpus: int = 0) -> None:
        super().__init__(daemon=True)
        self._gpus = gpus
        self.cluster, self.counts, self._over = cluster, Counter[str](), threading.Event()
        self._most = 0
        self.nodes = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]

    @property
    def total(self) -> int:
        return self.counts["worker"] + self.counts["node"]

    def until(self, total: int) -> Iterator[None]:
        """Rounds of work, until there were so many faults in all; then there are no more for now."""
        self._most = total
        while self.total < total:
            yield

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(1.0):
            if self.total >= self._most:
                continue
            if self.counts["worker"] >= 4 * (self.counts["node"] + 1):
                self._replace_node()
                continue
            for pid in [pid for node in self.nodes for pid in workers_of(node)][:1]:
                os.kill(pid, signal.SIGKILL)
                self.counts["worker"] += 1

    def _replace_node(self) -> None:
        self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)
        self.counts["node"] += 1
        self.nodes.append(self.cluster.add_node(num_cpus=1, num_gpus=self._gpus))
        self.counts["late"] += 1


def linger(shared: float, task: int) -> int:
    time.sleep(shared)
    return task * task


def vectors(images: int, captions: int) -> tuple[InnerProduct, Relevance]:
    random = np.random.default_rng(0)
    left = random.standard_normal((images, 64), dtype=np.float32)
    right = np.repeat(left, captions // images, 0) + random.standard_normal((captions, 64), dtype=np.float32)
    names = tuple(f"i{row}" for row in range(images)), tuple(f"c{row}" for row in range(captions))
    judged = Relevance.from_indices(*names, np.arange(captions) * images // captions, np.arange(captions))
    return InnerProduct(unit_rows(left), unit_rows(right), unit=True), judged


def test_faults_change_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nodes killed, workers killed -9, nodes added late: the same results, none lost, none twice."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 640)
    monkeypatch.setattr(matrix, "_BLOCK_BYTES", 4 * 600 * 10)
    scorer, judged = vectors(1_500, 15_000)
    texts = cl.Dataset.of({f"i{row}": [f"{row} dogs run", f"a cat on mat {row % 9}"] for row in range(300)})
    expected = {name: ranking.fingerprint for name, ranking in rank_both(scorer, judged).items()}
    phi = relevance_matrix(texts, "cider", cache=False)
    with started_cluster(2) as cluster, cl.use_engine("ray", cluster.address) as engine:
        faults = Faults(cluster)
        faults.start()
        for _ in faults.until(8):
            ranked = rank_both(scorer, judged)
            assert {name: ranking.fingerprint for name, ranking in ranked.items()} == expected
        for _ in faults.until(14):
            np.testing.assert_array_equal(relevance_matrix(texts, "cider", cache=False), phi)
        for _ in faults.until(FAULTS):
            done = list[int]()
            assert list(engine.run(linger, 0.4, range(16), done=done.append)) == [task * task for task in range(16)]
            assert sorted(done) == list(range(16))
        faults.stop()
    print(dict(faults.counts))
    assert faults.total >= FAULTS
    assert faults.counts["node"] == faults.counts["late"] >= 3


def test_work_waits_for_a_node_that_comes_late() -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with started_cluster(0) as cluster, cl.use_engine("ray", cluster.address) as engine:
        later = threading.Timer(3.0, lambda: cluster.add_node(num_cpus=2))
        later.start()
        assert list(engine.run(linger, 0.01, range(20))) == [task * task for task in range(20)]
        later.join()
        wait = time.monotonic() + 30  # the cores of a cluster are counted now and then only
        while engine.slots() < 2 and time.monotonic() < wait:
            time.sleep(0.2)
        assert engine.slots() == 2


def test_only_a_bounded_number_is_under_way() -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    taken, yielded = 0, 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for task in range(40):
            taken += 1
            assert taken - yielded <= 5
            yield task

    with started_cluster(2) as cluster, cl.use_engine("ray", cluster.address) as engine:
        for _ in engine.run(linger, 0.05, tasks()):
            yielded += 1
        assert yielded == 40
        large = engine.run(linger, 0.0, iter(range(40)), size=1 << 29)
        assert next(large) == 0
        large.close()  # type: ignore[attr-defined]


# The command line


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crosslens", *words], cwd=folder, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    from crosslens.data import write_dataset

    random = np.random.default_rng(0)
    captions = {f"i{row}": [f"{row} red dogs", f"a cat on {row % 40} mats"] for row in range(4_000)}
    write_dataset(cl.Dataset.of(captions), tmp_path / "captions.jsonl")
    images = random.standard_normal((4_000, 64)).astype(np.float32)
    np.save(tmp_path / "img.npy", images)
    np.save(tmp_path / "cap.npy", np.repeat(images, 2, 0) + random.standard_normal((8_000, 64)).astype(np.float32))
    for name in ("local", "ray"):
        (tmp_path / name).mkdir()
    return tmp_path


VECTORS = ("--dataset", "../captions.jsonl", "--image-embeddings", "../img.npy", "--caption-embeddings", "../cap.npy")


def test_the_same_metrics_and_the_same_folder(data: Path) -> None:
    words = ("evaluate", *VECTORS, "--score", "dot", "-o", "run", "--json")
    local, remote = run(data / "local", *words), run(data / "ray", *words, "--engine", "ray")
    assert remote.returncode == 0, remote.stderr
    assert json.loads(remote.stdout)["metrics"] == json.loads(local.stdout)["metrics"]
    assert remote.stdout == local.stdout
    assert contents(data / "ray") == contents(data / "local")


def started(folder: Path, *words: str, patch: str = "") -> subprocess.Popen[str]:
    """The command in a process of its own, with small blocks; in a group of its own, so that nothing else is hit."""
    # A shell that runs this in the background has children ignore Ctrl-C.
    code = "\n".join([
        "import signal, sys", "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "import crosslens.similarity.matrix as matrix", patch, "from crosslens.cli import main",
        f"sys.argv = ['crosslens', *{list(words)!r}]", "sys.exit(main(sys.argv[1:]))",
    ])  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(condition: Callable[[], bool], seconds: float = 200) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    children = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    children.append(int(folder.name))
            except OSError:
                continue
    return children + [below for child in children for below in children_of(child)]


SIMILARITY = ("similarity", "--dataset", "../captions.jsonl", "--phi", "cider", "-o", "phi.npy", "--json")
SMALL = "matrix._BLOCK_BYTES = 4 * 8_000 * 8"


def rows_done(folder: Path) -> int:
    """How many rows are stored, though files come and go meanwhile."""
    for home, _, files in os.walk(folder):
        with suppress(OSError, ValueError):
            if "kept-rows" in files:
                return int((Path(home) / "kept-rows").read_text())
    return 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_ends_and_resumes(data: Path, how: int) -> None:
    """Ctrl-C, SIGTERM and a killed process: nothing stays behind, and the same command goes on from there."""
    relevance_matrix(cl.load_dataset(data / "captions.jsonl"), "cider", output=data / "local" / "phi.npy")
    process = started(data / "ray", *SIMILARITY, "--engine", "ray", patch=SMALL)
    wait_until(lambda: rows_done(data / "ray") >= 80 or process.poll() is not None)
    below = children_of(process.pid)
    assert process.poll() is None, process.communicate()[1]
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-how if how == signal.SIGKILL else 130), errors
    lines = [
        line for line in errors.splitlines() if not line.startswith("similarity: ")
    ]  # the progress of a slow start
    assert lines == ([] if how == signal.SIGKILL else ["interrupted"])
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in below), 180)
    done = rows_done(data / "ray")
    assert 80 <= done < 4_000
    assert not (data / "ray" / "phi.npy").exists()
    again = started(data / "ray", *SIMILARITY, "--engine", "ray", patch=SMALL)
    assert again.wait(timeout=300) == 0
    assert contents(data / "ray") == contents(data / "local")


RANKING = """
from crosslens.rank import merged, parts
parts._FEWEST_QUERIES, merged.SECONDS_BETWEEN_CHECKPOINTS, merged.MOST_TIME_FOR_CHECKPOINTS = 320, 0, 1e9
"""


def test_a_killed_evaluation_resumes(data: Path) -> None:
    """The ranking goes on from its checkpoint, and the run folder is that of a local run."""
    words = ("evaluate", *VECTORS, "--score", "dot", "-o", "run", "--json")
    slow = "import time; add = merged.Merged.add; merged.Merged.add = lambda *given: (add(*given), time.sleep(0.3))"
    process = started(data / "ray", *words, "--engine", "ray", patch=f"{RANKING}\n{slow}")
    wait_until(lambda: ranked(data / "ray") > 0 or process.poll() is not None)
    below = children_of(process.pid)
    process.kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in below), 180)
    done = ranked(data / "ray")
    assert 0 < done < 1
    again = started(data / "ray", *words, "--engine", "ray", patch=f"{RANKING}\n{NOTED}")
    printed, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert float((data / "ray" / "resumed").read_text()) >= done
    (data / "ray" / "resumed").unlink()
    local = started(data / "local", *words)
    assert local.communicate(timeout=300)[0] == printed
    assert contents(data / "ray") == contents(data / "local")


NOTED = """
keep_in = merged.Merged.keep_in
def note(state, *given):
    keep_in(state, *given)
    open("resumed", "w").write(str(state.done.mean()))
merged.Merged.keep_in = note
"""


def ranked(folder: Path) -> float:
    """The share of the parts that the checkpoint of a ranking has, though files come and go meanwhile."""
    for home, _, files in os.walk(folder):
        with suppress(OSError, ValueError, KeyError):
            if "checkpoint" in home and "done.npy" in files:
                return float(np.load(Path(home) / "done.npy").mean())
    return 0
