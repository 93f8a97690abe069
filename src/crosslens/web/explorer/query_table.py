"""The queries of a run as a table that is searched, filtered, sorted and shown a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core import CrosslensError, UnknownNameError
from crosslens.pipeline import group_members, group_names
from crosslens.web.explorer.retrieval import Retrieval

Rows = np.ndarray[Any, np.dtype[np.int64]]

RANK, ORDER = "rank", "order"
"""What queries can be sorted by besides metrics: the rank of the first relevant item; the dataset's own order."""
_MOST_VALUES = 200


@dataclass(frozen=True)
class QueryFilter:
    """Which queries, and in which order."""

    search: str = ""
    sort: str = ORDER
    descending: bool = False
    group: str = ""
    value: str = ""
    outcome: Literal["", "hit", "failed"] = ""


class QueryTable:
    """All queries of one direction of a run."""

    def __init__(self, retrieval: Retrieval) -> None:
        self.retrieval = retrieval
        self._lock = Lock()
        self._groups: dict[str, dict[str, Rows]] = {}
        self._orders: dict[tuple[str, bool], Rows] = {}

    @cached_property
    def _words(self) -> pl.Series:
        """Text and id of each query in lower case."""
        ids = pl.Series("id", self.retrieval.query_ids, dtype=pl.String)
        texts = self.retrieval.texts.fill_null("")
        return pl.select(pl.concat_str([texts, pl.lit("\n"), ids]).str.to_lowercase()).to_series()

    @cached_property
    def groups(self) -> list[str]:
        """The columns that queries of this direction can be filtered by."""
        columns = self.retrieval.run.columns.get(self.retrieval.direction)
        if columns is None:
            return []
        usable = []
        for name in group_names(self.retrieval.run):
            values = columns[name] if name in columns.columns else None
            if values is None:
                usable += ["caption_length"] if name == "caption_length" and not self.retrieval.forward else []
            elif values.null_count() < len(values) and not (
                values.dtype == pl.String and values.n_unique() > max(_MOST_VALUES, len(values) // 2)
            ):
                usable.append(name)
        return usable

    def group_rows(self, column: str) -> dict[str, Rows]:
        """The rows of each group of a column, the largest group first."""
        if column not in self.groups:
            raise UnknownNameError("column", column, self.groups)
        with self._lock:
            if column not in self._groups:
                own = self.retrieval
                try:
                    members = group_members(own.run, own.direction, column)
                except CrosslensError:
                    members = {}
                self._groups[column] = {
                    value: np.array([own.rows[query] for query in queries], np.int64)
                    for value, queries in members.items()
                }
            return self._groups[column]

    def group_counts(self, column: str) -> dict[str, int]:
        """How many queries each value of a column has; the most frequent values."""
        return {value: len(rows) for value, rows in list(self.group_rows(column).items())[:_MOST_VALUES]}

    def select(self, chosen: QueryFilter) -> Rows:
        """The rows that match, in order. Queries without a value come last, whichever way they are sorted."""
        matching = np.ones(len(self.retrieval.query_ids), np.bool_)
        if chosen.group and chosen.value:
            groups = self.group_rows(chosen.group)
            if chosen.value not in groups:
                raise UnknownNameError(f"value of {chosen.group}", chosen.value, groups)
            matching[:] = False
            matching[groups[chosen.value]] = True
        if chosen.outcome:
            matching &= self.retrieval.outcomes == chosen.outcome
        for word in chosen.search.lower().split():
            matching &= self._words.str.contains(word, literal=True).to_numpy()
        order = self._order(chosen.sort, chosen.descending)
        rows: Rows = order[matching[order]]
        return rows

    def _order(self, sort: str, descending: bool) -> Rows:
        """All rows in an order, equal ones as in the dataset; kept, for sorting takes longer than all the rest."""
        keys = {ORDER: None, RANK: self.retrieval.ranks} | {n: m.values for n, m in self.retrieval.metrics.items()}
        if sort not in keys:
            raise UnknownNameError("order", sort, keys)
        with self._lock:
            if (sort, descending) not in self._orders:
                self._orders[sort, descending] = _sorted_rows(keys[sort], descending, len(self.retrieval.query_ids))
            return self._orders[sort, descending]


def _sorted_rows(values: np.ndarray[Any, Any] | None, descending: bool, count: int) -> Rows:
    if values is None:
        rows = np.arange(count)
        return rows[::-1] if descending else rows
    numbers = values.astype(np.float64)
    unknown = np.isnan(numbers) | ((numbers < 0) & (values.dtype.kind == "i"))  # a rank of −1 is unknown
    return np.lexsort((-numbers if descending else numbers, unknown))
