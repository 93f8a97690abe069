"""``semantic``: how well a caption describes an image, judged by the image's captions; 0 to 1.

Two kinds of evidence: *closeness*, the cosines of sentence vectors between the caption and the image's captions (the
mean of the largest and of their average, averaged over encoders), and *shared words*, the share of the caption's
words that the image's captions hold. A curve with three numbers, fitted to people's judgements, makes one value of
them.

Unit vectors are rounded to a grid so coarse that every sum in a product is a whole number that float32 holds exactly
(the rounding moves a cosine by about 0.0001). So a cell has one value: alone or in a block, at any number of threads,
whatever order the linear algebra adds in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.rank.scorers import unit_rows
from crosslens.similarity.embedding import Vectors
from crosslens.similarity.semantic_fit import Fit
from crosslens.similarity.semantic_words import SharedWords
from crosslens.similarity.similarity import Array
from crosslens.similarity.threads import in_parallel, thread_count

GRID = 4_000
"""Steps per unit. Products of two rounded unit vectors stay below 2²⁴, where float32 begins to skip whole numbers."""
LONGEST_VECTOR = 32_768
"""Dimensions up to which that holds: rounding lengthens a vector by at most half a step per dimension."""

_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 32, 4_096


@dataclass(frozen=True)
class TextEncoder:
    """An encoder as seen from here: a name, a revision (empty: unknown), and a function from texts to vectors."""

    name: str
    revision: str
    vectors: Vectors


class Semantic:
    """φ from one or several text encoders and a fit made for them."""

    def __init__(self, encoders: Sequence[TextEncoder], fit: Fit, *, name: str = "semantic") -> None:
        if not encoders:
            raise UsageError("semantic without an encoder", fix="give it at least one text encoder")
        self.encoders, self.fit, self.name = tuple(encoders), fit, name

    @property
    def revision(self) -> str:
        """Changes with the fit and with any encoder's weights; empty where an encoder's revision is unknown."""
        known = [one.revision[:12] for one in self.encoders]
        return "+".join(["1", self.fit.revision, *known]) if all(known) else ""

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> PreparedSemantic:
        """Encode every different text once, and count words."""
        texts = [text for image in references for text in image]
        unique = list(dict.fromkeys([*texts, *captions]))
        place = {text: number for number, text in enumerate(unique)}
        grids = [_on_grid(np.asarray(one.vectors(unique, progress)), one.name) for one in self.encoders]
        start = np.concatenate([[0], np.cumsum([len(image) for image in references])]).astype(np.int64)
        return PreparedSemantic(
            start,
            [_Side(grid[[place[text] for text in texts]], grid[[place[text] for text in captions]]) for grid in grids],
            SharedWords(references, captions),
            self.fit,
            thread_count(threads),
        )


@dataclass(frozen=True)
class _Side:
    """One encoder's vectors on the grid: of all references, image after image, and of the captions."""

    references: Array
    captions: Array


class PreparedSemantic:
    """``semantic`` of one collection. An image without references has 0 everywhere."""

    def __init__(self, start: Array, sides: list[_Side], words: SharedWords, fit: Fit, threads: int) -> None:
        self._start, self._sides, self._words, self._fit, self._threads = start, sides, words, fit, threads
        self._count = np.diff(start)
        self.shape = (len(self._count), len(sides[0].captions))

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""
        first, last, _ = rows.indices(self.shape[0])
        out = np.zeros((max(last - first, 0), self.shape[1]), np.float32)

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, _ROWS_AT_ONCE):
                end = min(at + _ROWS_AT_ONCE, stop)
                self._rows(out[at:end], first + at, first + end)

        with threadpool_limits(1):  # the rows are shared out among threads already
            in_parallel(work, len(out), self._threads)
        return out

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""
        images = np.asarray(images, np.int64)
        found = self._fit(*self.evidence(images, captions))
        return np.where(self._count[images] > 0, found, 0.0).astype(np.float32)

    def evidence(self, images: Array, captions: Array) -> tuple[Array, Array]:
        """Closeness and shared words of single cells, float64: what a fit is made from, and what explains a value."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        closeness, words = np.zeros(len(images)), np.zeros(len(images))
        for at in range(0, len(images), _PAIRS_AT_ONCE):
            here = at + np.flatnonzero(self._count[images[at : at + _PAIRS_AT_ONCE]])
            if len(here):
                closeness[here] = self._close_pairs(images[here], captions[here])
                words[here] = self._words.pairs(images[here], captions[here])
        return closeness, words

    def _rows(self, out: Array, first: int, last: int) -> None:
        here = np.flatnonzero(self._count[first:last])
        if not len(here):
            return
        begin, end = self._start[first], self._start[last]
        starts, count = self._start[first:last][here] - begin, self._count[first:last][here, None]
        products = (side.references[begin:end] @ side.captions.T for side in self._sides)
        closeness = _mean([_pooled(product, starts, count) for product in products])
        out[here] = self._fit(closeness, self._words.block(first, last)[here])

    def _close_pairs(self, images: Array, captions: Array) -> Array:
        count = self._count[images]
        starts = np.cumsum(count) - count
        within = np.arange(count.sum()) - np.repeat(starts, count)
        reference, caption = np.repeat(self._start[images], count) + within, np.repeat(captions, count)
        products = (np.einsum("pd,pd->p", side.references[reference], side.captions[caption]) for side in self._sides)
        return _mean([_pooled(product, starts, count) for product in products])


def _pooled(products: Array, starts: Array, count: Array) -> Array:
    """Over each image's references, halfway between the largest cosine and their average."""
    largest = np.maximum.reduceat(products, starts, axis=0)
    # In float64 the sum of whole numbers is exact too, so the order of the references does not matter.
    average = np.add.reduceat(products, starts, axis=0, dtype=np.float64) / count
    pooled: Array = np.minimum((largest + average) / (2 * GRID**2), 1.0)
    return pooled


def _mean(values: list[Array]) -> Array:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total / len(values)


def _on_grid(vectors: Array, encoder: str) -> Array:
    if vectors.ndim != 2 or vectors.shape[1] > LONGEST_VECTOR:
        raise UsageError(f"{encoder} gives vectors of shape {vectors.shape}", fix="use one vector per text")
    return np.rint(unit_rows(vectors) * np.float32(GRID))
