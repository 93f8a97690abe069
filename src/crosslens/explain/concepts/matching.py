"""Optimal matchings of few things to few, by rules under which a tie never changes a value."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TIE = 1e-9
"""Matchings of boxes whose differences sum to the same, but for about this, are tied; the one with the fewest pairs
over the threshold is taken, so that what is reported does not depend on which of them a solver meets first."""


def most_similar(similarities: Array) -> list[tuple[int, int]]:
    """All of the smaller side matched so that the sum of similarities is largest."""
    return _assign(-similarities)


def least_different(differences: Array, threshold: float) -> list[tuple[int, int]]:
    """All of the smaller side matched so that the sum of differences is smallest.

    Of tied matchings, one with fewest pairs from ``threshold`` on.
    """
    return _assign(differences + TIE * (differences >= threshold))


def most_agreeing(comparable: Array, agreement: Array) -> list[tuple[int, int]]:
    """Rows and columns matched so that most can be compared and, among those ways, most agrees.

    ``agreement`` is at most ``comparable``, which is at most 3; pairs of which nothing can be compared are left out.
    """
    worth = 3.0 * min(comparable.shape) + 1
    pairs = _assign(-(worth * comparable + agreement))
    return [(row, column) for row, column in pairs if comparable[row, column] > 0]


def _assign(costs: Array) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    if not costs.size:
        return []
    rows, columns = linear_sum_assignment(costs)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
