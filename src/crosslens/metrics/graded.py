"""What a graded metric may ask: how much the retrieved items are worth, and how much the best ones are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT
from crosslens.metrics.gains import BestLists, Gains
from crosslens.metrics.places import FAR, FloatArray, IntArray
from crosslens.metrics.ties import Ties
from crosslens.metrics.tops import BoolArray, Tops, grades_listed


class _Kept(NamedTuple):
    """Something found for ``depth`` items; holding on to the gains keeps their identity from being taken over."""

    gains: Gains
    depth: int
    found: Any


_KEPT: WeakKeyDictionary[Ranking, dict[tuple[str, int, bool], _Kept]] = WeakKeyDictionary()
_TOPS: WeakKeyDictionary[Ranking, dict[tuple[Ties, bool], Tops]] = WeakKeyDictionary()
"""What many metrics of one ranking ask for alike; forgotten with the ranking."""


class Graded:
    """Questions about one ranking under one tie mode; arrays have a row per query.

    ``gains`` are the matrices by name, the φ that metrics ask for. Queries without a relevant item are taken out
    afterwards, as with every metric; a metric says NaN where it has nothing to compare with.
    """

    def __init__(self, ranking: Ranking, ties: Ties, gains: Mapping[str, Gains]) -> None:
        self.ranking, self._ties, self._gains = ranking, ties, gains

    def tops(self, *, non_gt: bool = False) -> Tops:
        """The kept lists, with or without the ground truth."""
        known = _TOPS.setdefault(self.ranking, {})
        if (self._ties, non_gt) not in known:
            known[self._ties, non_gt] = Tops(self.ranking, self._ties, non_gt=non_gt)
        return known[self._ties, non_gt]

    def values(self, name: str, *, non_gt: bool = False) -> FloatArray:
        """The values of the items in the kept lists."""
        return self._named(name).of(self.ranking.direction, self.tops(non_gt=non_gt).items)

    def grades(self) -> FloatArray:
        """The grades that the judgements give to the items in the kept lists."""
        return grades_listed(self.ranking)

    def best_grades(self, count: int) -> FloatArray:
        """The ``count`` highest grades of every query, best first; 0 where there are no more."""
        ranking = self.ranking
        order = np.lexsort((-ranking.grades, ranking.rows))
        place = np.arange(len(order)) - ranking.offsets[ranking.rows]
        best = np.zeros((len(ranking.query_ids), count))
        kept = place < count
        best[ranking.rows[kept], place[kept]] = ranking.grades[order][kept]
        return best

    def own_scores(self) -> FloatArray:
        """The scores by which the items in the kept lists were ranked."""
        scores, listed = self.ranking.top_scores.astype(np.float64), self.ranking.top_items != UNRANKED
        stand_ins = -1.0 - np.arange(scores.shape[1])
        if listed.any() and not self.ranking.complete and ((scores == stand_ins) | ~listed).all():
            raise InputError(
                "the lists have no scores of their own",
                expected="scores that say how relevant an item is",
                fix="hand in lists with scores, or name another model's with scores_from",
            )
        return np.where(listed, scores, 0.0)

    def best(self, name: str, count: int, *, non_gt: bool = False) -> BestLists:
        """The ``count`` most valued items of every query (of its fold), or fewer where there are no more."""
        gains = self._named(name)
        found = self._best_non_gt(gains, count) if non_gt else gains.best(self.ranking.direction, count)
        return BestLists(found.items[:, :count], found.values[:, :count])

    def standing(self, name: str, count: int, *, non_gt: bool = False) -> IntArray:
        """At which place, from 0, each item of the kept lists stands among the ``count`` most valued; else far away.

        Found once for the largest ``count``: a curve over m asks for all the smaller ones.
        """
        gains, known = self._named(name), _KEPT.setdefault(self.ranking, {})
        key = "standing", id(gains), non_gt
        if key not in known or known[key].depth < count:
            count = max(count, gains.deepest)
            best = self.best(name, count, non_gt=non_gt).items
            known[key] = _Kept(gains, count, _places_in(best, self.ranking))
        return np.asarray(self.tops(non_gt=non_gt).moved(known[key].found), np.int64)

    def of_best_images(self, name: str, count: int) -> tuple[BoolArray, IntArray]:
        """Which listed items belong to the ``count`` images most alike to the query's image, and how many items do."""
        gains, items = self._named(name), self.tops().items
        images = gains.best_images(self.ranking.direction, count).items[:, :count]
        assert gains.image_of is not None
        if self.ranking.direction != IMAGE_TO_TEXT:
            images = images[gains.image_of]
            return _member(images, items, gains.shape[0]), (images != UNRANKED).sum(axis=1)
        sizes = np.append(np.bincount(gains.image_of, minlength=gains.shape[0]), 0)
        listed_images = np.where(items == UNRANKED, UNRANKED, gains.image_of[items])
        return _member(images, listed_images, gains.shape[0]), sizes[images].sum(axis=1)

    def _best_non_gt(self, gains: Gains, count: int) -> BestLists:
        """The most valued items without the relevant ones; kept for the largest ``count``, like the standing."""
        known, key = _KEPT.setdefault(self.ranking, {}), ("best", id(gains), True)
        if key not in known or known[key].depth < count:
            count = max(count, gains.deepest)
            removed = int(self.ranking.relevant_counts.max(initial=0))
            found = gains.best(self.ranking.direction, count + removed)
            stays = (found.items != UNRANKED) & ~_is_relevant(self.ranking, found.items)
            order = np.argsort(~stays, axis=1, kind="stable")[:, :count]
            listed = np.take_along_axis(stays, order, axis=1)
            items = np.where(listed, np.take_along_axis(found.items, order, axis=1), UNRANKED)
            values = np.where(listed, np.take_along_axis(found.values, order, axis=1), 0.0)
            known[key] = _Kept(gains, count, BestLists(items, values))
        best: BestLists = known[key].found
        return best

    def _named(self, name: str) -> Gains:
        if name not in self._gains:
            raise UsageError(
                f"nothing says what {name!r} is",
                fix=f"pass gains={{{name!r}: Gains(matrix)}}, or use evaluate with a dataset, which works it out",
            )
        return self._gains[name].fitting(self.ranking)


def _is_relevant(ranking: Ranking, items: IntArray) -> BoolArray:
    width = len(ranking.item_ids) + 1
    wanted = np.arange(len(items))[:, None] * width + items
    relevant: BoolArray = np.isin(wanted, ranking.rows * width + ranking.relevant) & (items != UNRANKED)
    return relevant


def _member(sets: IntArray, items: IntArray, size: int) -> BoolArray:
    """Which of the items of each row are in that row's set."""
    base = np.arange(len(items))[:, None] * (size + 1)
    members: BoolArray = np.isin(base + items, (base + sets)[sets != UNRANKED]) & (items != UNRANKED)
    return members


def _places_in(best: IntArray, ranking: Ranking) -> IntArray:
    """For every kept place of the ranking, where its item stands in the query's list of best ones."""
    items, width = ranking.top_items, len(ranking.item_ids) + 1
    base = np.arange(len(items))[:, None] * width
    keys = np.where(best == UNRANKED, -1, base + best).ravel()
    place_of = np.broadcast_to(np.arange(best.shape[1]), best.shape).ravel()
    order = np.argsort(keys, kind="stable")
    keys, place_of = keys[order], place_of[order]
    wanted = np.where(items == UNRANKED, -2, base + items)
    if not len(keys):
        return np.full(items.shape, FAR)
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[found] == wanted, place_of[found], FAR)
