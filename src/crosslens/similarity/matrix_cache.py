"""φ kept between runs, found by content: the same measure of the same captions is not computed a second time.

A matrix is an array of the cache (:mod:`crosslens.core.arrays`), named by a hash of the measure (its name
and revision, the version of crosslens), the reference captions and the captions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from crosslens.core import Dataset, cache_folder, fingerprint, frozen, read_cached_array, write_cached_array
from crosslens.similarity.protocol import Array, IdSimilarity, Similarity, references_of

FOLDER = "similarities"
WORTH_KEEPING = 1.0
"""Seconds that a matrix must have taken: what is computed faster than it is read needs no file."""

CacheChoice = str | Path | bool | None
"""A folder; None and True are the default one, False is none."""


def through_cache(dataset: Dataset, similarity: Similarity, cache: CacheChoice, compute: Callable[[], Array]) -> Array:
    """The matrix of a dataset, from the cache or computed; kept if it has a revision and took long."""
    # A matrix that is given has its own file; a function without a revision may have changed unnoticed.
    if cache is False or not similarity.revision or isinstance(similarity, IdSimilarity):
        return compute()
    folder = cache_folder(None if cache is True else cache) / FOLDER
    about = {"phi": similarity.name, "revision": similarity.revision, "crosslens": version("crosslens")}
    key = fingerprint("cached-phi", {**about, "references": references_of(dataset), "captions": tuple(dataset.texts)})
    file = folder / f"{key}.npy"
    stored = read_cached_array(file, (len(dataset.image_ids), len(dataset.caption_ids)), np.float32)
    if stored is not None:
        return frozen(np.array(stored))
    start = time.monotonic()
    matrix = compute()
    if time.monotonic() - start >= WORTH_KEEPING:
        try:
            write_cached_array(file, lambda partial: np.save(partial, matrix, allow_pickle=False), about)
        except OSError:
            file.unlink(missing_ok=True)  # a full disk costs the time of computing it again, not the result
    return matrix
