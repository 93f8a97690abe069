"""The ranking pass: every score is looked at once, in tiles, for both directions.

Workers share out the longer axis. Each keeps the counts and candidates of its own part of that axis, and a tally of
its own for the shorter one; tallies add up in the end, so the result does not depend on who counted what. A long pass
keeps its tallies in a checkpoint folder, so that an interruption costs minutes and not hours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.core import Progress, SilentProgress, available_cores, in_threads, stage
from crosslens.rank.checkpoint import blocks_between, checkpoint_key, load_checkpoint, save_checkpoint
from crosslens.rank.direction_state import Direction, PassTally, top_of
from crosslens.rank.scan import FEW_RELEVANT, count_columns, count_rows, find_hits, first_floors, plan, take
from crosslens.rank.scorers import Scorer

Array = np.ndarray[Any, Any]
T = TypeVar("T")

TILE = 640
"""Items of a tile along the axis that workers share out. Rows of scores do not lie a power of two apart, which would
make them compete for the same lines of the cache."""

LENGTH = 2
"""A tile is this many times as long along the other axis. The matrix product rearranges the vectors of both sides for
every tile, and each tile takes some calls: both add up to less the longer tiles are, until they (3.3 MB) leave the
cache."""

_HITS = 1 << 15
_UNDECIDED = 1 << 18


class Hits(NamedTuple):
    """The scores of a tile that are worth a closer look: index of the query, index of the item, score."""

    queries: Array
    items: Array
    scores: Array

    @staticmethod
    def of(size: int) -> Hits:
        """Room for this many hits."""
        return Hits(np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.float32))


class Collector:
    """Counts and collects, for one direction and one worker, what the tiles show."""

    def __init__(self, direction: Direction, tally: PassTally, tile: int) -> None:
        self.direction, self.tally = direction, tally
        # The last hit that is written down may be none. Where only this direction is asked, the other has none at all.
        self.hits, self.no_hits = Hits.of(max(_HITS, tile + 1)), Hits.of(1)
        # Room for the undecided pairs of a few tiles, and at least for what is noted down at once.
        most = int(np.diff(direction.offsets).max(initial=0))
        size = max(_UNDECIDED, most, tile, min(most, FEW_RELEVANT) * tile)
        self._pairs, self._items, self._undecided = np.empty(size, np.int64), np.empty(size, np.int64), 0
        # Until a query's first tile has been counted, all of it may be of interest.
        self._seen = np.full(direction.queries, np.iinfo(np.int32).max, np.int64)
        self._counted = np.empty(0, np.uint8)

    def count(self, tile: Array, row: int, column: int) -> Array:
        """Count the queries with many scores of interest; returns what a score must reach to be a hit, per query."""
        direction, tally = self.direction, self.tally
        as_rows, (height, width) = direction.as_rows, tile.shape
        query, item = (row, column) if as_rows else (column, row)
        size, gallery = (height, width) if as_rows else (width, height)
        if np.isneginf(tally.floor[query : query + size]).any():
            first_floors(tile, as_rows, query, direction.keep, direction.slack, tally.floor)
        self._counted, bounds = np.empty(size, np.uint8), np.empty(size, np.float32)
        relevant = plan(
            not as_rows, query, gallery, direction.offsets, direction.low, tally.floor,
            self._seen, self._counted, bounds,
        )  # fmt: skip
        if as_rows and relevant:
            self._count(count_rows, (tile, query, item))
        elif not as_rows:
            for nth in range(relevant):
                self._count(count_columns, (tile, query, item), nth)
        return bounds

    def take(self, count: int, row: int, column: int) -> None:
        """Take the hits that were found in a tile that begins at ``row`` and ``column``."""
        direction, tally, start = self.direction, self.tally, 0
        query, item = (row, column) if direction.as_rows else (column, row)
        while start >= 0:
            start, self._undecided = take(
                *self.hits, count, start, query, item, self._counted,
                direction.offsets, direction.low, direction.high, tally.above_upto, self._seen, direction.weights,
                direction.keep, direction.slack, tally.floor, tally.fill, tally.candidate_score, tally.candidate_item,
                self._pairs, self._items, self._undecided,
            )  # fmt: skip
            if start >= 0:
                self.decide()

    def decide(self) -> None:
        """Order the undecided pairs by their exact scores."""
        self.direction.decide(self.tally, self._pairs[: self._undecided], self._items[: self._undecided])
        self._undecided = 0

    def _count(self, kernel: Callable[..., tuple[int, int]], tile: tuple[Array, int, int], *nth: int) -> None:
        direction, start = self.direction, 0
        while start >= 0:
            start, self._undecided = kernel(
                *tile, start, *nth, self._counted,
                direction.offsets, direction.low, direction.high, self.tally.above, self._seen, direction.weights,
                self._pairs, self._items, self._undecided,
            )  # fmt: skip
            if start >= 0:
                self.decide()


def look_at(tile: Array, row: int, column: int, rows: Collector | None, columns: Collector | None) -> None:
    """Count and collect a tile that begins at ``row`` and ``column``, for its rows, its columns or both."""
    row_bounds, column_bounds = (
        np.full(size, np.inf, np.float32) if side is None else side.count(tile, row, column)
        for size, side in zip(tile.shape, (rows, columns), strict=True)
    )
    either = rows or columns
    assert either is not None
    row_hits, column_hits = (either.no_hits if side is None else side.hits for side in (rows, columns))
    start = 0
    while start >= 0:
        start, in_rows, in_columns = find_hits(tile, start, row_bounds, column_bounds, *row_hits, *column_hits)
        if rows is not None:
            rows.take(in_rows, row, column)
        if columns is not None:
            columns.take(in_columns, row, column)


def share_out(
    blocks: Iterable[T],
    threads: int,
    progress: Progress,
    work: Callable[[Iterator[T], int, threading.Event], None],
) -> None:
    """Share out blocks to threads, each of which multiplies by itself."""
    with threadpool_limits(1 if threads > 1 else None, "blas"):
        in_threads(blocks, threads, progress, work)


@dataclass
class Pass:
    """A pass over all tiles: ``outer`` runs along the axis that workers share out, ``inner`` along the other."""

    outer: Direction
    inner: Direction
    tile: int
    outer_tally: PassTally = field(init=False)
    inner_tallies: list[PassTally] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outer_tally = PassTally.of(self.outer)

    def tallies(self, direction: Direction) -> list[PassTally]:
        """What was counted for one direction."""
        return [self.outer_tally] if direction is self.outer else self.inner_tallies

    def run(self, blocks: Sequence[slice], threads: int, progress: Progress) -> None:
        """Look at all tiles of these blocks of the outer axis."""
        threads = max(1, min(threads, len(blocks)))
        while len(self.inner_tallies) < threads:
            self.inner_tallies.append(PassTally.of(self.inner))
        share_out(blocks, threads, progress, self._work)

    def _work(self, blocks: Iterator[slice], worker: int, stop: threading.Event) -> None:
        length = LENGTH * self.tile
        outer = Collector(self.outer, self.outer_tally, length)
        inner = Collector(self.inner, self.inner_tallies[worker], length)
        by_rows, by_columns = (outer, inner) if self.outer.as_rows else (inner, outer)
        inner_parts = _between([*range(0, self.inner.queries, length), self.inner.queries])
        for outer_part in blocks:
            for inner_part in inner_parts:
                if stop.is_set():
                    return
                rows, columns = (outer_part, inner_part) if self.outer.as_rows else (inner_part, outer_part)
                scores = self.outer.scorer.tile(rows, columns)
                look_at(scores, rows.start, columns.start, by_rows, by_columns)
            outer.decide()
            inner.decide()


def _blocks(queries: int, tile: int) -> list[slice]:
    """The outer axis in blocks of a tile's width; shorter ones at the end, so that no worker waits long for another."""
    most, short = max(0, queries // tile - 1) * tile, max(1, tile // 4)
    return _between([*range(0, most, tile), *range(most, queries, short), queries])


def _between(bounds: Sequence[int]) -> list[slice]:
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def run_pass(
    rows: Direction, columns: Direction, tile: int, threads: int, progress: Progress, checkpoint: str | Path | None
) -> Pass:
    """Look at every tile once; with a checkpoint, resume where an interrupted pass stopped."""
    scorer = rows.scorer
    # The longer axis is the outer one: the tallies that every worker needs are then the smaller ones.
    outer, inner = (rows, columns) if scorer.shape[0] > scorer.shape[1] else (columns, rows)
    current = Pass(outer, inner, tile)
    blocks = _blocks(outer.queries, tile)
    done = 0
    if checkpoint is not None:
        key = checkpoint_key([outer, inner], tile, len(blocks))
        if stored := load_checkpoint(checkpoint, key):
            done, (current.outer_tally, *current.inner_tallies) = stored
    stride = len(blocks) if checkpoint is None else blocks_between(scorer, len(blocks), threads)
    with stage(progress, "ranking", len(blocks)):
        progress.advance(done)
        while done < len(blocks):
            current.run(blocks[done : done + stride], threads, progress)
            done = min(done + stride, len(blocks))
            if checkpoint is not None and done < len(blocks):
                save_checkpoint(checkpoint, key, done, [current.outer_tally, *current.inner_tallies])
    return current


def top_lists(
    scorer: Scorer,
    depth: int,
    *,
    tile: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Array, Array]:
    """For each row the ``depth`` columns of highest exact score, best first, equal ones in ascending order; the scores.

    Neither ``tile`` nor ``threads`` changes the result. Each thread holds a tile and, for every row, a buffer of about
    twice the depth. ``progress`` advances once per ``tile`` columns.
    """
    direction = Direction.of_rows(scorer, depth)
    return top_of(direction, one_way(direction, tile, threads, progress or SilentProgress()))


def one_way(
    direction: Direction,
    tile: int | None,
    threads: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> list[PassTally]:
    """What every thread counted; ``progress`` advances once per tile of the gallery."""
    size = tile or TILE
    blocks = range(0, direction.gallery, size)
    threads = min(threads or available_cores(), len(blocks))
    done, tallies, stride, key = 0, list[PassTally](), len(blocks), ""
    if checkpoint is not None:
        key = checkpoint_key([direction], size, len(blocks))
        stride = blocks_between(direction.scorer, len(blocks), threads)
        done, tallies = load_checkpoint(checkpoint, key) or (0, [])
    tallies += [PassTally.of(direction) for _ in range(threads - len(tallies))]
    progress.advance(done)
    while done < len(blocks):
        share_out(blocks[done : done + stride], threads, progress, partial(_look, direction, tallies, size))
        done = min(done + stride, len(blocks))
        if checkpoint is not None:  # after the last block, too: the other direction may be interrupted
            save_checkpoint(checkpoint, key, done, tallies)
    return tallies


def _look(
    direction: Direction,
    tallies: Sequence[PassTally],
    size: int,
    blocks: Iterator[int],
    worker: int,
    stop: threading.Event,
) -> None:
    """All queries against blocks of the gallery, in one thread."""
    collector = Collector(direction, tallies[worker], size)
    for first in blocks:
        items = slice(first, min(first + size, direction.gallery))
        for start in range(0, direction.queries, size):
            if stop.is_set():
                return
            queries = slice(start, min(start + size, direction.queries))
            rows, columns = (queries, items) if direction.as_rows else (items, queries)
            scores = direction.scorer.tile(rows, columns)
            looking = (collector, None) if direction.as_rows else (None, collector)
            look_at(scores, rows.start, columns.start, *looking)
        collector.decide()
