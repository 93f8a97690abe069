"""Around each image its nearest other images: how similar they are, and how far their captions are from the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import Progress, as_blocks, joined_vectors, stage
from crosslens.similarity import in_parallel, thread_count

Array = np.ndarray[Any, Any]

_QUERIES = 4_096
"""Images at a time."""


class CaptionGroups(NamedTuple):
    """The captions of each image: ``rows[start[image] : start[image + 1]]``."""

    start: Array
    rows: Array

    @staticmethod
    def of(caption_image: Array, images: int) -> CaptionGroups:
        """From the image of each caption."""
        counts = np.bincount(caption_image, minlength=images)
        return CaptionGroups(np.concatenate([[0], np.cumsum(counts)]), np.argsort(caption_image, kind="stable"))

    def counts(self) -> Array:
        """How many captions each image has."""
        return np.diff(self.start)

    def spread(self, images: Array) -> tuple[Array, Array]:
        """All captions of these images in a row: for each its position in ``images``, and its own row."""
        counts = self.counts()[images]
        owner = np.repeat(np.arange(len(images)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, self.rows[self.start[images][owner] + within]


def running_similarity(cosines: Array, sizes: Sequence[int]) -> Array:
    """The mean cosine to the R nearest images, for each R of ``sizes``: images × sizes."""
    last = np.asarray(sizes) - 1
    # Column by column: the whole of the running sums would take as much room again as the neighbours.
    means, total, column = np.empty((len(cosines), len(last))), np.zeros(len(cosines)), 0
    for position, end in enumerate(last):
        while column <= end:
            total += cosines[:, column]
            column += 1
        means[:, position] = total / column
    return means


def caption_distances(
    images: Array,
    captions: Array,
    groups: CaptionGroups,
    neighbours: Array,
    sizes: Sequence[int],
    progress: Progress,
) -> Array:
    """The mean angle between an image and all captions of its R nearest images, for each R: images × sizes.

    NaN where none of the R images has a caption.
    """
    from crosslens.analyze.polysemy.kernels import mean_angles, row_lengths  # compiled code: slow to import

    captions, lengths = _readable(captions), np.empty(len(captions))
    in_parallel(lambda a, b: row_lengths(captions[a:b], lengths[a:b]), len(captions), thread_count(None))
    last, means = np.asarray(sizes) - 1, np.empty((len(images), len(sizes)))
    with stage(progress, "captions of neighbours", len(images)):
        for first in range(0, len(images), _QUERIES):
            rows = slice(first, min(first + _QUERIES, len(images)))
            queries, near, out = images[rows].astype(np.float64), neighbours[rows], means[rows]

            def work(a: int, b: int, queries: Array = queries, near: Array = near, out: Array = out) -> None:
                mean_angles(queries[a:b], captions, lengths, groups.start, groups.rows, near[a:b], last, out[a:b])

            in_parallel(work, len(queries), thread_count(None))
            progress.advance(len(queries))
    return means


def _readable(vectors: Array) -> Array:
    """Vectors as compiled code reads them: of 16 bits in 32, and row after row."""
    known = vectors.dtype if vectors.dtype in (np.float32, np.float64) else np.result_type(vectors, np.float32)
    return np.ascontiguousarray(joined_vectors(as_blocks(vectors), known))


def cosines_between(left: Array, left_rows: Array, right: Array, right_rows: Array) -> Array:
    """The cosines of single pairs of rows, in float64; a vector of zeros has the cosine 0 with everything.

    Each is the same number however many others are computed beside it.
    """
    first, second = left[left_rows].astype(np.float64), right[right_rows].astype(np.float64)
    lengths = np.sqrt(np.einsum("pd,pd->p", first, first) * np.einsum("pd,pd->p", second, second))
    products = np.einsum("pd,pd->p", first, second)
    cosines = np.divide(products, lengths, out=np.zeros(len(products)), where=lengths > 0)
    return np.asarray(np.clip(cosines, -1.0, 1.0))
