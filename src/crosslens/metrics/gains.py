"""How much every item is worth to every query: what graded metrics are computed from, read in tiles and single cells.

A matrix on disk stays there: single cells are looked up, and the most valued items of every query come from one pass
over tiles, the same pass that ranks scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.metrics.places import FloatArray, IntArray
from crosslens.metrics.votes import Votes
from crosslens.rank import ScoreMatrix, Scorer, rank_both

Array = np.ndarray[Any, Any]
Cells = Callable[[Array, Array], Array]
Part = tuple[Array, Array]

_ROWS = 256


@dataclass(frozen=True, eq=False)
class BestLists:
    """Per query, the items of most value, best first; equal values in gallery order. Past the end, -1 and 0."""

    items: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        for one in (self.items, self.values):
            one.setflags(write=False)


class Gains:
    """The value of captions to images and of images to captions.

    ``matrix`` is images × captions, in memory or memory-mapped; negative values count as they are, NaN and infinite
    ones raise. ``image_of`` names the image of each caption, which only ``by-image`` needs. ``parts`` are folds (rows
    of images, rows of captions): a query's best items are then those of its fold. ``deepest`` is how many best items
    will be asked for, so that one pass finds them.
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
        self._matrix: Array | None = np.asanyarray(matrix)
        self._scores = ScoreMatrix(_checked(self._matrix))
        self._cells: Cells = self._scores.exact
        self.shape = self._scores.shape
        self.image_of = None if image_of is None else np.asarray(image_of, np.int64)
        self.parts, self.deepest, self._threads = tuple(parts), deepest, threads
        self._best: dict[str, BestLists] = {}
        self._images: dict[str, BestLists] = {}

    @staticmethod
    def of_scorer(scorer: Scorer) -> Gains:
        """Values that only ever are looked up pair by pair, such as the scores of another model."""
        gains = object.__new__(Gains)
        gains._matrix, gains._cells, gains.shape = None, scorer.exact, scorer.shape
        gains.image_of, gains.parts, gains.deepest, gains._threads = None, (), 1, None
        gains._best, gains._images = {}, {}
        return gains

    def fitting(self, ranking: Ranking) -> Gains:
        """Itself, if it has the size of the ranking."""
        queries, items = len(ranking.query_ids), len(ranking.item_ids)
        expected = (queries, items) if ranking.direction == IMAGE_TO_TEXT else (items, queries)
        if self.shape != expected:
            raise InputError(
                f"values of shape {self.shape[0]} × {self.shape[1]}, {expected[0]} images, {expected[1]} captions",
                expected="a row per image and a column per caption, in the dataset's order",
                fix="transpose it" if self.shape == expected[::-1] else "check that both are of the same split",
            )
        return self

    def of(self, direction: str, items: IntArray) -> FloatArray:
        """The values of listed items, queries × places; 0 past the end of a list."""
        listed = items != UNRANKED
        queries = np.broadcast_to(np.arange(len(items))[:, None], items.shape)[listed]
        pair = (queries, items[listed]) if direction == IMAGE_TO_TEXT else (items[listed], queries)
        values = np.zeros(items.shape)
        found = np.asarray(self._cells(*pair), np.float64)
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            image, caption = (int(one[bad[0]]) for one in pair)
            raise InputError(
                f"the value of image {image}, caption {caption} (counted from 0) is {found[bad[0]]}",
                expected="finite numbers",
                fix="compute the values again without NaN and infinity",
            )
        values[listed] = found
        return values

    def best(self, direction: str, count: int) -> BestLists:
        """The ``count`` items of most value to every query, or more."""
        gallery = self.shape[1] if direction == IMAGE_TO_TEXT else self.shape[0]
        return self._found(self._best, direction, min(count, gallery), self._rank)

    def best_images(self, direction: str, count: int) -> BestLists:
        """The images of most value to every image, by the mean over an image's captions (see :class:`Votes`)."""
        return self._found(self._images, direction, min(count, self.shape[0]), self._rank_images)

    def _found(
        self, known: dict[str, BestLists], direction: str, count: int, rank: Callable[[int], dict[str, BestLists]]
    ) -> BestLists:
        side = IMAGE_TO_TEXT if direction == IMAGE_TO_TEXT else TEXT_TO_IMAGE
        if not known or known[side].items.shape[1] < count:
            known |= rank(max(count, self.deepest))
        return known[side]

    def _rank(self, depth: int) -> dict[str, BestLists]:
        matrix = self._matrix
        if matrix is None:
            raise UsageError("the most similar items need a whole matrix", fix="pass one, images × captions")
        scorers = [(self._scores, None)] if not self.parts else (
            (ScoreMatrix(matrix[np.ix_(*part)]), part) for part in self.parts
        )  # fmt: skip
        return self._joined([(self._top(scorer, depth), part) for scorer, part in scorers], depth, self.shape)

    def _rank_images(self, depth: int) -> dict[str, BestLists]:
        if self._matrix is None or self.image_of is None:
            raise UsageError("by-image needs to know the image of every caption", fix="evaluate with a dataset")
        images = self.shape[0]
        parts = self.parts or ((np.arange(images), np.arange(self.shape[1])),)
        found = []
        for rows, captions in parts:
            votes = Votes(self._matrix, rows, captions, self.image_of)
            found.append((self._top(votes, depth), (rows, votes.images)))
        return self._joined(found, depth, (images, images))

    def _top(self, scorer: Scorer, depth: int) -> dict[str, Ranking]:
        # Ranking wants something relevant to look for; here only the tops matter, so any one pair will do.
        ids = [tuple(map(str, range(size))) for size in scorer.shape]
        anything = Relevance.from_indices(ids[0], ids[1], np.zeros(1, np.int64), np.zeros(1, np.int64))
        return rank_both(scorer, anything, depth=min(depth, max(scorer.shape)), threads=self._threads)

    def _joined(
        self, found: Sequence[tuple[dict[str, Ranking], Part | None]], depth: int, shape: tuple[int, int]
    ) -> dict[str, BestLists]:
        """The lists of all parts, in the rows and columns of the whole."""
        joined = {}
        for direction, queries, gallery in ((IMAGE_TO_TEXT, *shape), (TEXT_TO_IMAGE, *shape[::-1])):
            items = np.full((queries, min(depth, gallery)), UNRANKED, np.int64)
            values = np.zeros(items.shape)
            for rankings, part in found:
                one = rankings[direction]
                asking, answering = (
                    (slice(None), np.arange(gallery)) if part is None
                    else part if direction == IMAGE_TO_TEXT else part[::-1]
                )  # fmt: skip
                width = min(one.depth, items.shape[1])
                top, listed = one.top_items[:, :width], one.top_items[:, :width] != UNRANKED
                items[asking, :width] = np.where(listed, answering[top], UNRANKED)
                values[asking, :width] = np.where(listed, one.top_scores[:, :width], 0.0)
            joined[direction] = BestLists(items, values)
        return joined


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
