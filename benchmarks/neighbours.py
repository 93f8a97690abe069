"""How fast exact nearest neighbours and farthest points are at a million vectors, and in how much memory.

    python benchmarks/neighbours.py                     # 2,000 queries among 1,000,000 vectors, d = 384, k = 100
    python benchmarks/neighbours.py --queries 10000     # time is proportional to the number of queries
    python benchmarks/neighbours.py --full              # every vector is a query: hours, for any exact method

Every contender runs in a process of its own over the same memory-mapped file, in turn in each round, so that a busy
machine slows all of them alike. Memory is the most a process held beyond mapped files ("own"), and with the pages of
the mapped file that the system kept in memory for it ("resident"), which it gives back when others need them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Figures = dict[str, float]

EXACT = ("bare product", "crosslens", "faiss flat")


def clustered_vectors(n: int, d: int, seed: int = 0, clusters: int = 2_000, latent: int = 64) -> Array:
    """Vectors as of a model: clusters of uneven size in few directions, a common offset, some noise, length 1."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((latent, d), dtype=np.float32) / np.float32(latent**0.5)
    centres = rng.standard_normal((clusters, latent), dtype=np.float32)
    share = 1 / np.arange(1, clusters + 1) ** 0.7
    vectors = np.empty((n, d), np.float32)
    for start in range(0, n, 50_000):
        size = min(50_000, n - start)
        inner = centres[rng.choice(clusters, size, p=share / share.sum())]
        inner += rng.standard_normal((size, latent), dtype=np.float32) * np.float32(0.6)
        block = inner @ directions + rng.standard_normal((size, d), dtype=np.float32) * np.float32(0.15)
        block += np.float32(0.3)
        vectors[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def bare_product(items: Array, rows: Array, k: int) -> Figures:
    """The product that no exact method can do without, its scores thrown away."""
    queries = np.array(items[rows])
    for first in range(0, len(queries), 8_192):
        for start in range(0, len(items), 4_096):
            queries[first : first + 8_192] @ items[start : start + 4_096].T
    return {}


def crosslens(items: Array, rows: Array, k: int) -> Figures:
    from crosslens.analyze import nearest_items

    nearest = nearest_items(items[rows], items, k, without=rows)
    return {"checksum": float(nearest.cosines.sum())}


def faiss_flat(items: Array, rows: Array, k: int) -> Figures:
    import faiss

    index = faiss.IndexFlatIP(items.shape[1])
    for start in range(0, len(items), 65_536):
        index.add(np.ascontiguousarray(items[start : start + 65_536]))
    scores, listed = index.search(np.array(items[rows]), k + 1)
    return {"checksum": float(scores[listed != rows[:, None]].astype(np.float64).sum())}


def approximate(items: Array, rows: Array, k: int) -> Figures:
    from crosslens.analyze import ApproximateSearch, nearest_items

    marks: dict[str, float] = {}

    class Clock:
        def start(self, label: str, total: int) -> None:
            self.label, self.begin = label, time.perf_counter()

        def advance(self, steps: int = 1) -> None: ...

        def finish(self) -> None:
            marks[self.label] = time.perf_counter() - self.begin

    sample = min(200, len(rows))
    search = ApproximateSearch(sample=sample)
    nearest = nearest_items(items[rows], items, k, without=rows, approximate=search, progress=Clock())
    assert nearest.recall is not None
    return {
        "recall": nearest.recall,
        "sample": sample,
        "index_seconds": marks["indexing"],
        "search_seconds": marks["approximate search"],
    }


def farthest_points(items: Array, rows: Array, k: int) -> Figures:
    from crosslens.analyze import farthest_points as choose

    chosen = choose(items, k)
    assert len(set(chosen.tolist())) == k
    return {}


CONTENDERS = {
    "bare product": bare_product,
    "crosslens": crosslens,
    "faiss flat": faiss_flat,
    "approximate": approximate,
    "farthest points": farthest_points,
}


def measure(name: str, file: Path, queries: int, k: int) -> Figures:
    """Run one contender in this process."""
    items = np.load(file, mmap_mode="r")
    rows = np.linspace(0, len(items) - 1, queries).astype(np.int64)
    CONTENDERS[name](items[:2_000], np.arange(20), 10)  # import and compile before the clock starts
    most, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], _status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin, before = time.perf_counter(), time.process_time()
    figures = CONTENDERS[name](items, rows, k)
    figures |= {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - before}
    over.set()
    watcher.join()
    return figures | {"own_mb": most[0], "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _status(field: str) -> float:
    """Megabytes, by Linux's account of this process; elsewhere NaN."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), float("nan"))


def in_own_process(name: str, file: Path, queries: int, k: int) -> Figures:
    command = [sys.executable, __file__, "--contender", name, "--file", str(file), "--queries", str(queries)]
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run([*command, "--k", str(k)], check=True, capture_output=True, text=True, env=environment)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def side_by_side(file: Path, queries: int, k: int, rounds: int) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {name: [] for name in EXACT}
    for _ in range(rounds):
        for name in EXACT:
            found[name].append(in_own_process(name, file, queries, k))
    middle = {name: statistics.median(one["seconds"] for one in all_of) for name, all_of in found.items()}
    cpu = {name: statistics.median(one["cpu_seconds"] for one in all_of) for name, all_of in found.items()}
    print(f"{'exact':16}{'seconds':>10}{'÷ product':>11}{'CPU s':>10}{'÷ product':>11}{'own':>11}{'resident':>12}")
    for name, taken in middle.items():
        own, resident = (max(one[part] for one in found[name]) for part in ("own_mb", "resident_mb"))
        ratios = taken / middle["bare product"], cpu[name] / cpu["bare product"]
        print(
            f"{name:16}{taken:10.1f}{ratios[0]:11.2f}{cpu[name]:10.1f}{ratios[1]:11.2f}{own:8.0f} MB{resident:9.0f} MB"
        )
    ours, theirs = found["crosslens"][0]["checksum"], found["faiss flat"][0]["checksum"]
    print(f"sum of all cosines: {ours:.6f}, faiss: {theirs:.6f}", flush=True)
    assert abs(ours - theirs) < 1e-5 * queries * k
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--full", action="store_true", help="every vector is a query")
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--points", type=int, default=5_000, help="farthest points")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=["exact", "approximate", "farthest"], help="only these")
    parser.add_argument("--file", type=Path, help="vectors of length 1 (.npy) in place of drawn ones")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--contender", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contender:
        print(json.dumps(measure(arguments.contender, arguments.file, arguments.queries, arguments.k)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or Path(folder) / "vectors.npy"
        if not arguments.file:
            np.save(file, clustered_vectors(arguments.items, arguments.dimension))
        figures = run(file, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def run(file: Path, arguments: argparse.Namespace) -> dict[str, object]:
    n, d = np.load(file, mmap_mode="r").shape
    queries = n if arguments.full else min(arguments.queries, n)
    parts = arguments.parts or ["exact", "approximate", "farthest"]
    figures: dict[str, object] = {}
    print(f"{n:,} vectors, d = {d}; {queries:,} queries, k = {arguments.k}; {os.cpu_count()} cores", flush=True)
    if "exact" in parts:
        figures["exact"] = side_by_side(file, queries, arguments.k, arguments.rounds)
    if "approximate" in parts:
        one = figures["approximate"] = in_own_process("approximate", file, queries, arguments.k)
        print(
            f"approximate: index {one['index_seconds']:.1f} s, search {one['search_seconds']:.1f} s, recall@"
            f"{arguments.k} {one['recall']:.4f} on {one['sample']:.0f} queries, {one['own_mb']:.0f} MB of its own",
            flush=True,
        )
    if "farthest" in parts:
        one = figures["farthest"] = in_own_process("farthest points", file, queries, arguments.points)
        print(
            f"{arguments.points:,} farthest points: {one['seconds']:.1f} s ({one['cpu_seconds']:.1f} CPU s), "
            f"{one['own_mb']:.0f} MB of its own, {one['resident_mb']:.0f} MB resident"
        )
    return figures


if __name__ == "__main__":
    main()
