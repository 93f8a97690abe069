"""What ``crosslens.torch.RetrievalMetric`` costs beside the loop that people write by hand, on the CPU.

    python benchmarks/training_loop.py                  # 5,000 images × 25,000 captions, d = 512
    python benchmarks/training_loop.py --images 1000    # a smaller validation split

The loop by hand collects batches, multiplies all images with all captions and takes the top 10 of both directions for
R@1, R@5 and R@10. Every figure is the median over rounds, in which both are timed in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import torch

from crosslens.torch import RetrievalMetric

PER_IMAGE, BATCH = 5, 256
METRICS = "Hit@1 Hit@5 Hit@10"
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def batches(images: torch.Tensor, captions: torch.Tensor) -> Iterator[Batch]:
    """Images with their captions, as a data loader gives them."""
    for rows in torch.arange(len(images)).split(BATCH):
        owners = rows.repeat_interleave(PER_IMAGE)
        texts = captions[rows[0] * PER_IMAGE : (rows[-1] + 1) * PER_IMAGE]
        yield images[rows], texts, rows, owners


def by_hand(images: torch.Tensor, captions: torch.Tensor) -> dict[str, float]:
    """The usual loop."""
    parts = [(left, right) for left, right, _, _ in batches(images, captions)]
    left, right = (torch.nn.functional.normalize(torch.cat(side), dim=1) for side in zip(*parts, strict=True))
    scores = left @ right.T
    owners = torch.arange(len(captions)) // PER_IMAGE
    top = {"t2i": scores.T.topk(10, dim=1).indices == owners[:, None]}
    top["i2t"] = owners[scores.topk(10, dim=1).indices] == torch.arange(len(images))[:, None]
    return {
        f"{direction}/Hit@{k}": float(hits[:, :k].any(dim=1).double().mean())
        for direction, hits in top.items()
        for k in (1, 5, 10)
    }


def by_metric(images: torch.Tensor, captions: torch.Tensor) -> dict[str, float]:
    """The same by the metric."""
    metric = RetrievalMetric(METRICS)
    for batch in batches(images, captions):
        metric.update(*batch)
    return {name: float(value) for name, value in metric.compute().items()}


def main() -> None:
    """Time both, and check that they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(options.images, options.dimension, generator=generator)
    captions = images.repeat_interleave(PER_IMAGE, 0)
    captions = captions + 0.27 * options.dimension**0.5 * torch.randn(captions.shape, generator=generator)
    ways: dict[str, Callable[[torch.Tensor, torch.Tensor], dict[str, float]]] = {"loop": by_hand, "metric": by_metric}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    values = {name: way(images[:200], captions[: 200 * PER_IMAGE]) for name, way in ways.items()}  # warms up
    for _ in range(options.rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            values[name] = way(images, captions)
            seconds[name].append(time.perf_counter() - started)
    for name, value in values["loop"].items():
        assert abs(value - values["metric"][name]) < 1e-9, f"{name}: {value} by hand, {values['metric'][name]}"
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ratio = medians["metric"] / medians["loop"]
    if options.json:
        print(json.dumps({"images": options.images, "seconds": medians, "ratio": ratio}))
    else:
        print(f"{options.images:,} images × {len(captions):,} captions, d = {options.dimension}")
        print(f"loop by hand {medians['loop']:.2f} s, metric {medians['metric']:.2f} s: {ratio:.2f} ×")


if __name__ == "__main__":
    main()
