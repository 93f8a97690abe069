"""Similarity of texts by their vectors: cosines between a caption and an image's captions, their mean or maximum.

The vectors come from an encoder (the package encode is above this one, so it is passed as a function from texts to
vectors), or from files. They are held in memory as far as there is room, and otherwise read a block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from crosslens.core import InputError, UsageError, without_secrets
from crosslens.data import read_vectors, vector_files
from crosslens.engine import Progress
from crosslens.rank import unit_blocks
from crosslens.similarity.protocol import References, Texts, as_grid, distinct_texts, group_members, group_starts
from crosslens.storage import Array, ArrayBlocks, VectorBlocks, as_blocks, file_fingerprint, select_rows
from crosslens.values import Dataset, align_embeddings

_PAIR_NUMBERS = 1 << 21
_REFERENCE_NUMBERS = 1 << 24
"""Numbers of the references' vectors at a time: for single pairs, and for a whole row, which needs all captions."""
_CAPTION_NUMBERS = 1 << 21
"""Numbers of the captions' vectors in one product. Held or not, it is the same: its last bits depend on its size."""

Over = Literal["mean", "max"]
Vectors = Callable[[Texts, Progress | None], Array]
"""Texts → one vector each, (n, d)."""
WordVectors = Callable[[Texts, Progress | None], list[tuple[list[str], Array]]]
"""Texts → of each its words, in their order, and a vector for each of them."""


class EmbeddingSimilarity:
    """The mean or the maximum over an image's captions of their cosine with a caption, −1 to 1."""

    def __init__(self, name: str, revision: str, vectors: Vectors, over: Over = "mean") -> None:
        self.name, self.revision, self._vectors, self._over = name, revision, vectors, over

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedEmbedding:
        """Encode every different text once."""
        unique, rows, columns = distinct_texts(references, captions)
        vectors = np.asarray(self._vectors(unique, progress), np.float32)
        zero = np.flatnonzero(~vectors.any(axis=-1))
        if len(zero):
            fix = "use another encoder: a zero vector has no cosine"
            raise InputError(f"the vector of the text {unique[zero[0]]!r:.60} is zero", fix=fix)
        return PreparedEmbedding(unit_blocks(as_blocks(vectors)), group_starts(references), rows, columns, self._over)


class StoredEmbeddingSimilarity:
    """The similarity of caption vectors in files: shards, ``.npy``, an embeddings folder, an address."""

    def __init__(self, source: str, over: Over = "mean") -> None:
        if without_secrets(source) != source:
            problem = f"{source}: the address of a similarity is part of its name, and would be in every result"
            raise UsageError(problem, fix="use one without a password and a query, or copy the vectors to this machine")
        self._source, self._over = source, over
        self.name = f"{'embed' if over == 'mean' else 'embed-max'}:vectors:{source}"

    @cached_property
    def revision(self) -> str:
        return file_fingerprint(vector_files(self._source, "caption"))[:12]

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedEmbedding:
        """Not possible: the vectors belong to captions of a dataset, whose texts are not known here."""
        raise UsageError(f"{self.name} has no vectors for other texts", fix="use embed with an encoder, or cider")

    def prepare_ids(self, dataset: Dataset) -> PreparedEmbedding:
        """The vectors of the dataset's captions, matched by id where the files have ids."""
        vectors = align_embeddings(read_vectors(self._source, "caption"), dataset.caption_ids, "caption")
        if vectors.kind != "single":
            raise UsageError(f"{vectors.kind} embeddings as φ", fix="pass one vector per caption, such as their mean")
        image = dataset.caption_image
        starts = np.concatenate([[0], np.cumsum(np.bincount(image, minlength=len(dataset.image_ids)))])
        units, every = unit_blocks(vectors.source), np.arange(len(image))
        return PreparedEmbedding(units, starts, np.argsort(image, kind="stable"), every, self._over)


class PreparedEmbedding:
    """Vectors of length 1, and which are those of an image's references and of the captions.

    An image without references has 0 everywhere.
    """

    def __init__(self, units: VectorBlocks, start: Array, references: Array, captions: Array, over: Over) -> None:
        self._units, self._start, self._references, self._over = units, start, references, over
        # In memory they are gathered once, for every block needs all of them.
        self._captions = (
            as_blocks(units.rows(captions)) if isinstance(units, ArrayBlocks) else select_rows(units, captions)
        )
        self._count = np.diff(start)
        self.shape = (len(self._count), len(captions))

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        return self._cells(np.arange(first, max(first, last)), self._captions)

    def pairs(self, images: Array, captions: Array) -> Array:
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        grid = as_grid(images, captions, self.shape)
        if grid is not None:
            values: Array = self._cells(grid.images, select_rows(self._captions, grid.captions))[grid.row, grid.column]
            return values
        out = np.zeros(len(images), np.float32)
        for part in self._parts(images, _PAIR_NUMBERS):
            if self._count[images[part]].any():
                out[part] = self._pairs(images[part], captions[part])
        return out

    def _cells(self, images: Array, captions: VectorBlocks) -> Array:
        out = np.zeros((len(images), captions.shape[0]), np.float32)
        if self._over == "mean":
            self._fill(out, self._means(images), None, captions)
            return out
        for part in self._parts(images, _REFERENCE_NUMBERS):
            rows, first = self._references_of(images[part])
            if len(rows):
                some = part.start + np.flatnonzero(self._count[images[part]])
                self._fill(out, self._units.rows(rows), first, captions, some)
        return out

    def _fill(
        self, out: Array, left: Array, first: Array | None, captions: VectorBlocks, rows: Array | None = None
    ) -> None:
        """Products with all captions, into these rows; of groups that begin at ``first`` the largest."""
        size = max(1, _CAPTION_NUMBERS // captions.shape[1])
        for start in range(0, captions.shape[0], size):
            part = slice(start, start + size)
            cosines = left @ captions.block(part.start, part.stop).T
            if first is None:
                out[:, part] = cosines
            else:
                out[rows, part] = np.maximum.reduceat(cosines, first, axis=0)

    def _pairs(self, images: Array, captions: Array) -> Array:
        """Single pairs, at least one of an image with references."""
        vectors = self._captions.rows(captions)
        if self._over == "mean":
            distinct, image = np.unique(images, return_inverse=True)
            return np.asarray(np.einsum("pd,pd->p", self._means(distinct)[image], vectors))
        out, rows, first = np.zeros(len(images), np.float32), *self._references_of(images)
        count = self._count[images]
        cosines = np.einsum("rd,rd->r", self._units.rows(rows), np.repeat(vectors, count, axis=0))
        out[count > 0] = np.maximum.reduceat(cosines, first)
        return out

    def _means(self, images: Array) -> Array:
        """The mean of each image's references: the product with it is the mean of their cosines."""
        means = np.zeros((len(images), self._units.shape[1]), np.float32)
        for part in self._parts(images, _PAIR_NUMBERS):
            rows, first = self._references_of(images[part])
            if len(rows):
                count = self._count[images[part]]
                sums = np.add.reduceat(self._units.rows(rows).astype(np.float64), first, axis=0)
                means[part][count > 0] = sums / count[count > 0, None]
        return means

    def _parts(self, images: Array, numbers: int) -> Iterator[slice]:
        """Slices of the images whose references have so many numbers, or are of one image."""
        most = max(1, numbers // self._units.shape[1])
        total = np.cumsum(np.maximum(self._count[images], 1))
        start = 0
        while start < len(images):
            before = total[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(total, before + most, side="right")))
            yield slice(start, stop)
            start = stop

    def _references_of(self, images: Array) -> tuple[Array, Array]:
        """The vectors of all references of these images, and where those of each image that has any start."""
        count = self._count[images]
        return self._references[group_members(images, self._start)], (np.cumsum(count) - count)[count > 0]
