"""One direction of a ranking pass: what it looks for, what it has counted, and the :class:`Ranking` made of that."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from crosslens.core import available_cores
from crosslens.engine import wait_for_all
from crosslens.rank.distinct import Copies, count_groups_exactly, list_members
from crosslens.rank.kernels import count_exactly, put_in_order
from crosslens.rank.merged import Lists
from crosslens.rank.scan import survivors
from crosslens.rank.scorers import Scorer
from crosslens.storage import Array
from crosslens.values import UNRANKED, Ranking, Relevance

_PAIRS_AT_ONCE = 1 << 14
_QUERIES_AT_ONCE = 1 << 10


@dataclass(frozen=True)
class Direction:
    """The relevant items of every query with their exact scores, sorted by score within a query.

    ``as_rows`` says whether the queries are the rows or the columns of a tile. A tile's score below ``low`` is below
    the relevant item for certain, one above ``high`` above it; between the two only exact scores tell. Without
    ``relevance`` only the top lists are of interest.

    Where vectors occur several times, the scorer has only the first of each. ``same_queries`` and ``same_items`` then
    tell which queries and items these stand for, queries share the relevant items of all their copies, and ``weights``
    says how many items an item of the scorer stands for.
    """

    relevance: Relevance | None
    scorer: Scorer
    as_rows: bool
    depth: int
    keep: int
    slack: Array
    offsets: Array
    order: Array
    rows: Array
    relevant: Array
    relevant_items: Array
    targets: Array
    low: Array
    high: Array
    weights: Array
    same_queries: Copies | None = None
    same_items: Copies | None = None

    @staticmethod
    def of(
        relevance: Relevance,
        scorer: Scorer,
        depth: int,
        *,
        as_rows: bool,
        same_queries: Copies | None = None,
        same_items: Copies | None = None,
    ) -> Direction:
        """Score the relevant pairs exactly and sort them."""
        rows = relevance.rows if same_queries is None else same_queries.group[relevance.rows]
        items = relevance.items if same_items is None else same_items.group[relevance.items]
        targets = scorer.exact(*((rows, items) if as_rows else (items, rows)))
        slack = scorer.row_slack if as_rows else scorer.column_slack
        order = np.lexsort((targets, rows))
        rows, items, targets = rows[order], items[order], targets[order]
        reach = slack.astype(np.float64)[rows]
        low, high = (targets - reach).astype(np.float32), (targets + reach).astype(np.float32)
        if (slack != 0).any():
            low, high = np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))
        keep = min(depth, scorer.shape[1 if as_rows else 0])
        offsets = np.searchsorted(rows, np.arange(len(slack) + 1))
        weights = np.empty(0, np.int32) if same_items is None else same_items.sizes.astype(np.int32)
        return Direction(
            relevance, scorer, as_rows, depth, keep, slack, offsets, order, rows, items, relevance.items[order],
            targets, low, high, weights, same_queries, same_items,
        )  # fmt: skip

    @staticmethod
    def of_rows(scorer: Scorer, depth: int) -> Direction:
        """The top lists of the rows, without anything relevant."""
        offsets, none, bound = np.zeros(scorer.shape[0] + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        targets, weights = np.empty(0, scorer.precision), np.empty(0, np.int32)
        keep = min(depth, scorer.shape[1])
        return Direction(
            None, scorer, True, depth, keep, scorer.row_slack, offsets,
            none, none, none, none, targets, bound, bound, weights,
        )  # fmt: skip

    def nameless(self) -> Direction:
        """What a pass needs: the rest, ids above all, takes longer to travel than the vectors."""
        return replace(self, relevance=None, same_queries=None, order=self.order[:0])

    def of_queries(self, scorer: Scorer, block: slice) -> Direction:
        """A block of the queries, whose scores the scorer has."""
        pairs = slice(int(self.offsets[block.start]), int(self.offsets[block.stop]))
        names = ("relevant", "relevant_items", "targets", "low", "high")
        return replace(
            self,
            scorer=scorer,
            slack=self.slack[block],
            offsets=self.offsets[block.start : block.stop + 1] - pairs.start,
            rows=self.rows[pairs] - block.start,
            **{name: getattr(self, name)[pairs] for name in names},
        )

    def among_items(self, scorer: Scorer, block: slice) -> Direction:
        """All queries against a block of the items: relevant ones outside have positions outside, and are compared with
        what is inside."""
        copies = self.same_items
        return replace(
            self,
            scorer=scorer,
            keep=min(self.depth, block.stop - block.start),
            relevant=self.relevant - block.start,
            weights=self.weights[block],
            same_items=copies and replace(copies, offsets=copies.offsets[block.start : block.stop + 1]),
        )

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
        undecided, counts = (pairs, items, scores, self.targets), (tally.above, tally.tied, tally.tied_before)
        if self.same_items is None:
            count_exactly(*undecided, self.relevant, *counts)
        else:
            groups = self.same_items.members, self.same_items.offsets
            count_groups_exactly(*undecided, self.relevant, self.relevant_items, *groups, *counts)


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


def lists_of(direction: Direction, tallies: Sequence[PassTally]) -> Lists:
    """The top lists and counts of a pass: add up what the workers counted, order the candidates by exact scores.

    Relevant pairs are in the order of the targets.
    """
    above, above_upto, tied, tied_before = (
        np.sum([getattr(tally, part) for tally in tallies], axis=0)
        for part in ("above", "above_upto", "tied", "tied_before")
    )
    # An item noted at a pair is above that pair and all of its query before it: sum from behind.
    running = np.concatenate([[0], np.cumsum(above_upto)])
    above = above + running[direction.offsets[1:]][direction.rows] - running[:-1]
    return Lists(*top_of(direction, tallies), np.stack([above, tied, tied_before]))


def ranking_of(direction: Direction, name: str, lists: Lists) -> Ranking:
    """The ranking of all queries and items, from the lists of the distinct ones."""
    relevance, queries, items = direction.relevance, direction.same_queries, direction.same_items
    assert relevance is not None
    top, scores = lists.items.astype(np.int64, copy=False), lists.scores
    if items is not None:
        listed = np.empty((len(top), min(direction.depth, len(relevance.item_ids))), np.int64)
        exact = np.empty(listed.shape, scores.dtype)
        list_members(top, scores, items.members, items.offsets, listed, exact)
        top, scores = listed, exact
    if queries is not None:
        top, scores = top[queries.group], scores[queries.group]
    counts = np.empty(lists.counts.shape, np.int64)
    counts[:, direction.order] = lists.counts
    return Lists(top, scores, counts).ranking(name, relevance)


def top_of(direction: Direction, tallies: Sequence[PassTally]) -> tuple[Array, Array]:
    """The top lists of one direction and their exact scores, some queries at a time, on all cores."""
    items = np.full((direction.queries, direction.keep), UNRANKED, np.int64)
    scores = np.full(items.shape, np.nan, direction.scorer.precision)
    gallery = np.arange(direction.gallery)

    def fill(start: int) -> None:
        part = slice(start, min(start + _QUERIES_AT_ONCE, direction.queries))
        filled = np.stack([tally.fill[part] for tally in tallies])
        overflowed = (filled < 0).any(axis=0)
        filled[:, overflowed] = 0
        rows, candidates = survivors(
            direction.keep,
            direction.slack[part],
            filled,
            _stacked([tally.candidate_score[part] for tally in tallies]),
            _stacked([tally.candidate_item[part] for tally in tallies]),
        )
        put_in_order(rows, candidates, direction.exact(rows + start, candidates), items[part], scores[part])
        for query in start + np.flatnonzero(overflowed):  # more near-ties than the buffer holds: the whole gallery
            exact = np.empty(len(gallery), scores.dtype)
            for begin in range(0, len(gallery), _PAIRS_AT_ONCE):
                some = gallery[begin : begin + _PAIRS_AT_ONCE]
                exact[some] = direction.exact(np.full(len(some), query), some)
            best = np.lexsort((gallery, -exact))[: direction.keep]
            items[query], scores[query] = best, exact[best]

    with ThreadPoolExecutor(available_cores()) as pool:
        wait_for_all([pool.submit(fill, start) for start in range(0, direction.queries, _QUERIES_AT_ONCE)])
    return items, scores


def _stacked(arrays: Sequence[Array]) -> Array:
    """Worker × query × candidate, without a copy if there is only one worker: buffers can be large."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)
