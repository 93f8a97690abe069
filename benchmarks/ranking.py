"""How fast exact ranking is, as ratios measured side by side in one run.

    python benchmarks/ranking.py              # 5,000 images × 25,000 captions, d = 512
    python benchmarks/ranking.py --growth     # and how time and memory grow, up to --largest images
    python benchmarks/ranking.py --random     # captions that have nothing to do with their images
    python benchmarks/ranking.py --hard       # the ranking alone: also where all captions or all images are one vector

Every figure is the median over rounds; in each round everything is timed once, in turn, so that a busy machine slows
all of them alike. Peers are left out, and said so, where they are not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.metrics import compute, compute_across, parse_metrics
from crosslens.rank import rank_both, scorer_of
from crosslens.values.embeddings import Embeddings
from crosslens.values.relevance import Relevance

SECTION_3 = (
    "Hit@1 Hit@5 Hit@10 Recall@1 Recall@5 Recall@10 CappedRecall@1 CappedRecall@5 CappedRecall@10 MRR@10 MRR "
    "MedR MedR[floor] MedR[all] MeanR MeanR[all] mAP@R AP RPrecision Fails Rsum Rsum[capped]"
)
PER_IMAGE = 5
_PAUSE = 0.2
"""Seconds before the clock starts: threads of a matrix product spin for a while after it, and would slow the next."""


def world(
    images: int, dimension: int, seed: int = 0, *, related: bool = True
) -> tuple[Embeddings, Embeddings, Relevance]:
    """Vectors of a middling model: captions scattered around their image (t2i Hit@1 about 0.4 at 5,000 images)."""
    rng = np.random.default_rng(seed)
    pictures = rng.standard_normal((images, dimension), dtype=np.float32)
    texts = np.repeat(pictures, PER_IMAGE, axis=0) if related else np.zeros((images * PER_IMAGE, dimension), np.float32)
    for start in range(0, len(texts), 50_000):
        part = texts[start : start + 50_000]
        part += rng.standard_normal(part.shape, dtype=np.float32) * np.float32(0.27 * dimension**0.5)
    image_ids = tuple(f"i{k}" for k in range(images))
    caption_ids = tuple(f"c{k}" for k in range(len(texts)))
    rows = np.repeat(np.arange(images), PER_IMAGE)
    relevance = Relevance.from_indices(image_ids, caption_ids, rows, np.arange(len(texts)))
    return Embeddings(image_ids, pictures), Embeddings(caption_ids, texts), relevance


def bare_product(images: Embeddings, captions: Embeddings, _: Relevance) -> None:
    """The one matrix product that no method can do without."""
    np.asarray(images.vectors) @ np.asarray(captions.vectors).T


def crosslens(images: Embeddings, captions: Embeddings, relevance: Relevance) -> dict[str, float]:
    """Both directions, exact, all section 3 metrics."""
    rankings = rank_both(scorer_of(images, captions), relevance)
    clusters = {"i2t": np.arange(len(images.ids)), "t2i": relevance.flip().items}
    found = {}
    for request in parse_metrics(SECTION_3):
        if request.spec.family == "Rsum":
            found[str(request)] = float(compute_across(request.spec, rankings, clusters).mean())
        else:
            for direction, ranking in rankings.items():
                found[f"{direction}/{request}"] = float(compute(request.spec, ranking).mean())
    return found


def full_matrix_topk(images: Embeddings, captions: Embeddings, relevance: Relevance) -> dict[str, float]:
    """The usual procedure: the whole matrix, a matrix of positives, and for each k the top k as one-hot vectors."""
    import torch

    left, right = (torch.nn.functional.normalize(torch.tensor(one.vectors), dim=1) for one in (images, captions))
    scores = left @ right.T
    positives = torch.zeros_like(scores, dtype=torch.bool)
    positives[torch.tensor(relevance.rows), torch.tensor(relevance.items)] = True
    found = {}
    for direction, matrix, truth in (("i2t", scores, positives), ("t2i", scores.T, positives.T)):
        for k in (1, 5, 10):
            hits = []
            for start in range(0, len(matrix), 64):
                best = torch.topk(matrix[start : start + 64], k, dim=1).indices
                listed = torch.nn.functional.one_hot(best, matrix.shape[1])
                hits.append((listed * truth[start : start + 64, None, :]).sum(dim=(1, 2)) > 0)
            found[f"{direction}/Hit@{k}"] = float(torch.cat(hits).double().mean())
    return found


def lean_topk(images: Embeddings, captions: Embeddings, relevance: Relevance) -> dict[str, float]:
    """The leanest full-matrix recall we can write with torch: one topk per direction, positives looked up."""
    import torch

    left, right = (torch.nn.functional.normalize(torch.tensor(one.vectors), dim=1) for one in (images, captions))
    scores = left @ right.T
    image_of = torch.tensor(relevance.rows)
    found = {}
    texts = image_of[torch.topk(scores, 10, dim=1).indices] == torch.arange(len(left))[:, None]
    pictures = torch.topk(scores.T, 10, dim=1).indices == image_of[:, None]
    for direction, hit in (("i2t", texts), ("t2i", pictures)):
        for k in (1, 5, 10):
            found[f"{direction}/Hit@{k}"] = float(hit[:, :k].any(dim=1).double().mean())
    return found


def ranx_end_to_end(images: Embeddings, captions: Embeddings, relevance: Relevance) -> dict[str, float]:
    """From vectors to figures with ranx; it gets only the best 100 of each list, where crosslens ranks them all."""
    from ranx import Qrels, Run, evaluate

    left, right = (one.vectors / np.linalg.norm(one.vectors, axis=1, keepdims=True) for one in (images, captions))
    scores = left @ right.T
    found = {}
    for direction, matrix, seen in (("i2t", scores, relevance), ("t2i", scores.T, relevance.flip())):
        best = np.argpartition(matrix, -100, axis=1)[:, -100:]
        lists = {
            query: {seen.item_ids[item]: float(matrix[row, item]) for item in best[row]}
            for row, query in enumerate(seen.query_ids)
        }
        truth: dict[str, dict[str, int]] = {}
        for row, item in zip(seen.rows, seen.items, strict=True):
            truth.setdefault(seen.query_ids[row], {})[seen.item_ids[item]] = 1
        names = ["hit_rate@1", "hit_rate@5", "hit_rate@10", "recall@10", "mrr@10", "r-precision"]
        values = evaluate(Qrels(truth), Run(lists), names)
        found |= {f"{direction}/Hit@{k}": float(values[f"hit_rate@{k}"]) for k in (1, 5, 10)}
    return found


def timed(function: Callable[..., object], *arguments: object) -> tuple[float, float, object]:
    """Seconds, megabytes of memory beyond what was held before, and the result."""
    before = _reset_peak()
    begin = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - begin, _peak() - before, result


def _reset_peak() -> float:
    with contextlib.suppress(OSError):  # not Linux: the figure is then the peak since the start
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return float("nan")


def side_by_side(images: int, dimension: int, rounds: int, *, quick: bool, related: bool) -> dict[str, object]:
    data = world(images, dimension, related=related)
    contenders = [bare_product, crosslens, full_matrix_topk, lean_topk, ranx_end_to_end]
    if quick:
        contenders = contenders[:2]
    small = world(200, 16)
    for one in list(contenders):
        try:
            one(*small)  # compile and import before the clock starts
        except ImportError as error:
            print(f"left out: {one.__name__} ({error})")
            contenders.remove(one)
    seconds: dict[str, list[float]] = {one.__name__: [] for one in contenders}
    memory: dict[str, float] = {}
    results: dict[str, object] = {}
    for number in range(rounds):
        for one in contenders:
            if one in (ranx_end_to_end, full_matrix_topk) and number >= 1:
                continue  # a minute or more each: once is enough
            taken, extra, results[one.__name__] = timed(one, *data)
            seconds[one.__name__].append(taken)
            memory[one.__name__] = max(memory.get(one.__name__, 0.0), extra)
    ours = results["crosslens"]
    assert isinstance(ours, dict)
    for name, other in results.items():
        if isinstance(other, dict):
            worst = max(abs(ours[key] - other[key]) for key in other)
            assert worst <= 2e-4, f"{name} disagrees by {worst}"  # float32 noise may move a query across k
    middle = {name: statistics.median(one) for name, one in seconds.items()}
    print(f"\n{images:,} × {images * PER_IMAGE:,}, d = {dimension}; {os.cpu_count()} cores, {rounds} rounds")
    print(f"{'':26}{'seconds':>9}{'÷ product':>11}{'crosslens is':>15}{'extra memory':>15}")
    for name, taken in middle.items():
        faster = "" if name in ("crosslens", "bare_product") else f"{taken / middle['crosslens']:.1f}× faster"
        ratio = taken / middle["bare_product"]
        print(f"{name.replace('_', ' '):26}{taken:9.2f}{ratio:11.2f}{faster:>15}{memory[name]:12.0f} MB")
    rounds_ratio = [a / b for a, b in zip(seconds["crosslens"], seconds["bare_product"], strict=True)]
    print(f"crosslens ÷ product, round by round: {' '.join(f'{one:.2f}' for one in rounds_ratio)}")
    print(f"(t2i/Hit@1 = {ours['t2i/Hit@1']:.4f}, Rsum = {ours['Rsum']:.1f}; all contenders agree)")
    return {"seconds": seconds, "memory": memory}


def hard_cases(images: int, dimension: int, rounds: int, threads: int) -> dict[str, object]:
    """The ranking alone, on vectors from easy to degenerate, each round beside the product of the same vectors."""
    cases = {name: world(images, dimension, related=name == "model-like") for name in ("model-like", "random")}
    pictures, texts, relevance = cases["random"]
    cases["one vector for all captions"] = (pictures, _all_alike(texts), relevance)
    cases["one vector for all images"] = (_all_alike(pictures), texts, relevance)
    for small in (world(200, 16), (world(200, 16)[0], _all_alike(world(200, 16)[1]), world(200, 16)[2])):
        rank_both(scorer_of(*small[:2]), small[2], threads=threads)  # compile before the clock starts
    ratios: dict[str, list[float]] = {name: [] for name in cases}
    processor: dict[str, list[float]] = {name: [] for name in cases}
    memory = dict.fromkeys(cases, 0.0)
    for _ in range(rounds):
        for name, data in cases.items():
            ours, extra = _two_clocks(lambda data=data: rank_both(scorer_of(*data[:2]), data[2], threads=threads))
            product, _ = _two_clocks(lambda data=data: bare_product(*data))
            ratios[name].append(ours[0] / product[0])
            processor[name].append(ours[1] / product[1])
            memory[name] = max(memory[name], extra)
    print(
        f"\n{images:,} × {images * PER_IMAGE:,}, d = {dimension}; {threads} threads, {rounds} rounds: ranking ÷ product"
    )
    print(f"{'':30}{'by the clock':>14}{'CPU seconds':>14}{'extra memory':>15}")
    for name in cases:
        clock, busy = statistics.median(ratios[name]), statistics.median(processor[name])
        print(f"{name:30}{clock:14.2f}{busy:14.2f}{memory[name]:12.0f} MB")
    return {"clock": ratios, "processor": processor, "memory": memory}


def _all_alike(embeddings: Embeddings) -> Embeddings:
    return Embeddings(embeddings.ids, np.repeat(embeddings.vectors[:1], len(embeddings.ids), axis=0))


def _two_clocks(work: Callable[[], object]) -> tuple[tuple[float, float], float]:
    """Seconds by the clock and of all processors, and megabytes; on a busy machine the second clock is steadier."""
    time.sleep(_PAUSE)
    before = time.process_time()
    seconds, extra, _ = timed(work)
    return (seconds, time.process_time() - before), extra


def growth(largest: int, dimension: int) -> list[dict[str, float]]:
    print(f"\ngrowth, d = {dimension}: crosslens, both directions, all section 3 metrics")
    print(f"{'images':>9}{'captions':>10}{'seconds':>10}{'scores/s':>12}{'extra memory':>15}")
    crosslens(*world(200, 16))
    rows = []
    images = 6_250
    while images <= largest:
        data = world(images, dimension)
        taken, extra, _ = timed(crosslens, *data)
        rate = images * images * PER_IMAGE / taken
        print(f"{images:9,}{images * PER_IMAGE:10,}{taken:10.1f}{rate:12.2e}{extra:12.0f} MB", flush=True)
        rows.append({"images": images, "seconds": taken, "megabytes": extra})
        images *= 2
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="leave the slower peers out")
    parser.add_argument("--random", action="store_true", help="captions unrelated to their images: the hard case")
    parser.add_argument("--hard", action="store_true", help="only the ranking, on vectors from easy to degenerate")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads with --hard")
    parser.add_argument("--growth", action="store_true", help="also show how time and memory grow")
    parser.add_argument("--largest", type=int, default=100_000, help="images in the largest growth step")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    size = (arguments.images, arguments.dimension, arguments.rounds)
    figures: dict[str, object] = {}
    if arguments.hard:
        with threadpool_limits(arguments.threads, "blas"):
            figures["hard_cases"] = hard_cases(*size, arguments.threads)
    else:
        figures["side_by_side"] = side_by_side(*size, quick=arguments.quick, related=not arguments.random)
    if arguments.growth:
        figures["growth"] = growth(arguments.largest, 256)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
