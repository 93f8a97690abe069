"""The ranking pass in one direction: the best columns of every row, exactly."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import Progress, SilentProgress, available_cores
from crosslens.rank.scorers import Scorer

if TYPE_CHECKING:
    from crosslens.rank.direction_state import Direction, PassTally

Array = np.ndarray[Any, Any]


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
    from crosslens.rank.direction_state import Direction, top_of  # compiled code: slow to import

    direction = Direction.of_rows(scorer, depth)
    return top_of(direction, one_way(direction, tile, threads, progress or SilentProgress()))


def tile_size() -> int:
    """Rows and columns of a tile, unless others are asked for."""
    from crosslens.rank.tiles import TILE

    return TILE


def one_way(
    direction: Direction,
    tile: int | None,
    threads: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> list[PassTally]:
    """What every thread counted; ``progress`` advances once per tile of the gallery."""
    from crosslens.rank.checkpoint import blocks_between, checkpoint_key, load_checkpoint, save_checkpoint
    from crosslens.rank.direction_state import PassTally
    from crosslens.rank.tiles import share_out

    size = tile or tile_size()
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
    from crosslens.rank.tiles import Collector, look_at

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
