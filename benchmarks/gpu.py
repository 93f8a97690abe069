"""Ranking on a GPU beside the bare matrix products of the same size, and checked against float64.

    python benchmarks/gpu.py --size 262144 --dim 512 --json       # the figures as one JSON object
    python benchmarks/gpu.py --size 1000000 --dim 512             # a million by a million
    python benchmarks/gpu.py --size 65536 --kind random           # vectors without any relation: the hard case
    python benchmarks/gpu.py --size 65536 --way half              # without Triton; or float32: the plain way

SIZE images and as many captions: every caption belongs to an image, five to each of the first fifth; the other images
are distractors, as in an expanded gallery. Ranks of all relevant items and lists of ten, in both directions. Needs
torch and numpy, and Triton for the fused kernels.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from crosslens.core import Relevance, SilentProgress
from crosslens.rank.gpu.ranking import rank_vectors

PER_IMAGE = 5
DEPTH = 10
NOISE = 6.0
"""How far captions are from their images: at 262,144 items of 512 dimensions the median rank is then about 25."""
WAYS = {"fused": (True, True), "half": (False, True), "float32": (False, False)}


def make_vectors(size: int, dimension: int, kind: str, device: str) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Unit vectors of images and captions, and the image of each caption."""
    generator = torch.Generator(device).manual_seed(0)

    def random(count: int) -> torch.Tensor:
        return torch.randn(count, dimension, generator=generator, device=device)

    owners = np.arange(size) // PER_IMAGE
    images = random(size)
    captions = random(size)
    if kind == "model":
        for start in range(0, size, 1 << 17):
            part = slice(start, start + (1 << 17))
            captions[part] = images[torch.from_numpy(owners[part]).to(device)] + NOISE * captions[part]
    elif kind == "constant":
        captions[:] = captions[0].clone()
    return torch.nn.functional.normalize(images, dim=1), torch.nn.functional.normalize(captions, dim=1), owners


def seconds_of(work: Callable[[], Any], rounds: int) -> float:
    """The best of several rounds on an idle device."""
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def bare_products(images: torch.Tensor, captions: torch.Tensor, rounds: int) -> dict[str, float]:
    """TFLOP/s of the same products without anything else, in tiles that are thrown away."""
    tile = min(len(images), 16_384)
    result = {}
    for name, kind, tf32 in (
        ("fp16", torch.float16, False),
        ("tf32", torch.float32, True),
        ("fp32", torch.float32, False),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        left, right = images.to(kind), captions.to(kind)
        out = torch.empty(tile * tile, dtype=kind, device=images.device)

        def multiply(left: torch.Tensor = left, right: torch.Tensor = right, out: torch.Tensor = out) -> None:
            for rows in left.split(tile):
                for columns in right.split(tile):
                    torch.mm(rows, columns.T, out=out[: len(rows) * len(columns)].view(len(rows), len(columns)))

        # Float32 takes long enough to be measured once.
        result[name] = 2e-12 * images.numel() * len(captions) / seconds_of(multiply, rounds if name != "fp32" else 1)
    torch.backends.cuda.matmul.allow_tf32 = False
    return result


def check(sides: Any, images: torch.Tensor, captions: torch.Tensor, sample: int) -> int:
    """Rank a sample of queries by whole columns in float64 and compare; how many were compared."""
    generator = torch.Generator().manual_seed(1)
    compared = 0
    for side, queries, gallery in ((sides[0], images, captions), (sides[1], captions, images)):
        ranking = side.ranking("i2t")
        chosen = torch.randperm(
            min(len(queries), len(queries) // PER_IMAGE if side is sides[0] else len(queries)), generator=generator
        )[:sample]
        for query in chosen.tolist():
            scores = (gallery.double() @ queries[query].double()).float()
            order = torch.argsort(scores, descending=True, stable=True)[:DEPTH]
            assert ranking.top_items[query].tolist() == order.tolist(), f"the list of query {query} differs"
            assert ranking.top_scores[query].tolist() == scores[order].tolist(), f"the scores of query {query} differ"
            for pair in range(ranking.offsets[query], ranking.offsets[query + 1]):
                own = int(ranking.relevant[pair])
                ties = torch.nonzero(scores == scores[own])[:, 0]
                expected = [int((scores > scores[own]).sum()), len(ties) - 1, int((ties < own).sum())]
                counted = [int(part[pair]) for part in (ranking.above, ranking.tied, ranking.tied_before)]
                assert counted == expected, f"query {query}, item {own}: {counted} instead of {expected}"
            compared += 1
    return compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=65_536, help="images, and as many captions")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--kind", choices=("model", "random", "constant"), default="model")
    parser.add_argument("--way", choices=WAYS, default="fused")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=50, help="queries of each direction that float64 checks")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: nothing to measure", file=sys.stderr)
        return 3
    images, captions, owners = make_vectors(asked.size, asked.dim, asked.kind, "cuda")
    ids = [tuple(f"{letter}{number}" for number in range(asked.size)) for letter in "ic"]
    relevance = Relevance.from_indices(ids[0], ids[1], owners, np.arange(asked.size))
    relevant = [relevance, relevance.flip()]
    kernels, half = WAYS[asked.way]
    if not kernels:
        sys.modules["triton"] = None  # type: ignore[assignment]
    sides: list[Any] = []
    results: list[Any] = []

    def rank() -> None:
        with torch.inference_mode():
            sides[:] = rank_vectors(
                images, captions, relevant, DEPTH, None, SilentProgress(), kernels=kernels, half=half
            )
            results[:] = [(side.best(), side.counts()) for side in sides]

    bare = bare_products(images, captions, asked.rounds)
    rank()  # compile and warm up
    taken = seconds_of(rank, asked.rounds)
    rate = 2e-12 * asked.size**2 * asked.dim / taken
    compared = check(sides, images, captions, asked.sample)
    ranks = [np.asarray(side.ranking("i2t").above) + 1 for side in sides]
    figures = {
        "device": torch.cuda.get_device_name(), "size": asked.size, "dim": asked.dim, "kind": asked.kind,
        "way": asked.way,
        "bare_tflops": {name: round(value, 1) for name, value in bare.items()},
        "ranking_seconds": round(taken, 4), "ranking_tflops": round(rate, 1),
        "share_of_bare_fp16": round(rate / bare["fp16"], 3), "queries_checked": compared,
        "median_rank": {"i2t": float(np.median(ranks[0])), "t2i": float(np.median(ranks[1]))},
        "peak_memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 1),
    }  # fmt: skip
    print(json.dumps(figures, indent=None if asked.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
