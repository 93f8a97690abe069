"""Retrieval metrics for the ``Trainer`` of transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakSet

import numpy as np

from crosslens.core import InputError
from crosslens.pipeline import Metrics, measure_vectors, vector_metrics
from crosslens.storage import Array

__all__ = ["retrieval_metrics"]

_NOT_CALLED: WeakSet[Callable[..., Any]] = WeakSet()
_NO_LABELS = (
    "no retrieval metrics: Trainer calls compute_metrics only where every batch has labels, and none came. Give every "
    "row the id of its image, and name that column: TrainingArguments(label_names=['image_id'], "
    "remove_unused_columns=False)"
)
_LOSS_ONLY = "no retrieval metrics: prediction_loss_only=True keeps no predictions; leave it out of TrainingArguments"


def retrieval_metrics(
    metrics: Metrics = None,
    *,
    embeddings: Callable[[Any], tuple[Array, Array]] | None = None,
    score: str | None = None,
) -> Callable[[Any], dict[str, float]]:
    """A ``compute_metrics`` for ``Trainer``: the figures of :func:`crosslens.evaluate` for what the model predicted.

    The model's predictions are the embeddings of images and of captions, in this order: row i of both is one pair.
    Where there are more, as CLIP returns, ``embeddings`` chooses: ``lambda predictions: (predictions[3],
    predictions[2])``. Labels are ids of images: rows of one id are captions of one image. ``Trainer`` computes no
    metrics without labels (``label_names``), and its log then says so.
    """
    requests = vector_metrics(metrics)

    def compute_metrics(evaluated: Any) -> dict[str, float]:
        _NOT_CALLED.discard(compute_metrics)
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

    _watch_trainers()
    _NOT_CALLED.add(compute_metrics)
    return compute_metrics


@cache
def _watch_trainers() -> None:
    """Have trainers that are made from now on say why they did not call :func:`retrieval_metrics`."""
    from transformers import TrainerCallback, trainer

    class MissingMetrics(TrainerCallback):
        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
            if _NOT_CALLED:
                trainer.logger.warning(_LOSS_ONLY if args.prediction_loss_only else _NO_LABELS)
                _NOT_CALLED.clear()

        on_predict = on_evaluate

    callbacks: list[Any] = trainer.DEFAULT_CALLBACKS
    callbacks.append(MissingMetrics)
