"""The ranking pass: every score is looked at once, in tiles, for both directions.

Workers share out the longer axis. Each keeps the counts and candidates of its own part of that axis, and a tally of
its own for the shorter one; tallies add up in the end, so the result does not depend on who counted what. A long pass
keeps its tallies in a checkpoint folder, so that an interruption costs minutes and not hours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.core import (
    HEADER_FILE,
    CrosslensError,
    Layout,
    Progress,
    atomic_folder,
    fingerprint,
    read_folder,
    stage,
    wait_for_all,
    write_parts,
)
from crosslens.rank.direction_state import Direction, PassTally
from crosslens.rank.kernels import transpose
from crosslens.rank.scan import bounds_of, compare_rows, find_hits, first_floors, take

Array = np.ndarray[Any, Any]

TILE = 640
"""Rows and columns of a tile: its scores (1.6 MB) fit a core's second-level cache, and rows do not lie a power of two
apart, which would make them compete for the same lines of it."""

_SPARSE = 1 / 12
"""Up to this share of hits each is looked at by itself; beyond, whole rows are compared first."""
_UNDECIDED = 1 << 18
_CHECKPOINT = Layout("a checkpoint", HEADER_FILE, ("*.npy",))
_WORK_BETWEEN_CHECKPOINTS = 4 * 10**12
"""Multiplications between two checkpoints: about a minute's worth."""


class Hits(NamedTuple):
    """The scores of a tile that are worth a closer look: index of the query, index of the item, score."""

    queries: Array
    items: Array
    scores: Array

    @staticmethod
    def of(tile: int) -> Hits:
        """Room for a whole tile."""
        return Hits(np.empty(tile * tile, np.int32), np.empty(tile * tile, np.int32), np.empty(tile * tile, np.float32))


class Collector:
    """Counts and collects, for one direction and one worker, what the tiles show."""

    def __init__(self, direction: Direction, tally: PassTally, tile: int) -> None:
        self.direction, self.tally = direction, tally
        # Room for the undecided pairs of a few tiles, and at least for those of one row.
        size = max(_UNDECIDED, int(np.diff(direction.offsets).max(initial=0)) * tile)
        self._pairs, self._items, self._undecided = np.empty(size, np.int64), np.empty(size, np.int64), 0

    def consume(self, tile: Array, row: int, column: int, hits: Hits) -> None:
        """Count and collect a tile that begins at ``row`` and ``column``."""
        as_rows, tally = self.direction.as_rows, self.tally
        query, item = (row, column) if as_rows else (column, row)
        counted = np.zeros(tile.shape[0 if as_rows else 1], np.uint8)
        if np.isneginf(tally.floor[query : query + len(counted)]).any():
            first_floors(tile, as_rows, query, self.direction.keep, self.direction.slack, tally.floor)
        count = self._find(tile, as_rows, query, counted, hits, int(_SPARSE * tile.size))
        if count < 0:
            tile = tile if as_rows else transpose(tile)
            self._compare(tile, query, item, counted)
            count = self._find(tile, True, query, counted, hits, tile.size)
        self._take(count, query, item, counted, hits)

    def decide(self) -> None:
        """Order the undecided pairs by their exact scores."""
        self.direction.decide(self.tally, self._pairs[: self._undecided], self._items[: self._undecided])
        self._undecided = 0

    def _find(self, tile: Array, in_rows: bool, query: int, counted: Array, hits: Hits, most: int) -> int:
        direction = self.direction
        bounds = bounds_of(query, len(counted), direction.offsets, direction.low, self.tally.floor, counted)
        return int(find_hits(tile, in_rows, bounds, most, *hits))

    def _compare(self, tile: Array, query: int, item: int, counted: Array) -> None:
        direction, start = self.direction, 0
        while start >= 0:
            start, self._undecided = compare_rows(
                tile, query, item, start, direction.offsets, direction.low, direction.high, self.tally.above, counted,
                self._pairs, self._items, self._undecided,
            )  # fmt: skip
            if start >= 0:
                self.decide()

    def _take(self, count: int, query: int, item: int, counted: Array, hits: Hits) -> None:
        direction, tally, start = self.direction, self.tally, 0
        while start >= 0:
            start, self._undecided = take(
                *hits, count, start, query, item, counted,
                direction.offsets, direction.low, direction.high, tally.above_upto,
                direction.keep, direction.slack, tally.floor, tally.fill, tally.candidate_score, tally.candidate_item,
                self._pairs, self._items, self._undecided,
            )  # fmt: skip
            if start >= 0:
                self.decide()


def share_out(
    blocks: Iterable[int],
    threads: int,
    progress: Progress,
    work: Callable[[Iterator[int], int, threading.Event], None],
) -> None:
    """Call ``work`` in every thread, with blocks that no other thread has, its number, and a sign to stop."""
    remaining, lock, stop = iter(blocks), threading.Lock(), threading.Event()

    def remaining_blocks() -> Iterator[int]:
        while not stop.is_set():
            with lock:
                block = next(remaining, None)
            if block is None:
                return
            yield block
            with lock:
                progress.advance()

    with threadpool_limits(1 if threads > 1 else None, "blas"), ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(work, remaining_blocks(), worker, stop) for worker in range(threads)]
        try:
            wait_for_all(jobs)
        finally:
            stop.set()


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

    def run(self, blocks: range, threads: int, progress: Progress) -> None:
        """Look at all tiles of these blocks of the outer axis."""
        threads = max(1, min(threads, len(blocks)))
        while len(self.inner_tallies) < threads:
            self.inner_tallies.append(PassTally.of(self.inner))
        share_out(blocks, threads, progress, self._work)

    def _work(self, blocks: Iterator[int], worker: int, stop: threading.Event) -> None:
        size, hits = self.tile, Hits.of(self.tile)
        outer = Collector(self.outer, self.outer_tally, size)
        inner = Collector(self.inner, self.inner_tallies[worker], size)
        for first in blocks:
            outer_part = slice(first, min(first + size, self.outer.queries))
            for second in range(0, self.inner.queries, size):
                if stop.is_set():
                    return
                inner_part = slice(second, min(second + size, self.inner.queries))
                rows, columns = (outer_part, inner_part) if self.outer.as_rows else (inner_part, outer_part)
                scores = self.outer.scorer.tile(rows, columns)
                outer.consume(scores, rows.start, columns.start, hits)
                inner.consume(scores, rows.start, columns.start, hits)
            outer.decide()
            inner.decide()


def run_pass(
    rows: Direction, columns: Direction, tile: int, threads: int, progress: Progress, checkpoint: str | Path | None
) -> Pass:
    """Look at every tile once; with a checkpoint, resume where an interrupted pass stopped."""
    scorer = rows.scorer
    # The longer axis is the outer one: the tallies that every worker needs are then the smaller ones.
    outer, inner = (rows, columns) if scorer.shape[0] > scorer.shape[1] else (columns, rows)
    current = Pass(outer, inner, tile)
    blocks = range(0, outer.queries, tile)
    done = 0
    if checkpoint is not None:
        key = _checkpoint_key(outer, inner, tile)
        if stored := _load_checkpoint(checkpoint, key):
            done, current.outer_tally, current.inner_tallies = stored
    per_block = max(1, scorer.shape[0] * scorer.shape[1] * scorer.work // len(blocks))
    stride = len(blocks) if checkpoint is None else max(threads, _WORK_BETWEEN_CHECKPOINTS // per_block)
    with stage(progress, "ranking", len(blocks)):
        progress.advance(done)
        while done < len(blocks):
            current.run(blocks[done : done + stride], threads, progress)
            done = min(done + stride, len(blocks))
            if checkpoint is not None and done < len(blocks):
                _save_checkpoint(checkpoint, key, done, current.outer_tally, current.inner_tallies)
    return current


def _checkpoint_key(outer: Direction, inner: Direction, tile: int) -> str:
    """Changes when anything that the tallies depend on does."""
    parts = {"tile": tile, "keep": [outer.keep, inner.keep], "queries": [outer.queries, inner.queries]}
    for name, axis in (("outer", outer), ("inner", inner)):
        parts |= {f"{name} offsets": axis.offsets, f"{name} targets": axis.targets, f"{name} slack": axis.slack}
    return fingerprint("checkpoint", parts)


def _save_checkpoint(folder: str | Path, key: str, done: int, outer: PassTally, inner: Sequence[PassTally]) -> None:
    arrays = {
        f"{owner}-{part.name}": getattr(tally, part.name)
        for owner, tally in [("outer", outer), *((f"inner{n}", tally) for n, tally in enumerate(inner))]
        for part in fields(PassTally)
    }
    header = {"key": key, "done": done, "workers": len(inner)}
    with atomic_folder(folder, _CHECKPOINT) as new:
        write_parts(new, "checkpoint", header=header, arrays=arrays)


def _load_checkpoint(folder: str | Path, key: str) -> tuple[int, PassTally, list[PassTally]] | None:
    """Blocks done and the tallies so far; None without a readable checkpoint of this very pass."""
    if not Path(folder).exists():
        return None
    try:
        header, arrays, _ = read_folder(folder, "checkpoint")
    except CrosslensError:
        return None
    if header.get("key") != key:
        return None

    def tally(owner: str) -> PassTally:
        return PassTally(**{part.name: arrays[f"{owner}-{part.name}"] for part in fields(PassTally)})

    return header["done"], tally("outer"), [tally(f"inner{n}") for n in range(header["workers"])]
