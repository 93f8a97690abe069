"""From tallies to a :class:`Ranking`: add the counts up, order the candidates by exact scores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from crosslens.core.machine import available_cores
from crosslens.core.ranking import UNRANKED, Ranking, as_top_scores
from crosslens.rank.side import Side, Tally
from crosslens.rank.tiles import Direction
from crosslens.rank.waiting import finish_all

Array = np.ndarray[Any, Any]

_AT_ONCE = 1 << 14


def finish(direction: Direction, name: str, tallies: Sequence[Tally]) -> Ranking:
    """The ranking of one direction from what the workers counted and collected."""
    side = direction.side
    top_items, top_scores = _top(direction, tallies)
    above, above_upto, tied, tied_before = (
        np.sum([getattr(tally, part) for tally in tallies], axis=0)
        for part in ("above", "above_upto", "tied", "tied_before")
    )
    relevance = side.relevance
    return Ranking(
        name,
        relevance.query_ids,
        relevance.item_ids,
        top_items,
        as_top_scores(top_scores),
        np.full(side.queries, side.gallery, np.int64),
        relevance.offsets,
        relevance.items,
        relevance.grades,
        _unsorted(side, above + _carried(side, above_upto)),
        _unsorted(side, tied),
        _unsorted(side, tied_before),
    )


def _unsorted(side: Side, by_target: Array) -> Array:
    """Back from the order of targets to the order of the relevance's pairs."""
    out = np.empty_like(by_target)
    out[side.order] = by_target
    return out


def _carried(side: Side, above_upto: Array) -> Array:
    """An item noted at a pair is above that pair and all of its query before it: sum from behind."""
    running = np.concatenate([[0], np.cumsum(above_upto)])
    carried: Array = running[side.offsets[1:]][side.rows] - running[:-1]
    return carried


def _top(direction: Direction, tallies: Sequence[Tally]) -> tuple[Array, Array]:
    from crosslens.rank.kernels import put_in_order
    from crosslens.rank.scan import survivors

    side = direction.side
    fill = np.stack([tally.fill for tally in tallies])
    given_up = (fill < 0).any(axis=0)
    fill[:, given_up] = 0
    rows, items = survivors(
        side.keep,
        side.slack,
        fill,
        _together([tally.candidate_score for tally in tallies]),
        _together([tally.candidate_item for tally in tallies]),
    )
    top_items = np.full((side.queries, side.keep), UNRANKED, np.int64)
    top_scores = np.full((side.queries, side.keep), np.nan, direction.scorer.precision)
    put_in_order(rows, items, _exact(direction, rows, items), top_items, top_scores)
    for query in np.flatnonzero(given_up):
        top_items[query], top_scores[query] = _exact_top(direction, int(query))
    return top_items, top_scores


def _together(arrays: Sequence[Array]) -> Array:
    """Worker × query × place, without a copy if there is only one worker: buffers can be large."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _exact_top(direction: Direction, query: int) -> tuple[Array, Array]:
    """The slow way, for a query with more near-ties than its buffer holds: score its whole gallery exactly."""
    items = np.arange(direction.side.gallery)
    scores = _exact(direction, np.full(len(items), query), items)
    best = np.lexsort((items, -scores))[: direction.side.keep]
    return items[best], scores[best]


def _exact(direction: Direction, queries: Array, items: Array) -> Array:
    """Exact scores, on all cores, a bounded number at a time."""
    scores = np.empty(len(queries), direction.scorer.precision)

    def fill(start: int) -> None:
        part = slice(start, start + _AT_ONCE)
        scores[part] = direction.exact(queries[part], items[part])

    with ThreadPoolExecutor(available_cores()) as pool:
        finish_all([pool.submit(fill, start) for start in range(0, len(queries), _AT_ONCE)])
    return scores
