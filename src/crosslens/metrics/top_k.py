"""The top of every list, with the gains of the items in it, under every way of breaking ties.

A graded metric sums gains over ranks. Under ``stable`` the order of the list holds. Within a tie, ``optimistic`` puts
the items of most gain first and ``pessimistic`` last; under ``expected`` every rank of a tie has the mean gain of its
items, which is the exact expectation of any sum over ranks. All of these need every item of a tie that reaches into
the top k: where a list ends before the tie does, the value is not determined, and that is an error.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core import UNRANKED, InputError, Ranking, argument
from crosslens.metrics.coverage import BoolArray, FloatArray, IntArray, Ties, items, tie_error
from crosslens.metrics.relevant_ranks import chance_of_none


class TopK:
    """The kept lists of a ranking; with ``non_gt``, without the relevant items, the others moving up."""

    def __init__(self, ranking: Ranking, ties: Ties, *, non_gt: bool = False) -> None:
        self._ids, self._ties = ranking.query_ids, ties
        self._counts = ranking.relevant_counts > 0
        self._complete, self._known = ranking.complete, ranking.known
        gallery = ranking.known if ranking.complete else np.full(len(ranking.known), len(ranking.item_ids))
        kept = (ranking.top_items != UNRANKED).sum(axis=1)
        self._whole = kept >= gallery
        """Whether the kept list is the query's whole gallery."""
        last = np.maximum(kept, 1)[:, None] - 1
        self._end = np.take_along_axis(ranking.top_scores, last, axis=1)[:, 0] if ranking.depth else kept
        """The score at the end of the kept list: unseen items may have it too."""
        self._non_gt = non_gt
        self._depth = ranking.depth
        self.columns: IntArray | None = None
        """The index in the kept list of each item that is left; None: all are left."""
        if non_gt:
            stays = (ranking.top_items != UNRANKED) & (listed_grades(ranking) <= 0)
            self.columns = np.argsort(~stays, axis=1, kind="stable")
            self.listed = np.take_along_axis(stays, self.columns, axis=1)
        else:
            self.listed = ranking.top_items != UNRANKED
        self._scores = self.moved(ranking.top_scores)
        self.items: IntArray = np.where(self.listed, self.moved(ranking.top_items), UNRANKED)

    def moved(self, per_rank: Any) -> Any:
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
            values = self._means(values)
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

    def _means(self, values: FloatArray) -> FloatArray:
        key, ties = self._tie_keys()
        sums, sizes = np.bincount(key, values.ravel(), ties), np.bincount(key, minlength=ties)
        return np.asarray((sums[key] / sizes[key]).reshape(values.shape))

    def require(self, k: int) -> None:
        """The first ``k`` items of every query that counts are known, and so are the ties that reach into them."""
        left = self.listed.sum(axis=1)
        short = self._counts & ~self._whole & (left < k)
        if short.any():
            self._refuse_short(int(np.argmax(short)), k, left)
        if self._ties == "stable" or not self.items.shape[1]:
            return
        last = np.minimum(left, k) - 1
        rows = np.flatnonzero(self._counts & ~self._whole & (last >= 0))
        open_ended = self._scores[rows, last[rows]] == self._end[rows]
        if open_ended.any():
            query = int(rows[np.argmax(open_ended)])
            raise tie_error(self._ids[query], left[query], self._ties, f"keep longer lists ({argument('depth')})")

    def _refuse_short(self, query: int, k: int, left: IntArray) -> None:
        beside = " beside the ground truth" if self._non_gt else ""
        if self._complete or self._depth < self._known[query]:
            more = k + self._depth - int(left[query])
            raise InputError(
                f"of the list of query {self._ids[query]!r} only {items(left[query])}{beside} were kept",
                expected=f"at least {items(k)}{beside}",
                fix=f"keep {items(more)} or more: {argument('depth')}, {argument('rerank_depth')}",
            )
        fewest = int(left[self._counts & ~self._whole].min())
        smaller = f"use a cutoff of at most {fewest}, or " if fewest else ""
        raise InputError(
            f"the list of query {self._ids[query]!r} has {items(left[query])}{beside}",
            expected=f"at least {items(k)}{beside}",
            fix=f"{smaller}pass lists of at least {items(k)}{beside}",
        )


def listed_grades(ranking: Ranking) -> FloatArray:
    """The grades of the items in the kept lists; 0 for an item that is not relevant, or past the end."""
    grades = np.zeros(ranking.top_items.shape)
    width = len(ranking.item_ids) + 1
    queries = np.arange(len(ranking.query_ids))[:, None]
    # Relevant items are grouped by query; within a query they may be in any order.
    keys = ranking.rows * width + ranking.relevant
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    listed = np.where(ranking.top_items == UNRANKED, -1, queries * width + ranking.top_items)
    if not len(keys) or not listed.size:
        return grades
    nearest = np.minimum(np.searchsorted(keys, listed), len(keys) - 1)
    relevant = keys[nearest] == listed
    grades[relevant] = ranking.grades[order[nearest[relevant]]]
    return grades
