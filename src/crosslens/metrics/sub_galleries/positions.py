"""Where the relevant items of a ranking stand among the others: what decides their ranks in a sub-gallery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, Ranking
from crosslens.metrics.coverage import Ties, require_ties
from crosslens.metrics.relevant_ranks import RelevantPairs

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


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
    _require_every_rank(ranking)
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
    gallery = len(ranking.item_ids)
    return _expanded(cases, case_of.ravel(), Shape(len(ranking.query_ids), gallery, pairs.counts, pairs.rows))


@dataclass(frozen=True)
class Shape:
    """What a ranking is, beside the positions."""

    queries: int
    gallery: int
    counts: IntArray
    rows: IntArray


def _expanded(cases: IntArray, case_of: IntArray, shape: Shape) -> Positions:
    relevant, earlier, above, others, sharers, among = cases
    sizes = others + 1
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[: len(sizes)]
    passed = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    weight = np.ones(len(passed))
    spread = np.repeat(others > 0, sizes)
    if spread.any():
        ends = (np.repeat(part, sizes)[spread] for part in (others, sharers, among))
        weight[spread] = _chance_of_passing(passed[spread], *ends)
    wide = (np.repeat(part, sizes) for part in (earlier, above, relevant))
    before_relevant, before, own = wide
    return Positions(
        shape.queries, shape.gallery, shape.counts, shape.rows, case_of, starts, before_relevant, before + passed, own,
        weight,
    )  # fmt: skip


def _chance_of_passing(passed: IntArray, others: IntArray, sharers: IntArray, among: IntArray) -> FloatArray:
    """That ``passed`` of the others in a tie come before its relevant item number ``among`` (from 0), in random order.

    C(passed + among, among) · C(others − passed + sharers − 1 − among, sharers − 1 − among) / C(others + sharers, sharers)
    """  # noqa: E501
    from scipy.special import gammaln

    def choices(items: IntArray, taken: IntArray) -> FloatArray:
        return np.asarray(gammaln(items + 1) - gammaln(taken + 1) - gammaln(items - taken + 1), np.float64)

    later = sharers - 1 - among
    logarithm = choices(passed + among, among) + choices(others - passed + later, later)
    chance = np.exp(logarithm - choices(others + sharers, sharers))
    return np.where(sharers == 1, 1 / (others + 1), chance)


def _require_every_rank(ranking: Ranking) -> None:
    """Raise for lists that were cut off: past their end, nobody knows how many items come before a relevant one."""
    counted = ranking.relevant_counts > 0
    short = counted & (ranking.known < len(ranking.item_ids))
    if not ranking.complete or short.any():
        query = int(np.argmax(short)) if short.any() else 0
        raise InputError(
            f"the {ranking.direction} lists do not hold the whole gallery: that of query "
            f"{ranking.query_ids[query]!r} has {int(ranking.known[query]):,} of {len(ranking.item_ids):,} items",
            expected="the rank of every relevant item among all items",
            fix="evaluate from embeddings or scores, or from lists of the whole gallery",
        )
