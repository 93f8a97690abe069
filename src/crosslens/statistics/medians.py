"""Medians of many resamples of the same values, from one table of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.statistics.centre import FloatArray, IntArray


class MedianTable:
    """How often each distinct value occurs in each group.

    A resample is a weight per group, so its values are one product of the table with the weights: nothing is sorted
    again, and ranks, of which few are distinct, make a small table.
    """

    def __init__(self, values: FloatArray, groups: IntArray, size: int) -> None:
        from scipy.sparse import coo_array

        self.levels, level_of = np.unique(values, return_inverse=True)
        ones = np.ones(len(values), np.int32)
        shape = (len(self.levels), size)
        self._groups = size
        self._counts = coo_array((ones, (level_of, groups)), shape=shape).tocsr()

    def counts(self, weights: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How often each level occurs in each resample: levels × resamples, for ``weights`` resamples × groups."""
        product = self._counts @ np.ascontiguousarray(weights.T, np.int32)
        return np.asarray(product, np.int64)

    def medians(self, counts: np.ndarray[Any, np.dtype[np.int64]]) -> FloatArray:
        """The median of each resample whose level counts are given (a column each); NaN where it is empty."""
        running = np.cumsum(counts, axis=0)
        total = running[-1]
        lower = (running < (total + 1) // 2).sum(axis=0)
        upper = (running < total // 2 + 1).sum(axis=0)
        last = len(self.levels) - 1
        middle = (self.levels[np.minimum(lower, last)] + self.levels[np.minimum(upper, last)]) / 2
        return np.where(total > 0, middle, np.nan)

    def rows_within(self, cells: int) -> int:
        """How many resamples may be worked on at once if their counts are to take at most ``cells`` numbers."""
        return max(1, cells // max(1, len(self.levels), self._groups))
