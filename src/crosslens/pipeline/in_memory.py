"""The metrics of vectors that a training loop has just computed, without a dataset on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Dataset, InputError, UsageError
from crosslens.metrics import MetricRequest, MetricSpec, family_of, parse_metrics
from crosslens.pipeline.evaluation import evaluate

Array = np.ndarray[Any, Any]
_TEXTS = dict.fromkeys(("caption", "image", "text"), pl.String)
Metrics = str | Iterable[str | MetricSpec | MetricRequest] | None


def vector_metrics(metrics: Metrics) -> list[MetricRequest]:
    """The metrics by name; one that compares the captions' texts is refused, as vectors come without them."""
    requests = parse_metrics(metrics)
    graded = next((request for request in requests if family_of(request.spec).graded), None)
    if graded is not None:
        raise UsageError(
            f"{graded} compares the texts of captions, and only their vectors are given",
            fix="leave it out here, and compute it with crosslens.evaluate(dataset, …)",
        )
    return requests


def measure_vectors(
    images: Array,
    captions: Array,
    caption_images: Sequence[Any],
    image_ids: Sequence[Any] | None = None,
    metrics: Metrics = None,
    *,
    score: str | None = None,
    threads: int | None = None,
) -> dict[str, float]:
    """What :func:`crosslens.evaluate` finds for these vectors: ``{"t2i/Hit@1": 0.41, …}``, without intervals.

    ``caption_images`` names the image of every caption by its id, or without ``image_ids`` by its row. Images that no
    caption names are in the gallery, and no queries.
    """
    names = [str(name) for name in (range(len(images)) if image_ids is None else image_ids)]
    owners = [str(name) for name in caption_images]
    if len(owners) != len(captions):
        raise InputError(f"{len(captions)} caption vectors and {len(owners)} caption_images", expected="equal numbers")
    unknown = next(iter(dict.fromkeys(owners).keys() - set(names)), None)
    if unknown is not None:
        raise InputError(
            f"a caption names the image {unknown!r}, which has no vector",
            expected=f"one of the {len(names):,} images", fix="pass the features of every image that captions name",
        )  # fmt: skip
    numbers = [str(number) for number in range(len(owners))]
    captions_table = pl.DataFrame({"caption": numbers, "image": owners, "text": numbers}, schema_overrides=_TEXTS)
    dataset = Dataset("vectors", pl.DataFrame({"image": names}, schema_overrides=_TEXTS), captions_table)
    run = evaluate(
        dataset, images=images, captions=captions, metrics=vector_metrics(metrics), score=score, resamples=0,
        threads=threads,
    )  # fmt: skip
    return {name: float(values.mean) for name, values in run.values.items()}
