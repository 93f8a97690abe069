"""The ranking pass: every score is looked at once, in tiles, for both directions.

Workers share out one axis. Each keeps the counts and candidates of its own part of that axis, and a tally of its own
for the other one; tallies add up in the end, so the result does not depend on who counted what.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crosslens.core import available_cores
from crosslens.engine import Progress, SilentProgress, in_threads, one_blas_thread, shown_progress
from crosslens.rank.direction_state import Direction, PassTally, top_of
from crosslens.rank.scan import FEW_RELEVANT, count_columns, count_rows, find_hits, first_floors, plan, take
from crosslens.rank.scorers import Scorer
from crosslens.storage import Array

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


def run_pass(
    scorer: Scorer,
    directions: Sequence[Direction | None],
    outer: int,
    blocks: Sequence[slice],
    tile: int,
    threads: int,
    advance: Callable[[slice], object],
) -> list[list[PassTally]]:
    """What was counted in all tiles of these blocks of the ``outer`` axis: per direction, the tallies of the workers.

    ``directions`` are those of the rows and the columns, or None where nobody asks for one. ``advance`` is called with
    every block that is done.
    """
    threads, length, lock = max(1, min(threads, len(blocks))), LENGTH * tile, threading.Lock()
    # A query of the outer axis is seen by one worker only: its tally serves all.
    tallies = [
        [] if direction is None else [PassTally.of(direction) for _ in range(1 if axis == outer else threads)]
        for axis, direction in enumerate(directions)
    ]
    inner_parts = slices([*range(0, scorer.shape[1 - outer], length), scorer.shape[1 - outer]])

    def work(remaining: Iterator[slice], worker: int, stop: threading.Event) -> None:
        rows, columns = (
            None if direction is None else Collector(direction, tallies[axis][worker if axis != outer else 0], length)
            for axis, direction in enumerate(directions)
        )
        for block in remaining:
            for inner_part in inner_parts:
                if stop.is_set():
                    return
                part = (block, inner_part) if outer == 0 else (inner_part, block)
                look_at(scorer.tile(*part), part[0].start, part[1].start, rows, columns)
            for collector in (rows, columns):
                if collector is not None:
                    collector.decide()
            with lock:
                advance(block)

    with one_blas_thread() if threads > 1 else nullcontext():
        in_threads(blocks, threads, SilentProgress(), work)
    return tallies


def slices(bounds: Sequence[int]) -> list[slice]:
    """From each bound to the next."""
    return [slice(start, stop) for start, stop in pairwise(bounds)]


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
    direction, size, bar = Direction.of_rows(scorer, depth), tile or TILE, shown_progress(progress)
    blocks = slices([*range(0, scorer.shape[1], size), scorer.shape[1]])
    tallies, _ = run_pass(
        scorer, (direction, None), 1, blocks, size, threads or available_cores(), lambda block: bar.advance()
    )
    return top_of(direction, tallies)
