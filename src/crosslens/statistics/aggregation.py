"""From many values to one figure: their mean, their median, or the floored median of ranks; and percentiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crosslens.core import Statistic, UsageError

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_CELLS = 1 << 21
"""Counts that a median table works on at once."""


def aggregate(values: FloatArray, statistic: Statistic = "mean", strata: IntArray | None = None) -> float:
    """The statistic of the values that are not NaN; with ``strata`` (folds), the mean of it over the strata."""
    require_statistic(statistic)
    aggregator = np.mean if statistic == "mean" else np.median
    figures = [floored(aggregator(values[rows]), statistic) for rows in valid_rows(values, strata)]
    return float(np.mean(figures)) if figures else float("nan")


def floored(figures: FloatArray | np.floating[Any], statistic: Statistic) -> Any:
    """Figures as they are, or floored: floor(median of 0-based ranks) + 1 is the floor of the median of ranks."""
    return np.floor(figures) if statistic == "floor-median" else figures


def valid_rows(values: FloatArray, strata: IntArray | None) -> Iterator[IntArray]:
    """The rows of each stratum whose values are not NaN; strata without any are left out."""
    valid = np.flatnonzero(~np.isnan(values))
    if strata is None:
        if len(valid):
            yield valid
        return
    for stratum in np.unique(strata[valid]):
        yield valid[strata[valid] == stratum]


def require_statistic(statistic: str) -> None:
    """Raise for a statistic that is not one of the three."""
    if statistic not in ("mean", "median", "floor-median"):
        raise UsageError(f"unknown statistic {statistic!r}", fix="use 'mean', 'median' or 'floor-median'")


def percentiles(replicates: FloatArray, level: float) -> tuple[float, float]:
    """The bounds between which the middle ``level`` of the replicates lie."""
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def require_level(level: float) -> None:
    """Raise for a confidence level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"confidence level {level}", fix="use a number between 0 and 1, such as 0.95", option="level")


class MedianTable:
    """How often each distinct value occurs in each group, for the medians of many resamples of the same values.

    A resample is a weight per group, so its values are one product of the table with the weights: nothing is sorted
    again, and ranks, of which few are distinct, make a small table.
    """

    def __init__(self, values: FloatArray, groups: IntArray, size: int) -> None:
        from scipy.sparse import coo_array

        self.levels, level_of = np.unique(values, return_inverse=True)
        ones = np.ones(len(values), np.int32)
        self._groups = size
        self._counts = coo_array((ones, (level_of, groups)), shape=(len(self.levels), size)).tocsr()

    def resampled(self, weights: Any) -> FloatArray:
        """The median of each resample, for ``weights`` resamples × groups."""
        return np.concatenate([self.medians(self.counts(chunk)) for chunk in self.chunks(weights)])

    def chunks(self, weights: Any) -> Iterator[Any]:
        """The rows of ``weights``, as many at a time as keep their counts within a bounded memory."""
        step = max(1, _CELLS // max(1, len(self.levels), self._groups))
        return (weights[start : start + step] for start in range(0, len(weights), step))

    def counts(self, weights: Any) -> IntArray:
        """How often each level occurs in each resample: levels × resamples, for ``weights`` resamples × groups."""
        return np.asarray(self._counts @ np.ascontiguousarray(weights.T, np.int32), np.int64)

    def medians(self, counts: IntArray) -> FloatArray:
        """The median of each resample whose level counts are given (a column each); NaN where it is empty."""
        running = np.cumsum(counts, axis=0)
        total = running[-1]
        lower = (running < (total + 1) // 2).sum(axis=0)
        upper = (running < total // 2 + 1).sum(axis=0)
        last = len(self.levels) - 1
        middle = (self.levels[np.minimum(lower, last)] + self.levels[np.minimum(upper, last)]) / 2
        return np.where(total > 0, middle, np.nan)
