"""What cut-off lists show: a metric's input must be in them, or it is an error, never a 0. And the tie modes."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import UNRANKED, InputError, Ranking, UnknownNameError, argument

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

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
        self._require_settled(cut, needed)
        if self._ties in ("optimistic", "expected"):
            self._require_separated(cut & self._missing(), needed)

    def require_first(self) -> None:
        """The best relevant item of every query that counts is in its list."""
        if self.complete:
            return
        best = np.full(len(self._counts), np.iinfo(np.int64).max)
        seen = self._above != UNRANKED
        np.minimum.at(best, self._rows[seen], self._above[seen])
        self._require_listed((self._counts > 0) & (best == np.iinfo(np.int64).max), "none of the relevant items is")
        self._require_settled(~self._whole, best + 1)

    def require_all(self) -> None:
        """All relevant items are in the lists."""
        if self.complete:
            return
        self._require_listed(self._missing(), "not all relevant items are")
        self._require_settled(~self._whole, np.full_like(self._known, np.iinfo(np.int64).max))

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

    def _require_settled(self, cut: BoolArray, needed: IntArray) -> None:
        """No tie of a relevant item within the needed ranks may run past the end of its list."""
        if self._ties in ("stable", "optimistic"):
            return
        open_ended = (self._above != UNRANKED) & (self._end >= self._known[self._rows])
        concerned = open_ended & cut[self._rows] & (self._above < needed[self._rows])
        if concerned.any():
            self._refuse_tie(int(self._rows[np.argmax(concerned)]))

    def _require_separated(self, missing: BoolArray, needed: IntArray) -> None:
        """Where relevant items are unseen, the last needed item must be scored above the end of the list."""
        queries = np.flatnonzero(missing)
        depth = self._top_scores.shape[1]
        if not len(queries):
            return
        if not depth:
            self._refuse_tie(int(queries[0]))
        kept = np.minimum(self._known[queries], depth)
        last_score = self._top_scores[queries, np.maximum(kept - 1, 0)]
        last_rank = needed[queries]
        needed_score = self._top_scores[queries, np.clip(last_rank, 1, depth) - 1]
        unclear = (last_rank > kept) | ~(needed_score > last_score)
        if unclear.any():
            self._refuse_tie(int(queries[np.argmax(unclear)]))

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
