"""What an engine of tasks costs on one machine, and what more nodes would gain.

    python benchmarks/cluster.py                  # local against Ray on this machine, side by side
    python benchmarks/cluster.py --quick          # smaller, a minute
    python benchmarks/cluster.py --images 1000000 # the modelled speed-up for another size

Every figure is the median over rounds; in each round both engines do the same work in turn, so that a busy machine
slows both alike. Beside the time on the clock it counts processor seconds, of this process and of all that Ray started,
which depend less on what else the machine does. Ray is started once, before the rounds, and has run everything once:
the start, and the first run of each work (workers start, import and compile), are printed by themselves.

"ranking, torch" ranks with torch on the CPU. On one machine, crosslens does that without tasks; here it is made to use
them, so that what tasks cost shows.

The speed-up with more nodes is *modelled*, for this machine has one. Every node reads the vectors over the network;
parts of a ranking are put on free cores in order, and each takes the time of an empty task plus its multiplications at
the rate measured for one core; this process moves the results over its network connection and joins them, one after the
other, at the rate measured for that. Sizes of results are those of real parts.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import crosslens as cl
from crosslens.analyze import nearest_items
from crosslens.core import available_cores
from crosslens.encode import encode_texts, load_encoder
from crosslens.engine import current_engine
from crosslens.rank import InnerProduct, part_height, rank_both, unit_rows
from crosslens.rank.gpu.blocks import LEAST_WORK
from crosslens.rank.merged import Blocks, Lists
from crosslens.similarity import relevance_matrix
from crosslens.values import Relevance

PER_IMAGE = 5
CORES_PER_NODE = 16
NETWORK = 1.25e9
"""Bytes per second from a node to this process: 10 Gbit/s."""


def world(images: int, dimension: int) -> tuple[InnerProduct, Relevance]:
    rng = np.random.default_rng(0)
    pictures = rng.standard_normal((images, dimension), dtype=np.float32)
    texts = np.repeat(pictures, PER_IMAGE, axis=0)
    texts += rng.standard_normal(texts.shape, dtype=np.float32) * np.float32(0.27 * dimension**0.5)
    names = tuple(map(str, range(images))), tuple(map(str, range(len(texts))))
    rows = np.repeat(np.arange(images), PER_IMAGE)
    return InnerProduct(unit_rows(pictures), unit_rows(texts), unit=True), Relevance.from_indices(
        *names, rows, np.arange(len(texts))
    )


def captions(images: int) -> cl.Dataset:
    words = np.array([f"word{number}" for number in range(40)])
    drawn = np.random.default_rng(1).integers(0, len(words), (images, PER_IMAGE, 9))
    return cl.Dataset.of({f"i{row}": [" ".join(words[text]) for text in drawn[row]] for row in range(images)})


def tasks(quick: bool) -> dict[str, Callable[[], Any]]:
    scorer, relevance = world(3_000 if quick else 6_000, 256 if quick else 512)
    texts = captions(1_000 if quick else 2_500)
    points = scorer.columns.block(0, 8_000 if quick else 25_000)
    encoder, torch_ranking = load_encoder("tiny"), dict[str, Callable[[], Any]]()
    if find_spec("torch") is not None:
        torch_options = {"backend": "torch", "device": "cpu"}
        torch_ranking["ranking, torch"] = lambda: [
            entry.fingerprint for entry in rank_both(scorer, relevance, **torch_options).values()
        ]
    sentences = [f"{text} {row}" for row, text in enumerate(texts.texts)]
    return {
        "ranking": lambda: [entry.fingerprint for entry in rank_both(scorer, relevance).values()],
        **torch_ranking,
        "similarity": lambda: relevance_matrix(texts, "cider", cache=False).sum(dtype=np.float64),
        "neighbours": lambda: nearest_items(points, points, 20, without=np.arange(len(points))).items.sum(),
        "encoding": lambda: encode_texts(encoder, sentences).rows.sum(dtype=np.float64),
    }


class Cost(NamedTuple):
    """Seconds of the clock, and seconds of processors: of this process, and of all that it started."""

    wall: float
    driver: float
    workers: float

    @property
    def cpu(self) -> float:
        return self.driver + self.workers


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measured(work: Callable[[], Any]) -> tuple[Cost, Any]:
    own, others = time.process_time(), cpu_of_children()
    seconds, result = timed(work)
    return Cost(seconds, time.process_time() - own, cpu_of_children() - others), result


def cpu_of_children() -> float:
    """Processor seconds of all processes that came from this one, those that have ended included (Linux)."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            values = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(values[1])
            ticks[int(stat.parent.name)] = sum(map(int, values[11:15]))
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks[pid] for pid in family - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def compare(rounds: int, quick: bool, only: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    with cl.use_engine("ray") as engine:
        engine.slots()
        # Rank with torch in tasks, although this process could do it, and however small the work is.
        engine.exceeds, LEAST_WORK["cpu"] = lambda own, gpu=False: True, 1 << 30
        started = time.perf_counter() - start
        works = {name: work for name, work in tasks(quick).items() if not only or name in only}
        figures = {name: compared(name, work, engine, rounds) for name, work in works.items()}
        empty = [timed(lambda: list(engine.run(_nothing, None, range(200))))[0] / 200 for _ in range(rounds)]
        idle, _ = measured(lambda: time.sleep(3))
    return {
        "cores": available_cores(), "start s": started, "task ms": 1e3 * statistics.median(empty),
        "idle Ray, cores": idle.workers / idle.wall, "work": figures,
    }  # fmt: skip


def compared(name: str, work: Callable[[], Any], engine: Any, rounds: int) -> dict[str, Any]:
    """Medians over rounds of both engines in turn; the first round compiles, imports and loads, and is shown apart."""
    costs: dict[str, list[Cost]] = {"local": [], "ray": []}
    for _ in range(rounds + 1):
        results = []
        for label, chosen in (("local", "local"), ("ray", engine)):
            with cl.use_engine(chosen):
                cost, result = measured(work)
            results.append(result)
            costs[label].append(cost)
        assert results[0] == results[1], f"{name} differs"
    pairs = list(zip(costs["local"], costs["ray"], strict=True))[1:]
    row: dict[str, Any] = {}
    for label, (first, *others) in costs.items():
        row[f"{label} s"] = statistics.median(cost.wall for cost in others)
        row[f"{label} CPU s"] = statistics.median(cost.cpu for cost in others)
        row[f"{label} first s"] = first.wall
    row["ray workers CPU s"] = statistics.median(ray.workers for _, ray in pairs)
    row["ratios"] = [round(ray.wall / local.wall, 2) for local, ray in pairs]
    row["ratio"] = statistics.median(ray.wall / local.wall for local, ray in pairs)
    row["CPU ratio"] = statistics.median(ray.cpu / local.cpu for local, ray in pairs)
    return row


def _nothing(shared: None, task: int) -> int:
    return task


class Rates(NamedTuple):
    """What parts of a ranking cost: seconds per multiplication on one core; seconds and bytes for joining the lists of
    each query of the inner axis; bytes for each query of the part itself."""

    multiplication: float
    joining: float
    inner_bytes: float
    own_bytes: float


def measured_rates(quick: bool) -> Rates:
    """From parts of one ranking, computed and joined in this process: medians of the second time."""
    scorer, relevance = world(2_000 if quick else 4_000, 256 if quick else 512)
    inner, rows = scorer.shape[0], list[Rates]()

    class Watched:
        name, distributed = "watched", True

        def slots(self, gpu: bool = False) -> int:
            return 4

        def run(self, work: Any, shared: Any, blocks: Any, **_: Any) -> Any:
            for block in blocks:
                seconds, result = timed(lambda block=block: work(shared, block))
                height = block.stop - block.start
                others, own = (result[axis].nbytes for axis in (0, 1))  # captions are the longer axis
                start = time.perf_counter()
                yield result
                joining = (time.perf_counter() - start) / inner
                rows.append(Rates(seconds / (height * inner * scorer.work), joining, others / inner, own / height))

    for _ in range(2):
        rows.clear()
        with cl.use_engine(Watched()):
            assert current_engine().distributed
            rank_both(scorer, relevance, threads=1)
    return Rates(*(statistics.median(values) for values in zip(*rows, strict=True)))


def merging_rate(quick: bool) -> float:
    """Lists of ten per second that this process merges: of the second time."""
    count = 100_000 if quick else 1_000_000
    random, seconds = np.random.default_rng(0), []
    lists = Lists(np.full((count, 10), -1), np.full((count, 10), np.nan, np.float32), np.zeros((3, count), np.int64))
    for number in range(3):
        scores = -np.sort(-random.random((count, 10), np.float32), axis=1)
        part = Lists(random.permuted(np.tile(np.arange(10), (count, 1)), axis=1), scores, np.ones((3, count), np.uint8))
        work = partial(lists.merge, slice(0, count), slice(0, count), part, 10 * number)
        seconds.append(timed(work)[0])
    return count / seconds[-1]


def modelled(rates: Rates, images: int, dimension: int, nodes: int, task: float) -> float:
    """Seconds for images × 5 captions in both directions on so many nodes."""
    slots, outer = nodes * CORES_PER_NODE, images * PER_IMAGE
    height = part_height(outer, images * dimension, slots)
    blocks = Blocks((images, outer), (images, height), 1).parts(1)
    reading = (images + outer) * dimension * 4 / NETWORK  # by every node, at the same time
    cores, finished = [reading] * slots, []
    for block in blocks:
        begin = heapq.heappop(cores)
        end = begin + task + (block.stop - block.start) * images * dimension * rates.multiplication
        heapq.heappush(cores, end)
        finished.append(end)
    clock = 0.0
    for block, end in zip(blocks, finished, strict=True):  # in order, as this process takes them
        moved = (images * rates.inner_bytes + (block.stop - block.start) * rates.own_bytes) / NETWORK
        clock = max(clock, end) + moved + images * rates.joining
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only", nargs="*", default=[], help='ranking, "ranking, torch", similarity, neighbours, encoding'
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=200_000, help="of the modelled ranking, with 5 captions each")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = compare(options.rounds, options.quick, options.only)
    rates = measured_rates(options.quick)
    one = modelled(rates, options.images, options.dim, 1, figures["task ms"] / 1e3)
    speed_up = {
        nodes: one / modelled(rates, options.images, options.dim, nodes, figures["task ms"] / 1e3)
        for nodes in (1, 2, 4, 8, 16, 32, 64)
    }
    figures["model"] = {
        "size": f"{options.images:,} × {PER_IMAGE * options.images:,}, d = {options.dim}", "one node s": one,
        "cores per node": CORES_PER_NODE, "network bytes per second": NETWORK,
        "multiplications per second and core": 1 / rates.multiplication,
        "joined queries per second": 1 / rates.joining, "bytes per joined query": rates.inner_bytes,
        "bytes per own query": rates.own_bytes, "seconds": {nodes: one / gain for nodes, gain in speed_up.items()},
        "speed-up": speed_up,
    }  # fmt: skip
    figures["merged lists per second"] = merging_rate(options.quick)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{figures['cores']} cores; Ray starts in {figures['start s']:.1f} s, an empty task takes "
          f"{figures['task ms']:.2f} ms, and Ray without work {figures['idle Ray, cores']:.2f} cores\n")  # fmt: skip
    print("                local s      ray s   ratio   local CPU s   ray CPU s   ratio   first local s   first ray s")
    for name, row in figures["work"].items():
        print(
            f"{name:<14} {row['local s']:8.2f} {row['ray s']:10.2f} {row['ratio']:7.2f} {row['local CPU s']:13.2f} "
            f"{row['ray CPU s']:11.2f} {row['CPU ratio']:7.2f} {row['local first s']:15.2f} {row['ray first s']:13.2f}"
        )
    print(f"\n{figures['merged lists per second']:.3g} lists of ten merged per second")
    model = figures["model"]
    print(f"\nmodelled: ranking {model['size']}, nodes of {CORES_PER_NODE} cores, 10 Gbit/s")
    print(f"from {1 / rates.multiplication:.3g} multiplications/s per core, {1 / rates.joining:.3g} joined queries/s "
          f"of {rates.inner_bytes:.0f} bytes, {figures['task ms']:.1f} ms per task")  # fmt: skip
    for nodes, gain in speed_up.items():
        print(f"{nodes:>4} nodes   {one / gain:9.1f} s   speed-up {gain:5.1f}")


if __name__ == "__main__":
    main()
