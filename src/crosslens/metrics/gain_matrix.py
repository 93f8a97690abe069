"""The gain of every item for every query: what graded metrics are computed from, read in tiles and single cells.

A matrix on disk stays there: single cells are looked up, and the items of most gain to every query come from one pass
over tiles, the same pass that ranks scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, UNRANKED, InputError, Ranking, Relevance, UsageError
from crosslens.metrics.coverage import FloatArray, IntArray
from crosslens.rank import ScoreMatrix, Scorer, rank_both

Array = np.ndarray[Any, Any]
Part = tuple[Array, Array]

_ROWS = 256


@dataclass(frozen=True, eq=False)
class IdealLists:
    """Per query, the items of most gain, best first; equal gains in gallery order. Past the end, -1 and 0."""

    items: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        for array in (self.items, self.values):
            array.setflags(write=False)


class GainMatrix:
    """The gain of captions for images and of images for captions.

    ``matrix`` is images × captions, in memory or memory-mapped; negative values count as they are, NaN and infinite
    ones raise. ``image_of`` names the image of each caption, which only ``by-image`` needs. ``parts`` are folds (rows
    of images, rows of captions): a query's ideal list is then of its fold. ``deepest`` is the length of the longest
    ideal list that will be needed, so that one pass finds them.
    """

    def __init__(
        self,
        matrix: Any,
        *,
        image_of: Array | None = None,
        parts: Sequence[Part] = (),
        deepest: int = 1,
        threads: int | None = None,
    ) -> None:
        self._matrix: Array | None = _checked(np.asanyarray(matrix))
        self._scorer: Scorer = ScoreMatrix(self._matrix)
        self.shape = self._scorer.shape
        self.image_of = None if image_of is None else np.asarray(image_of, np.int64)
        self.parts, self.deepest, self._threads = tuple(parts), deepest, threads
        self._ideal: dict[str, IdealLists] = {}
        self._ideal_images: dict[str, IdealLists] = {}

    @staticmethod
    def of_scorer(scorer: Scorer) -> GainMatrix:
        """Gains that are only looked up pair by pair, such as the scores of another model."""
        gains = GainMatrix(np.zeros((0, 0)))
        gains._matrix, gains._scorer, gains.shape = None, scorer, scorer.shape
        return gains

    def fitting(self, ranking: Ranking) -> GainMatrix:
        """Itself, if it has the size of the ranking.

        Ready-made lists may name more items than there are gains: those behind the last one, which gain nothing.
        """
        queries, items = len(ranking.query_ids), len(ranking.item_ids)
        if not ranking.complete:
            items = min(items, self.gallery(ranking.direction))
        expected = (queries, items) if ranking.direction == IMAGE_TO_TEXT else (items, queries)
        if self.shape != expected:
            raise InputError(
                f"values of shape {self.shape[0]} × {self.shape[1]}, {expected[0]} images, {expected[1]} captions",
                expected="a row per image and a column per caption, in the dataset's order",
                fix="transpose it" if self.shape == expected[::-1] else "check that both are of the same split",
            )
        return self

    def gallery(self, direction: str) -> int:
        """How many items have gains."""
        return int(self.shape[1] if direction == IMAGE_TO_TEXT else self.shape[0])

    def of(self, direction: str, items: IntArray) -> FloatArray:
        """The gains of listed items, queries × ranks; 0 past the end of a list, and for items without gains."""
        return _exact(self._scorer, direction, np.where(items < self.gallery(direction), items, UNRANKED))

    def ideal(self, direction: str, count: int) -> IdealLists:
        """The ``count`` items of most gain to every query, or more."""
        return self._cached(self._ideal, direction, min(count, self.gallery(direction)), self._rank)

    def ideal_images(self, direction: str, count: int) -> IdealLists:
        """Per image, the ``count`` images most similar to its captions (:class:`ImageSimilarity`), or more.

        Those of i2t have captions: an image without any adds nothing to what can be retrieved.
        """
        return self._cached(self._ideal_images, direction, min(count, self.shape[0]), self._rank_images)

    def _cached(
        self, known: dict[str, IdealLists], direction: str, count: int, rank: Callable[[int], dict[str, IdealLists]]
    ) -> IdealLists:
        key = IMAGE_TO_TEXT if direction == IMAGE_TO_TEXT else TEXT_TO_IMAGE
        if not known or known[key].items.shape[1] < count:
            known |= rank(max(count, self.deepest))
        return known[key]

    def _rank(self, depth: int) -> dict[str, IdealLists]:
        matrix = self._matrix
        if matrix is None:
            raise UsageError("the most similar items need a whole matrix", fix="pass a matrix, images × captions")
        scorers = ((ScoreMatrix(matrix[np.ix_(*part)]), part) for part in self.parts)
        return self._joined(scorers if self.parts else [(self._scorer, self._whole)], depth, self.shape)

    def _rank_images(self, depth: int) -> dict[str, IdealLists]:
        if self._matrix is None or self.image_of is None:
            raise UsageError("by-image needs to know the image of every caption", fix="evaluate with a dataset")
        lists = self._voted_images(self._matrix, self.image_of, depth)
        captioned = np.unique(self.image_of)
        if len(captioned) == self.shape[0]:
            return {IMAGE_TO_TEXT: lists, TEXT_TO_IMAGE: lists}
        return {
            IMAGE_TO_TEXT: self._voted_images(self._matrix, self.image_of, depth, captioned),
            TEXT_TO_IMAGE: lists,
        }

    def _voted_images(self, matrix: Array, image_of: Array, depth: int, candidates: Array | None = None) -> IdealLists:
        """Per image, the images (of the candidates) in the order of its captions' votes."""
        scorers = []
        for images, captions in self.parts or (self._whole,):
            rows = images if candidates is None else np.intersect1d(images, candidates)
            if len(rows) and len(captions):
                scorer = ImageSimilarity(matrix, rows, captions, image_of)
                scorers.append((scorer, (scorer.rows, scorer.images)))
        return self._joined(scorers, depth, (self.shape[0], self.shape[0]))[TEXT_TO_IMAGE]

    @property
    def _whole(self) -> Part:
        return np.arange(self.shape[0]), np.arange(self.shape[1])

    def _top(self, scorer: Scorer, depth: int) -> dict[str, Ranking]:
        # Ranking needs a relevant pair; here only the top lists matter, so any pair will do.
        ids = [tuple(map(str, range(size))) for size in scorer.shape]
        relevance = Relevance.from_indices(ids[0], ids[1], np.zeros(1, np.int64), np.zeros(1, np.int64))
        return rank_both(scorer, relevance, depth=min(depth, max(scorer.shape)), threads=self._threads)

    def _joined(
        self, scorers: Iterable[tuple[Scorer, Part]], depth: int, shape: tuple[int, int]
    ) -> dict[str, IdealLists]:
        """The lists of all parts, in the rows and columns of the whole."""
        sizes = {IMAGE_TO_TEXT: shape, TEXT_TO_IMAGE: shape[::-1]}
        arrays = {}
        for direction, (queries, gallery) in sizes.items():
            items = np.full((queries, min(depth, gallery)), UNRANKED, np.int64)
            arrays[direction] = items, np.zeros(items.shape)
        for scorer, part in scorers:
            for direction, ranking in self._top(scorer, depth).items():
                items, values = arrays[direction]
                rows, columns = part if direction == IMAGE_TO_TEXT else part[::-1]
                width = min(ranking.depth, items.shape[1])
                top = ranking.top_items[:, :width]
                items[rows, :width] = np.where(top != UNRANKED, columns[top], UNRANKED)
                values[rows, :width] = _exact(scorer, direction, top)
        return {direction: IdealLists(*pair) for direction, pair in arrays.items()}


def _exact(scorer: Scorer, direction: str, items: IntArray) -> FloatArray:
    """The scores of listed items in float64, queries × ranks; 0 past the end of a list.

    Not those of a ranking: it keeps them in the precision it was computed in, and sums must not mix the two.
    """
    listed = items != UNRANKED
    queries = np.broadcast_to(np.arange(len(items))[:, None], items.shape)[listed]
    images, captions = (queries, items[listed]) if direction == IMAGE_TO_TEXT else (items[listed], queries)
    cells = np.asarray(scorer.exact(images, captions), np.float64)
    bad = np.flatnonzero(~np.isfinite(cells))
    if len(bad):
        raise InputError(
            f"the value of image {images[bad[0]]}, caption {captions[bad[0]]} (counted from 0) is {cells[bad[0]]}",
            expected="finite numbers",
            fix="compute the values again without NaN and infinity",
        )
    values = np.zeros(items.shape)
    values[listed] = cells
    return values


class ImageSimilarity:
    """Row i, column j: the mean of φ(G_i, c) over the captions c of image j, which is how they vote for image i.

    A mean, so that it does not matter how many captions an image has. It is a scorer like any other: one tile at a
    time, and single pairs. Images without captions are no columns.
    """

    work = 1
    precision: type[np.floating[Any]] = np.float64

    def __init__(self, matrix: Array, rows: Array, captions: Array, image_of: Array) -> None:
        """``rows`` and ``captions`` are those of one fold; ``images`` says which image each column is."""
        self._matrix, self.rows = matrix, rows
        order = np.argsort(image_of[captions], kind="stable")
        self._captions = captions[order]
        self.images, self._start = np.unique(image_of[self._captions], return_index=True)
        self._end = np.append(self._start[1:], len(self._captions))
        self.shape = (len(rows), len(self.images))
        # A tile is rounded to float32: by no more than this, as no mean is larger than the largest value.
        largest = max(float(np.abs(matrix[start : start + _ROWS]).max()) for start in range(0, len(matrix), _ROWS))
        self.row_slack = np.full(self.shape[0], largest * 2.0**-22, np.float32)
        self.column_slack = np.full(self.shape[1], largest * 2.0**-22, np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        """The similarities of a block."""
        start, end = self._start[columns], self._end[columns]
        block = self._matrix[np.ix_(self.rows[rows], self._captions[start[0] : end[-1]])].astype(np.float64)
        sums: Array = np.add.reduceat(block, start - start[0], axis=1)
        return np.asarray(sums / (end - start), np.float32)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The similarities of single pairs, in float64."""
        start, count = self._start[columns], self._end[columns] - self._start[columns]
        sums = np.zeros(len(rows))
        for nth in range(int(count.max(initial=0))):  # the first caption of every image, then the second, …
            more = count > nth
            sums[more] += self._matrix[self.rows[rows[more]], self._captions[start[more] + nth]]
        return np.asarray(sums / count)


def _checked(matrix: Array) -> Array:
    """The matrix, if it is one of finite numbers."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputError(
            f"values of shape {matrix.shape} and type {matrix.dtype}", expected="a table of numbers, images × captions"
        )
    for start in range(0, len(matrix), _ROWS):
        block = matrix[start : start + _ROWS]
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"the value {block[row, column]} in column {column}",
                row=start + int(row),
                expected="finite numbers: how similar each caption is to each image's captions",
                fix="find out why this pair has no value; 0 means not similar at all",
            )
    return matrix
