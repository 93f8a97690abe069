"""A typed program of a user: mypy --strict finds nothing wrong with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import crosslens as cl
from crosslens.metrics import MetricSpec


def evaluated(folder: Path) -> cl.Run:
    dataset = cl.load_dataset("flickr", captions=folder / "captions.txt")
    vectors = np.zeros((len(dataset.image_ids), 4))
    return cl.evaluate(dataset, images=vectors, captions=vectors, metrics="Hit@1 Rsum", resamples=100)


def hit(run: cl.Run) -> float:
    values: cl.values.MetricValues = run["t2i/Hit@1"]
    return float(values.mean)


def better(first: cl.Run, second: cl.Run) -> str:
    comparison: cl.comparisons.Comparison = cl.compare(first, second, metrics="Hit@1")
    return comparison.text(80)


def parsed(name: str) -> list[MetricSpec]:
    return [request.spec for request in cl.metrics.parse_metrics(name)]
