"""Bland–Altman analysis: how far two measurements of the same things differ, with intervals over images.

Bland and Altman, Statistical methods for assessing agreement between two methods of clinical measurement (Lancet 1986).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.aggregation import FloatArray, IntArray, require_level
from crosslens.statistics.bootstrap import Estimate

LIMIT = 1.96
"""Standard deviations between the mean difference and a limit: 95 % of normally distributed differences are inside."""

_PRIOR_IMAGES = 20
"""How many images the tails of the normal distribution count for, beside those that the differences show.

Chosen by simulation (``reproduce/interval_coverage.py``): a few images do not show how heavy the tails are.
"""

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
    first: Any, second: Any, clusters: IntArray | None = None, *, intervals: bool = True, level: float = 0.95
) -> BlandAltman:
    """Mean difference and limits of agreement of two columns, with intervals over ``clusters`` (images).

    The interval of the mean is Student's, that of a limit combines it with the interval of the standard deviation
    (MOVER, Zou 2013). There is none for a single image, or where all differences are equal.
    """
    require_level(level)
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"{first.shape} values against {second.shape}", expected="one of each per pair")
    differences = second - first
    if not np.isfinite(differences).all():
        row = int(np.argmax(~np.isfinite(differences)))
        raise InputError(f"the difference is {differences[row]}", row=row, expected="finite numbers")
    count, nan = len(differences), float("nan")
    mean = float(differences.mean()) if count else nan
    deviations = differences - mean
    sd = float(np.sqrt((deviations**2).sum() / (count - 1))) if count > 1 else nan
    groups = np.unique(np.arange(count) if clusters is None else np.asarray(clusters), return_inverse=True)[1]
    ends = dict.fromkeys((0, -1, 1), (nan, nan))
    if intervals and len(np.unique(groups)) > 1 and sd > 1e-12 * np.abs(differences).max():
        ends = {side: (mean + low, mean + high) for side, (low, high) in _limits(deviations, groups, level).items()}
    figures = {side: Estimate(mean + side * LIMIT * sd, *end) for side, end in ends.items()}
    return BlandAltman(figures[0], sd, figures[-1], figures[1], count)


def _limits(deviations: FloatArray, groups: IntArray, level: float) -> dict[int, tuple[float, float]]:
    """The intervals of the mean difference (0) and of the limits below (−1) and above (1) it, less the mean."""
    from scipy.special import chdtri, stdtrit

    count, sizes = len(deviations), np.bincount(groups)
    images = len(sizes)
    scale = images / (images - 1) / count**2
    squares = deviations**2
    moves, spreads = np.bincount(groups, deviations), np.bincount(groups, squares - squares.mean())
    of_mean, of_variance = scale * float(moves @ moves), scale * float(spreads @ spreads)
    variance = float(squares.mean()) + of_mean
    # Were the differences normal, and those of an image as alike as the variance of the mean says.
    captions = float(sizes @ sizes) / count
    alike = min(max((of_mean * count / variance - 1) / (captions - 1), 0.0), 1.0) if captions > 1 else 0.0
    normal = 2 * variance**2 / count * (1 + (captions - 1) * alike**2)
    shown = images / (images + _PRIOR_IMAGES)
    freedom = max(2 * variance**2 / (shown * of_variance + (1 - shown) * normal) - 1, 1.0)
    together = shown * scale * float(moves @ spreads) / max((of_mean * of_variance) ** 0.5, 1e-300)
    tails = (1 + level) / 2, (1 - level) / 2
    half = float(stdtrit(images - 1, tails[0])) * of_mean**0.5
    far = LIMIT * variance**0.5
    short, long = (far * abs(float(np.sqrt(freedom / chdtri(freedom, 1 - tail))) - 1) for tail in tails)
    limits = {0: (-half, half)}
    for side, (below, above) in ((-1, (long, short)), (1, (short, long))):
        low, high = (np.sqrt(half**2 + part**2 + 2 * side * together * half * part) for part in (below, above))
        limits[side] = (side * far - float(low), side * far + float(high))
    return limits
