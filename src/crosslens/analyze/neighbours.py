"""Nearest items, exactly, of as many vectors as there are: neither tile size nor order changes a result.

Some thousands of queries at a time pass through the tiled ranking of :mod:`crosslens.rank`: float32 products propose
candidates, cosines in float64 order them. The vectors may be memory-mapped files. Beside them and the result, memory is
needed for 16 bytes per row, the queries of one pass with their candidates, and a tile of items per core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.analyze.approximate import ApproximateSearch, build_index, propose
from crosslens.core import Embeddings, InputError, Progress, SilentProgress, UsageError, check_vectors, stage
from crosslens.rank import Cosines, ScaledRows, top_lists

Array = np.ndarray[Any, Any]

NO_ITEM = -1
"""In ``without``: no item is left out for this query."""
_QUERIES = 8_192
"""Queries at a time: every further pass reads all items again."""
_CANDIDATES = 1 << 22
"""Numbers of candidates a core holds, at most: fewer queries at a time for a large k."""


class Neighbours(NamedTuple):
    """For each query its nearest items, nearest first, equally near ones in the order of the items."""

    items: Array
    """n×k positions."""
    cosines: Array
    """n×k, float64."""
    recall: float | None = None
    """Of an approximate search, the share of the true nearest that it lists, measured on a sample; None: exact."""


def nearest_items(
    queries: Embeddings | Array,
    items: Embeddings | Array,
    k: int,
    *,
    without: Sequence[int] | Array | None = None,
    tile: int | None = None,
    progress: Progress | None = None,
    approximate: bool | ApproximateSearch = False,
) -> Neighbours:
    """The ``k`` items of highest cosine for each query; ``without`` names an item per query that does not count.

    An item with several vectors is as near as the nearest of them. A vector of zeros has the cosine 0 with everything.
    ``approximate`` looks at a part of the items only (faiss), and measures the recall of the result; an
    :class:`ApproximateSearch` says how large a part.
    """
    left, right = _checked(queries, "queries"), _checked(items, "items")
    hidden = _check_request(left, right, k, without)
    left_rows = ScaledRows(left)
    right_rows = left_rows if right is left else ScaledRows(right.reshape(-1, right.shape[-1]))
    several = 1 if right.ndim == 2 else right.shape[1]
    search = _Request(left_rows, right_rows, several, hidden, k, tile, progress or SilentProgress())
    if not approximate:
        return search.exact(np.arange(len(left)))
    if several > 1:
        raise UsageError("approximate search takes one vector per item", fix="search exactly, or pass their means")
    return search.approximate(ApproximateSearch() if approximate is True else approximate)


class _Request(NamedTuple):
    """What is searched for, checked."""

    queries: ScaledRows
    items: ScaledRows
    several: int
    hidden: Array
    k: int
    tile: int | None
    progress: Progress

    @property
    def depth(self) -> int:
        """An item that does not count may be among the nearest, so one more is listed."""
        return self.k + int((self.hidden >= 0).any())

    def exact(self, rows: Array) -> Neighbours:
        """The nearest items of some queries."""
        from crosslens.rank import TILE  # compiled code: slow to import

        size = max(1, min(_QUERIES, _CANDIDATES // self.depth))
        result = Neighbours(np.empty((len(rows), self.k), np.int64), np.empty((len(rows), self.k)))
        starts = range(0, len(rows), size)
        gallery = len(self.items.vectors) // self.several
        with stage(self.progress, "nearest items", len(starts) * -(-gallery // (self.tile or TILE))) as shown:
            for start in starts:
                part = slice(start, start + size)
                scorer = Cosines(self.queries, rows[part], self.items, several=self.several)
                listed, cosines = top_lists(scorer, self.depth, tile=self.tile, progress=shown)
                self._keep(rows[part], listed, cosines, result, part)
        return result

    def approximate(self, settings: ApproximateSearch) -> Neighbours:
        """The nearest items of all queries among those that an index proposes."""
        n = len(self.queries.vectors)
        index = build_index(self.items, settings, self.progress)
        result = Neighbours(np.empty((n, self.k), np.int64), np.empty((n, self.k)))
        starts, short = range(0, n, _QUERIES), np.zeros(n, bool)
        with stage(self.progress, "approximate search", len(starts)) as shown:
            for start in starts:
                rows = np.arange(start, min(start + _QUERIES, n))
                listed = propose(index, self.queries, rows, self.depth)
                short[rows] = (listed < 0).any(axis=1)
                self._keep(rows, *self._in_order(rows, listed), result, slice(start, start + len(rows)))
                shown.advance()
        if short.any():  # the lists that were looked at hold too few items
            exact = self.exact(np.flatnonzero(short))
            result.items[short], result.cosines[short] = exact.items, exact.cosines
        sample = settings.sample_of(n)
        # As good as a true neighbour is what is equally near.
        true = result.cosines[sample] >= self.exact(sample).cosines[:, -1:]
        return result._replace(recall=float(true.mean()) if n else None)

    def _in_order(self, rows: Array, listed: Array) -> tuple[Array, Array]:
        """Proposed items by their exact cosines, and those."""
        queries = np.repeat(np.arange(len(rows)), self.depth)
        cosines = Cosines(self.queries, rows, self.items).exact(queries, listed.reshape(-1)).reshape(listed.shape)
        order = np.lexsort((listed, -cosines))
        return np.take_along_axis(listed, order, 1), np.take_along_axis(cosines, order, 1)

    def _keep(self, rows: Array, listed: Array, cosines: Array, result: Neighbours, part: slice) -> None:
        """Store the first ``k`` items of each list that count."""
        kept = np.argsort(listed == self.hidden[rows, None], axis=1, kind="stable")[:, : self.k]
        result.items[part], result.cosines[part] = (np.take_along_axis(a, kept, 1) for a in (listed, cosines))


def _checked(vectors: Embeddings | Array, what: str) -> Array:
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError(f"{what} are distributions", fix="pass their means as plain vectors")
        return vectors.vectors
    return check_vectors(vectors, what)


def _check_request(queries: Array, items: Array, k: int, without: Sequence[int] | Array | None) -> Array:
    """The item that does not count for each query, or ``NO_ITEM``; a request that cannot be met raises."""
    if queries.ndim != 2:
        raise UsageError("a query has several vectors", fix="pass one vector per query, such as their mean")
    if queries.shape[1] != items.shape[-1]:
        problem = f"queries of {queries.shape[1]} dimensions and items of {items.shape[-1]}"
        raise InputError(problem, expected="vectors of one space", fix="encode both with the same model")
    hidden = np.full(len(queries), NO_ITEM) if without is None else np.asarray(without, np.int64)
    if len(hidden) != len(queries) or (len(hidden) and not NO_ITEM <= hidden.min() <= hidden.max() < len(items)):
        raise UsageError("without has positions outside the items", fix="pass one position, or -1, per query")
    most = len(items) - int((hidden >= 0).any())
    if not 1 <= k <= most:
        raise UsageError(f"{k} neighbours among {most} other items", fix=f"choose k from 1 to {most}")
    return hidden
