"""The density of similarities: a Gaussian kernel on a fine histogram, so that millions of pairs take no longer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_BINS, _POINTS, _REACH = 4_096, 256, 5.0
_PEAK = 0.01
"""The bandwidth where all values are equal, as a share of their size."""


class Density(NamedTuple):
    """Where the density was taken, and its value there; the area under it is 1."""

    at: Array
    density: Array


def kernel_density(values: Array) -> Density | None:
    """The density of the values (NaN: not counted), with Scott's bandwidth σ · n^(−1/5); None where there are none."""
    from scipy.ndimage import gaussian_filter1d

    counted = np.asarray(values, np.float64)
    counted = counted[~np.isnan(counted)]
    if not len(counted):
        return None
    spread = float(counted.std(ddof=1)) if len(counted) > 1 else 0.0
    bandwidth = spread * len(counted) ** -0.2 or _PEAK * max(1.0, abs(float(counted[0])))
    low, high = counted.min() - _REACH * bandwidth, counted.max() + _REACH * bandwidth
    counts, edges = np.histogram(counted, _BINS, (low, high))
    width = (high - low) / _BINS
    smooth = gaussian_filter1d(counts / (len(counted) * width), bandwidth / width, mode="constant", truncate=_REACH)
    middles = (edges[:-1] + edges[1:]) / 2
    at = np.linspace(middles[0], middles[-1], _POINTS)
    return Density(at, np.interp(at, middles, smooth))
