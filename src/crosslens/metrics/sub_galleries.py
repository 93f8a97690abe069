"""Metrics in random sub-galleries: the exact expectation of each query's value, without drawing any.

A sub-gallery of ``size`` items holds all relevant items of the query; the others in it are drawn at random, each set of
them equally likely. How many of the items before a relevant one are in the sub-gallery is
hypergeometric; chances are computed from binomial ones and from ratios of neighbours, so that they are as exact among a
thousand million items as among ten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, UsageError
from crosslens.metrics.family import RSUM_CUTOFFS, MetricSpec, family_of
from crosslens.metrics.relevant_ranks import RelevantPairs, Ties, require_ties
from crosslens.storage import FloatArray, IntArray
from crosslens.values import Ranking


def chance_of(hits: IntArray, others: IntArray, before: IntArray, draws: IntArray) -> FloatArray:
    """P(X = hits)."""
    from scipy.stats import binom

    # A quotient of binomial chances, which scipy gives to the last digits; its hypergeom loses half of them.
    share = draws / np.maximum(others, 1)
    several = binom.pmf(hits, before, share) * binom.pmf(draws - hits, others - before, share)
    return np.asarray(several / binom.pmf(draws, others, share), np.float64)


def chance_up_to(most: IntArray, others: IntArray, before: IntArray, draws: IntArray) -> FloatArray:
    """P(X ≤ most); the arguments are arrays of one length."""
    least = np.maximum(0, before + draws - others)
    largest = np.minimum(before, draws)
    result = (most >= largest).astype(np.float64)
    mean = draws * (before / np.maximum(others, 1))
    variance = mean * (1 - before / np.maximum(others, 1)) * ((others - draws) / np.maximum(others - 1, 1))
    # By Bernstein's inequality less than 1e-16 of X is further from its mean.
    reach = 12 * np.sqrt(np.maximum(variance, 0)) + 30
    result[most > mean + reach] = 1.0
    open_rows = np.flatnonzero((most >= least) & (most < largest) & (most <= mean + reach) & (most >= mean - reach))
    if not len(open_rows):
        return result
    most, others, before, draws = (part[open_rows] for part in (most, others, before, draws))
    hits = np.maximum(least[open_rows], np.floor(mean[open_rows] - reach[open_rows]).astype(np.int64))
    hits = np.minimum(hits, most)
    term = chance_of(hits, others, before, draws)
    total = term.copy()
    rest = others - before - draws
    for _ in range(int((most - hits).max())):
        going = hits < most
        # P(X = x + 1) / P(X = x)
        ratio = (before - hits) / (hits + 1.0) * ((draws - hits) / np.maximum(rest + hits + 1.0, 1.0))
        term = np.where(going, term * ratio, 0.0)
        total += term
        hits = hits + going
    result[open_rows] = np.minimum(total, 1.0)
    return result


def mean_reciprocal(others: IntArray, before: IntArray, draws: IntArray, most: int | None = None) -> FloatArray:
    """E[1 / (X + 1)], counting only X < ``most``: closed, as C(b, x) / (x + 1) = C(b + 1, x + 1) / (b + 1)."""
    zero = np.zeros_like(before)
    none = chance_of(zero, others + 1, before + 1, draws + 1)
    some = 1 - none
    if most is not None:
        some = np.maximum(chance_up_to(zero + most, others + 1, before + 1, draws + 1) - none, 0)
    return np.asarray((others + 1.0) / ((before + 1.0) * (draws + 1.0)) * some, np.float64)


@dataclass(frozen=True)
class Positions:
    """Each relevant pair is one of few cases; a case is one or (ties in random order) several weighted entries.

    Of an entry, ``earlier`` relevant items and ``before`` others come before the item, whose query has ``relevant``
    relevant items; entries of one case are next to each other, from ``starts`` on.
    """

    queries: int
    gallery: int
    counts: IntArray
    rows: IntArray
    """The query of each pair, best item first within a query."""
    case_of: IntArray
    starts: IntArray
    earlier: IntArray
    before: IntArray
    relevant: IntArray
    weight: FloatArray

    def per_pair(self, per_entry: FloatArray) -> FloatArray:
        """The expectation over the entries of each pair's case."""
        return np.asarray(np.add.reduceat(self.weight * per_entry, self.starts)[self.case_of], np.float64)


def positions_of(ranking: Ranking, ties: Ties = "stable") -> Positions:
    """The positions of a ranking's relevant items under a tie mode."""
    require_ties(ties)
    # Past the end of a list that was cut off, nobody knows how many items come before a relevant one.
    short = (ranking.relevant_counts > 0) & (ranking.known < len(ranking.item_ids))
    if not ranking.complete or short.any():
        query = int(np.argmax(short))
        raise InputError(
            f"the {ranking.direction} lists do not hold the whole gallery: that of query "
            f"{ranking.query_ids[query]!r} has {int(ranking.known[query]):,} of {len(ranking.item_ids):,} items",
            expected="the rank of every relevant item among all items",
            fix="evaluate from embeddings or scores, or from lists of the whole gallery",
        )
    pairs = RelevantPairs(ranking)
    counts = pairs.counts[pairs.rows]
    among = np.arange(len(pairs.rows)) - np.repeat(pairs.starts, pairs.sharers)
    sharers = np.repeat(pairs.sharers, pairs.sharers)
    first = pairs.position - among  # relevant items above the tie
    above, others = pairs.above - first, pairs.size - sharers
    if ties == "stable":
        # Relevant items before this one within the tie are among those with a lower index.
        above, others = pairs.above + pairs.before - pairs.position, np.zeros_like(above)
    elif ties == "optimistic":
        others = np.zeros_like(above)
    elif ties == "pessimistic":
        above, others = above + others, np.zeros_like(above)
    inside = np.where(others > 0, np.stack([sharers, among]), 0)
    cases, case_of = np.unique(np.stack([counts, pairs.position, above, others, *inside]), axis=1, return_inverse=True)
    relevant, earlier, above, others, sharers, among = cases
    sizes = others + 1
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[: len(sizes)]
    passed = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    weight, spread = np.ones(len(passed)), np.repeat(others > 0, sizes)
    if spread.any():
        ends = (np.repeat(part, sizes)[spread] for part in (others, sharers, among))
        weight[spread] = _chance_of_passing(passed[spread], *ends)
    earlier, above, relevant = (np.repeat(part, sizes) for part in (earlier, above, relevant))
    whole = len(ranking.query_ids), len(ranking.item_ids), pairs.counts, pairs.rows
    return Positions(*whole, case_of.ravel(), starts, earlier, above + passed, relevant, weight)


def _chance_of_passing(passed: IntArray, others: IntArray, sharers: IntArray, among: IntArray) -> FloatArray:
    """That ``passed`` of the others in a tie come before its relevant item number ``among`` (from 0), in random order.

    C(passed + among, among) · C(others − passed + sharers − 1 − among, sharers − 1 − among) / C(others + sharers, sharers)
    """  # noqa: E501
    from scipy.special import gammaln

    def choices(items: IntArray, count: IntArray) -> FloatArray:
        return np.asarray(gammaln(items + 1) - gammaln(count + 1) - gammaln(items - count + 1), np.float64)

    later = sharers - 1 - among
    logarithm = choices(passed + among, among) + choices(others - passed + later, later)
    chance = np.exp(logarithm - choices(others + sharers, sharers))
    return np.where(sharers == 1, 1 / (others + 1), chance)


class SubGalleries:
    """The ranks of a ranking's relevant items in random sub-galleries."""

    def __init__(self, ranking: Ranking, ties: Ties = "stable") -> None:
        self.positions = positions_of(ranking, ties)
        self.gallery = self.positions.gallery
        self._ids = ranking.query_ids

    @property
    def smallest(self) -> int:
        """The fewest items that hold the relevant ones of every query."""
        return int(self.positions.counts.max(initial=1))

    def values(self, spec: MetricSpec, size: int) -> FloatArray:
        """The expected value of every query; NaN for queries without a relevant item. MedR has none: see ``within``."""
        at = self._at(size)
        require_expectation(spec)
        if spec.family in _MEDIANS:
            raise UsageError(f"{spec} is a median over queries", fix="take it from SubGalleries.within")
        values = _EXPECTATIONS[family_of(spec).name](at, spec)
        return np.where(self.positions.counts > 0, values, np.nan)

    def pair_ranks(self, size: int) -> FloatArray:
        """The expected rank of every relevant item; those of a query together, best first."""
        return self.positions.per_pair(self._at(size).mean_ranks())

    def within(self, k: int, size: int, *, each: bool = False) -> FloatArray:
        """The chance that the best relevant item (``each``: every one, an entry per pair) is among the first ``k``."""
        at = self._at(size)
        if each:
            return self.positions.per_pair(at.chance_within(k))
        return np.where(self.positions.counts > 0, at.hit(k), np.nan)

    def _at(self, size: int) -> SizedGallery:
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
        return SizedGallery(self.positions, size)


class SizedGallery:
    """Sub-galleries of one size."""

    def __init__(self, positions: Positions, size: int) -> None:
        self.positions, self.relevant, self.own_counts = positions, positions.counts, positions.relevant
        """``own_counts``, per entry: R, the number of relevant items of its query."""
        self._others, self._drawn = positions.gallery - positions.relevant, size - positions.relevant
        self._before, self._earlier = positions.before, positions.earlier

    def hit(self, k: int) -> FloatArray:
        """The chance of any relevant item among the first k."""
        return self.sums(self.only_first(self.chance_within(k)))

    def retrieved(self, k: int | IntArray) -> FloatArray:
        """How many relevant items are expected among the first k, which may differ by the number of relevant items."""
        return self.sums(self.chance_within(k))

    def chance_within(self, k: int | IntArray) -> FloatArray:
        """Per entry: the chance that its item is among the first k."""
        return chance_up_to(k - 1 - self._earlier, self._others, self._before, self._drawn)

    def mean_ranks(self) -> FloatArray:
        return np.asarray(1.0 + self._earlier + self._drawn * (self._before / np.maximum(self._others, 1)), np.float64)

    def reciprocal(self, k: int | None) -> FloatArray:
        """The expected 1 / rank of the best relevant item."""
        return self.sums(self.only_first(mean_reciprocal(self._others, self._before, self._drawn, k)))

    def precisions(self, k: int | IntArray) -> FloatArray:
        """The expected sum, over relevant items among the first k, of the precision at the rank of each."""
        limit = np.broadcast_to(np.asarray(k), self._before.shape)
        total = np.zeros(len(self._before))
        for rank in range(1, int(limit.max(initial=0)) + 1):
            chance = chance_of(rank - 1 - self._earlier, self._others, self._before, self._drawn)
            total += np.where(rank <= limit, chance * (self._earlier + 1) / rank, 0.0)
        return self.sums(total)

    def only_first(self, per_entry: FloatArray) -> FloatArray:
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
    "RPrecision": lambda at, _: _divided(at.retrieved(at.own_counts), at.relevant),
    "mAP@R": lambda at, _: _divided(at.precisions(at.own_counts), at.relevant),
    "AP": _average_precision,
    "MRR": lambda at, spec: at.reciprocal(spec.cutoff),
    "MeanR": lambda at, _: at.sums(at.only_first(at.mean_ranks())),
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
