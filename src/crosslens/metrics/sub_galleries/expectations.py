"""Metrics in random sub-galleries: the exact expectation of each query's value, without drawing any.

A sub-gallery of ``size`` items holds all relevant items of the query; the others in it are drawn at random, each set of
them equally likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosslens.core import InputError, Ranking, UsageError
from crosslens.metrics.coverage import Ties
from crosslens.metrics.families.rank_metrics import RSUM_CUTOFFS
from crosslens.metrics.family import MetricSpec, family_of
from crosslens.metrics.sub_galleries.draws import FloatArray, IntArray, chance_of, chance_up_to, mean_reciprocal
from crosslens.metrics.sub_galleries.positions import positions_of


class SubGalleries:
    """The ranks of a ranking's relevant items in random sub-galleries."""

    def __init__(self, ranking: Ranking, ties: Ties = "stable") -> None:
        self.positions = positions_of(ranking, ties)
        self.gallery = self.positions.gallery
        self._ids = ranking.query_ids
        self._first = self.positions.earlier == 0

    @property
    def smallest(self) -> int:
        """The fewest items that hold the relevant ones of every query."""
        return int(self.positions.counts.max(initial=1))

    def values(self, spec: MetricSpec, size: int) -> FloatArray:
        """The expected value of every query; NaN for queries without a relevant item. MedR has none: see ``within``."""
        at = SizedGallery(self, self._checked(size))
        values = _expectation(spec)(at, spec)
        return np.where(self.positions.counts > 0, values, np.nan)

    def pair_ranks(self, size: int) -> FloatArray:
        """The expected rank of every relevant item; those of a query together, best first."""
        at = SizedGallery(self, self._checked(size))
        return self.positions.per_pair(at.mean_ranks())

    def within(self, k: int, size: int, *, each: bool = False) -> FloatArray:
        """The chance that the best relevant item (``each``: every one, an entry per pair) is among the first ``k``."""
        at = SizedGallery(self, self._checked(size))
        if each:
            return self.positions.per_pair(at.chance_within(k))
        return np.where(self.positions.counts > 0, at.hit(k), np.nan)

    def _checked(self, size: int) -> int:
        if size > self.gallery:
            raise UsageError(f"a sub-gallery of {size:,} items", fix=f"the gallery has {self.gallery:,}")
        if size < self.smallest:
            query = int(np.argmax(self.positions.counts > size))
            raise InputError(
                f"a gallery of {size:,} cannot hold the {int(self.positions.counts[query]):,} relevant items of query "
                f"{self._ids[query]!r}",
                expected=f"sizes of at least {self.smallest:,}",
                fix=f"use sizes from {self.smallest:,} on",
            )
        return size


class SizedGallery:
    """Sub-galleries of one size."""

    def __init__(self, whole: SubGalleries, size: int) -> None:
        self.positions = whole.positions
        self.relevant = whole.positions.counts
        entries = whole.positions
        self._others, self._drawn = entries.gallery - entries.relevant, size - entries.relevant
        self._before, self._earlier, self._of = entries.before, entries.earlier, entries.relevant

    def hit(self, k: int) -> FloatArray:
        """The chance of any relevant item among the first k."""
        return self.sums(self._only_first(self.chance_within(k)))

    def retrieved(self, k: int | IntArray) -> FloatArray:
        """How many relevant items are expected among the first k, which may differ by the number of relevant items."""
        return self.sums(self.chance_within(k))

    def chance_within(self, k: int | IntArray) -> FloatArray:
        """Per entry: the chance that its item is among the first k."""
        return chance_up_to(k - 1 - self._earlier, self._others, self._before, self._drawn)

    def chance_at(self, rank: int) -> FloatArray:
        """Per entry: the chance that its item has this rank."""
        return chance_of(rank - 1 - self._earlier, self._others, self._before, self._drawn)

    def mean_ranks(self) -> FloatArray:
        """Per entry: the expected rank."""
        return np.asarray(1.0 + self._earlier + self._drawn * (self._before / np.maximum(self._others, 1)), np.float64)

    def first_rank(self) -> FloatArray:
        """The expected rank of the best relevant item."""
        return self.sums(self._only_first(self.mean_ranks()))

    def reciprocal(self, k: int | None) -> FloatArray:
        """The expected 1 / rank of the best relevant item."""
        return self.sums(self._only_first(mean_reciprocal(self._others, self._before, self._drawn, k)))

    def precisions(self, k: int | IntArray) -> FloatArray:
        """The expected sum, over relevant items among the first k, of the precision at the rank of each."""
        limit = np.broadcast_to(np.asarray(k), self._before.shape)
        total = np.zeros(len(self._before))
        for rank in range(1, int(limit.max(initial=0)) + 1):
            total += np.where(rank <= limit, self.chance_at(rank) * (self._earlier + 1) / rank, 0.0)
        return self.sums(total)

    def own_counts(self) -> IntArray:
        """Per entry: R, the number of relevant items of its query."""
        return self._of

    def _only_first(self, per_entry: FloatArray) -> FloatArray:
        return np.where(self._earlier == 0, per_entry, 0.0)

    def sums(self, per_entry: FloatArray) -> FloatArray:
        """Summed over the relevant items of each query."""
        pairs = self.positions.per_pair(per_entry)
        return np.bincount(self.positions.rows, pairs, self.positions.queries).astype(np.float64, copy=False)


Expectation = Callable[[SizedGallery, MetricSpec], FloatArray]


def _divided(values: FloatArray, by: Any) -> FloatArray:
    return np.asarray(values / np.maximum(by, 1), np.float64)


def _average_precision(at: SizedGallery, spec: MetricSpec) -> FloatArray:
    if spec.cutoff is not None:
        return _divided(at.precisions(spec.cutoff), at.relevant)
    if (at.relevant > 1).any():
        raise UsageError(
            "AP of queries with several relevant items has no closed form in smaller galleries",
            fix="use a cutoff, such as AP@10, or mAP@R",
        )
    return at.reciprocal(None)


def _rsum(at: SizedGallery, spec: MetricSpec) -> FloatArray:
    part = _EXPECTATIONS["CappedRecall" if spec.has("capped") else "Hit"]
    return np.asarray(100 * sum(part(at, MetricSpec("Hit", cutoff=k)) for k in RSUM_CUTOFFS), np.float64)


_EXPECTATIONS: dict[str, Expectation] = {
    "Hit": lambda at, spec: at.hit(spec.k),
    "Fails": lambda at, _: 1 - at.hit(1),
    "Recall": lambda at, spec: _divided(at.retrieved(spec.k), at.relevant),
    "CappedRecall": lambda at, spec: _divided(at.retrieved(spec.k), np.minimum(at.relevant, spec.k)),
    "Precision": lambda at, spec: at.retrieved(spec.k) / spec.k,
    "RPrecision": lambda at, _: _divided(at.retrieved(at.own_counts()), at.relevant),
    "mAP@R": lambda at, _: _divided(at.precisions(at.own_counts()), at.relevant),
    "AP": _average_precision,
    "MRR": lambda at, spec: at.reciprocal(spec.cutoff),
    "MeanR": lambda at, _: at.first_rank(),
    "Rsum": _rsum,
}
_MEDIANS = ("MedR",)


def require_expectation(spec: MetricSpec) -> None:
    """Raise for a metric whose expectation in a sub-gallery is not known in closed form."""
    if spec.family not in (*_EXPECTATIONS, *_MEDIANS):
        raise UsageError(
            f"{spec} has no closed form in smaller galleries",
            fix=f"use one of {', '.join((*_EXPECTATIONS, *_MEDIANS))}",
        )


def _expectation(spec: MetricSpec) -> Expectation:
    require_expectation(spec)
    if spec.family in _MEDIANS:
        raise UsageError(f"{spec} is a median over queries", fix="take it from SubGalleries.within")
    return _EXPECTATIONS[family_of(spec).name]
