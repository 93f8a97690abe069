"""The result of ranking: the top of every list, and the exact place of every relevant item.

Every metric is computed from here; scores are not needed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.bundle import read_bundle, write_bundle
from crosslens.core.errors import InputError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.ids import Ids, frozen

UNRANKED = -1
"""``above`` of a relevant item that a truncated list does not contain; padding of ``top_items``."""

_ARRAYS = ("top_items", "top_scores", "known", "offsets", "relevant", "grades", "above", "tied", "tied_before")


def as_top_scores(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Scores of lists (queries × places) as float32, unless that would make two neighbours equal that are not."""
    narrow = scores.astype(np.float32)
    if narrow.dtype == scores.dtype:
        return narrow
    merged = (narrow[:, 1:] == narrow[:, :-1]) & (scores[:, 1:] != scores[:, :-1])
    return scores if merged.any() else narrow


@dataclass(frozen=True, eq=False)
class Ranking:
    """One direction of a ranking.

    Lists: ``top_items`` and ``top_scores`` (queries × depth; ``-1`` and NaN past the end), ties in gallery order.
    ``known`` is how many leading places of each query's order are known: the gallery size when ranked from scores,
    the list's length when the ranking was handed in ready-made.

    Relevant items: those of query q are ``relevant[offsets[q]:offsets[q + 1]]``. For each, ``above`` counts the items
    scored higher, ``tied`` the other items with the same score, ``tied_before`` those of them with a lower index.

    ``complete`` says that every query was ranked from scores over its whole gallery; False: ready-made lists, which
    may have been cut off after ``known`` places.
    """

    direction: str
    query_ids: Ids
    item_ids: Ids
    top_items: np.ndarray[Any, np.dtype[np.int64]]
    top_scores: np.ndarray[Any, np.dtype[np.float32]]
    known: np.ndarray[Any, np.dtype[np.int64]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    relevant: np.ndarray[Any, np.dtype[np.int64]]
    grades: np.ndarray[Any, np.dtype[np.float32]]
    above: np.ndarray[Any, np.dtype[np.int64]]
    tied: np.ndarray[Any, np.dtype[np.int64]]
    tied_before: np.ndarray[Any, np.dtype[np.int64]]
    complete: bool = True

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def depth(self) -> int:
        """How many places of each list are kept."""
        return int(self.top_items.shape[1])

    @cached_property
    def rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The query of every relevant item."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def relevant_counts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """R: how many relevant items each query has."""
        return np.diff(self.offsets)

    @cached_property
    def fingerprint(self) -> str:
        names = ("direction", "query_ids", "item_ids", *_ARRAYS, "complete")
        return fingerprint("ranking", {name: getattr(self, name) for name in names})

    def top(self, query: str, k: int = 10) -> list[tuple[str, float]]:
        """The first ``k`` items of one query's list, with their scores."""
        if query not in self._row_of:
            raise InputError(f"unknown query id {query!r}", expected=f"one of {len(self.query_ids)} query ids")
        row = self._row_of[query]
        kept = self.top_items[row][:k]
        return [
            (self.item_ids[item], float(score))
            for item, score in zip(kept, self.top_scores[row], strict=False)
            if item != UNRANKED
        ]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {one: row for row, one in enumerate(self.query_ids)}

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write lists and places as a folder of ``.npy`` arrays with both id lists."""
        return write_bundle(
            path,
            "ranking",
            header={"direction": self.direction, "complete": self.complete},
            arrays={name: getattr(self, name) for name in _ARRAYS},
            tables={
                "query_ids": pl.DataFrame({"id": self.query_ids}, schema={"id": pl.String}),
                "item_ids": pl.DataFrame({"id": self.item_ids}, schema={"id": pl.String}),
            },
            overwrite=overwrite,
        )

    @staticmethod
    def load(path: str | Path) -> Ranking:
        """Read a folder that :meth:`save` wrote."""
        header, arrays, tables = read_bundle(path, "ranking")
        try:
            return Ranking(
                header["direction"],
                tuple(tables["query_ids"]["id"]),
                tuple(tables["item_ids"]["id"]),
                **{name: arrays[name] for name in _ARRAYS},
                complete=header["complete"],
            )
        except KeyError as error:
            raise InputError(f"{error} is missing", file=path, fix="write the folder again") from error

    def __repr__(self) -> str:
        shape = f"{len(self.query_ids)} queries × {len(self.item_ids)} items"
        return f"Ranking({self.direction}, {shape}, top {self.depth})"
