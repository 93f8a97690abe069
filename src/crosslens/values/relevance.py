"""Which items answer which query, and how well: sparse, many-to-many, graded.

A stored pair is a *judged* pair. Grade 0 means "judged irrelevant"; a pair that is not stored is unjudged, which is
not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.storage import (
    HEADER_FILE,
    Array,
    IntArray,
    fingerprint,
    frozen,
    read_folder,
    require_array,
    require_entries,
    require_offsets,
    write_folder,
)
from crosslens.values.ids import Ids, as_ids, id_table, positions, stored_ids

if TYPE_CHECKING:
    from crosslens.values.dataset import Dataset

IMAGE_TO_TEXT = "i2t"
TEXT_TO_IMAGE = "t2i"


@dataclass(frozen=True, eq=False)
class Relevance:
    """Judged pairs in rows: those of query q are ``items[offsets[q]:offsets[q + 1]]``, ascending, with their grades."""

    query_ids: Ids
    item_ids: Ids
    offsets: IntArray
    items: IntArray
    grades: np.ndarray[Any, np.dtype[np.float32]]
    source: str = "annotation"

    def __post_init__(self) -> None:
        for name in ("offsets", "items", "grades"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(judgements: Mapping[Any, Any], source: str = "annotation") -> Relevance:
        """From ``{query: [relevant item, …]}`` or ``{query: {item: grade}}``."""
        pairs = [
            (query, item, float(items[item]) if isinstance(items, Mapping) else 1.0)
            for query, items in judgements.items()
            for item in items
        ]
        queries, items, grades = ([pair[part] for pair in pairs] for part in range(3))
        return Relevance.from_pairs(queries, items, grades, query_ids=judgements, source=source)

    @staticmethod
    def from_pairs(
        queries: Sequence[Any],
        items: Sequence[Any],
        grades: Sequence[float] | Array | None = None,
        *,
        query_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
        source: str = "annotation",
    ) -> Relevance:
        """Judged pairs by id. Without ``query_ids``/``item_ids`` those that occur are taken, in order of appearance."""
        queries, items = [str(query) for query in queries], [str(item) for item in items]
        known_queries = as_ids(dict.fromkeys(queries) if query_ids is None else query_ids, "query")
        known_items = as_ids(dict.fromkeys(items) if item_ids is None else item_ids, "item")
        rows = positions(queries, known_queries, "query")
        columns = positions(items, known_items, "item")
        return Relevance.from_indices(known_queries, known_items, rows, columns, grades, source)

    @staticmethod
    def from_indices(
        query_ids: Ids,
        item_ids: Ids,
        rows: Array,
        columns: Array,
        grades: Sequence[float] | Array | None = None,
        source: str = "annotation",
    ) -> Relevance:
        """Judged pairs by position; a pair given twice raises."""
        weights = np.ones(len(rows), np.float32) if grades is None else np.asarray(grades, np.float32)
        if not len(rows) == len(columns) == len(weights):
            counts = f"{len(rows)} queries, {len(columns)} items, {len(weights)} grades"
            raise InputError(counts, expected="equal lengths")
        if not np.isfinite(weights).all() or (weights < 0).any():
            row = int(np.argmax(~(np.isfinite(weights) & (weights >= 0))))
            raise InputError(f"grade {weights[row]}", row=row, expected="a finite number, 0 (irrelevant) or above")
        order = np.lexsort((columns, rows))
        rows, columns, weights = rows[order], columns[order], weights[order]
        repeated = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
        if repeated.any():
            first = int(np.argmax(repeated))
            problem = f"query {query_ids[rows[first]]!r} and item {item_ids[columns[first]]!r} are judged twice"
            raise InputError(problem, row=int(order[first + 1]), fix="keep one of the two judgements")
        offsets = np.zeros(len(query_ids) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(query_ids)), out=offsets[1:])
        return Relevance(query_ids, item_ids, offsets, columns.astype(np.int64), weights, source)

    @staticmethod
    def from_dataset(dataset: Dataset, direction: str = IMAGE_TO_TEXT) -> Relevance:
        """A caption belongs to its image, and to no other: the usual ground truth, in one direction."""
        rows, columns = dataset.caption_image, np.arange(len(dataset.caption_ids))
        forward = Relevance.from_indices(dataset.image_ids, dataset.caption_ids, rows, columns, source="captions")
        if direction == IMAGE_TO_TEXT:
            return forward
        if direction == TEXT_TO_IMAGE:
            return forward.flip()
        raise UnknownNameError("direction", direction, (IMAGE_TO_TEXT, TEXT_TO_IMAGE))

    @cached_property
    def rows(self) -> IntArray:
        """The query of every judged pair."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def fingerprint(self) -> str:
        parts = ("query_ids", "item_ids", "offsets", "items", "grades", "source")
        return fingerprint("relevance", {name: getattr(self, name) for name in parts})

    def flip(self) -> Relevance:
        """The judgements with queries and items exchanged."""
        return Relevance.from_indices(self.item_ids, self.query_ids, self.items, self.rows, self.grades, self.source)

    def part(self, queries: slice) -> Relevance:
        """The judgements of some consecutive queries, about the same items."""
        pairs = slice(self.offsets[queries.start], self.offsets[queries.stop])
        return replace(
            self,
            query_ids=self.query_ids[queries],
            offsets=self.offsets[queries.start : queries.stop + 1] - pairs.start,
            items=self.items[pairs],
            grades=self.grades[pairs],
        )

    def relevant(self, at_least: float | None = None) -> Relevance:
        """Only the pairs that count as relevant: grade above 0, or at least ``at_least``."""
        keep = self.grades > 0 if at_least is None else self.grades >= at_least
        if keep.all():
            return self
        offsets = np.concatenate([[0], np.cumsum(keep)])[self.offsets]
        return replace(self, offsets=offsets, items=self.items[keep], grades=self.grades[keep])

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the judgements and both id lists as a folder."""
        return write_folder(
            path,
            "relevance",
            header={"source": self.source},
            arrays={"offsets": self.offsets, "items": self.items, "grades": self.grades},
            tables={"query_ids": id_table(self.query_ids), "item_ids": id_table(self.item_ids)},
            overwrite=overwrite,
        )

    @staticmethod
    def load(path: str | Path, *, verify: bool = True) -> Relevance:
        """Read a folder that :meth:`save` wrote; ``verify`` refuses files that have changed since."""
        header, arrays, tables = read_folder(path, "relevance", verify=verify)
        require_entries(header, {"source": str}, Path(path) / HEADER_FILE)
        query_ids, item_ids = (stored_ids(tables[name], path, name) for name in ("query_ids", "item_ids"))
        offsets, items, grades = (arrays[name] for name in ("offsets", "items", "grades"))
        require_offsets(offsets, len(query_ids), items.size, Path(path) / "offsets.npy")
        require_array(items, (items.size,), Path(path) / "items.npy", low=0, high=len(item_ids) - 1)
        require_array(grades, items.shape, Path(path) / "grades.npy", whole=False)
        return Relevance(query_ids, item_ids, offsets, items, grades, header["source"])

    def __repr__(self) -> str:
        shape = f"{len(self.query_ids)} queries × {len(self.item_ids)} items"
        return f"Relevance({shape}, {len(self.items)} judged pairs, source={self.source!r})"
