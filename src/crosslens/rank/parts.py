"""A ranking in parts that can be computed anywhere: blocks of queries against the whole gallery, in both directions.

A part is a block of the longer axis. Its own queries are ranked for good; for the queries of the other axis the part is
a piece of their gallery, so that counts add up and top lists merge, pieces in the order of the gallery. The result is
that of one pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import UNRANKED, Engine, Progress, Ranking, SilentProgress, stage
from crosslens.rank.checkpoint import checkpoint_key, store_state, stored_state
from crosslens.rank.direction_state import Direction, PassTally, counts_of, ranking_of, top_of
from crosslens.rank.kernels import merge_lists
from crosslens.rank.scorers import Scorer
from crosslens.rank.tiles import TILE, one_way, run_pass

Array = np.ndarray[Any, Any]

_FEWEST_QUERIES = 2 * TILE
"""Queries of a part, at least: for each part, the lists of the whole other axis travel and are merged."""
_MOST_WORK = 1 << 38
"""Multiplications of a part, at most: what a lost worker costs, some ten seconds."""
_PARTS_PER_SLOT = 4
_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_NO_TILES = (0, 0)
"""In keys of checkpoints: joined parts do not depend on tiles and blocks, as the tallies of a pass do."""
_COUNTS = ("above", "tied", "tied_before")


class PartScorer:
    """The scores of a block of rows, or of columns."""

    def __init__(self, scorer: Scorer, block: slice, axis: int) -> None:
        size = block.stop - block.start
        self._scorer, self._start, self._axis = scorer, block.start, axis
        self.shape = (size, scorer.shape[1]) if axis == 0 else (scorer.shape[0], size)
        self.work, self.precision = scorer.work, scorer.precision
        self.row_slack = scorer.row_slack[block] if axis == 0 else scorer.row_slack
        self.column_slack = scorer.column_slack[block] if axis == 1 else scorer.column_slack

    def tile(self, rows: slice, columns: slice) -> Array:
        """A tile of the whole."""
        rows, columns = (self._moved(side, axis) for axis, side in enumerate((rows, columns)))
        return self._scorer.tile(rows, columns)

    def exact(self, rows: Array, columns: Array) -> Array:
        """Scores of the whole."""
        starts = [self._start if axis == self._axis else 0 for axis in (0, 1)]
        return self._scorer.exact(rows + starts[0], columns + starts[1])

    def _moved(self, side: slice, axis: int) -> slice:
        start = self._start if axis == self._axis else 0
        return slice(side.start + start, side.stop + start)


@dataclass
class PartLists:
    """Top lists of some queries, and the counts of their relevant items."""

    top_items: Array
    top_scores: Array
    above: Array
    tied: Array
    tied_before: Array

    @staticmethod
    def of(direction: Direction, tallies: Sequence[PassTally]) -> PartLists:
        """What was counted, with scores as precise as the scorer has them: those of other parts are compared with them.

        For every part, the lists and counts of the whole other axis travel: so they take as few bytes as they can.
        """
        top, scores = top_of(direction, tallies)
        counts = counts_of(direction, tallies)
        narrow = (count.astype(np.min_scalar_type(count.max(initial=0))) for count in counts)
        return PartLists(top.astype(np.int32), scores, *narrow)

    def ranking(self, direction: Direction, name: str) -> Ranking:
        """The ranking that the lists of all queries are."""
        return ranking_of(direction, name, *vars(self).values())


@dataclass(frozen=True)
class PartWork:
    """What all parts of a ranking read: ``outer`` is what the blocks divide."""

    scorer: Scorer
    outer: Direction
    inner: Direction
    tile: int


def rank_part(work: PartWork, block: slice) -> tuple[PartLists, PartLists]:
    """The lists of the block's own queries, and those of all others, with positions within the block."""
    scorer = PartScorer(work.scorer, block, 0 if work.outer.as_rows else 1)
    outer, inner = work.outer.of_queries(scorer, block), work.inner.among_items(scorer, block)
    rows, columns = (outer, inner) if outer.as_rows else (inner, outer)
    finished = run_pass(rows, columns, work.tile, 1, SilentProgress(), None)
    own, others = (PartLists.of(direction, finished.tallies(direction)) for direction in (outer, inner))
    return own, others


def rank_in_parts(
    scorer: Scorer,
    rows: Direction,
    columns: Direction,
    names: tuple[str, str],
    engine: Engine,
    *,
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None,
) -> dict[str, Ranking]:
    """Rank both directions in tasks of an engine; with a checkpoint, resume where an interrupted call stopped."""
    # The longer axis is the outer one, as in a single pass.
    outer, inner = (rows, columns) if scorer.shape[0] > scorer.shape[1] else (columns, rows)
    work = PartWork(scorer, outer.nameless(), inner.nameless(), tile or TILE)
    joined = _Joined(outer, inner, None if checkpoint is None else Path(checkpoint))
    blocks = _blocks(joined.done, outer.queries, inner.queries * scorer.work, engine.slots())
    size = sum(entry.nbytes for entry in vars(joined.others).values())
    with stage(progress, "ranking", outer.queries):
        progress.advance(joined.done)
        parts = engine.run(
            rank_part, work, blocks, done=lambda block: progress.advance(block.stop - block.start), size=size
        )
        for block, (own, others) in zip(blocks, parts, strict=True):
            joined.add(block, own, others)
    return joined.rankings(names if outer is rows else names[::-1], order=names)


@dataclass(frozen=True)
class QueryWork:
    """What all parts of a ranking in one direction read."""

    scorer: Scorer
    direction: Direction
    tile: int


def rank_query_part(work: QueryWork, block: slice) -> PartLists:
    """The lists of some queries, against the whole gallery."""
    scorer = PartScorer(work.scorer, block, 0 if work.direction.as_rows else 1)
    direction = work.direction.of_queries(scorer, block)
    return PartLists.of(direction, one_way(direction, work.tile, 1, SilentProgress()))


def rank_queries_in_parts(
    direction: Direction,
    name: str,
    engine: Engine,
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> Ranking:
    """Rank the queries of one direction in tasks of an engine; with a checkpoint, resume as both directions do."""
    scorer, queries = direction.scorer, direction.queries
    joined = _Joined(direction, None, None if checkpoint is None else Path(checkpoint))
    blocks = _blocks(joined.done, queries, direction.gallery * scorer.work, engine.slots())
    with stage(progress, f"ranking {name}", queries) as shown:
        shown.advance(joined.done)
        parts = engine.run(
            rank_query_part, QueryWork(scorer, direction.nameless(), tile or TILE), blocks,
            done=lambda block: shown.advance(block.stop - block.start),
        )  # fmt: skip
        for block, own in zip(blocks, parts, strict=True):
            joined.add(block, own)
    return joined.own.ranking(direction, name)


def _blocks(done: int, queries: int, work: int, slots: int) -> list[slice]:
    """Blocks of the queries that are not done: some for every slot, neither too short nor too long."""
    height = part_height(queries - done, work, slots)
    return [slice(start, min(start + height, queries)) for start in range(done, queries, height)]


def part_height(queries: int, work: int, slots: int) -> int:
    """How many queries of the longer axis a part has; ``work`` is the multiplications of one of them."""
    even = -(-queries // (_PARTS_PER_SLOT * slots))
    height = max(_FEWEST_QUERIES, min(even, _MOST_WORK // max(work, 1)))
    return -(-height // TILE) * TILE


class _Joined:
    """The parts that are there, joined; ``done`` is how many queries of the outer axis they have.

    Without ``inner``, only the queries of the outer axis are ranked, and another ranking follows: what is finished is
    stored, too, so that a call that is interrupted then need not repeat it.
    """

    def __init__(self, outer: Direction, inner: Direction | None, checkpoint: Path | None) -> None:
        self._outer, self._inner, self._checkpoint = outer, inner, checkpoint
        directions = {"own": outer} if inner is None else {"own": outer, "others": inner}
        self._key = "" if checkpoint is None else checkpoint_key(list(directions.values()), *_NO_TILES)
        self._lists = {owner: _empty(direction) for owner, direction in directions.items()}
        self.done, self._saved = 0, time.monotonic()
        self._load()

    @property
    def own(self) -> PartLists:
        """Of the outer axis."""
        return self._lists["own"]

    @property
    def others(self) -> PartLists:
        """Of the inner axis."""
        return self._lists["others"]

    def add(self, block: slice, own: PartLists, others: PartLists | None = None) -> None:
        """The next part."""
        self.own.top_items[block], self.own.top_scores[block] = own.top_items, own.top_scores
        pairs = slice(self._outer.offsets[block.start], self._outer.offsets[block.stop])
        for name in _COUNTS:
            getattr(self.own, name)[pairs] = getattr(own, name)
            if others is not None:
                getattr(self.others, name)[:] += getattr(others, name)
        if others is not None:
            merge_lists(self.others.top_items, self.others.top_scores, others.top_items, others.top_scores, block.start)
        self.done = block.stop
        self._save_if_due()

    def rankings(self, names: Sequence[str], order: Sequence[str]) -> dict[str, Ranking]:
        """Both directions: ``names`` are those of outer and inner, ``order`` that of the result."""
        assert self._inner is not None
        joined = {}
        for name, lists, direction in zip(names, (self.own, self.others), (self._outer, self._inner), strict=True):
            joined[name] = lists.ranking(direction, name)
        return {name: joined[name] for name in order}

    def _save_if_due(self) -> None:
        due = time.monotonic() - self._saved >= _SECONDS_BETWEEN_CHECKPOINTS
        if self.done == self._outer.queries:
            due = self._inner is None
        if self._checkpoint is None or not due:
            return
        arrays = {
            f"{owner}-{part.name}": getattr(lists, part.name)
            for owner, lists in self._lists.items()
            for part in fields(PartLists)
        }
        store_state(self._checkpoint, self._key, {"done": self.done}, arrays)
        self._saved = time.monotonic()

    def _load(self) -> None:
        """What an interrupted call of the same work has stored."""
        stored = None if self._checkpoint is None else stored_state(self._checkpoint, self._key)
        if stored is not None:
            header, arrays = stored
            self.done = header["done"]
            for owner, lists in self._lists.items():
                for part in fields(PartLists):
                    getattr(lists, part.name)[:] = arrays[f"{owner}-{part.name}"]


def _empty(direction: Direction) -> PartLists:
    """Nothing listed yet."""
    shape, pairs = (direction.queries, direction.keep), len(direction.targets)
    items, scores = np.full(shape, UNRANKED, np.int64), np.full(shape, np.nan, direction.scorer.precision)
    return PartLists(items, scores, *(np.zeros(pairs, np.int64) for _ in _COUNTS))
