"""Ranking on cores, in parts that can be computed anywhere: blocks of one axis against the whole of the other.

For the queries of the axis that is cut a part is all there is to know; for those of the other axis it is a piece of
their gallery. The result is that of one pass, which a ranking in this process without checkpoints is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from crosslens.core import available_cores
from crosslens.engine import Progress, current_engine, stage
from crosslens.rank.direction_state import Direction, lists_of, ranking_of
from crosslens.rank.merged import Blocks, Lists, Merged
from crosslens.rank.scorers import Scorer
from crosslens.rank.tiles import TILE, run_pass, slices
from crosslens.storage import Array, fingerprint
from crosslens.values import Ranking

_FEWEST_QUERIES = 2 * TILE
"""Queries of a part, at least: for each part, the lists of the whole other axis travel and are merged."""
_MOST_WORK = 1 << 38
"""Multiplications of a part, at most: what a lost worker costs, some ten seconds."""
_WORK_BETWEEN_CHECKPOINTS = 2 * 10**12
"""Multiplications of a part that this process computes on all cores: what an interruption costs, half a minute."""
_PARTS_PER_SLOT = 4


class PartScorer:
    """The scores of a block of rows, or of columns."""

    def __init__(self, scorer: Scorer, block: slice, axis: int) -> None:
        size = block.stop - block.start
        self._scorer = scorer
        self._starts = (block.start, 0) if axis == 0 else (0, block.start)
        self.shape = (size, scorer.shape[1]) if axis == 0 else (scorer.shape[0], size)
        self.work, self.precision = scorer.work, scorer.precision
        self.row_slack = scorer.row_slack[block] if axis == 0 else scorer.row_slack
        self.column_slack = scorer.column_slack[block] if axis == 1 else scorer.column_slack

    def tile(self, rows: slice, columns: slice) -> Array:
        """A tile of the whole."""
        row, column = self._starts
        return self._scorer.tile(
            slice(rows.start + row, rows.stop + row), slice(columns.start + column, columns.stop + column)
        )

    def exact(self, rows: Array, columns: Array) -> Array:
        """Scores of the whole."""
        return self._scorer.exact(rows + self._starts[0], columns + self._starts[1])


@dataclass(frozen=True)
class PartWork:
    """What all parts of a ranking read: ``directions`` of the rows and the columns, where they are wanted; parts are
    blocks of the axis ``outer``."""

    scorer: Scorer
    directions: tuple[Direction | None, Direction | None]
    outer: int
    tile: int
    threads: int = 1


def rank_part(
    work: PartWork, block: slice, advance: Callable[[slice], object] = lambda block: None
) -> dict[int, Lists]:
    """The lists of the block's own queries, and those of all others, with positions within the block."""
    scorer = PartScorer(work.scorer, block, work.outer)
    directions = [
        direction and (direction.of_queries if axis == work.outer else direction.among_items)(scorer, block)
        for axis, direction in enumerate(work.directions)
    ]
    # Of one direction the gallery is shared out, whose vectors are the more.
    outer = work.outer if None not in directions else directions.index(None)
    # Blocks of a tile's width; shorter ones at the end, so that no worker waits long for another.
    length, tile = scorer.shape[outer], work.tile
    most, short = max(0, length // tile - 1) * tile, max(1, tile // 4)
    blocks = slices([*range(0, most, tile), *range(most, length, short), length])
    tallies = run_pass(scorer, directions, outer, blocks, tile, work.threads, advance)
    return {axis: lists_of(direction, tallies[axis]).packed() for axis, direction in enumerate(directions) if direction}


def rank_in_parts(
    scorer: Scorer,
    directions: tuple[Direction | None, Direction | None],
    names: tuple[str, str],
    *,
    tile: int | None,
    threads: int | None,
    progress: Progress,
    checkpoint: str | Path | None,
) -> dict[str, Ranking]:
    """Rank the wanted directions; with a checkpoint, resume where an interrupted call stopped, wherever it ran."""
    engine, tile, threads = current_engine(), tile or TILE, threads or available_cores()
    axes = {axis: direction for axis, direction in enumerate(directions) if direction is not None}
    alone = len(axes) == 1
    if not alone:
        outer = 0 if scorer.shape[0] > scorer.shape[1] else 1
    else:  # elsewhere, parts are queries that are ranked for good; here, pieces of the gallery, each read once
        (axis,) = axes
        outer = axis if engine.distributed else 1 - axis
    length, work = scorer.shape[outer], scorer.shape[1 - outer] * scorer.work
    height = length
    if engine.distributed:
        height = part_height(length, work, engine.slots())
    elif checkpoint is not None:
        height = -(-max(threads * tile, _WORK_BETWEEN_CHECKPOINTS // max(work, 1)) // tile) * tile
    height = min(height, length)
    blocks = Blocks(scorer.shape, (height, scorer.shape[1]) if outer == 0 else (scorer.shape[0], height), outer)
    merged = Merged(
        blocks,
        {axis: direction.offsets for axis, direction in axes.items()},
        {axis: direction.keep for axis, direction in axes.items()},
        scorer.precision,
    )
    if checkpoint is not None:
        merged.keep_in(Path(checkpoint), _checkpoint_key(axes))
        outer = merged.blocks.outer
        length = scorer.shape[outer]
    todo = merged.todo()
    tasks = [merged.parts(pair)[outer] for pair in todo]
    done = length - sum(task.stop - task.start for task in tasks)
    with stage(progress, f"ranking {names[0]}" if alone else "ranking", length, done=done, unit="row"):

        def advance(block: slice) -> None:
            progress.advance(block.stop - block.start)

        if engine.distributed:
            nameless = tuple(direction and direction.nameless() for direction in directions)
            part_work = PartWork(scorer, (nameless[0], nameless[1]), outer, tile)
            results = engine.run(rank_part, part_work, tasks, done=advance, size=merged.result_bytes())
        else:
            part_work = PartWork(scorer, directions, outer, tile, threads)
            results = engine.run(partial(rank_part, advance=advance), part_work, tasks)
        for pair, lists in zip(todo, results, strict=True):
            merged.add(pair, lists)
    return {names[axis]: ranking_of(direction, names[axis], merged.lists[axis]) for axis, direction in axes.items()}


def part_height(queries: int, work: int, slots: int) -> int:
    """How many queries of the longer axis a part has; ``work`` is the multiplications of one of them."""
    even = -(-queries // (_PARTS_PER_SLOT * slots))
    height = max(_FEWEST_QUERIES, min(even, _MOST_WORK // max(work, 1)))
    return -(-height // TILE) * TILE


def _checkpoint_key(axes: dict[int, Direction]) -> str:
    parts: dict[str, Any] = {}
    for axis, direction in axes.items():
        facts = {
            "keep": direction.keep, "queries": direction.queries, "gallery": direction.gallery,
            "offsets": direction.offsets, "targets": direction.targets, "slack": direction.slack,
            "relevant": direction.relevant_items, "weights": direction.weights,
        }  # fmt: skip
        parts |= {f"{name} {axis}": value for name, value in facts.items()}
    return fingerprint("checkpoint", parts)
