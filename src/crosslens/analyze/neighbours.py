"""Nearest items, exactly, of as many vectors as there are: neither tile size nor order changes a result.

Some thousands of queries at a time pass through the tiled ranking of :mod:`crosslens.rank`: float32 products propose
candidates, cosines in float64 order them. The vectors may be memory-mapped files or shards. Beside them and the result,
memory is needed for 16 bytes per row, the queries of one pass with their candidates, and a tile of items per core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import InputError, UsageError, argument, needs_extra
from crosslens.engine import Progress, current_engine, shown_progress, stage
from crosslens.rank import Cosines, ScaledRows, top_lists
from crosslens.storage import Array, FlatBlocks, VectorBlocks, as_blocks, random_stream
from crosslens.values import Embeddings, check_vectors

_BLOCK = 16_384
_PER_LIST = 64  # vectors that each centre is fitted to: faiss asks for 39 at least


@dataclass(frozen=True)
class ApproximateSearch:
    """How much of the items an approximate search by faiss looks at, and on how many queries its recall is measured.

    K-means divides the items into lists; a query is compared with those of the lists whose centres are nearest. It is
    the same again with the same seed, number of threads, machine and version of faiss.
    """

    lists: int | None = None
    """Lists that the items are divided into; by default 2 √n."""
    probes: int = 32
    """Lists that are looked at for each query: more are slower and find more."""
    sample: int = 1_000
    """Queries, drawn with the seed, that are searched exactly as well, to measure the recall."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("lists", "probes", "sample"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}", fix=f"use {argument(name, 1)} or more", option=name)


def build_index(items: ScaledRows, settings: ApproximateSearch, progress: Progress) -> Any:
    """An index of the items, scaled to length 1."""
    with needs_extra("approximate search", "faiss-cpu", "approximate"):
        import faiss
    n, d = items.shape
    lists = min(settings.lists or max(1, round(2 * math.sqrt(n))), n)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(settings.probes, lists)
    index.cp.seed = settings.seed % 2**31
    index.cp.min_points_per_centroid = 1  # few items: nothing worth a warning
    rows = random_stream(settings.seed, "k-means sample").choice(n, min(n, _PER_LIST * lists), replace=False)
    with stage(progress, "indexing", 1 + -(-n // _BLOCK)):
        index.train(items.unit(np.sort(rows)))
        progress.advance()
        for start in range(0, n, _BLOCK):
            index.add(items.unit(slice(start, start + _BLOCK)))
            progress.advance()
    return index


NO_ITEM = -1
"""In ``without``: no item is left out for this query."""
_QUERIES = 8_192
"""Queries at a time: every further pass reads all items again."""
_QUERY_NUMBERS = 1 << 23
"""Numbers of their vectors, at most."""
_PARTS_PER_SLOT = 4
"""Parts for each core of a cluster."""
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
    left = _checked(queries, "queries")
    right = left if items is queries else _checked(items, "items")
    if len(left.shape) != 2:
        raise UsageError("a query has several vectors", fix="pass one vector per query, such as their mean")
    if left.shape[1] != right.shape[-1]:
        problem = f"queries of {left.shape[1]} dimensions and items of {right.shape[-1]}"
        raise InputError(problem, expected="vectors of one space", fix="encode both with the same model")
    hidden = np.full(left.shape[0], NO_ITEM) if without is None else np.asarray(without, np.int64)
    if len(hidden) != left.shape[0] or (len(hidden) and not NO_ITEM <= hidden.min() <= hidden.max() < right.shape[0]):
        raise UsageError("without has positions outside the items", fix="pass one position, or -1, per query")
    most = right.shape[0] - int((hidden >= 0).any())
    if not 1 <= k <= most:
        raise UsageError(f"{k} neighbours among {most} other items", fix=f"choose k from 1 to {most}")
    several = 1 if len(right.shape) == 2 else right.shape[1]
    left_rows = ScaledRows(left)
    right_rows = left_rows if right is left else ScaledRows(right if len(right.shape) == 2 else FlatBlocks(right))
    search = _Request(left_rows, right_rows, several, hidden, k, tile, shown_progress(progress))
    if not approximate:
        return search.exact(np.arange(left.shape[0]))
    if several > 1:
        raise UsageError("approximate search takes one vector per item", fix="search exactly, or pass their means")
    return search.approximate(ApproximateSearch() if approximate is True else approximate)


def _nearest(request: _Request, rows: Array) -> tuple[Array, Array]:
    """The lists of some queries, and their cosines."""
    scorer = Cosines(request.queries, rows, request.items, several=request.several)
    return top_lists(scorer, request.depth, tile=request.tile, progress=request.progress)


class _Request(NamedTuple):
    """What is searched for, checked."""

    queries: ScaledRows
    items: ScaledRows
    several: int
    hidden: Array
    k: int
    tile: int | None
    progress: Progress | None

    @property
    def depth(self) -> int:
        """An item that does not count may be among the nearest, so one more is listed."""
        return self.k + int((self.hidden >= 0).any())

    def exact(self, rows: Array) -> Neighbours:
        """The nearest items of some queries."""
        from crosslens.rank import TILE  # compiled code: slow to import

        size = max(1, min(_QUERIES, _CANDIDATES // self.depth, _QUERY_NUMBERS // self.queries.shape[1]))
        result = Neighbours(np.empty((len(rows), self.k), np.int64), np.empty((len(rows), self.k)))
        engine = current_engine()
        if engine.distributed:
            size = max(1, min(size, -(-len(rows) // (_PARTS_PER_SLOT * engine.slots()))))
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        per_part = -(-(self.items.shape[0] // self.several) // (self.tile or TILE))
        with stage(shown_progress(self.progress), "nearest items", len(parts) * per_part) as bar:
            # Here a part moves the bar as it goes on, elsewhere when it is done.
            done = (lambda part: bar.advance(per_part)) if engine.distributed else None
            request = self._replace(progress=None if engine.distributed else bar)
            lists = engine.run(_nearest, request, parts, size=16 * size * self.depth, done=done)
            start = 0
            for part, (items, cosines) in zip(parts, lists, strict=True):
                self._keep(part, items, cosines, result, slice(start, start + len(part)))
                start += len(part)
        return result

    def approximate(self, settings: ApproximateSearch) -> Neighbours:
        """The nearest items of all queries among those that an index proposes."""
        n = self.queries.shape[0]
        progress = shown_progress(self.progress)
        index = build_index(self.items, settings, progress)
        result = Neighbours(np.empty((n, self.k), np.int64), np.empty((n, self.k)))
        starts, short = range(0, n, _QUERIES), np.zeros(n, bool)
        with stage(progress, "approximate search", len(starts)) as bar:
            for start in starts:
                rows = np.arange(start, min(start + _QUERIES, n))
                items = np.asarray(index.search(self.queries.unit(rows), self.depth)[1], np.int64)
                short[rows] = (items < 0).any(axis=1)  # -1 where the index knows no more
                queries = np.repeat(np.arange(len(rows)), self.depth)
                exact = Cosines(self.queries, rows, self.items).exact(queries, items.reshape(-1))
                cosines = exact.reshape(items.shape)
                order = np.lexsort((items, -cosines))
                items, cosines = (np.take_along_axis(a, order, 1) for a in (items, cosines))
                self._keep(rows, items, cosines, result, slice(start, start + len(rows)))
                bar.advance()
        if short.any():  # the lists that were looked at hold too few items
            whole = self.exact(np.flatnonzero(short))
            result.items[short], result.cosines[short] = whole.items, whole.cosines
        random = random_stream(settings.seed, "recall sample")
        sample = np.sort(random.choice(n, min(settings.sample, n), replace=False))
        # As good as a true neighbour is what is equally near.
        true = result.cosines[sample] >= self.exact(sample).cosines[:, -1:]
        return result._replace(recall=float(true.mean()) if n else None)

    def _keep(self, rows: Array, items: Array, cosines: Array, result: Neighbours, part: slice) -> None:
        """Store the first ``k`` items of each list that count."""
        order = np.argsort(items == self.hidden[rows, None], axis=1, kind="stable")[:, : self.k]
        result.items[part], result.cosines[part] = (np.take_along_axis(a, order, 1) for a in (items, cosines))


def _checked(vectors: Embeddings | Array, name: str) -> VectorBlocks:
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError(f"{name} are distributions", fix="pass their means as plain vectors")
        return vectors.source
    return as_blocks(check_vectors(vectors, name))
