"""One direction of a ranking pass: what is looked for, and what has been found so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core.relevance import Relevance

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Side:
    """The relevant items of every query with their exact scores, sorted by score within a query.

    A tile's score below ``low`` is below the relevant item for certain, one above ``high`` above it; between the two
    only exact scores tell.
    """

    relevance: Relevance
    order: Array
    rows: Array
    relevant: Array
    targets: Array
    low: Array
    high: Array
    slack: Array
    gallery: int
    keep: int

    @staticmethod
    def of(relevance: Relevance, targets: Array, slack: Array, keep: int) -> Side:
        """Prepare one direction: ``targets`` are the exact scores of the relevance's pairs."""
        order = np.lexsort((targets, relevance.rows))
        rows, targets = relevance.rows[order], targets[order]
        reach = slack.astype(np.float64)[rows]
        exact = bool((slack == 0).all())
        low = (targets - reach).astype(np.float32)
        high = (targets + reach).astype(np.float32)
        return Side(
            relevance,
            order,
            rows,
            relevance.items[order],
            targets,
            low if exact else np.nextafter(low, np.float32(-np.inf)),
            high if exact else np.nextafter(high, np.float32(np.inf)),
            slack,
            len(relevance.item_ids),
            min(keep, len(relevance.item_ids)),
        )

    @property
    def queries(self) -> int:
        return len(self.relevance.query_ids)

    @property
    def offsets(self) -> Array:
        return self.relevance.offsets

    @property
    def capacity(self) -> int:
        """Places in a query's candidate buffer: twice the depth, and room for a few near-ties."""
        return 2 * self.keep + 28


@dataclass
class Tally:
    """What one worker has counted and collected for one side; tallies of several workers add up."""

    above: Array
    above_upto: Array
    tied: Array
    tied_before: Array
    floor: Array
    fill: Array
    candidate_score: Array
    candidate_item: Array

    @staticmethod
    def of(side: Side) -> Tally:
        """Nothing counted yet."""
        pairs = len(side.relevant)
        return Tally(
            above=np.zeros(pairs, np.int64),
            above_upto=np.zeros(pairs, np.int64),
            tied=np.zeros(pairs, np.int64),
            tied_before=np.zeros(pairs, np.int64),
            floor=np.full(side.queries, -np.inf, np.float32),
            fill=np.zeros(side.queries, np.int32),
            candidate_score=np.empty((side.queries, side.capacity), np.float32),
            candidate_item=np.empty((side.queries, side.capacity), np.int32),
        )
