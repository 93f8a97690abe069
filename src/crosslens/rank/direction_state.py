"""One direction of a ranking pass: what it looks for, what it has counted, and the :class:`Ranking` made of that."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import UNRANKED, Ranking, Relevance, as_top_scores, available_cores, wait_for_all
from crosslens.rank.kernels import put_in_order, settle
from crosslens.rank.scan import survivors
from crosslens.rank.scorers import Scorer

Array = np.ndarray[Any, Any]

_PAIRS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Direction:
    """The relevant items of every query with their exact scores, sorted by score within a query.

    ``as_rows`` says whether the queries are the rows or the columns of a tile. A tile's score below ``low`` is below
    the relevant item for certain, one above ``high`` above it; between the two only exact scores tell. Without
    ``relevance`` only the top lists are of interest.
    """

    relevance: Relevance | None
    scorer: Scorer
    as_rows: bool
    keep: int
    slack: Array
    offsets: Array
    order: Array
    rows: Array
    relevant: Array
    targets: Array
    low: Array
    high: Array

    @staticmethod
    def of(relevance: Relevance, scorer: Scorer, depth: int, *, as_rows: bool) -> Direction:
        """Score the relevant pairs exactly and sort them."""
        pairs = (relevance.rows, relevance.items)
        targets = scorer.exact(*(pairs if as_rows else pairs[::-1]))
        slack = scorer.row_slack if as_rows else scorer.column_slack
        order = np.lexsort((targets, relevance.rows))
        rows, targets = relevance.rows[order], targets[order]
        reach = slack.astype(np.float64)[rows]
        low, high = (targets - reach).astype(np.float32), (targets + reach).astype(np.float32)
        if (slack != 0).any():
            low, high = np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))
        keep = min(depth, len(relevance.item_ids))
        relevant, offsets = relevance.items[order], relevance.offsets
        return Direction(relevance, scorer, as_rows, keep, slack, offsets, order, rows, relevant, targets, low, high)

    @staticmethod
    def of_rows(scorer: Scorer, depth: int) -> Direction:
        """The top lists of the rows, without anything relevant."""
        offsets, none, bound = np.zeros(scorer.shape[0] + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        targets = np.empty(0, scorer.precision)
        keep = min(depth, scorer.shape[1])
        return Direction(None, scorer, True, keep, scorer.row_slack, offsets, none, none, none, targets, bound, bound)

    @property
    def queries(self) -> int:
        return self.scorer.shape[0 if self.as_rows else 1]

    @property
    def gallery(self) -> int:
        return self.scorer.shape[1 if self.as_rows else 0]

    @property
    def capacity(self) -> int:
        """Size of a query's candidate buffer: twice the depth, and room for a few near-ties."""
        return 2 * self.keep + 28

    def exact(self, queries: Array, items: Array) -> Array:
        """Exact scores, whichever way the queries lie."""
        return self.scorer.exact(queries, items) if self.as_rows else self.scorer.exact(items, queries)

    def decide(self, tally: PassTally, pairs: Array, items: Array) -> None:
        """Count items against the relevant pairs that a tile could not order them with, by exact scores."""
        scores = self.exact(self.rows[pairs], items)
        settle(pairs, items, scores, self.targets, self.relevant, tally.above, tally.tied, tally.tied_before)


@dataclass
class PassTally:
    """What one worker has counted and collected for one direction; tallies of several workers add up."""

    above: Array
    above_upto: Array
    tied: Array
    tied_before: Array
    floor: Array
    fill: Array
    candidate_score: Array
    candidate_item: Array

    @staticmethod
    def of(direction: Direction) -> PassTally:
        """Nothing counted yet."""
        pairs, queries, capacity = len(direction.relevant), direction.queries, direction.capacity
        above, above_upto, tied, tied_before = (np.zeros(pairs, np.int64) for _ in range(4))
        return PassTally(
            above,
            above_upto,
            tied,
            tied_before,
            floor=np.full(queries, -np.inf, np.float32),
            fill=np.zeros(queries, np.int32),
            candidate_score=np.empty((queries, capacity), np.float32),
            candidate_item=np.empty((queries, capacity), np.int32),
        )


def assemble(direction: Direction, name: str, tallies: Sequence[PassTally]) -> Ranking:
    """The ranking of one direction: add up what the workers counted, order the candidates by exact scores."""
    relevance, offsets = direction.relevance, direction.offsets
    assert relevance is not None
    top_items, top_scores = top_of(direction, tallies)
    above, above_upto, tied, tied_before = (
        np.sum([getattr(tally, part) for tally in tallies], axis=0)
        for part in ("above", "above_upto", "tied", "tied_before")
    )
    # An item noted at a pair is above that pair and all of its query before it: sum from behind.
    running = np.concatenate([[0], np.cumsum(above_upto)])
    above = above + running[offsets[1:]][direction.rows] - running[:-1]
    counts = np.empty((3, len(above)), np.int64)
    counts[:, direction.order] = above, tied, tied_before  # from the order of targets to the order of relevant pairs
    return Ranking(
        name,
        relevance.query_ids,
        relevance.item_ids,
        top_items,
        as_top_scores(top_scores),
        np.full(direction.queries, direction.gallery, np.int64),
        offsets,
        relevance.items,
        relevance.grades,
        *counts,
    )


def top_of(direction: Direction, tallies: Sequence[PassTally]) -> tuple[Array, Array]:
    """The top lists of one direction and their exact scores."""
    fill = np.stack([tally.fill for tally in tallies])
    overflowed = (fill < 0).any(axis=0)
    fill[:, overflowed] = 0
    rows, items = survivors(
        direction.keep,
        direction.slack,
        fill,
        _stacked([tally.candidate_score for tally in tallies]),
        _stacked([tally.candidate_item for tally in tallies]),
    )
    top_items = np.full((direction.queries, direction.keep), UNRANKED, np.int64)
    top_scores = np.full((direction.queries, direction.keep), np.nan, direction.scorer.precision)
    put_in_order(rows, items, _exact_scores(direction, rows, items), top_items, top_scores)
    gallery = np.arange(direction.gallery)
    for query in np.flatnonzero(overflowed):  # more near-ties than the buffer holds: score the whole gallery exactly
        scores = _exact_scores(direction, np.full(len(gallery), query), gallery)
        best = np.lexsort((gallery, -scores))[: direction.keep]
        top_items[query], top_scores[query] = best, scores[best]
    return top_items, top_scores


def _stacked(arrays: Sequence[Array]) -> Array:
    """Worker × query × candidate, without a copy if there is only one worker: buffers can be large."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _exact_scores(direction: Direction, queries: Array, items: Array) -> Array:
    """Exact scores, on all cores, a bounded number at a time."""
    scores = np.empty(len(queries), direction.scorer.precision)

    def fill(start: int) -> None:
        part = slice(start, start + _PAIRS_AT_ONCE)
        scores[part] = direction.exact(queries[part], items[part])

    with ThreadPoolExecutor(available_cores()) as pool:
        wait_for_all([pool.submit(fill, start) for start in range(0, len(queries), _PAIRS_AT_ONCE)])
    return scores
