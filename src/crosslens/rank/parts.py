"""A ranking in parts that can be computed anywhere: blocks of queries against the whole gallery, in both directions.

A part is a block of the longer axis. Its own queries are ranked for good; for the queries of the other axis the part is
a piece of their gallery, so that counts add up and top lists merge, pieces in the order of the gallery. The result is
that of one pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    HEADER_FILE,
    UNRANKED,
    CrosslensError,
    Engine,
    Layout,
    Progress,
    Ranking,
    Relevance,
    SilentProgress,
    as_top_scores,
    atomic_folder,
    fingerprint,
    read_folder,
    stage,
    write_parts,
)
from crosslens.rank.direction_state import Direction, assemble
from crosslens.rank.scorers import Scorer
from crosslens.rank.tiles import TILE, run_pass

Array = np.ndarray[Any, Any]

_FEWEST_QUERIES = 4 * TILE
"""Queries of a part, at least: for each part, the lists of the whole other axis travel and are merged."""
_MOST_WORK = 1 << 38
"""Multiplications of a part, at most: what a lost worker costs, some ten seconds."""
_PARTS_PER_SLOT = 4
_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_CHECKPOINT = Layout("a checkpoint", HEADER_FILE, ("*.npy",))
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
    def of(ranking: Ranking, direction: Direction) -> PartLists:
        """Those of a ranking, with scores as precise as the scorer has them: later ones are compared with them."""
        items, scores = ranking.top_items, ranking.top_scores
        if scores.dtype != direction.scorer.precision:
            queries = np.repeat(np.arange(len(items)), items.shape[1])
            scores = direction.exact(queries, items.reshape(-1)).reshape(items.shape)
        return PartLists(items, scores, *(getattr(ranking, name) for name in _COUNTS))

    def ranking(self, name: str, relevance: Relevance, gallery: int) -> Ranking:
        """The ranking that whole lists are."""
        return Ranking(
            name, relevance.query_ids, relevance.item_ids, self.top_items, as_top_scores(self.top_scores),
            np.full(len(relevance.query_ids), gallery, np.int64), relevance.offsets, relevance.items, relevance.grades,
            self.above, self.tied, self.tied_before,
        )  # fmt: skip


@dataclass(frozen=True)
class PartWork:
    """What all parts of a ranking read: ``outer`` is what the blocks divide."""

    scorer: Scorer
    outer: Relevance
    inner: Direction
    axis: int
    depth: int
    tile: int

    @staticmethod
    def of(scorer: Scorer, rows: Direction, columns: Direction, depth: int, tile: int) -> PartWork:
        """With the longer axis as the outer one, as in a single pass; without ids, which no part needs."""
        axis = 0 if scorer.shape[0] > scorer.shape[1] else 1
        outer, inner = (rows, columns) if axis == 0 else (columns, rows)
        assert outer.relevance is not None
        assert inner.relevance is not None
        nameless = replace(inner, relevance=_without_ids(inner.relevance))
        return PartWork(scorer, _without_ids(outer.relevance), nameless, axis, depth, tile)


def rank_part(work: PartWork, block: slice) -> tuple[PartLists, PartLists]:
    """The lists of the block's own queries, and those of all others within the block."""
    scorer = PartScorer(work.scorer, block, work.axis)
    relevance = work.outer
    pairs = slice(relevance.offsets[block.start], relevance.offsets[block.stop])
    own = replace(
        relevance,
        query_ids=relevance.query_ids[block],
        offsets=relevance.offsets[block.start : block.stop + 1] - pairs.start,
        items=relevance.items[pairs],
        grades=relevance.grades[pairs],
    )
    outer = Direction.of(own, scorer, work.depth, as_rows=work.axis == 0)
    # Relevant items outside the block have positions outside it, too: each is compared with what is inside.
    keep = min(work.depth, block.stop - block.start)
    inner = replace(work.inner, scorer=scorer, keep=keep, relevant=work.inner.relevant - block.start)
    rows, columns = (outer, inner) if work.axis == 0 else (inner, outer)
    finished = run_pass(rows, columns, work.tile, 1, SilentProgress(), None)
    lists = (PartLists.of(assemble(part, "", finished.tallies(part)), part) for part in (outer, inner))
    own_lists, others = lists
    return own_lists, replace(others, top_items=others.top_items + block.start)


def _without_ids(relevance: Relevance) -> Relevance:
    """The same with empty ids: millions of texts would take longer to travel than the vectors."""
    return replace(relevance, query_ids=("",) * len(relevance.query_ids), item_ids=("",) * len(relevance.item_ids))


def rank_in_parts(
    scorer: Scorer,
    rows: Direction,
    columns: Direction,
    names: tuple[str, str],
    engine: Engine,
    *,
    depth: int,
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None,
) -> dict[str, Ranking]:
    """Rank both directions in tasks of an engine; with a checkpoint, resume where an interrupted call stopped."""
    work = PartWork.of(scorer, rows, columns, depth, tile or TILE)
    outer, inner = (rows, columns) if work.axis == 0 else (columns, rows)
    joined = _Joined(outer, inner, None if checkpoint is None else Path(checkpoint), depth)
    blocks = _blocks(joined.done, outer.queries, inner.queries * scorer.work, engine.slots())
    size = sum(entry.nbytes for entry in vars(joined.others).values())
    with stage(progress, "ranking", outer.queries):
        progress.advance(joined.done)
        parts = engine.run(
            rank_part, work, blocks, done=lambda block: progress.advance(block.stop - block.start), size=size
        )
        for block, (own, others) in zip(blocks, parts, strict=True):
            joined.add(block, own, others)
    return joined.rankings(names if work.axis == 0 else names[::-1], order=names)


def _blocks(done: int, queries: int, work: int, slots: int) -> list[slice]:
    """Blocks of the queries that are not done: some for every slot, neither too short nor too long."""
    even = -(-(queries - done) // (_PARTS_PER_SLOT * slots))
    height = max(_FEWEST_QUERIES, min(even, _MOST_WORK // max(work, 1)))
    height = -(-height // TILE) * TILE
    return [slice(start, min(start + height, queries)) for start in range(done, queries, height)]


class _Joined:
    """The parts that are there, joined; ``done`` is how many queries of the outer axis they have."""

    def __init__(self, outer: Direction, inner: Direction, checkpoint: Path | None, depth: int) -> None:
        self._outer, self._inner, self._checkpoint = outer, inner, checkpoint
        self._key = "" if checkpoint is None else _key(outer, inner, depth)
        self.own, self.others = _empty(outer), _empty(inner)
        self.done, self._saved = 0, time.monotonic()
        self._load()

    def add(self, block: slice, own: PartLists, others: PartLists) -> None:
        """The next part."""
        self.own.top_items[block], self.own.top_scores[block] = own.top_items, own.top_scores
        pairs = slice(self._outer.offsets[block.start], self._outer.offsets[block.stop])
        for name in _COUNTS:
            getattr(self.own, name)[pairs] = getattr(own, name)
            getattr(self.others, name)[:] += getattr(others, name)
        _merge(self.others, others)
        self.done = block.stop
        due = time.monotonic() - self._saved >= _SECONDS_BETWEEN_CHECKPOINTS
        if self._checkpoint is not None and due and self.done < self._outer.queries:
            self._save(self._checkpoint)

    def rankings(self, names: Sequence[str], order: Sequence[str]) -> dict[str, Ranking]:
        """Both directions: ``names`` are those of outer and inner, ``order`` that of the result."""
        joined = {}
        for name, lists, direction in zip(names, (self.own, self.others), (self._outer, self._inner), strict=True):
            assert direction.relevance is not None
            joined[name] = lists.ranking(name, direction.relevance, direction.gallery)
        return {name: joined[name] for name in order}

    def _save(self, folder: Path) -> None:
        arrays = {
            f"{owner}-{part.name}": getattr(lists, part.name)
            for owner, lists in (("own", self.own), ("others", self.others))
            for part in fields(PartLists)
        }
        with atomic_folder(folder, _CHECKPOINT) as new:
            write_parts(new, "checkpoint", header={"key": self._key, "done": self.done}, arrays=arrays)
        self._saved = time.monotonic()

    def _load(self) -> None:
        """What an interrupted call of the same work has stored."""
        if self._checkpoint is None or not self._checkpoint.exists():
            return
        try:
            header, arrays, _ = read_folder(self._checkpoint, "checkpoint")
        except CrosslensError:
            return
        if header.get("key") == self._key:
            self.done = header["done"]
            for owner, lists in (("own", self.own), ("others", self.others)):
                for part in fields(PartLists):
                    getattr(lists, part.name)[:] = arrays[f"{owner}-{part.name}"]


def _key(outer: Direction, inner: Direction, depth: int) -> str:
    """Changes when anything that the parts depend on does."""
    parts: dict[str, Any] = {"depth": depth, "queries": [outer.queries, inner.queries]}
    for name, axis in (("outer", outer), ("inner", inner)):
        parts |= {f"{name} offsets": axis.offsets, f"{name} targets": axis.targets, f"{name} slack": axis.slack}
    return fingerprint("checkpoint of parts", parts)


def _empty(direction: Direction) -> PartLists:
    """Nothing listed yet."""
    shape, pairs = (direction.queries, direction.keep), len(direction.targets)
    items, scores = np.full(shape, UNRANKED, np.int64), np.full(shape, np.nan, direction.scorer.precision)
    return PartLists(items, scores, *(np.zeros(pairs, np.int64) for _ in _COUNTS))


def _merge(lists: PartLists, others: PartLists) -> None:
    """Take the better of two lists; of equal scores those of the earlier part, whose positions are lower."""
    items = np.concatenate([lists.top_items, others.top_items], axis=1)
    scores = np.concatenate([lists.top_scores, others.top_scores], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, : lists.top_items.shape[1]]
    lists.top_items[:] = np.take_along_axis(items, order, 1)
    lists.top_scores[:] = np.take_along_axis(scores, order, 1)
