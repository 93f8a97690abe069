"""Rankings: the top of every list and the exact rank of every relevant item, or ready-made lists of another system.

Every metric is computed from a :class:`Ranking`; scores are not needed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import InputError
from crosslens.storage import (
    HEADER_FILE,
    Array,
    FloatArray,
    IntArray,
    fingerprint,
    folder_layout,
    frozen,
    read_folder,
    require_array,
    require_entries,
    require_offsets,
    write_folder,
)
from crosslens.values.ids import Ids, as_ids, id_table, positions, stored_ids

UNRANKED = -1
"""``above`` of a relevant item that a truncated list does not contain; padding of ``top_items``."""

LARGEST_WHOLE = 2**53
"""From here on, float64 does not tell every whole number from the next."""

_ARRAYS = ("top_items", "top_scores", "known", "offsets", "relevant", "grades", "above", "tied", "tied_before")
RANKING_LAYOUT = folder_layout("ranking", _ARRAYS, ("query_ids", "item_ids"))


def as_top_scores(scores: Array) -> np.ndarray[Any, np.dtype[Any]]:
    """Scores of lists (queries × ranks) as float32, unless that would make two neighbours equal that are not."""
    narrow = scores.astype(np.float32)
    if narrow.dtype == scores.dtype:
        return narrow
    merged = (narrow[:, 1:] == narrow[:, :-1]) & (scores[:, 1:] != scores[:, :-1])
    return scores if merged.any() else narrow


def first_inexact(scores: Any) -> int | None:
    """The position of the first score that float64 could round, and so make equal to another; None: there is none."""
    array = np.asarray(scores)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        inexact = np.isfinite(array) & (array.astype(np.float64) != array)
    elif array.dtype.kind in "iu":
        inexact = (array > LARGEST_WHOLE) | (array < -LARGEST_WHOLE)
    elif array.dtype.kind in "fO" and not isinstance(scores, np.ndarray):
        # Whole numbers in a list with others are rounded already: 2⁵³ may have been 2⁵³ + 1.
        large = np.flatnonzero((array >= LARGEST_WHOLE) | (array <= -LARGEST_WHOLE)).tolist()
        return next((row for row in large if is_inexact(scores[row])), None)
    else:
        return None
    return int(np.argmax(inexact)) if inexact.any() else None


def inexact_score(score: Any, row: int, where: str) -> InputError:
    """The error that such a score raises; ``where`` says whose it is."""
    return InputError(
        f"the score {score} {where} cannot be held exactly as float64",
        row=row,
        expected="whole numbers up to 2⁵³, or float64",
        fix="subtract a constant from all scores; if rounding does not matter, convert them with .astype('float64')",
    )


def is_inexact(score: Any) -> bool:
    """Whether a score is a whole number that float64 could round."""
    return isinstance(score, int | np.integer) and not -LARGEST_WHOLE <= score <= LARGEST_WHOLE


@dataclass(frozen=True, eq=False)
class Ranking:
    """One direction of a ranking.

    Lists: ``top_items`` and ``top_scores`` (queries × depth; ``-1`` and NaN past the end), ties in gallery order.
    ``known`` is how many leading ranks of each query are known: the gallery size when ranked from scores, the list's
    length for ready-made lists.

    Relevant items: those of query q are ``relevant[offsets[q]:offsets[q + 1]]``. For each, ``above`` counts the items
    scored higher, ``tied`` the other items with the same score, ``tied_before`` those of them with a lower index.

    ``complete`` says that every query was ranked over its whole gallery: from scores, or by lists that hold all of it.
    False: ready-made lists, which may have been cut off after ``known`` items.
    """

    direction: str
    query_ids: Ids
    item_ids: Ids
    top_items: IntArray
    top_scores: np.ndarray[Any, np.dtype[np.float32]]
    known: IntArray
    offsets: IntArray
    relevant: IntArray
    grades: np.ndarray[Any, np.dtype[np.float32]]
    above: IntArray
    tied: IntArray
    tied_before: IntArray
    complete: bool = True

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def depth(self) -> int:
        """How many items of each list are kept."""
        return int(self.top_items.shape[1])

    @cached_property
    def rows(self) -> IntArray:
        """The query of every relevant item."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def relevant_counts(self) -> IntArray:
        """R: how many relevant items each query has."""
        return np.diff(self.offsets)

    @cached_property
    def fingerprint(self) -> str:
        names = ("direction", "query_ids", "item_ids", *_ARRAYS, "complete")
        return fingerprint("ranking", {name: getattr(self, name) for name in names})

    def top(self, query: str, k: int = 10) -> list[tuple[str, float]]:
        """The first ``k`` items of one query's list, with their scores."""
        if query not in self._row_of:
            expected = f"one of {len(self.query_ids)} query ids"
            raise InputError(f"unknown query id {query!r}", expected=expected, code="unknown-id", subject=query)
        row = self._row_of[query]
        items = self.top_items[row][:k]
        return [
            (self.item_ids[item], float(score))
            for item, score in zip(items, self.top_scores[row], strict=False)
            if item != UNRANKED
        ]

    def same_lists(self, other: Ranking) -> bool:
        """Whether both have the same queries and items, in the same order, and rank them alike, whatever the scores."""
        names = ("query_ids", "item_ids", *(name for name in _ARRAYS if name not in ("top_scores", "grades")))
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def of_queries(self, rows: Sequence[int] | Array) -> Ranking:
        """The ranking of some queries, by their rows, in that order; the gallery stays as it is."""
        rows = np.asarray(rows, np.int64)
        counts = self.relevant_counts[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        # The place of every kept relevant item: the start of its query, and its number within the query.
        place = np.repeat(self.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        per_query = {name: getattr(self, name)[rows] for name in ("top_items", "top_scores", "known")}
        per_item = {name: getattr(self, name)[place] for name in ("relevant", "grades", "above", "tied", "tied_before")}
        query_ids = tuple(self.query_ids[row] for row in rows)
        return replace(self, query_ids=query_ids, offsets=offsets, **per_query, **per_item)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.query_ids)}

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write lists and ranks as a folder of ``.npy`` arrays with both id lists."""
        return write_folder(
            path,
            "ranking",
            header={"direction": self.direction, "complete": self.complete},
            arrays={name: getattr(self, name) for name in _ARRAYS},
            tables={"query_ids": id_table(self.query_ids), "item_ids": id_table(self.item_ids)},
            overwrite=overwrite,
        )

    @staticmethod
    def load(path: str | Path, *, verify: bool = True) -> Ranking:
        """Read a folder that :meth:`save` wrote; ``verify`` refuses files that have changed since."""
        header, arrays, tables = read_folder(path, "ranking", verify=verify)
        query_ids, item_ids = (stored_ids(tables[name], path, name) for name in ("query_ids", "item_ids"))
        require_entries(header, {"direction": str, "complete": bool}, Path(path) / HEADER_FILE)
        stored = {name: arrays[name] for name in _ARRAYS}
        # What is computed from arrays that do not fit each other or the ids would be wrong.
        files = {name: Path(path) / f"{name}.npy" for name in _ARRAYS}
        queries, items = len(query_ids), len(item_ids)
        pairs, shape = stored["relevant"].shape, stored["top_items"].shape
        lists = (queries, shape[1] if len(shape) == 2 else 0)
        require_array(stored["top_items"], lists, files["top_items"], low=UNRANKED, high=items - 1)
        require_array(stored["top_scores"], lists, files["top_scores"], whole=False)
        require_array(stored["known"], (queries,), files["known"], low=0, high=items)
        require_offsets(stored["offsets"], queries, int(np.prod(pairs)), files["offsets"])
        require_array(stored["relevant"], (int(np.prod(pairs)),), files["relevant"], low=0, high=items - 1)
        require_array(stored["grades"], pairs, files["grades"], whole=False)
        for name in ("above", "tied", "tied_before"):
            require_array(stored[name], pairs, files[name], low=UNRANKED, high=items)
        return Ranking(header["direction"], query_ids, item_ids, **stored, complete=header["complete"])

    def __repr__(self) -> str:
        shape = f"{len(self.query_ids)} queries × {len(self.item_ids)} items"
        return f"Ranking({self.direction}, {shape}, top {self.depth})"


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The list of query q is ``items[offsets[q]:offsets[q + 1]]`` (rows of ``item_ids``), best first, with ``scores``.

    ``item_ids`` are the items that occur in any list; the gallery behind them may be larger. Lists without scores
    carry descending substitutes (minus the rank), so that nothing in them is tied.
    """

    query_ids: Ids
    item_ids: Ids
    offsets: IntArray
    items: IntArray
    scores: FloatArray
    system: str = ""

    def __post_init__(self) -> None:
        for name in ("offsets", "items", "scores"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(lists: Mapping[str, Sequence[Any]], system: str = "") -> RankedLists:
        """From ``{query: [item, …]}``, best first, or ``{query: {item: score}}`` in any order."""
        queries: list[str] = []
        items: list[str] = []
        scores: list[Any] = []
        for query, ranked in lists.items():
            for item in ranked:
                if isinstance(item, tuple | list | Mapping):
                    problem = f"{item!r} in the list of query {query!r} is not an id"
                    raise InputError(problem, expected="{query: [item, …]}, or {query: {item: score}} with scores")
            queries += [str(query)] * len(ranked)
            items += [str(item) for item in ranked]
            scores += ranked.values() if isinstance(ranked, Mapping) else range(-1, -len(ranked) - 1, -1)
        return RankedLists.from_rows(queries, items, scores, query_ids=map(str, lists), system=system)

    @staticmethod
    def from_rows(
        queries: Sequence[str],
        items: Sequence[str],
        scores: Sequence[float] | Array,
        *,
        query_ids: Iterable[str] | None = None,
        system: str = "",
    ) -> RankedLists:
        """From parallel columns. Higher scores come first; equal scores keep the order of the rows."""
        known_queries = as_ids(dict.fromkeys(queries if query_ids is None else query_ids), "query")
        known_items = as_ids(dict.fromkeys(items), "item")
        rows, columns = positions(queries, known_queries, "query"), positions(items, known_items, "item")
        row = first_inexact(scores)
        if row is not None:
            raise inexact_score(scores[row], row, f"of item {items[row]!r}")
        values = np.asarray(scores, np.float64)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            raise InputError(f"score {values[row]} of item {items[row]!r}", row=row, expected="a finite number")
        order = np.lexsort((np.arange(len(rows)), -values, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        pairs = rows * max(1, len(known_items)) + columns
        distinct, first = np.unique(pairs, return_index=True)
        if len(distinct) < len(pairs):
            second = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
            item, query = known_items[columns[second]], known_queries[rows[second]]
            problem = f"item {item!r} occurs twice in the list of query {query!r}"
            fix = "remove the second occurrence"
            raise InputError(problem, row=int(order[second]), expected="each item at most once per query", fix=fix)
        offsets = np.zeros(len(known_queries) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(known_queries)), out=offsets[1:])
        return RankedLists(known_queries, known_items, offsets, columns, values, system)

    @cached_property
    def fingerprint(self) -> str:
        parts = ("query_ids", "item_ids", "offsets", "items", "scores", "system")
        return fingerprint("ranked-lists", {name: getattr(self, name) for name in parts})

    def __repr__(self) -> str:
        return f"RankedLists({len(self.query_ids)} queries, {len(self.items)} entries, system={self.system!r})"
