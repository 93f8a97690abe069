"""Similarity of texts under a text encoder: cosines between a caption and an image's captions, their mean or maximum.

The encode room is above this one, so an encoder is passed as a function from texts to vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from crosslens.core import InputError, Progress
from crosslens.rank import unit_rows
from crosslens.similarity.grid import as_grid
from crosslens.similarity.protocol import Array, References, Texts, group_starts

_PAIRS_AT_ONCE = 4_096

Vectors = Callable[[Texts, Progress | None], Array]
"""Texts → one vector each, (n, d)."""


class EmbeddingSimilarity:
    """The mean or the maximum over an image's captions of their cosine with a caption, −1 to 1."""

    def __init__(self, name: str, revision: str, vectors: Vectors, over: Literal["mean", "max"] = "mean") -> None:
        self.name, self.revision, self._vectors, self._over = name, revision, vectors, over

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedEmbedding:
        """Encode every different text once."""
        texts = [text for image in references for text in image]
        unique = list(dict.fromkeys([*texts, *captions]))
        row_of = {text: number for number, text in enumerate(unique)}
        units = _unit(np.asarray(self._vectors(unique, progress), np.float32), unique)
        every = units[[row_of[text] for text in texts]].reshape(len(texts), units.shape[1])
        own = units[[row_of[text] for text in captions]]
        return PreparedEmbedding(group_starts(references), every, own, self._over)


class PreparedEmbedding:
    """Unit vectors of references and captions. An image without references has 0 everywhere."""

    def __init__(self, start: Array, references: Array, captions: Array, over: str) -> None:
        self._start, self._captions, self._over = start, captions, over
        self._count = np.diff(start)
        # The mean of cosines is the cosine's product with the mean vector: one row per image is enough.
        self._rows = _means(start, references) if over == "mean" else references
        self.shape = (len(self._count), len(captions))

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        return self._cells(np.arange(first, max(first, last)), self._captions)

    def pairs(self, images: Array, captions: Array) -> Array:
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        grid = as_grid(images, captions, self.shape)
        if grid is not None:
            values: Array = self._cells(grid.images, self._captions[grid.captions])[grid.row, grid.column]
            return values
        parts = range(0, len(images), _PAIRS_AT_ONCE)
        cells = [self._pairs(images[at : at + _PAIRS_AT_ONCE], captions[at : at + _PAIRS_AT_ONCE]) for at in parts]
        return np.concatenate(cells) if cells else np.zeros(0, np.float32)

    def _cells(self, images: Array, captions: Array) -> Array:
        """Images × captions."""
        if self._over == "mean":
            product: Array = self._rows[images] @ captions.T
            return product
        out = np.zeros((len(images), len(captions)), np.float32)
        rows, first = self._references_of(images)
        if len(rows):
            out[self._count[images] > 0] = np.maximum.reduceat(self._rows[rows] @ captions.T, first, axis=0)
        return out

    def _pairs(self, images: Array, captions: Array) -> Array:
        if self._over == "mean":
            cosines: Array = np.einsum("pd,pd->p", self._rows[images], self._captions[captions])
            return cosines
        out = np.zeros(len(images), np.float32)
        rows, first = self._references_of(images)
        if len(rows):
            of_rows = self._captions[np.repeat(captions, self._count[images])]
            largest = np.maximum.reduceat(np.einsum("rd,rd->r", self._rows[rows], of_rows), first)
            out[self._count[images] > 0] = largest
        return out

    def _references_of(self, images: Array) -> tuple[Array, Array]:
        """The rows of all references of these images, and where those of each image that has any start."""
        count = self._count[images]
        first = np.cumsum(count) - count
        return np.arange(int(count.sum())) + np.repeat(self._start[images] - first, count), first[count > 0]


def _unit(vectors: Array, texts: Texts) -> Array:
    zero = np.flatnonzero(~vectors.any(axis=-1))
    if len(zero):
        fix = "use another encoder: a zero vector has no cosine"
        raise InputError(f"the vector of the text {texts[zero[0]]!r:.60} is zero", fix=fix)
    return unit_rows(vectors)


def _means(start: Array, references: Array) -> Array:
    count = np.diff(start)
    means = np.zeros((len(count), references.shape[1]), np.float32)
    here = np.flatnonzero(count)
    if len(here):
        sums = np.add.reduceat(references.astype(np.float64), start[:-1][here], axis=0)
        means[here] = sums / count[here, None]
    return means
