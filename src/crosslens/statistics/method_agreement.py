"""Bland–Altman analysis: how far two measurements of the same things differ, with intervals that resample images.

Bland and Altman, Statistical methods for assessing agreement between two methods of clinical measurement (Lancet 1986).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.aggregation import FloatArray, IntArray, percentiles, require_level
from crosslens.statistics.bootstrap import Bootstrap, Estimate

LIMIT = 1.96
"""Standard deviations between the mean difference and a limit: 95 % of normally distributed differences are inside."""

SCALES = ("raw", "z", "rank", "range")
"""``raw``: as they are. ``z``: less their mean, in their standard deviations. ``rank``: the share of values below, ties
in the middle. ``range``: from 0, the lowest, to 1, the highest."""


@dataclass(frozen=True)
class BlandAltman:
    """The mean of second − first, its standard deviation (n − 1), and the limits of agreement, mean ± 1.96 sd."""

    mean: Estimate
    sd: float
    lower: Estimate
    upper: Estimate
    n: int


def rescaled(values: Any, scale: str) -> FloatArray:
    """Values on a scale on which two measurements in different units can be compared; a constant one is 0 there."""
    values = np.asarray(values, np.float64)
    if scale == "raw":
        return np.asarray(values, np.float64)
    if scale == "z":
        spread = values.std(ddof=1) if len(values) > 1 else 0.0
        return np.asarray((values - values.mean()) / spread if spread > 0 else 0 * values, np.float64)
    if scale == "range":
        width = np.ptp(values) if len(values) else 0.0
        return np.asarray((values - values.min()) / width if width > 0 else 0 * values, np.float64)
    if scale == "rank":
        _, levels, counts = np.unique(values, return_inverse=True, return_counts=True)
        below = np.cumsum(counts) - counts
        return np.asarray((below + counts / 2)[levels] / max(1, len(values)), np.float64)
    raise UnknownNameError("scale", scale, SCALES)


def bland_altman(
    first: Any,
    second: Any,
    clusters: IntArray | None = None,
    *,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> BlandAltman:
    """Mean difference and limits of agreement of two columns; intervals resample ``clusters`` (images)."""
    require_level(level)
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"{first.shape} values against {second.shape}", expected="one of each per pair")
    differences = second - first
    if not np.isfinite(differences).all():
        row = int(np.argmax(~np.isfinite(differences)))
        raise InputError(f"the difference is {differences[row]}", row=row, expected="finite numbers")
    groups = np.unique(np.arange(len(first)) if clusters is None else np.asarray(clusters), return_inverse=True)[1]
    size = int(groups.max(initial=-1)) + 1
    sums = np.stack([np.bincount(groups, differences**power, size).astype(np.float64) for power in range(3)])
    mean, sd = (float(figure[0]) for figure in _moments(np.ones((1, size)), sums))
    none = (float("nan"), float("nan"))
    ends = [none] * 3
    if resamples and size > 1:
        parts = [_moments(draws, sums) for draws in Bootstrap(groups, resamples, seed).weights(size)]
        means, spreads = (np.concatenate(column) for column in zip(*parts, strict=True))
        ends = [percentiles(means + side * LIMIT * spreads, level) for side in (0, -1, 1)]
    figures = [Estimate(mean + side * LIMIT * sd, *end) for side, end in zip((0, -1, 1), ends, strict=True)]
    return BlandAltman(figures[0], sd, figures[1], figures[2], len(first))


def _moments(weights: Any, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each resample, from the sums of the powers 0, 1 and 2 in every cluster."""
    count, total, squares = np.einsum("rc,pc->pr", np.asarray(weights, np.float64), sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        variance = (squares - count * mean**2) / (count - 1)
    return mean, np.sqrt(np.maximum(variance, 0))
