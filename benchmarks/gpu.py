"""Ranking on a GPU beside the bare matrix products of the same size, and checked against float64.

    python benchmarks/gpu.py --size 262144 --dim 512 --json       # the figures as one JSON object
    python benchmarks/gpu.py --size 1000000 --dim 512             # a million by a million
    python benchmarks/gpu.py --size 65536 --kind random           # vectors without any relation: the hard case
    python benchmarks/gpu.py --size 65536 --way half              # without Triton; or float32: the plain way
    python benchmarks/gpu.py --size 12001 --captions 20011 --kind zeros --sample all    # compare every query

SIZE images and as many captions, or --captions of them: five to an image as far as they go. The other images are
distractors, as in an expanded gallery. Ranks of all relevant items and lists of ten, in both directions. Needs torch
and numpy, and Triton for the fused kernels.
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

from crosslens.engine import SilentProgress
from crosslens.rank.gpu.block_ranking import rank_pair
from crosslens.rank.gpu.direction import DeviceDirection
from crosslens.values import Relevance

DEPTH = 10
NOISE = 6.0
"""How far captions are from their images: at 262,144 items of 512 dimensions the median rank is then about 25."""
KINDS = ("model", "random", "constant", "copies", "clusters", "lengths", "zeros")
WAYS = {"fused": (True, True), "half": (False, True), "float32": (False, False)}


def make_vectors(
    size: int, captions: int, dimension: int, kind: str, per_image: int
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Vectors of images and captions, of length 1 but for two kinds; and the image of each caption."""
    generator = torch.Generator("cuda").manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device="cuda")

    owners = np.minimum(np.arange(captions) // per_image, size - 1)
    pictures, texts = random(size, dimension), random(captions, dimension)
    if kind == "constant":
        texts[:] = texts[0].clone()
    elif kind == "clusters":  # within a cluster float32 can hardly tell scores apart
        centres = random(50, dimension)
        for side in (pictures, texts):
            side[:] = centres[torch.arange(len(side), device="cuda") % 50] + 1e-4 * side
    elif kind != "random":
        for start in range(0, captions, 1 << 17):
            part = slice(start, start + (1 << 17))
            texts[part] = pictures[torch.from_numpy(owners[part]).cuda()] + NOISE * texts[part]
    pictures, texts = (torch.nn.functional.normalize(side, dim=1) for side in (pictures, texts))
    for side in (pictures, texts):
        if kind == "copies":
            side[len(side) // 2 :] = side[: len(side) - len(side) // 2].clone()
        elif kind == "lengths":  # over six powers of ten
            side *= 10 ** (6 * torch.rand(len(side), 1, generator=generator, device="cuda") - 3)
        elif kind == "zeros":
            side[::50] = 0
    return pictures, texts, owners


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

        torch.mm(left[:tile], right[:tile].T)  # warm up
        # Float32 takes long enough to be measured once.
        result[name] = 2e-12 * images.numel() * len(captions) / seconds_of(multiply, rounds if name != "fp32" else 1)
    torch.backends.cuda.matmul.allow_tf32 = False
    return result


def check(directions: Any, images: torch.Tensor, captions: torch.Tensor, sample: int | None) -> int:
    """Rank a sample of queries, or all, by whole columns in float64 and compare; how many were compared."""
    generator, compared = torch.Generator().manual_seed(1), 0
    for direction, queries, gallery in ((directions[0], images, captions), (directions[1], captions, images)):
        ranking = direction.lists().ranking("i2t", direction.relevance)
        relevant = np.diff(ranking.offsets)
        chosen = torch.arange(len(queries))
        if sample is not None:  # of those with relevant items
            chosen = torch.from_numpy(np.flatnonzero(relevant))
            chosen = chosen[torch.randperm(len(chosen), generator=generator)[:sample]]
        wide = gallery.double()
        for part in chosen.split(max(1, (1 << 27) // len(gallery))):
            scores = (queries[part.cuda()].double() @ wide.T).float()
            _check_lists(ranking, part.numpy(), scores)
            rows = np.repeat(np.arange(len(part)), relevant[part])
            pairs = np.concatenate([np.arange(*ranking.offsets[query : query + 2]) for query in part.tolist()])
            step = max(1, (1 << 27) // len(gallery))
            for start in range(0, len(pairs), step):
                _check_ranks(ranking, pairs[start : start + step], scores, rows[start : start + step])
        compared += len(chosen)
    return compared


def _check_lists(ranking: Any, queries: np.ndarray, scores: torch.Tensor) -> None:
    order = torch.argsort(scores, dim=1, descending=True, stable=True)[:, :DEPTH]
    for what, listed, expected in (
        ("list", ranking.top_items, order), ("scores", ranking.top_scores, scores.gather(1, order)),
    ):  # fmt: skip
        different = (np.asarray(listed)[queries] != expected.cpu().numpy()).any(axis=1)
        assert not different.any(), f"the {what} of query {queries[np.argmax(different)]} differs"


def _check_ranks(ranking: Any, pairs: np.ndarray, scores: torch.Tensor, rows: np.ndarray) -> None:
    items, lines = torch.from_numpy(np.asarray(ranking.relevant)[pairs]).cuda(), scores[torch.from_numpy(rows).cuda()]
    own = lines.gather(1, items[:, None])
    ties = lines == own
    before = torch.arange(lines.shape[1], device=lines.device) < items[:, None]
    expected = torch.stack([(lines > own).sum(1), ties.sum(1) - 1, (ties & before).sum(1)]).cpu().numpy()
    counted = np.stack([np.asarray(part)[pairs] for part in (ranking.above, ranking.tied, ranking.tied_before)])
    different = (counted != expected).any(axis=0)
    first = int(np.argmax(different))
    assert not different.any(), f"pair {pairs[first]}: {counted[:, first]} instead of {expected[:, first]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=65_536, help="images")
    parser.add_argument("--captions", type=int, help="as many as images, if not given")
    parser.add_argument("--per-image", type=int, default=5, help="captions of an image")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--kind", choices=KINDS, default="model")
    parser.add_argument("--way", choices=WAYS, default="fused")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", default="50", help="queries of each direction that float64 checks, or all")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    sample = None if asked.sample == "all" else int(asked.sample)
    if not torch.cuda.is_available():
        print("no GPU here: nothing to measure", file=sys.stderr)
        return 3
    count = asked.captions or asked.size
    images, captions, owners = make_vectors(asked.size, count, asked.dim, asked.kind, asked.per_image)
    ids = [tuple(f"{letter}{number}" for number in range(many)) for letter, many in (("i", asked.size), ("c", count))]
    relevance = Relevance.from_indices(ids[0], ids[1], owners, np.arange(count))
    kernels, half = WAYS[asked.way]
    if not kernels:
        sys.modules["triton"] = None  # type: ignore[assignment]
    flipped = relevance.flip()
    directions: list[Any] = []
    results: list[Any] = []

    def both() -> tuple[DeviceDirection, DeviceDirection]:
        return (
            DeviceDirection.of(relevance, images, captions, DEPTH),
            DeviceDirection.of(flipped, captions, images, DEPTH),
        )

    def rank() -> None:
        with torch.inference_mode():
            directions[:] = rank_pair(both, None, SilentProgress(), kernels=kernels, half=half)
            results[:] = [(direction.best(), direction.counts()) for direction in directions]

    bare = bare_products(images, captions, asked.rounds)
    rank()  # compile and warm up
    taken = seconds_of(rank, asked.rounds)
    rate = 2e-12 * asked.size * count * asked.dim / taken
    compared = check(directions, images, captions, sample)
    ranks = [direction.counts()[0].cpu().numpy() + 1 for direction in directions]
    figures = {
        "device": torch.cuda.get_device_name(), "size": asked.size, "captions": count, "dim": asked.dim,
        "kind": asked.kind, "way": asked.way,
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
