"""What goes into the compiled loops behind the table of concept metrics, and what comes out of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

CONCEPTS, BOXES, ATTRIBUTES = 0, 1, 2
"""What a matching is of."""


class Failures(NamedTuple):
    """Rows of the index, and per failure the sorted concepts that its query mentions, if only these count."""

    ground_truth: Array
    retrieved: Array
    restricted: bool
    mention_offsets: Array
    mentions: Array


class Weights(NamedTuple):
    """Similarity of concepts by the bytes of their distance, and how boxes are compared."""

    steps: Array
    similarities: Array
    threshold: float
    by_smaller: bool


class Problems(NamedTuple):
    """Matchings to find, one after the other; the cells of problem p start at ``cells[p]``, rows ≤ columns."""

    failure: Array
    kind: Array
    rows: Array
    columns: Array
    cells: Array
    costs: Array
    values: Array
    comparable: Array


class Sums(NamedTuple):
    """Per failure: whole numbers and sums."""

    missing: Array
    extra: Array
    common: Array
    wrong: Array
    count_error: Array
    hit: Array
    miss: Array
    more: Array
    relation_pairs: Array
    relation_sum: Array
    concept_pairs: Array
    concept_sum: Array
    box_pairs: Array
    box_over: Array
    size_sum: Array
    attribute_pairs: Array
    attribute_sum: Array


def room_for(count: int, cells: int) -> Problems:
    """Empty matchings of so many cells in all."""
    failure, kind, rows, columns, first = (np.empty(count, np.int64) for _ in range(5))
    return Problems(failure, kind, rows, columns, first, np.empty(cells), np.empty(cells), np.zeros(cells, np.int8))
