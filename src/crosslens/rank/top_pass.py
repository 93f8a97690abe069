"""The ranking pass in one direction: the best columns of every row, or the rankings of some queries, exactly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import Progress, Ranking, Relevance, SilentProgress, available_cores, stage
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
    return top_of(direction, _one_way(direction, tile, threads, progress or SilentProgress()))


def rank_queries(
    scorer: Scorer,
    relevance: Relevance,
    name: str,
    *,
    as_rows: bool,
    depth: int = 10,
    tile: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Ranking:
    """Rank the queries of one direction, which are the rows of the scorer or its columns; ``name`` it so.

    The same ranking as that of :func:`rank_both`, without the work and the memory for the other direction.
    """
    from crosslens.rank.direction_state import Direction, assemble

    direction = Direction.of(relevance.relevant(), scorer, depth, as_rows=as_rows)
    progress = progress or SilentProgress()
    with stage(progress, f"ranking {name}", -(-direction.gallery // (tile or _tile()))):
        return assemble(direction, name, _one_way(direction, tile, threads, progress))


def _tile() -> int:
    from crosslens.rank.tiles import TILE

    return TILE


def _one_way(direction: Direction, tile: int | None, threads: int | None, progress: Progress) -> list[PassTally]:
    """What every thread counted; ``progress`` advances once per tile of the gallery."""
    from crosslens.rank.direction_state import PassTally
    from crosslens.rank.tiles import Collector, look_at, share_out

    size = tile or _tile()
    blocks = range(0, direction.gallery, size)
    tallies = [PassTally.of(direction) for _ in range(min(threads or available_cores(), len(blocks)))]

    def work(blocks: Iterator[int], worker: int, stop: threading.Event) -> None:
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

    share_out(blocks, len(tallies), progress, work)
    return tallies
