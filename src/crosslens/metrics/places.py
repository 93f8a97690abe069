"""Where the relevant items of each query stand: all that a metric needs, one class per way of breaking ties.

A metric is written once, on the few questions of :class:`Places`; each class answers them in closed form. Every
question checks that the lists show what it asks for, so a metric cannot forget to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.metrics.coverage import Coverage

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

FAR = 1 << 40
"""``above`` of an item that its list does not show: below any cutoff."""


class Pairs:
    """The relevant pairs of a ranking: those of a query together, best first, and which of them share a score."""

    def __init__(self, ranking: Ranking) -> None:
        self.queries = len(ranking.query_ids)
        self.counts, self.offsets, self.rows = ranking.relevant_counts, ranking.offsets, ranking.rows
        seen = ranking.above != UNRANKED
        above = np.where(seen, ranking.above, FAR)
        before = np.where(seen, ranking.tied_before, 0)
        # One integer key sorts faster than three; stable sorting is linear where the order is right already.
        width = int(above[seen].max(initial=0) + before[seen].max(initial=0)) + 2
        order = np.argsort(self.rows * width + np.minimum(above + before, width - 1), kind="stable")
        self.above, self.before = above[order], before[order]
        self.size = np.where(seen, ranking.tied, 0)[order] + 1
        """How many items share this one's score, itself among them."""

    @cached_property
    def starts(self) -> IntArray:
        """Where each tie begins: a run of pairs of one query with one score."""
        changed = np.ones(len(self.rows), bool)
        changed[1:] = (self.rows[1:] != self.rows[:-1]) | (self.above[1:] != self.above[:-1])
        return np.flatnonzero(changed)

    @cached_property
    def sharers(self) -> IntArray:
        """How many relevant items each tie holds."""
        return np.diff(np.append(self.starts, len(self.rows)))

    @cached_property
    def position(self) -> IntArray:
        """How many relevant items of the same query come before each."""
        return np.asarray(np.arange(len(self.rows)) - self.offsets[self.rows], np.int64)


class Places(ABC):
    """Questions about one ranking under one tie mode; all answers are arrays with one entry per query.

    ``relevant`` is R, the number of relevant items. Where it is 0, answers mean nothing: dividing by it is fine, as
    those queries are taken out afterwards.
    """

    def __init__(self, pairs: Pairs, coverage: Coverage) -> None:
        self.pairs = pairs
        self.coverage = coverage
        self.relevant = pairs.counts

    def found(self, k: int | IntArray) -> FloatArray:
        """How many relevant items are among the first ``k`` (which may differ by query)."""
        self.coverage.require_places(k)
        return self._found(k)

    def hit(self, k: int) -> FloatArray:
        """1 if any relevant item is among the first ``k`` (under ``expected``: the chance of it)."""
        self.coverage.require_places(k)
        return self._hit(k)

    def first(self) -> FloatArray:
        """The rank of the best relevant item, from 1."""
        self.coverage.require_first()
        return self._first()

    def reciprocal(self, k: int | None = None) -> FloatArray:
        """1 / rank of the best relevant item; with ``k``, 0 if that is past k."""
        if k is None:
            self.coverage.require_first()
        else:
            self.coverage.require_places(k)
        return self._reciprocal(k)

    def precisions(self, k: int | IntArray | None = None) -> FloatArray:
        """The sum, over relevant items (among the first ``k``), of the precision at the place of each."""
        if k is None:
            self.coverage.require_all()
        else:
            self.coverage.require_places(k)
        return self._precisions(k)

    def each(self) -> FloatArray:
        """The rank of every relevant item: one entry per pair, those of a query together, ascending."""
        self.coverage.require_all()
        return self._each()

    def _per_query(self, per_pair: FloatArray) -> FloatArray:
        return np.bincount(self.pairs.rows, per_pair, self.pairs.queries).astype(np.float64, copy=False)

    @abstractmethod
    def _found(self, k: int | IntArray) -> FloatArray: ...
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
