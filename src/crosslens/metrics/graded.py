"""What a graded metric is computed from: the gains of the retrieved items, and those of the ideal list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, UNRANKED, InputError, Ranking, UsageError, argument
from crosslens.metrics.coverage import BoolArray, FloatArray, IntArray, Ties
from crosslens.metrics.gain_matrix import GainMatrix, IdealLists
from crosslens.metrics.relevant_ranks import UNSEEN_RANK
from crosslens.metrics.top_k import TopK, listed_grades


class _Cached(NamedTuple):
    """A result for ``depth`` items; the reference to the gains keeps their id() from being reused."""

    gains: GainMatrix
    depth: int
    value: Any


_IDEAL: WeakKeyDictionary[Ranking, dict[tuple[str, int, bool], _Cached]] = WeakKeyDictionary()
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
        known = _TOP_K.setdefault(self.ranking, {})
        if (self._ties, non_gt) not in known:
            known[self._ties, non_gt] = TopK(self.ranking, self._ties, non_gt=non_gt)
        return known[self._ties, non_gt]

    def values(self, name: str, *, non_gt: bool = False) -> FloatArray:
        """The gains of the items in the kept lists."""
        return self._named(name).of(self.ranking.direction, self.top_k(non_gt=non_gt).items)

    def grades(self) -> FloatArray:
        """The grades that the judgements give to the items in the kept lists."""
        return listed_grades(self.ranking)

    def best_grades(self, count: int) -> FloatArray:
        """The ``count`` highest grades of every query, best first; 0 where there are no more."""
        ranking = self.ranking
        order = np.lexsort((-ranking.grades, ranking.rows))
        rank = np.arange(len(order)) - ranking.offsets[ranking.rows]
        best = np.zeros((len(ranking.query_ids), count))
        kept = rank < count
        best[ranking.rows[kept], rank[kept]] = ranking.grades[order][kept]
        return best

    def own_scores(self) -> FloatArray:
        """The scores by which the items in the kept lists were ranked."""
        scores, listed = self.ranking.top_scores.astype(np.float64), self.ranking.top_items != UNRANKED
        substitutes = -1.0 - np.arange(scores.shape[1])
        if listed.any() and not self.ranking.complete and ((scores == substitutes) | ~listed).all():
            raise InputError(
                "the lists have no scores of their own",
                expected="scores that say how relevant an item is",
                fix=f"pass lists with scores, or another model's scores with {argument('scores_from')}",
            )
        return np.where(listed, scores, 0.0)

    def best(self, name: str, count: int, *, non_gt: bool = False) -> IdealLists:
        """The ``count`` items of most gain to every query (of its fold), or fewer where there are no more."""
        gains = self._named(name)
        ideal = self._ideal_non_gt(gains, count) if non_gt else gains.ideal(self.ranking.direction, count)
        return IdealLists(ideal.items[:, :count], ideal.values[:, :count])

    def ideal_ranks(self, name: str, count: int, *, non_gt: bool = False) -> IntArray:
        """The rank, from 0, of each item of the kept lists among the ``count`` of most gain; huge if not among them.

        Computed once for the largest ``count``: a curve over m needs all the smaller ones.
        """
        gains, known = self._named(name), _IDEAL.setdefault(self.ranking, {})
        key = "ranks", id(gains), non_gt
        if key not in known or known[key].depth < count:
            count = max(count, gains.deepest)
            best = self.best(name, count, non_gt=non_gt).items
            known[key] = _Cached(gains, count, _ranks_in(best, self.ranking))
        return np.asarray(self.top_k(non_gt=non_gt).moved(known[key].value), np.int64)

    def of_best_images(self, name: str, count: int) -> tuple[BoolArray, IntArray]:
        """Which listed items are of the ``count`` images most similar to the query's image, and how many items are."""
        gains, items = self._named(name), self.top_k().items
        images = gains.ideal_images(self.ranking.direction, count).items[:, :count]
        assert gains.image_of is not None
        if self.ranking.direction != IMAGE_TO_TEXT:
            images = images[gains.image_of]
            return _member(images, items, gains.shape[0]), (images != UNRANKED).sum(axis=1)
        sizes = np.append(np.bincount(gains.image_of, minlength=gains.shape[0]), 0)
        listed_images = np.where(items == UNRANKED, UNRANKED, gains.image_of[items])
        return _member(images, listed_images, gains.shape[0]), sizes[images].sum(axis=1)

    def _ideal_non_gt(self, gains: GainMatrix, count: int) -> IdealLists:
        """The items of most gain without the relevant ones; cached for the largest ``count``."""
        known, key = _IDEAL.setdefault(self.ranking, {}), ("lists", id(gains), True)
        if key not in known or known[key].depth < count:
            count = max(count, gains.deepest)
            removed = int(self.ranking.relevant_counts.max(initial=0))
            ideal = gains.ideal(self.ranking.direction, count + removed)
            stays = (ideal.items != UNRANKED) & ~_is_relevant(self.ranking, ideal.items)
            order = np.argsort(~stays, axis=1, kind="stable")[:, :count]
            listed = np.take_along_axis(stays, order, axis=1)
            items = np.where(listed, np.take_along_axis(ideal.items, order, axis=1), UNRANKED)
            values = np.where(listed, np.take_along_axis(ideal.values, order, axis=1), 0.0)
            known[key] = _Cached(gains, count, IdealLists(items, values))
        lists: IdealLists = known[key].value
        return lists

    def _named(self, name: str) -> GainMatrix:
        if name not in self._gains:
            raise UsageError(
                f"no gains are given for {name!r}",
                fix=f"pass gains={{{name!r}: GainMatrix(matrix)}}, or use evaluate with a dataset, which computes them",
            )
        return self._gains[name].fitting(self.ranking)


def _is_relevant(ranking: Ranking, items: IntArray) -> BoolArray:
    width = len(ranking.item_ids) + 1
    keys = np.arange(len(items))[:, None] * width + items
    return np.asarray(np.isin(keys, ranking.rows * width + ranking.relevant) & (items != UNRANKED))


def _member(sets: IntArray, items: IntArray, size: int) -> BoolArray:
    """Which of the items of each row are in that row's set."""
    base = np.arange(len(items))[:, None] * (size + 1)
    return np.asarray(np.isin(base + items, (base + sets)[sets != UNRANKED]) & (items != UNRANKED))


def _ranks_in(best: IntArray, ranking: Ranking) -> IntArray:
    """For every item of the kept lists, its index in the query's ideal list."""
    items, width = ranking.top_items, len(ranking.item_ids) + 1
    base = np.arange(len(items))[:, None] * width
    keys = np.where(best == UNRANKED, -1, base + best).ravel()
    rank_of = np.broadcast_to(np.arange(best.shape[1]), best.shape).ravel()
    order = np.argsort(keys, kind="stable")
    keys, rank_of = keys[order], rank_of[order]
    listed = np.where(items == UNRANKED, -2, base + items)
    if not len(keys):
        return np.full(items.shape, UNSEEN_RANK)
    nearest = np.minimum(np.searchsorted(keys, listed), len(keys) - 1)
    return np.where(keys[nearest] == listed, rank_of[nearest], UNSEEN_RANK)
