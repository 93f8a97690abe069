"""CLIPScore: a cosine as people report it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crosslens.core import UnknownNameError

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

CLIPSCORES: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "cosine": lambda cosines: cosines,
    "clipscore": lambda cosines: np.maximum(100 * cosines, 0),
    "hessel": lambda cosines: 2.5 * np.maximum(cosines, 0),
}
"""``clipscore``: max(100 · cos, 0), as torchmetrics prints it; ``hessel``: 2.5 · max(cos, 0), of Hessel et al. (EMNLP
2021); ``cosine``: as it is, which IMP calls CLIPScore."""


def clipscore(cosines: Any, form: str = "clipscore") -> FloatArray:
    """Cosines in one of the forms that are called CLIPScore."""
    if form not in CLIPSCORES:
        raise UnknownNameError("form of CLIPScore", form, CLIPSCORES)
    return CLIPSCORES[form](np.asarray(cosines, np.float64))
