"""What a matrix of φ looks like in a few numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.similarity.similarity import Array

_ROWS = 256


@dataclass(frozen=True)
class MatrixSummary:
    """The range of φ, and its mean for captions of the image itself and for all others (None where there are none)."""

    images: int
    captions: int
    min: float
    mean: float
    max: float
    mean_own: float | None
    mean_others: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        return asdict(self)


def summarise(matrix: Array, dataset: Dataset) -> MatrixSummary:
    """Look at every number once, a few rows at a time."""
    images, captions = matrix.shape
    if not captions:
        return MatrixSummary(images, 0, 0.0, 0.0, 0.0, None, None)
    own = matrix[dataset.caption_image, np.arange(captions)].astype(np.float64)
    lowest, highest, total = np.inf, -np.inf, 0.0
    for start in range(0, images, _ROWS):
        rows = matrix[start : start + _ROWS]
        lowest, highest = min(lowest, float(rows.min())), max(highest, float(rows.max()))
        total += float(rows.sum(dtype=np.float64))
    others = images * captions - captions
    return MatrixSummary(
        images,
        captions,
        lowest,
        total / (images * captions),
        highest,
        float(own.mean()),
        (total - float(own.sum())) / others if others else None,
    )
