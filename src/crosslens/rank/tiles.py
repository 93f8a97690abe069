"""The ranking pass: every score is looked at once, in tiles, for both directions.

Workers share out the longer axis. Each keeps the counts and candidates of its own part of that axis, and a tally of
its own for the shorter one; tallies add up in the end. What is found does not depend on who found it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.core.progress import Progress, stage
from crosslens.rank.checkpoint import key_of, load_checkpoint, save_checkpoint
from crosslens.rank.scorers import Scorer
from crosslens.rank.side import Side, Tally
from crosslens.rank.waiting import finish_all

Array = np.ndarray[Any, Any]

TILE = 640
"""Rows and columns of a tile: its scores (1.6 MB) fit a core's second-level cache, and rows do not lie a power of two
apart, which would make them compete for the same lines of it."""

_SPARSE = 1 / 12
"""Up to this share of hits each is looked at by itself; beyond, whole rows are compared first."""
_DOUBTFUL = 1 << 18
_WORK_BETWEEN_CHECKPOINTS = 4 * 10**12
"""Multiplications between two checkpoints: about a minute's worth."""


@dataclass
class Doubts:
    """Pairs whose order the tile could not tell, waiting for exact scores."""

    pair: Array
    item: Array
    count: int = 0

    @staticmethod
    def of(side: Side, tile: int) -> Doubts:
        """Room for the doubts of a few tiles, and at least for those of one row."""
        most = int(np.diff(side.offsets).max(initial=0))
        size = max(_DOUBTFUL, most * tile)
        return Doubts(np.empty(size, np.int64), np.empty(size, np.int64))


@dataclass
class Hits:
    """The scores of a tile that are worth a closer look: place of the query, place of the item, score."""

    queries: Array
    items: Array
    scores: Array

    @staticmethod
    def of(tile: int) -> Hits:
        """Room for a whole tile."""
        return Hits(np.empty(tile * tile, np.int32), np.empty(tile * tile, np.int32), np.empty(tile * tile, np.float32))


@dataclass
class Direction:
    """A side with the way its queries lie in a tile: as rows, or as columns."""

    side: Side
    scorer: Scorer
    as_rows: bool

    def exact(self, queries: Array, items: Array) -> Array:
        """Exact scores, whichever way the queries lie."""
        return self.scorer.exact(queries, items) if self.as_rows else self.scorer.exact(items, queries)

    def consume(self, tile: Array, row: int, column: int, tally: Tally, hits: Hits, doubts: Doubts) -> None:
        """Count and collect a tile that begins at ``row`` and ``column``."""
        from crosslens.rank.kernels import transpose
        from crosslens.rank.scan import first_floors

        query, item = (row, column) if self.as_rows else (column, row)
        counted = np.zeros(tile.shape[0 if self.as_rows else 1], np.uint8)
        if np.isneginf(tally.floor[query : query + len(counted)]).any():
            first_floors(tile, self.as_rows, query, self.side.keep, self.side.slack, tally.floor)
        count = self._find(tile, self.as_rows, query, counted, tally, hits, int(_SPARSE * tile.size))
        if count < 0:
            tile = tile if self.as_rows else transpose(tile)
            self._compare(tile, query, item, counted, tally, doubts)
            count = self._find(tile, True, query, counted, tally, hits, tile.size)
        self._take(count, query, item, counted, tally, hits, doubts)

    def _find(self, tile: Array, in_rows: bool, query: int, counted: Array, tally: Tally, hits: Hits, most: int) -> int:
        from crosslens.rank.scan import bounds_of, find_hits

        bounds = bounds_of(query, len(counted), self.side.offsets, self.side.low, tally.floor, counted)
        return int(find_hits(tile, in_rows, bounds, most, hits.queries, hits.items, hits.scores))

    def _compare(self, tile: Array, query: int, item: int, counted: Array, tally: Tally, doubts: Doubts) -> None:
        from crosslens.rank.scan import compare_rows

        side, start = self.side, 0
        while start >= 0:
            start, doubts.count = compare_rows(
                tile, query, item, start, side.offsets, side.low, side.high, tally.above, counted,
                doubts.pair, doubts.item, doubts.count,
            )  # fmt: skip
            if start >= 0:
                self.resolve(tally, doubts)

    def _take(
        self, count: int, query: int, item: int, counted: Array, tally: Tally, hits: Hits, doubts: Doubts
    ) -> None:
        from crosslens.rank.scan import take

        side, start = self.side, 0
        while start >= 0:
            start, doubts.count = take(
                hits.queries, hits.items, hits.scores, count, start, query, item, counted,
                side.offsets, side.low, side.high, tally.above_upto,
                side.keep, side.slack, tally.floor, tally.fill, tally.candidate_score, tally.candidate_item,
                doubts.pair, doubts.item, doubts.count,
            )  # fmt: skip
            if start >= 0:
                self.resolve(tally, doubts)

    def resolve(self, tally: Tally, doubts: Doubts) -> None:
        """Decide the doubtful pairs by their exact scores."""
        from crosslens.rank.kernels import settle

        side = self.side
        pairs, items = doubts.pair[: doubts.count], doubts.item[: doubts.count]
        scores = self.exact(side.rows[pairs], items)
        settle(pairs, items, scores, side.targets, side.relevant, tally.above, tally.tied, tally.tied_before)
        doubts.count = 0


@dataclass
class Pass:
    """A pass over all tiles: ``outer`` runs along the axis that workers share out, ``inner`` along the other."""

    scorer: Scorer
    outer: Direction
    inner: Direction
    tile: int = TILE
    outer_tally: Tally = field(init=False)
    inner_tallies: list[Tally] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outer_tally = Tally.of(self.outer.side)

    @staticmethod
    def of(scorer: Scorer, row_side: Side, column_side: Side, tile: int) -> Pass:
        """The longer axis is the outer one: the tallies that every worker needs are then the smaller ones."""
        rows, columns = Direction(row_side, scorer, True), Direction(column_side, scorer, False)
        outer, inner = (rows, columns) if scorer.shape[0] > scorer.shape[1] else (columns, rows)
        return Pass(scorer, outer, inner, tile)

    @property
    def rows(self) -> Direction:
        return self.outer if self.outer.as_rows else self.inner

    @property
    def columns(self) -> Direction:
        return self.inner if self.outer.as_rows else self.outer

    def tallies(self, direction: Direction) -> list[Tally]:
        """What was found for one direction."""
        return [self.outer_tally] if direction is self.outer else self.inner_tallies

    def blocks(self) -> range:
        return range(0, self.outer.side.queries, self.tile)

    def run(self, blocks: range, threads: int, progress: Progress) -> None:
        """Look at all tiles of these blocks of the outer axis."""
        waiting, lock, stop = iter(blocks), threading.Lock(), threading.Event()

        def take() -> Iterator[int]:
            while not stop.is_set():
                with lock:
                    block = next(waiting, None)
                if block is None:
                    return
                yield block
                with lock:
                    progress.advance()

        threads = max(1, min(threads, len(blocks)))
        while len(self.inner_tallies) < threads:
            self.inner_tallies.append(Tally.of(self.inner.side))
        with threadpool_limits(1 if threads > 1 else None, "blas"), ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(self._work, take(), tally, stop) for tally in self.inner_tallies[:threads]]
            try:
                finish_all(jobs)
            finally:
                stop.set()

    def _work(self, blocks: Iterator[int], inner_tally: Tally, stop: threading.Event) -> None:
        outer, inner, size = self.outer, self.inner, self.tile
        outer_doubts, inner_doubts, hits = Doubts.of(outer.side, size), Doubts.of(inner.side, size), Hits.of(size)
        for first in blocks:
            mine = slice(first, min(first + size, outer.side.queries))
            for other in range(0, inner.side.queries, size):
                if stop.is_set():
                    return
                theirs = slice(other, min(other + size, inner.side.queries))
                rows, columns = (mine, theirs) if outer.as_rows else (theirs, mine)
                scores = self.scorer.tile(rows, columns)
                outer.consume(scores, rows.start, columns.start, self.outer_tally, hits, outer_doubts)
                inner.consume(scores, rows.start, columns.start, inner_tally, hits, inner_doubts)
            outer.resolve(self.outer_tally, outer_doubts)
            inner.resolve(inner_tally, inner_doubts)


def run_pass(
    scorer: Scorer,
    row_side: Side,
    column_side: Side,
    tile: int,
    threads: int,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> Pass:
    """Look at every tile once; with a checkpoint, go on where an interrupted pass stopped."""
    whole = Pass.of(scorer, row_side, column_side, tile)
    blocks = whole.blocks()
    done = 0
    if checkpoint is not None:
        key = key_of(whole.outer.side, whole.inner.side, tile)
        if found := load_checkpoint(checkpoint, key):
            done, whole.outer_tally, whole.inner_tallies = found
    rows, columns = scorer.shape
    per_block = max(1, rows * columns * scorer.work // len(blocks))
    stride = len(blocks) if checkpoint is None else max(threads, _WORK_BETWEEN_CHECKPOINTS // per_block)
    with stage(progress, "ranking", len(blocks)):
        progress.advance(done)
        while done < len(blocks):
            whole.run(blocks[done : done + stride], threads, progress)
            done = min(done + stride, len(blocks))
            if checkpoint is not None and done < len(blocks):
                save_checkpoint(checkpoint, key, done, whole.outer_tally, whole.inner_tallies)
    return whole
