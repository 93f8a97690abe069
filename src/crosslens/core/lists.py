"""Ranked lists that somebody else's system made: ids and scores in order, possibly cut off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.ids import Ids, frozen


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The list of query q is ``items[offsets[q]:offsets[q + 1]]`` (rows of ``item_ids``), best first, with ``scores``.

    ``item_ids`` are the items that occur in any list; the gallery behind them may be larger. Lists without scores
    carry descending stand-ins (minus the place), so that nothing in them is tied.
    """

    query_ids: Ids
    item_ids: Ids
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    items: np.ndarray[Any, np.dtype[np.int64]]
    scores: np.ndarray[Any, np.dtype[np.float64]]
    system: str = ""

    def __post_init__(self) -> None:
        for name in ("offsets", "items", "scores"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(lists: Mapping[str, Sequence[Any]], system: str = "") -> RankedLists:
        """From ``{query: [item, …]}``, best first, or ``{query: {item: score}}`` in any order."""
        queries: list[str] = []
        items: list[str] = []
        scores: list[float] = []
        for query, ranked in lists.items():
            if isinstance(ranked, Mapping):
                queries += [str(query)] * len(ranked)
                items += [str(one) for one in ranked]
                scores += [float(score) for score in ranked.values()]
            else:
                queries += [str(query)] * len(ranked)
                items += [str(one) for one in ranked]
                scores += [-float(place) for place in range(1, len(ranked) + 1)]
        return RankedLists.from_rows(queries, items, scores, query_ids=map(str, lists), system=system)

    @staticmethod
    def from_rows(
        queries: Sequence[str],
        items: Sequence[str],
        scores: Sequence[float] | np.ndarray[Any, Any],
        *,
        query_ids: Iterable[str] | None = None,
        system: str = "",
    ) -> RankedLists:
        """From parallel columns. Higher scores come first; equal scores keep the order of the rows."""
        known_queries = tuple(dict.fromkeys(queries if query_ids is None else query_ids))
        known_items = tuple(dict.fromkeys(items))
        row_of = {one: row for row, one in enumerate(known_queries)}
        column_of = {one: column for column, one in enumerate(known_items)}
        rows = np.fromiter((row_of[one] for one in queries), np.int64, len(queries))
        columns = np.fromiter((column_of[one] for one in items), np.int64, len(items))
        values = np.asarray(scores, np.float64)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            raise InputError(f"score {values[row]} of item {items[row]!r}", row=row, expected="a finite number")
        order = np.lexsort((np.arange(len(rows)), -values, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        pairs = rows * max(1, len(known_items)) + columns
        distinct, first = np.unique(pairs, return_index=True)
        if len(distinct) < len(pairs):
            again = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
            raise InputError(
                f"item {known_items[columns[again]]!r} occurs twice in the list of query "
                f"{known_queries[rows[again]]!r}",
                row=int(order[again]),
                expected="each item at most once per query",
                fix="remove the second occurrence",
            )
        offsets = np.zeros(len(known_queries) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(known_queries)), out=offsets[1:])
        return RankedLists(known_queries, known_items, offsets, columns, values, system)

    @cached_property
    def fingerprint(self) -> str:
        parts = ("query_ids", "item_ids", "offsets", "items", "scores", "system")
        return fingerprint("ranked-lists", {name: getattr(self, name) for name in parts})

    def __repr__(self) -> str:
        return f"RankedLists({len(self.query_ids)} queries, {len(self.items)} entries, system={self.system!r})"
