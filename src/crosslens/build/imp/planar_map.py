"""A map of vectors in a plane, by UMAP."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np

from crosslens.core import MissingExtraError

Array = np.ndarray[Any, Any]

NEIGHBOURS = 15
"""UMAP's default."""
FEWEST = 8
"""UMAP lays out no fewer points: with less there is no neighbourhood to keep."""


def has_umap() -> bool:
    """Whether umap-learn is installed, without importing it."""
    return importlib.util.find_spec("umap") is not None


def planar_map(vectors: Array, seed: int) -> Array:
    """n×2 positions, by the cosine; the same for the same vectors and seed. Needs at least ``FEWEST`` vectors."""
    if not has_umap():
        raise MissingExtraError("a UMAP map", "umap-learn", "polysemy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread, and others of its dependencies
        from umap import UMAP

        reducer = UMAP(
            n_components=2,
            n_neighbors=min(NEIGHBOURS, len(vectors) - 1),
            metric="cosine",
            init="spectral" if len(vectors) > 4 * NEIGHBOURS else "random",  # the spectrum of few points is degenerate
            random_state=seed % 2**32,
            n_jobs=1,
        )
        return np.asarray(reducer.fit_transform(np.asarray(vectors, np.float32)), np.float64)
