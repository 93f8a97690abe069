"""What an engine of tasks costs on one machine, and what more nodes would gain.

    python benchmarks/cluster.py                  # local against Ray on this machine, side by side
    python benchmarks/cluster.py --quick          # smaller, a minute
    python benchmarks/cluster.py --images 1000000 # the modelled speed-up for another size

Every figure is the median over rounds; in each round both engines do the same work in turn, so that a busy machine
slows both alike. Ray is started once, before the rounds, and has run everything once: a start is printed by itself.

The speed-up with more nodes is *modelled*, for this machine has one: parts of a ranking are put on free cores in order,
each takes its multiplications at the rate measured for one core, plus the time to send a task and to move its result,
and this process joins the results one after the other at the rate measured for that.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import crosslens as cl
from crosslens.analyze import nearest_items
from crosslens.core import Relevance, current_engine
from crosslens.encode import encode_texts, load_encoder
from crosslens.rank import InnerProduct, parts, rank_both, unit_rows
from crosslens.similarity import relevance_matrix

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
    points = scorer.columns[: 8_000 if quick else 25_000]
    encoder = load_encoder("tiny")
    sentences = [f"{text} {row}" for row, text in enumerate(texts.texts)]
    return {
        "ranking": lambda: [entry.fingerprint for entry in rank_both(scorer, relevance).values()],
        "similarity": lambda: relevance_matrix(texts, "cider", cache=False).sum(dtype=np.float64),
        "neighbours": lambda: nearest_items(points, points, 20, without=np.arange(len(points))).items.sum(),
        "encoding": lambda: encode_texts(encoder, sentences).rows.sum(dtype=np.float64),
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare(rounds: int, quick: bool, only: list[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    started, engine = timed(lambda: cl.use_engine("ray").__enter__())
    started += timed(engine.slots)[0]
    works = tasks(quick)
    for name, work in works.items():
        if only and name not in only:
            continue
        times: dict[str, list[float]] = {"local": [], "ray": []}
        for round_ in range(rounds + 1):
            results = []
            for label, chosen in (("local", "local"), ("ray", engine)):
                with cl.use_engine(chosen):
                    seconds, result = timed(work)
                results.append(result)
                if round_:  # the first one compiles, imports and loads
                    times[label].append(seconds)
            assert results[0] == results[1], f"{name} differs"
        ratios = [ray / local for local, ray in zip(times["local"], times["ray"], strict=True)]
        figures[name] = {
            "local s": statistics.median(times["local"]),
            "ray s": statistics.median(times["ray"]),
            "ratio": statistics.median(ratios),
            "ratios": [round(ratio, 2) for ratio in ratios],
        }
    empty = [timed(lambda: list(engine.run(_nothing, None, range(200))))[0] / 200 for _ in range(rounds)]
    engine.close()
    return {"start s": started, "task ms": 1e3 * statistics.median(empty), "work": figures}


def _nothing(shared: None, task: int) -> int:
    return task


class Rates(NamedTuple):
    """Seconds per multiplication of a part on one core, and per query to join a part's lists."""

    multiplication: float
    joining: float


def measured_rates(quick: bool) -> Rates:
    """From parts of one ranking, computed and joined in this process."""
    scorer, relevance = world(2_000 if quick else 4_000, 256 if quick else 512)
    worked, joined = [], []

    class Watched:
        name, distributed = "watched", True

        def slots(self) -> int:
            return 4

        def run(self, work: Any, shared: Any, blocks: Any, **_: Any) -> Any:
            for block in blocks:
                seconds, result = timed(lambda block=block: work(shared, block))
                worked.append(seconds / ((block.stop - block.start) * scorer.shape[0] * scorer.work))
                start = time.perf_counter()
                yield result
                joined.append((time.perf_counter() - start) / scorer.shape[0])

    for _ in range(2):
        worked.clear()
        joined.clear()
        with cl.use_engine(Watched()):
            assert current_engine().distributed
            rank_both(scorer, relevance, threads=1)
    return Rates(statistics.median(worked), statistics.median(joined))


def modelled(rates: Rates, images: int, dimension: int, nodes: int, task: float, depth: int = 10) -> float:
    """Seconds for images × 5 captions in both directions on so many nodes."""
    slots, outer = nodes * CORES_PER_NODE, images * PER_IMAGE
    blocks = parts._blocks(0, outer, images * dimension, slots)
    # Lists and counts of a part: the inner queries' lists, and three counts for each relevant pair of the inner axis.
    moved = (images * depth * 12 + outer * 24) / NETWORK
    cores = [0.0] * slots
    finished = []
    for block in blocks:
        begin = heapq.heappop(cores)
        end = begin + task + (block.stop - block.start) * images * dimension * rates.multiplication
        heapq.heappush(cores, end)
        finished.append(end)
    clock = 0.0
    for end in finished:  # in order, as this process takes them
        clock = max(clock, end) + moved + images * rates.joining
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="ranking, similarity, neighbours, encoding")
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
        "speed-up": speed_up, "multiplications per second and core": 1 / rates.multiplication,
        "joined queries per second": 1 / rates.joining,
    }  # fmt: skip
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"Ray starts in {figures['start s']:.1f} s; an empty task takes {figures['task ms']:.2f} ms\n")
    for name, row in figures["work"].items():
        print(f"{name:<12} local {row['local s']:7.2f} s   ray {row['ray s']:7.2f} s   ratio {row['ratio']:.2f}")
    print(f"\nmodelled: ranking {figures['model']['size']}, nodes of {CORES_PER_NODE} cores, 10 Gbit/s")
    for nodes, gain in speed_up.items():
        print(f"{nodes:>4} nodes   {one / gain:9.0f} s   speed-up {gain:5.1f}")


if __name__ == "__main__":
    main()
