"""What a graded metric is computed from: the gains of the retrieved items, and those of the ideal list.

A graded metric sums gains over ranks. Under ``stable`` the order of the list holds. Within a tie, ``optimistic`` puts
the items of most gain first and ``pessimistic`` last; under ``expected`` every rank of a tie has the mean gain of its
items, which is the exact expectation of any sum over ranks. All of these need every item of a tie that reaches into
the top k: where a list ends before the tie does, the value is not determined, and that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from crosslens.core import InputError, UsageError, argument, where_option
from crosslens.metrics.relevant_ranks import UNSEEN_RANK, Ties, chance_of_none, item_count, tie_error
from crosslens.rank import ScoreMatrix, Scorer, rank_both
from crosslens.storage import Array, BoolArray, FloatArray, IntArray
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, UNRANKED, Ranking, Relevance

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
        matrix = np.asanyarray(matrix)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
            problem = f"values of shape {matrix.shape} and type {matrix.dtype}"
            raise InputError(problem, expected="a table of numbers, images × captions")
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
        self._matrix: Array | None = matrix
        self._scorer: Scorer = ScoreMatrix(matrix)
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
        self, cache: dict[str, IdealLists], direction: str, count: int, rank: Callable[[int], dict[str, IdealLists]]
    ) -> IdealLists:
        key = IMAGE_TO_TEXT if direction == IMAGE_TO_TEXT else TEXT_TO_IMAGE
        if not cache or cache[key].items.shape[1] < count:
            cache |= rank(max(count, self.deepest))
        return cache[key]

    def _rank(self, depth: int) -> dict[str, IdealLists]:
        matrix = self._matrix
        if matrix is None:
            raise UsageError("the most similar items need a whole matrix", fix="pass a matrix, images × captions")
        scorers = ((ScoreMatrix(matrix[np.ix_(*part)]), part) for part in self.parts)
        return self._joined(scorers if self.parts else [(self._scorer, self._whole)], depth, self.shape)

    def _rank_images(self, depth: int) -> dict[str, IdealLists]:
        if self._matrix is None or self.image_of is None:
            raise UsageError("by-image needs to know the image of every caption", fix="evaluate with a dataset")
        matrix, image_of, captioned = self._matrix, self.image_of, np.unique(self.image_of)

        def voted(candidates: Array | None) -> IdealLists:
            """Per image, the images (of the candidates) in the order of its captions' votes."""
            scorers = []
            for images, captions in self.parts or (self._whole,):
                rows = images if candidates is None else np.intersect1d(images, candidates)
                if len(rows) and len(captions):
                    scorer = ImageSimilarity(matrix, rows, captions, image_of)
                    scorers.append((scorer, (scorer.rows, scorer.images)))
            return self._joined(scorers, depth, (self.shape[0], self.shape[0]))[TEXT_TO_IMAGE]

        lists = voted(None)
        some_lack_captions = len(captioned) < self.shape[0]
        return {IMAGE_TO_TEXT: voted(captioned) if some_lack_captions else lists, TEXT_TO_IMAGE: lists}

    @property
    def _whole(self) -> Part:
        return np.arange(self.shape[0]), np.arange(self.shape[1])

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
            # Ranking needs a relevant pair; here only the top lists matter, so any pair will do.
            ids = [tuple(map(str, range(size))) for size in scorer.shape]
            relevance = Relevance.from_indices(ids[0], ids[1], np.zeros(1, np.int64), np.zeros(1, np.int64))
            top = rank_both(scorer, relevance, depth=min(depth, max(scorer.shape)), threads=self._threads)
            for direction, ranking in top.items():
                items, values = arrays[direction]
                rows, columns = part if direction == IMAGE_TO_TEXT else part[::-1]
                width = min(ranking.depth, items.shape[1])
                top_items = ranking.top_items[:, :width]
                items[rows, :width] = np.where(top_items != UNRANKED, columns[top_items], UNRANKED)
                values[rows, :width] = _exact(scorer, direction, top_items)
        return {direction: IdealLists(*pair) for direction, pair in arrays.items()}


def _exact(scorer: Scorer, direction: str, items: IntArray) -> FloatArray:
    """The scores of listed items in float64, queries × ranks; 0 past the end of a list.

    Not those of a ranking: it keeps them in the precision it was computed in, and sums must not mix the two.
    """
    present = items != UNRANKED
    queries = np.broadcast_to(np.arange(len(items))[:, None], items.shape)[present]
    images, captions = (queries, items[present]) if direction == IMAGE_TO_TEXT else (items[present], queries)
    cells = np.asarray(scorer.exact(images, captions), np.float64)
    bad = np.flatnonzero(~np.isfinite(cells))
    if len(bad):
        raise InputError(
            f"the value of image {images[bad[0]]}, caption {captions[bad[0]]} (counted from 0) is {cells[bad[0]]}",
            expected="finite numbers",
            fix="compute the values again without NaN and infinity",
        )
    values = np.zeros(items.shape)
    values[present] = cells
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


class TopK:
    """The kept lists of a ranking; with ``non_gt``, without the relevant items, the others moving up."""

    def __init__(self, ranking: Ranking, ties: Ties, *, non_gt: bool = False) -> None:
        self._ids, self._ties = ranking.query_ids, ties
        self._counts = ranking.relevant_counts > 0
        self._complete, self._known = ranking.complete, ranking.known
        gallery = ranking.known if ranking.complete else np.full(len(ranking.known), len(ranking.item_ids))
        lengths = (ranking.top_items != UNRANKED).sum(axis=1)
        self._whole = lengths >= gallery
        """Whether the kept list is the query's whole gallery."""
        last = np.maximum(lengths, 1)[:, None] - 1
        self._end = np.take_along_axis(ranking.top_scores, last, axis=1)[:, 0] if ranking.depth else lengths
        """The score at the end of the kept list: unseen items may have it too."""
        self._non_gt = non_gt
        self._depth = ranking.depth
        self.columns: IntArray | None = None
        """The index in the kept list of each item that is left; None: all are left."""
        if non_gt:
            stays = (ranking.top_items != UNRANKED) & (_listed_grades(ranking) <= 0)
            self.columns = _moving_up(stays)
            self.listed = np.take_along_axis(stays, self.columns, axis=1)
        else:
            self.listed = ranking.top_items != UNRANKED
        self._scores = self.of_items_left(ranking.top_scores)
        self.items: IntArray = np.where(self.listed, self.of_items_left(ranking.top_items), UNRANKED)

    def of_items_left(self, per_rank: Any) -> Any:
        """An array over the kept lists, rearranged to the items that are left."""
        return per_rank if self.columns is None else np.take_along_axis(per_rank, self.columns, axis=1)

    @cached_property
    def ties(self) -> IntArray:
        """The number of the tie that each rank belongs to, from 0 in every list."""
        changed = (self._scores[:, 1:] != self._scores[:, :-1]) | ~self.listed[:, 1:]
        return np.concatenate([np.zeros((len(changed), 1), np.int64), np.cumsum(changed, axis=1)], axis=1)

    def arranged(self, values: FloatArray, k: int) -> FloatArray:
        """The values at the first ``k`` ranks, under the tie mode; 0 past the end of a gallery."""
        self.require(k)
        values = np.where(self.listed, values, 0.0)
        if self._ties == "expected":
            key, ties = self._tie_keys()
            sums, sizes = np.bincount(key, values.ravel(), ties), np.bincount(key, minlength=ties)
            values = np.asarray((sums[key] / sizes[key]).reshape(values.shape))
        elif self._ties != "stable" and values.size:
            sign = -1.0 if self._ties == "optimistic" else 1.0
            values = np.take_along_axis(values, np.lexsort((sign * values, self.ties), axis=1), axis=1)
        return np.asarray(values[:, :k], np.float64)

    def chance(self, members: BoolArray, k: int) -> FloatArray:
        """1 if any of the members is among the first ``k``; under ``expected``, the chance of it."""
        if self._ties != "expected":
            return np.asarray((self.arranged(members.astype(np.float64), k) > 0).any(axis=1), np.float64)
        self.require(k)
        key, ties = self._tie_keys()
        size = np.bincount(key, self.listed.ravel(), ties).astype(np.int64)
        sharers = np.bincount(key, (members & self.listed).ravel(), ties).astype(np.int64)
        first = np.zeros(self.items.shape, bool)
        first[:, :k] = True
        inside = np.bincount(key, (first & self.listed).ravel(), ties).astype(np.int64)
        none = np.ones(ties)
        some = (sharers > 0) & (inside > 0)
        none[some] = chance_of_none(size[some], sharers[some], inside[some])
        return np.asarray(1 - none.reshape(self.items.shape).prod(axis=1))

    def _tie_keys(self) -> tuple[IntArray, int]:
        queries, depth = self.items.shape
        return (np.arange(queries)[:, None] * depth + self.ties).ravel(), queries * depth

    def require(self, k: int) -> None:
        """The first ``k`` items of every query that counts are known, and so are the ties that reach into them."""
        sizes = self.listed.sum(axis=1)
        short = self._counts & ~self._whole & (sizes < k)
        if short.any():
            query, beside = int(np.argmax(short)), " beside the ground truth" if self._non_gt else ""
            problem = f"the list of query {self._ids[query]!r} has {item_count(sizes[query])}{beside}"
            fewest = int(sizes[self._counts & ~self._whole].min())
            smaller = f"use a cutoff of at most {fewest}, or " if fewest else ""
            fix = f"{smaller}pass lists of at least {item_count(k)}{beside}"
            if self._complete or self._depth < self._known[query]:
                problem = f"of the list of query {self._ids[query]!r} only {item_count(sizes[query])}{beside} were kept"
                fix = f"evaluate with a depth of {k + self._depth - int(sizes[query]):,} or more"
                fix += where_option("rerank_depth", f": {argument('depth')}, {argument('rerank_depth')}")
            raise InputError(problem, expected=f"at least {item_count(k)}{beside}", fix=fix)
        if self._ties == "stable" or not self.items.shape[1]:
            return
        last = np.minimum(sizes, k) - 1
        rows = np.flatnonzero(self._counts & ~self._whole & (last >= 0))
        open_ended = self._scores[rows, last[rows]] == self._end[rows]
        if open_ended.any():
            query = int(rows[np.argmax(open_ended)])
            longer = "evaluate with longer lists" + where_option("depth", f" ({argument('depth')})")
            raise tie_error(self._ids[query], sizes[query], self._ties, longer)


_IDEAL: WeakKeyDictionary[Ranking, dict[tuple[str, int, bool], tuple[GainMatrix, int, Any]]] = WeakKeyDictionary()
_TOP_K: WeakKeyDictionary[Ranking, dict[tuple[Ties, bool], TopK]] = WeakKeyDictionary()
"""What many metrics of one ranking share; dropped with the ranking."""


class GradedRanking:
    """One ranking under one tie mode, with the gains of its items; arrays have a row per query.

    ``gains`` are the matrices by name, the φ that metrics name. Queries without a relevant item are excluded
    afterwards, as with every metric; a metric returns NaN where it has nothing to compare with.
    """

    def __init__(self, ranking: Ranking, ties: Ties, gains: Mapping[str, GainMatrix]) -> None:
        self.ranking, self._ties, self._gains = ranking, ties, gains

    def top_k(self, *, non_gt: bool = False) -> TopK:
        """The kept lists, with or without the ground truth."""
        cached = _TOP_K.setdefault(self.ranking, {})
        if (self._ties, non_gt) not in cached:
            cached[self._ties, non_gt] = TopK(self.ranking, self._ties, non_gt=non_gt)
        return cached[self._ties, non_gt]

    def values(self, name: str, *, non_gt: bool = False) -> FloatArray:
        """The gains of the items in the kept lists."""
        return self._gains_of(name).of(self.ranking.direction, self.top_k(non_gt=non_gt).items)

    def grades(self) -> FloatArray:
        """The grades that the judgements give to the items in the kept lists."""
        return _listed_grades(self.ranking)

    def best_grades(self, count: int) -> FloatArray:
        """The ``count`` highest grades of every query, best first; 0 where there are no more."""
        ranking = self.ranking
        order = np.lexsort((-ranking.grades, ranking.rows))
        rank = np.arange(len(order)) - ranking.offsets[ranking.rows]
        best = np.zeros((len(ranking.query_ids), count))
        within = rank < count
        best[ranking.rows[within], rank[within]] = ranking.grades[order][within]
        return best

    def own_scores(self) -> FloatArray:
        """The scores by which the items in the kept lists were ranked."""
        scores, present = self.ranking.top_scores.astype(np.float64), self.ranking.top_items != UNRANKED
        substitutes = -1.0 - np.arange(scores.shape[1])
        if present.any() and not self.ranking.complete and ((scores == substitutes) | ~present).all():
            raise InputError(
                "the lists have no scores of their own",
                expected="scores that say how relevant an item is",
                fix=f"pass lists with scores, or another model's scores with {argument('scores_from')}",
            )
        return np.where(present, scores, 0.0)

    def best(self, name: str, count: int, *, non_gt: bool = False) -> IdealLists:
        """The ``count`` items of most gain to every query (of its fold), or fewer where there are no more."""
        gains = self._gains_of(name)

        def without_relevant(depth: int) -> IdealLists:
            removed = int(self.ranking.relevant_counts.max(initial=0))
            ideal = gains.ideal(self.ranking.direction, depth + removed)
            width = len(self.ranking.item_ids) + 1
            keys = np.arange(len(ideal.items))[:, None] * width + ideal.items
            relevant = np.isin(keys, self.ranking.rows * width + self.ranking.relevant)
            stays = (ideal.items != UNRANKED) & ~relevant
            order = _moving_up(stays)[:, :depth]
            items = np.take_along_axis(np.where(stays, ideal.items, UNRANKED), order, axis=1)
            return IdealLists(items, np.take_along_axis(np.where(stays, ideal.values, 0.0), order, axis=1))

        if non_gt:  # cached for the largest ``count``
            ideal: IdealLists = self._shared("lists", gains, True, count, without_relevant)
        else:
            ideal = gains.ideal(self.ranking.direction, count)
        return IdealLists(ideal.items[:, :count], ideal.values[:, :count])

    def ideal_ranks(self, name: str, count: int, *, non_gt: bool = False) -> IntArray:
        """The rank, from 0, of each item of the kept lists among the ``count`` of most gain; huge if not among them.

        Computed once for the largest ``count``: a curve over m needs all the smaller ones.
        """

        def compute(depth: int) -> IntArray:
            best = self.best(name, depth, non_gt=non_gt).items
            return _ranks_in(best, self.ranking.top_items, len(self.ranking.item_ids))

        ranks = self._shared("ranks", self._gains_of(name), non_gt, count, compute)
        return np.asarray(self.top_k(non_gt=non_gt).of_items_left(ranks), np.int64)

    def _shared(self, kind: str, gains: GainMatrix, non_gt: bool, count: int, compute: Callable[[int], Any]) -> Any:
        """What is computed for ``count`` items, or was for more of them."""
        cached, key = _IDEAL.setdefault(self.ranking, {}), (kind, id(gains), non_gt)
        if key not in cached or cached[key][1] < count:
            depth = max(count, gains.deepest)
            cached[key] = gains, depth, compute(depth)  # the gains are referred to, so that their id() is not reused
        return cached[key][2]

    def of_best_images(self, name: str, count: int, *, non_gt: bool = False) -> tuple[BoolArray, IntArray]:
        """Which listed items are of the ``count`` images that the query's image votes for, and how many items are.

        An image votes by its captions. With ``non_gt`` nobody votes for the query's own image, nor for the images of
        its ground-truth items. Computed once for the largest ``count``, as for :meth:`ideal_ranks`.
        """
        gains = self._gains_of(name)

        def compute(depth: int) -> tuple[IntArray, IntArray]:
            """The rank, from 0, of each listed item's image among the best; per number of images, how many items."""
            images = self._best_images(gains, depth, non_gt=non_gt)
            items = self.ranking.top_items
            items = np.where(items < gains.gallery(self.ranking.direction), items, UNRANKED)
            sizes = np.ones(gains.shape[0], np.int64)
            if self.ranking.direction == IMAGE_TO_TEXT:
                image_of = _images_of_captions(gains)
                items = np.where(items == UNRANKED, UNRANKED, image_of[items])
                sizes = np.bincount(image_of, minlength=gains.shape[0])
            totals = np.cumsum(np.append(sizes, 0)[images], axis=1)  # UNRANKED, -1, is the 0 at the end
            return _ranks_in(images, items, gains.shape[0]), totals

        ranks, totals = self._shared("images", gains, non_gt, count, compute)
        last = min(count, totals.shape[1]) - 1
        return self.top_k(non_gt=non_gt).of_items_left(ranks) < count, totals[:, last]

    def _best_images(self, gains: GainMatrix, count: int, *, non_gt: bool) -> IntArray:
        """Per query, the ``count`` images that the captions of its image vote for."""
        ranking, to_text = self.ranking, self.ranking.direction == IMAGE_TO_TEXT
        removed = int(ranking.relevant_counts.max(initial=0)) + 1 if non_gt else 0
        images = gains.ideal_images(ranking.direction, count + removed).items
        query_images = np.arange(len(images)) if to_text else _images_of_captions(gains)
        images = images[query_images]
        if non_gt:
            has_gains = ranking.relevant < gains.gallery(ranking.direction)  # lists may name items without gains
            rows, relevant = ranking.rows[has_gains], ranking.relevant[has_gains]
            if to_text:
                relevant = _images_of_captions(gains)[relevant]
            width = gains.shape[0] + 1
            keys = np.concatenate([rows * width + relevant, np.arange(len(query_images)) * width + query_images])
            stays = (images != UNRANKED) & ~np.isin(np.arange(len(images))[:, None] * width + images, keys)
            images = np.take_along_axis(np.where(stays, images, UNRANKED), _moving_up(stays), axis=1)
        return np.asarray(images[:, :count], np.int64)

    def _gains_of(self, name: str) -> GainMatrix:
        if name not in self._gains:
            raise UsageError(
                f"no gains are given for {name!r}",
                fix=f"pass gains={{{name!r}: GainMatrix(matrix)}}, or use evaluate with a dataset, which computes them",
            )
        return self._gains[name].fitting(self.ranking)


def _moving_up(stays: BoolArray) -> IntArray:
    """The order of each list in which what stays moves up, as it came."""
    return np.argsort(~stays, axis=1, kind="stable")


def _images_of_captions(gains: GainMatrix) -> IntArray:
    assert gains.image_of is not None  # ideal_images has raised otherwise
    return gains.image_of


def _ranks_in(best: IntArray, items: IntArray, size: int) -> IntArray:
    """For every item of the lists, its index in the query's ideal list; items are below ``size``."""
    base = np.arange(len(items))[:, None] * (size + 1)
    keys = np.where(best == UNRANKED, -1, base + best).ravel()
    rank_of = np.broadcast_to(np.arange(best.shape[1]), best.shape).ravel()
    return np.asarray(_looked_up(np.where(items == UNRANKED, -2, base + items), keys, rank_of, UNSEEN_RANK), np.int64)


def _listed_grades(ranking: Ranking) -> FloatArray:
    """The grades of the items in the kept lists; 0 for an item that is not relevant, or past the end."""
    width = len(ranking.item_ids) + 1
    queries = np.arange(len(ranking.query_ids))[:, None]
    item_keys = np.where(ranking.top_items == UNRANKED, -1, queries * width + ranking.top_items)
    keys = ranking.rows * width + ranking.relevant
    return np.asarray(_looked_up(item_keys, keys, ranking.grades.astype(np.float64), 0.0), np.float64)


def _looked_up(targets: IntArray, keys: IntArray, values: Any, missing: Any) -> Any:
    """The value that goes with each target, the first of equal keys; ``missing`` where there is none."""
    if not len(keys):
        return np.full(targets.shape, missing)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    nearest = np.minimum(np.searchsorted(ordered, targets), len(keys) - 1)
    return np.where(ordered[nearest] == targets, values[order[nearest]], missing)
