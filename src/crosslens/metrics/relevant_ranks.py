"""The ranks of the relevant items of each query: all that a metric needs, one class per way of breaking ties.

A metric is written once, on the few methods of :class:`RelevantRanks`; each class computes them in closed form. Every
method checks that the lists show what it needs, so a metric cannot forget to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from crosslens.core import InputError, UnknownNameError, argument
from crosslens.storage import BoolArray, FloatArray, IntArray
from crosslens.values import UNRANKED, Ranking

Ties = Literal["stable", "optimistic", "pessimistic", "expected"]
"""``stable``: the lower gallery index comes first. ``optimistic``: relevant items come first within a tie;
``pessimistic``: last. ``expected``: the exact expectation of the metric over all orders within the ties."""

TIES: tuple[Ties, ...] = get_args(Ties)


def require_ties(ties: str) -> None:
    """Raise for an unknown tie mode."""
    if ties not in TIES:
        raise UnknownNameError("tie mode", ties, TIES)


class Coverage:
    """What the lists of a ranking show. Every check passes at once if it was ranked from scores.

    Past the end of a list, items may be tied with its last one. Under ``stable`` the list's own order holds and that
    does not matter. ``pessimistic`` and ``expected`` put unseen tied items among the relevant ones that were seen, and
    ``optimistic`` and ``expected`` put unseen relevant items among what was seen: where a rank that counts is
    concerned, the value is not determined and the check fails.
    """

    def __init__(self, ranking: Ranking, ties: Ties) -> None:
        # No reference to the ranking itself: these objects are cached for as long as it lives.
        self._ids = ranking.query_ids
        self._counts = ranking.relevant_counts
        self._known, self._rows = ranking.known, ranking.rows
        self._above, self._end = ranking.above, ranking.above + ranking.tied + 1
        self._top_scores = ranking.top_scores
        self._ties = ties
        self.complete = ranking.complete
        self._whole = ranking.known >= len(ranking.item_ids)

    def require_top(self, k: int | IntArray) -> None:
        """The first ``k`` items of every query that counts are known."""
        if self.complete:
            return
        needed = np.broadcast_to(np.asarray(k, np.int64), self._known.shape)
        cut = (self._counts > 0) & ~self._whole
        short = cut & (self._known < needed)
        if short.any():
            query = int(np.argmax(short))
            shortest = int(self._known[cut].min())
            smaller = f"use a cutoff of at most {shortest}, or " if np.ndim(k) == 0 and shortest else ""
            raise InputError(
                f"the list of query {self._ids[query]!r} has {item_count(self._known[query])}",
                expected=f"at least {item_count(needed[query])}",
                fix=f"{smaller}pass lists of at least {item_count(needed[cut].max())}",
            )
        self._require_closed_ties(cut, needed)
        if self._ties not in ("optimistic", "expected"):
            return
        queries = np.flatnonzero(cut & self._missing())
        if not len(queries):
            return
        # Where relevant items are unseen, the last needed item must be scored above the end of the list.
        depth = self._top_scores.shape[1]
        if not depth:
            self._refuse_tie(int(queries[0]))
        lengths = np.minimum(self._known[queries], depth)
        last_score = self._top_scores[queries, np.maximum(lengths - 1, 0)]
        last_rank = needed[queries]
        needed_score = self._top_scores[queries, np.clip(last_rank, 1, depth) - 1]
        unclear = (last_rank > lengths) | ~(needed_score > last_score)
        if unclear.any():
            self._refuse_tie(int(queries[np.argmax(unclear)]))

    def require_first(self) -> None:
        """The best relevant item of every query that counts is in its list."""
        if self.complete:
            return
        best = np.full(len(self._counts), np.iinfo(np.int64).max)
        is_listed = self._above != UNRANKED
        np.minimum.at(best, self._rows[is_listed], self._above[is_listed])
        self._require_listed((self._counts > 0) & (best == np.iinfo(np.int64).max), "none of the relevant items is")
        self._require_closed_ties(~self._whole, best + 1)

    def require_all(self) -> None:
        """All relevant items are in the lists."""
        if self.complete:
            return
        self._require_listed(self._missing(), "not all relevant items are")
        self._require_closed_ties(~self._whole, np.full_like(self._known, np.iinfo(np.int64).max))

    def _missing(self) -> BoolArray:
        return np.bincount(self._rows, self._above == UNRANKED, len(self._counts)) > 0

    def _require_listed(self, unlisted: BoolArray, problem: str) -> None:
        if unlisted.any():
            query = int(np.argmax(unlisted))
            raise InputError(
                f"{problem} in the list of query {self._ids[query]!r}, which has {item_count(self._known[query])}",
                expected="lists that reach down to the relevant items",
                fix="pass longer lists, or use a metric with a cutoff",
            )

    def _require_closed_ties(self, cut: BoolArray, needed: IntArray) -> None:
        """No tie of a relevant item within the needed ranks may run past the end of its list."""
        if self._ties in ("stable", "optimistic"):
            return
        open_ended = (self._above != UNRANKED) & (self._end >= self._known[self._rows])
        concerned = open_ended & cut[self._rows] & (self._above < needed[self._rows])
        if concerned.any():
            self._refuse_tie(int(self._rows[np.argmax(concerned)]))

    def _refuse_tie(self, query: int) -> None:
        longer = f"pass {argument('complete_lists', True)} if the lists hold the whole gallery, otherwise longer lists"
        raise tie_error(self._ids[query], self._known[query], self._ties, longer)


def tie_error(query: str, length: int, ties: Ties, longer: str) -> InputError:
    """The list of a query may end within a tie that counts; ``longer`` says how to get a longer one."""
    return InputError(
        f"the list of query {query!r} may end within a tie, after {item_count(length)}",
        expected=f"lists that end below the ties that count, for tie mode {ties!r}",
        fix=f"{longer}, use a smaller cutoff, or use {argument('ties', 'stable')}",
    )


def item_count(count: int) -> str:
    """``1 item``, ``3 items``."""
    return "1 item" if count == 1 else f"{count} items"


UNSEEN_RANK = 1 << 40
"""``above`` of an item that its list does not show: below any cutoff."""


class RelevantPairs:
    """The relevant pairs of a ranking: those of a query together, best first, and which of them share a score."""

    def __init__(self, ranking: Ranking) -> None:
        self.queries = len(ranking.query_ids)
        self.counts, self.offsets, self.rows = ranking.relevant_counts, ranking.offsets, ranking.rows
        is_listed = ranking.above != UNRANKED
        above = np.where(is_listed, ranking.above, UNSEEN_RANK)
        before = np.where(is_listed, ranking.tied_before, 0)
        # One integer key sorts faster than three; stable sorting is linear where the order is right already.
        width = int(above[is_listed].max(initial=0) + before[is_listed].max(initial=0)) + 2
        order = np.argsort(self.rows * width + np.minimum(above + before, width - 1), kind="stable")
        self.above, self.before = above[order], before[order]
        self.size = np.where(is_listed, ranking.tied, 0)[order] + 1
        """How many items share this one's score, itself among them."""

    @cached_property
    def starts(self) -> IntArray:
        """Where each tie begins: a run of pairs of one query with one score."""
        changed = np.ones(len(self.rows), bool)
        changed[1:] = (self.rows[1:] != self.rows[:-1]) | (self.above[1:] != self.above[:-1])
        return np.flatnonzero(changed)

    @cached_property
    def sharers(self) -> IntArray:
        """How many relevant items are in each tie."""
        return np.diff(np.append(self.starts, len(self.rows)))

    @cached_property
    def position(self) -> IntArray:
        """How many relevant items of the same query come before each."""
        return np.asarray(np.arange(len(self.rows)) - self.offsets[self.rows], np.int64)


class RelevantRanks(ABC):
    """The relevant items of one ranking under one tie mode; all methods return arrays with one entry per query.

    ``relevant`` is R, the number of relevant items. Where it is 0, the entries mean nothing: dividing by it is fine, as
    those queries are excluded afterwards.
    """

    def __init__(self, pairs: RelevantPairs, coverage: Coverage) -> None:
        self.pairs = pairs
        self.coverage = coverage
        self.relevant = pairs.counts

    def relevant_retrieved(self, k: int | IntArray) -> FloatArray:
        """How many relevant items are among the first ``k`` (which may differ by query)."""
        self.coverage.require_top(k)
        return self._relevant_retrieved(k)

    def hit(self, k: int) -> FloatArray:
        """1 if any relevant item is among the first ``k`` (under ``expected``: the chance of it)."""
        self.coverage.require_top(k)
        return self._hit(k)

    def first(self) -> FloatArray:
        """The rank of the best relevant item, from 1."""
        self.coverage.require_first()
        return self._first()

    def first_listed(self) -> FloatArray:
        """The rank of the best relevant item; infinite where the list of a query ends before any."""
        rank = self._first()
        return np.where(rank < UNSEEN_RANK, rank, np.inf)

    def reciprocal(self, k: int | None = None) -> FloatArray:
        """1 / rank of the best relevant item; with ``k``, 0 if that is past k."""
        if k is None:
            self.coverage.require_first()
        else:
            self.coverage.require_top(k)
        return self._reciprocal(k)

    def precisions(self, k: int | IntArray | None = None) -> FloatArray:
        """The sum, over relevant items (among the first ``k``), of the precision at the rank of each."""
        if k is None:
            self.coverage.require_all()
        else:
            self.coverage.require_top(k)
        return self._precisions(k)

    def each(self) -> FloatArray:
        """The rank of every relevant item: one entry per pair, those of a query together, ascending."""
        self.coverage.require_all()
        return self._each()

    @abstractmethod
    def _relevant_retrieved(self, k: int | IntArray) -> FloatArray: ...
    @abstractmethod
    def _hit(self, k: int) -> FloatArray: ...
    @abstractmethod
    def _first(self) -> FloatArray: ...
    @abstractmethod
    def _reciprocal(self, k: int | None) -> FloatArray: ...
    @abstractmethod
    def _precisions(self, k: int | IntArray | None) -> FloatArray: ...
    @abstractmethod
    def _each(self) -> FloatArray: ...


class OrderedRanks(RelevantRanks):
    """Ties broken in one way: ``stable``, ``optimistic`` or ``pessimistic``."""

    def __init__(self, pairs: RelevantPairs, coverage: Coverage, ties: Ties) -> None:
        super().__init__(pairs, coverage)
        if ties == "stable":
            self.ranks = pairs.above + pairs.before + 1
        else:
            among = np.arange(len(pairs.rows)) - np.repeat(pairs.starts, pairs.sharers)
            self.ranks = pairs.above + among + 1
            if ties == "pessimistic":
                self.ranks += pairs.size - np.repeat(pairs.sharers, pairs.sharers)

    @cached_property
    def _best(self) -> IntArray:
        best = np.full(self.pairs.queries, UNSEEN_RANK)
        some = self.relevant > 0
        best[some] = self.ranks[self.pairs.offsets[:-1][some]]
        return best

    def _within(self, k: int | IntArray) -> BoolArray:
        return self.ranks <= (k if isinstance(k, int) else k[self.pairs.rows])

    def _per_query(self, per_pair: FloatArray) -> FloatArray:
        return np.bincount(self.pairs.rows, per_pair, self.pairs.queries).astype(np.float64, copy=False)

    def _relevant_retrieved(self, k: int | IntArray) -> FloatArray:
        return self._per_query(self._within(k).astype(np.float64))

    def _hit(self, k: int) -> FloatArray:
        return (self._best <= k).astype(np.float64)

    def _first(self) -> FloatArray:
        return self._best.astype(np.float64)

    def _reciprocal(self, k: int | None) -> FloatArray:
        return np.where(self._best <= (UNSEEN_RANK if k is None else k), 1 / self._best, 0.0)

    def _precisions(self, k: int | IntArray | None) -> FloatArray:
        return self._per_query(self._precision_at_each * self._within(UNSEEN_RANK if k is None else k))

    @cached_property
    def _precision_at_each(self) -> FloatArray:
        return np.asarray((self.pairs.position + 1) / self.ranks, np.float64)

    def _each(self) -> FloatArray:
        return self.ranks.astype(np.float64)


class ExpectedRanks(RelevantRanks):
    """All orders within a tie equally likely: exact expectations in closed form.

    A tie of g items, r of them relevant, starts after ``above`` items, c of them relevant. Only ties with a relevant
    item matter. For average precision this is the form of McSherry and Najork (2008).
    """

    def __init__(self, pairs: RelevantPairs, coverage: Coverage) -> None:
        super().__init__(pairs, coverage)
        ties = pairs.starts[pairs.above[pairs.starts] != UNSEEN_RANK] if len(pairs.rows) else pairs.starts
        self._row, self._above, self._size = pairs.rows[ties], pairs.above[ties], pairs.size[ties]
        self._sharers = pairs.sharers[np.searchsorted(pairs.starts, ties)]
        self._earlier = pairs.position[ties]
        # The first tie of each query, for what depends on the best relevant item only.
        self._leads = np.flatnonzero(self._earlier == 0)

    @cached_property
    def _harmonic(self) -> FloatArray:
        """1 + 1/2 + … + 1/n for n = 0, 1, …: differences of it are sums of 1/rank over a run of ranks."""
        deepest = int((self._above + self._size).max(initial=0))
        return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, deepest + 1))])

    def _inside(self, k: int | IntArray | None) -> IntArray:
        """How many ranks of each tie are among the first ``k``."""
        if k is None:
            return self._size
        limit = k if isinstance(k, int) else k[self._row]
        return np.clip(limit - self._above, 0, self._size)

    def _sum(self, per_tie: FloatArray) -> FloatArray:
        return np.bincount(self._row, per_tie, self.pairs.queries).astype(np.float64, copy=False)

    def _of_leads(self, per_lead: FloatArray) -> FloatArray:
        result = np.zeros(self.pairs.queries)
        result[self._row[self._leads]] = per_lead
        return result

    def _relevant_retrieved(self, k: int | IntArray) -> FloatArray:
        return self._sum(self._sharers * self._inside(k) / self._size)

    def _hit(self, k: int) -> FloatArray:
        inside = self._inside(k)[self._leads]
        return self._of_leads(1 - chance_of_none(self._size[self._leads], self._sharers[self._leads], inside))

    def _first(self) -> FloatArray:
        lead = self._leads
        return self._of_leads(self._above[lead] + (self._size[lead] + 1) / (self._sharers[lead] + 1))

    def _reciprocal(self, k: int | None) -> FloatArray:
        above, size, sharers = (part[self._leads] for part in (self._above, self._size, self._sharers))
        inside = self._inside(k)[self._leads]
        alone = (self._harmonic[above + inside] - self._harmonic[above]) / size
        values = np.where(size == 1, inside / (above + 1), alone)
        crowded = np.flatnonzero((sharers > 1) & (inside > 0))
        if len(crowded):
            cases = np.stack([above, size, sharers, inside], axis=1)[crowded]
            distinct, case_of = np.unique(cases, axis=0, return_inverse=True)
            expected = []  # 1 / the rank of the best of several relevant items of a tie, of the ranks that count
            for before, tied, shared, limit in distinct.tolist():
                last = min(limit, tied - shared + 1)
                j = np.arange(1, last)
                # P(best at rank j + 1) / P(best at rank j), starting from P(best at rank 1) = shared / tied.
                ratios = (tied - j - shared + 1) / (tied - j)
                chances = shared / tied * np.concatenate([[1.0], np.cumprod(ratios)])
                expected.append(float((chances / (before + np.arange(1, last + 1))).sum()))
            values[crowded] = np.array(expected)[case_of.ravel()]
        return self._of_leads(values)

    def _precisions(self, k: int | IntArray | None) -> FloatArray:
        above, size, sharers = self._above, self._size, self._sharers
        inside = self._inside(k)
        # Given a relevant item at the j-th rank of the tie, (j−1)·slope others are expected before it in the tie, so
        # the precision there is (c + 1 + (j−1)·slope) / (above + j) = slope + (c + 1 − slope·(above+1)) / (above + j).
        slope = (sharers - 1) / np.maximum(size - 1, 1)
        inverse_ranks = np.where(
            size == 1, inside / (above + 1), self._harmonic[above + inside] - self._harmonic[above]
        )
        total = slope * inside + (self._earlier + 1 - slope * (above + 1)) * inverse_ranks
        return self._sum(total * sharers / size)

    def _each(self) -> FloatArray:
        return np.asarray(self.pairs.above + (self.pairs.size + 1) / 2, np.float64)


def chance_of_none(size: IntArray, sharers: IntArray, inside: IntArray) -> FloatArray:
    """C(size − sharers, inside) / C(size, inside): no relevant item among the ranks inside (hypergeometric)."""
    fewer, more = np.minimum(sharers, inside), np.maximum(sharers, inside)
    chance = np.ones(len(size))
    for step in range(int(fewer.max(initial=0))):
        factor = np.maximum(size - more - step, 0) / np.maximum(size - step, 1)
        chance *= np.where(step < fewer, factor, 1.0)
    return chance
