"""The figure that stands for many values: their mean, their median, or the floored median of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.core.metric_values import Statistic

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


def centre(values: FloatArray, statistic: Statistic = "mean", strata: IntArray | None = None) -> float:
    """The statistic of the values that are not NaN; with ``strata`` (folds), the mean of it over the strata."""
    require_statistic(statistic)
    figures = [_centre(values[part], statistic) for part in parts(values, strata)]
    return float(np.mean(figures)) if figures else float("nan")


def _centre(values: FloatArray, statistic: Statistic) -> float:
    if statistic == "mean":
        return float(np.mean(values))
    return float(rounded(np.median(values), statistic))


def rounded(medians: FloatArray | np.floating[Any], statistic: Statistic) -> Any:
    """Medians as they are, or floored: floor(median of 0-based ranks) + 1 is the floor of the median of ranks."""
    return np.floor(medians) if statistic == "floor-median" else medians


def parts(values: FloatArray, strata: IntArray | None) -> Iterator[IntArray]:
    """Where the valid values of each stratum stand; strata without any are left out."""
    valid = np.flatnonzero(~np.isnan(values))
    if strata is None:
        if len(valid):
            yield valid
        return
    for stratum in np.unique(strata[valid]):
        yield valid[strata[valid] == stratum]


def require_statistic(statistic: str) -> None:
    """Refuse a statistic that is not one of the three."""
    if statistic not in ("mean", "median", "floor-median"):
        raise UsageError(f"unknown statistic {statistic!r}", fix="use 'mean', 'median' or 'floor-median'")
