"""The metrics of vectors that a training loop has just computed, without a dataset on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crosslens.core import InputError, UsageError
from crosslens.metrics import OWN_SCORES, MetricRequest, MetricSpec, measure, parse_metrics, requests_naming
from crosslens.rank import default_score, rank_both, scorer_of
from crosslens.storage import Array
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Embeddings, Relevance

Metrics = str | Iterable[str | MetricSpec | MetricRequest] | None


def vector_metrics(metrics: Metrics) -> list[MetricRequest]:
    """The metrics by name; one that requires texts, or the scores of another model, is refused: here are vectors only.

    Without a φ, the grade of a pair is whether the caption is of the image; ``DCGcm`` takes the model's own scores.
    """
    requests = parse_metrics(metrics)
    fix = "leave it out here, and compute it with crosslens.evaluate(dataset, …)"
    for name, request in requests_naming(requests, "φ"):
        raise UsageError(f"{request} compares captions by {name}, and only their vectors are given", fix=fix)
    for name, request in requests_naming(requests, "scores_from"):
        if name != OWN_SCORES:
            problem = f"{request} takes the scores of {name!r}, and only the vectors of the model itself are given"
            raise UsageError(problem, fix=f"write scores_from={OWN_SCORES}, or {fix}", subject=name)
    ranked = (None, IMAGE_TO_TEXT, TEXT_TO_IMAGE)
    if unranked := next((request for request in requests if request.direction not in ranked), None):
        problem = f"{unranked} is of captions that retrieve captions; images and captions are ranked here"
        raise UsageError(problem, fix=f"write {IMAGE_TO_TEXT}/{unranked.spec} or {TEXT_TO_IMAGE}/{unranked.spec}")
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
    row_of = {name: row for row, name in enumerate(names)}
    unknown = next((name for name in owners if name not in row_of), None)
    if unknown is not None:
        raise InputError(
            f"a caption names the image {unknown!r}, which has no vector",
            expected=f"one of the {len(names):,} images",
            fix="pass the features of every image that captions name",
        )
    requests = vector_metrics(metrics)
    of_images, of_captions = Embeddings.of(images, names), Embeddings.of(captions)
    rows = np.array([row_of[name] for name in owners], np.int64)
    relevance = Relevance.from_indices(of_images.ids, of_captions.ids, rows, np.arange(len(rows)))
    # Not by evaluate(): a run's record has hashes of the vectors, which cost a third of ranking a small split.
    rankings = rank_both(
        scorer_of(of_images, of_captions, score or default_score(of_images.kind, of_captions.kind)), relevance,
        depth=max(1, *(request.spec.cutoff or 1 for request in requests)), threads=threads,
    )  # fmt: skip
    values = measure(rankings, {IMAGE_TO_TEXT: np.arange(len(names)), TEXT_TO_IMAGE: rows}, requests, resamples=0)
    return {name: float(value.mean) for name, value in values.items()}
