"""Retrieval metrics for the ``Trainer`` of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosslens.core import Array, InputError
from crosslens.pipeline import Metrics, measure_vectors, vector_metrics

__all__ = ["retrieval_metrics"]


def retrieval_metrics(
    metrics: Metrics = None,
    *,
    embeddings: Callable[[Any], tuple[Array, Array]] | None = None,
    score: str | None = None,
) -> Callable[[Any], dict[str, float]]:
    """A ``compute_metrics`` for ``Trainer``: the figures of :func:`crosslens.evaluate` for what the model predicted.

    The model's predictions are the embeddings of images and of captions, in this order: row i of both is one pair.
    Where there are more, as CLIP returns, ``embeddings`` chooses: ``lambda predictions: (predictions[3],
    predictions[2])``. Labels, if there are any, are ids of images: rows of one id are captions of one image.
    """
    requests = vector_metrics(metrics)

    def compute_metrics(evaluated: Any) -> dict[str, float]:
        predictions, labels = evaluated.predictions, evaluated.label_ids
        if embeddings is not None:
            predictions = embeddings(predictions)
        shapes = [np.shape(array) for array in predictions] if isinstance(predictions, tuple | list) else []
        if len(shapes) != 2 or any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) != 1:
            raise InputError(
                f"the predictions have the shapes {shapes or np.shape(predictions)}",
                expected="embeddings of images and of captions, n × d each",
                fix="pass embeddings= a function that picks them from the predictions",
            )
        images, captions = (np.asarray(array, np.float32) for array in predictions)
        if labels is None:
            return measure_vectors(images, captions, range(len(images)), metrics=requests, score=score)
        if np.shape(labels) != (len(images),):
            raise InputError(
                f"labels of shape {np.shape(labels)}", expected=f"an image id for each of {len(images)} rows"
            )
        ids, rows, owners = np.unique(labels, return_index=True, return_inverse=True)
        return measure_vectors(images[rows], captions, ids[owners].tolist(), ids.tolist(), requests, score=score)

    return compute_metrics
