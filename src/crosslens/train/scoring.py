"""A model's scores of a whole split, and the metrics of their exact ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, MetricValues, Relevance
from crosslens.metrics import measure
from crosslens.rank import ScoreMatrix, rank_both
from crosslens.train.feature_sets import Split
from crosslens.train.models.protocol import TrainableModel

if TYPE_CHECKING:
    from crosslens.train.batches import CaptionSource

Array = np.ndarray[Any, Any]
_IMAGES, _CAPTIONS = 500, 1_000
"""How many are encoded, and compared, at once."""


def score_matrix(model: TrainableModel, split: Split, captions: CaptionSource, device: Any) -> Array:
    """Images × captions, float32; encodings are compared in blocks, so that attention over pairs fits."""
    import torch

    def blocks(count: int, size: int) -> Iterable[slice]:
        return (slice(start, min(start + size, count)) for start in range(0, count, size))

    count = len(split.dataset.texts)
    out = np.empty((len(split.features), count), np.float32)
    with torch.inference_mode():
        texts: list[tuple[slice, Any]] = [
            (rows, model.encode_captions(captions.batch(np.arange(rows.start, rows.stop), device)))
            for rows in blocks(count, _CAPTIONS)
        ]
        for rows in blocks(len(split.features), _IMAGES):
            images = model.encode_images(split.features.batch(rows, device))
            for columns, encoded in texts:
                out[rows, columns] = model.scores(images, encoded).float().cpu().numpy()
    return out


def metrics_of(
    scores: Array, dataset: Dataset, metrics: str | Sequence[str], *, resamples: int = 0
) -> dict[str, MetricValues]:
    """The metrics of a score matrix, by the same exact ranking as everywhere."""
    relevance = Relevance.from_dataset(dataset)
    rankings = rank_both(ScoreMatrix(scores), relevance)
    clusters = {IMAGE_TO_TEXT: np.arange(len(dataset.image_ids)), TEXT_TO_IMAGE: np.asarray(dataset.caption_image)}
    return measure(rankings, clusters, metrics, resamples=resamples)
