"""The best columns of every row, exactly: the ranking pass in one direction, where nothing is relevant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from crosslens.core import Progress, SilentProgress, available_cores
from crosslens.rank.scorers import Scorer

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
    from crosslens.rank.direction_state import Direction, PassTally, top_of  # compiled code: slow to import
    from crosslens.rank.tiles import TILE, Collector, Hits, share_out

    size = tile or TILE
    direction = Direction.of_rows(scorer, depth)
    blocks = range(0, direction.gallery, size)
    tallies = [PassTally.of(direction) for _ in range(min(threads or available_cores(), len(blocks)))]

    def work(blocks: Iterator[int], worker: int, stop: threading.Event) -> None:
        hits, collector = Hits.of(size), Collector(direction, tallies[worker], size)
        for first in blocks:
            columns = slice(first, min(first + size, direction.gallery))
            for top in range(0, direction.queries, size):
                if stop.is_set():
                    return
                rows = slice(top, min(top + size, direction.queries))
                collector.consume(scorer.tile(rows, columns), top, first, hits)

    share_out(blocks, len(tallies), progress or SilentProgress(), work)
    return top_of(direction, tallies)
