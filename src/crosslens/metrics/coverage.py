"""Ready-made lists may be cut off: what a metric needs to see must be in them, or it is an error, never a 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.ids import Ids
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.metrics.ties import Ties

IntArray = np.ndarray[Any, np.dtype[np.int64]]


class Coverage:
    """What the lists of a ranking show. Every check passes at once if it was ranked from scores.

    Past the end of a list, items may be tied with its last one. Under ``stable`` the list's own order stands and that
    does not matter. ``pessimistic`` and ``expected`` put unseen tied items among the relevant ones that were seen, and
    ``optimistic`` and ``expected`` put unseen relevant items among what was seen: where a place that counts is
    concerned, the value is not determined and the check fails.
    """

    def __init__(self, ranking: Ranking, ties: Ties) -> None:
        # No reference to the ranking itself: these objects are cached for as long as it lives.
        self._ids: Ids = ranking.query_ids
        self._counts = ranking.relevant_counts
        self._known, self._rows = ranking.known, ranking.rows
        self._above, self._end = ranking.above, ranking.above + ranking.tied + 1
        self._top_scores = ranking.top_scores
        self._ties = ties
        self.complete = ranking.complete
        self._whole = ranking.known >= len(ranking.item_ids)

    def require_places(self, k: int | IntArray) -> None:
        """The first ``k`` places of every query that counts are known."""
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
                f"the list of query {self._ids[query]!r} has {_places(self._known[query])}",
                expected=f"at least {_places(needed[query])}",
                fix=f"{smaller}hand in lists of at least {_places(needed[cut].max())}",
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

    def _missing(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.bincount(self._rows, self._above == UNRANKED, len(self._counts)) > 0

    def _require_listed(self, unlisted: np.ndarray[Any, np.dtype[np.bool_]], problem: str) -> None:
        if unlisted.any():
            query = int(np.argmax(unlisted))
            raise InputError(
                f"{problem} in the list of query {self._ids[query]!r}, which has {_places(self._known[query])}",
                expected="lists that reach down to the relevant items",
                fix="hand in longer lists, or use a metric with a cutoff",
            )

    def _require_settled(self, cut: np.ndarray[Any, np.dtype[np.bool_]], needed: IntArray) -> None:
        """No tie of a relevant item within the needed places may run past the end of its list."""
        if self._ties in ("stable", "optimistic"):
            return
        open_ended = (self._above != UNRANKED) & (self._end >= self._known[self._rows])
        concerned = open_ended & cut[self._rows] & (self._above < needed[self._rows])
        if concerned.any():
            self._refuse_tie(int(self._rows[np.argmax(concerned)]))

    def _require_separated(self, missing: np.ndarray[Any, np.dtype[np.bool_]], needed: IntArray) -> None:
        """Where relevant items are unseen, the last needed place must be scored above the end of the list."""
        queries = np.flatnonzero(missing)
        depth = self._top_scores.shape[1]
        if not len(queries):
            return
        if not depth:
            self._refuse_tie(int(queries[0]))
        kept = np.minimum(self._known[queries], depth)
        last = self._top_scores[queries, np.maximum(kept - 1, 0)]
        place = needed[queries]
        needed_score = self._top_scores[queries, np.clip(place, 1, depth) - 1]
        unclear = (place > kept) | ~(needed_score > last)
        if unclear.any():
            self._refuse_tie(int(queries[np.argmax(unclear)]))

    def _refuse_tie(self, query: int) -> None:
        raise InputError(
            f"the list of query {self._ids[query]!r} may end within a tie, after {_places(self._known[query])}",
            expected=f"lists that end below the ties that count, for tie mode {self._ties!r}",
            fix="hand in longer lists, use a smaller cutoff, or use ties='stable'",
        )


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"
