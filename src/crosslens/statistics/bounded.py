"""Intervals for means of bounded values, right at the edges too: score intervals on the effective number of images.

Resampling says nothing where nothing varies: 100 hits out of 100 give an interval of no width. A share has a known
distribution instead. Values of one image are not independent, so the binomial (for a difference, the trinomial)
distribution is taken at the number of independent images that would give the variance that is seen between images
(Korn and Graubard 1998). Few misses say little about that variance: it is then drawn towards the largest one that
values of their spread can have, all values of an image alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslens.statistics.aggregation import FloatArray, IntArray, valid_rows

Bounds = tuple[float, float]

_EDGE = 1e-12
"""What rounding may take from a figure at its bound."""
_PRIOR = 0.75
"""What the largest variance counts for, where that of m images with misses counts for m ** 1.5.

Chosen by simulation (``reproduce/interval_coverage.py``): less covers below 93 % where misses come in clusters, more
covers above 97 % where they do not.
"""
_SHORTFALL = 1.4
"""The most that may lie outside an interval, as a share of what should: at 95 %, never more than 7 %."""
_NORMAL = 1e5
"""From so many hits and misses on, a share is normally distributed as far as anyone can see."""


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """A mean that enters a figure with a weight; means of one stratum share their clusters (images)."""

    values: FloatArray
    clusters: IntArray
    weight: float = 1.0
    stratum: int = 0


@dataclass(frozen=True, eq=False)
class Linearised:
    """A figure as a sum over images: how far each moves it (``influence``), and its weight (sums to 1).

    ``spread`` is the variance of a single value.
    """

    figure: float
    influence: FloatArray
    weights: FloatArray
    strata: int
    spread: float

    @property
    def variance(self) -> float:
        images = len(self.influence)
        return float((self.influence**2).sum()) * images / max(images - self.strata, 1)

    def minus(self, other: Linearised) -> Linearised:
        """The difference of two figures over the same images."""
        weights = (self.weights + other.weights) / 2
        figure, influence = self.figure - other.figure, self.influence - other.influence
        return Linearised(figure, influence, weights, self.strata, self.spread + other.spread)


def difference_bounds(bounds: Bounds) -> Bounds:
    """The bounds of a difference of two values that lie within ``bounds``."""
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


def stratified(values: FloatArray, clusters: IntArray, strata: IntArray | None) -> list[WeightedMean]:
    """The values that are not NaN, a mean per stratum, each with the same weight."""
    rows = list(valid_rows(values, strata))
    return [WeightedMean(values[part], clusters[part], 1 / len(rows), number) for number, part in enumerate(rows)]


def linearise(means: Sequence[WeightedMean], images: Sequence[IntArray] | None = None) -> Linearised:
    """The figure that weighted means add up to, image by image.

    ``images`` names the clusters of each stratum, where there are more of them than have a value.
    """
    strata = sorted({mean.stratum for mean in means})
    known = images or [np.unique(np.concatenate([m.clusters for m in means if m.stratum == s])) for s in strata]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in known])])
    influence, weights = np.zeros(starts[-1]), np.zeros(starts[-1])
    figure, spread, total = 0.0, 0.0, sum(mean.weight for mean in means)
    for mean in means:
        stratum = strata.index(mean.stratum)
        rows = starts[stratum] + np.searchsorted(known[stratum], mean.clusters)
        own = float(np.mean(mean.values))
        share = mean.weight / len(mean.values)
        influence += share * np.bincount(rows, mean.values - own, starts[-1])
        weights += share / total * np.bincount(rows, minlength=starts[-1])
        figure += mean.weight * own
        spread += mean.weight * total * float(np.var(mean.values))
    return Linearised(figure, influence, weights, len(strata), spread)


def bounded_interval(sample: Linearised, bounds: Bounds, level: float) -> tuple[float, float]:
    """The interval of a mean whose values lie within ``bounds``; those of a difference start below 0."""
    low, high = bounds
    if low < 0:
        scale = max(-low, high)
        limits = _difference_limits(_scaled(sample, 0, scale), level)
        return scale * limits[0], scale * limits[1]
    limits = _share_limits(_scaled(sample, low, high - low), level)
    return low + (high - low) * limits[0], low + (high - low) * limits[1]


def _scaled(sample: Linearised, start: float, scale: float) -> Linearised:
    influence, spread = sample.influence / scale, sample.spread / scale**2
    return Linearised((sample.figure - start) / scale, influence, sample.weights, sample.strata, spread)


def _share_limits(sample: Linearised, level: float) -> tuple[float, float]:
    share = min(max(sample.figure, 0.0), 1.0)
    parts = sample.influence + share * sample.weights
    misses = sample.weights - parts if share >= 0.5 else parts
    size = _effective_images(sample, share * (1 - share), np.clip(misses, 0, None), level, share=True)
    if min(share, 1 - share) * size > _NORMAL:
        return _normal_limits(share, share * (1 - share) / size, level)
    return _binomial_limits(share * size, size, level)


def _difference_limits(sample: Linearised, level: float) -> tuple[float, float]:
    parts = sample.influence + sample.figure * sample.weights
    up, down = float(np.clip(parts, 0, None).sum()), float(np.clip(-parts, 0, None).sum())
    variance = up + down - sample.figure**2
    size = _effective_images(sample, variance, np.abs(parts), level, share=False)
    if (up + down) * size > _NORMAL:
        return _normal_limits(sample.figure, variance / size, level)
    return _trinomial_limits(up * size, down * size, size, level)


def _normal_limits(figure: float, variance: float, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    half = float(ndtri((1 + level) / 2)) * variance**0.5
    return figure - half, figure + half


def _effective_images(
    sample: Linearised, outcome_variance: float, events: FloatArray, level: float, *, share: bool
) -> float:
    """How many independent outcomes of that variance (hit or miss) give the variance of the figure.

    ``events`` is what the images contribute to the rarer outcome: their number, after Kish, says how much is known
    of the variance. ``share``: of a mean, not of a difference.
    """
    from scipy.special import ndtri, stdtrit

    unlike = float((sample.weights**2).sum())  # 1 / the number of images, were they all of one size
    if outcome_variance <= 1e-15:
        return 1 / unlike
    kinds = np.unique(np.round(events / sample.weights.max(), 12))
    if np.ptp(sample.weights) < 1e-12 and set(kinds) <= {0.0, 1.0}:
        return 1 / unlike  # independent outcomes: nothing is estimated
    informative = float(events.sum() ** 2 / (events**2).sum())
    # Values that are all the same, or of which few are not perfect, say little about how bad one can be; a difference
    # of two values has no such edge.
    seen = informative / len(events) if share else 1.0
    known = min(seen, 1.0) if sample.spread > 1e-24 else 0.0
    spread = known * min(sample.spread, outcome_variance) + (1 - known) * outcome_variance
    prior = _PRIOR / (informative**1.5 + _PRIOR)
    variance = (1 - prior) * sample.variance + prior * spread * unlike
    tail = (1 + level) / 2
    freedom = max(len(events) - sample.strata, 1)
    return max(float(outcome_variance / variance * (ndtri(tail) / stdtrit(freedom, tail)) ** 2), 1.0)


def _binomial_limits(hits: float, size: float, level: float) -> tuple[float, float]:
    """Limits of a share that leave out as close to 1 − ``level`` as counts allow, and never 1.4 times as much.

    ``hits`` and ``size`` need not be whole. A share is too high for so few hits where the mid-P tail is at most half of
    what may be left out, and the whole tail at most 1.4 times that. Where not even a perfect score would be too good,
    nothing can lie on the other side, and this side gets both halves.
    """
    share = min(max(hits / size, 0.0), 1.0)
    low, high = 1 - _highest_share(size - hits, size, level), _highest_share(hits, size, level)
    return min(low, share), max(high, share)


def _highest_share(hits: float, size: float, level: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import betainc

    if hits >= size:
        return 1.0

    def excess(share: float, outside: float) -> float:
        at_most = float(betainc(size - hits, hits + 1, 1 - share))
        below = float(betainc(size - hits + 1, hits, 1 - share)) if hits > 0 else 0.0
        return max((at_most + below) / 2, at_most / _SHORTFALL) - outside

    half, both = (float(brentq(excess, 0, 1, args=(outside,))) for outside in ((1 - level) / 2, 1 - level))
    least_perfect = float((_SHORTFALL * (1 - level) / 2) ** (1 / size))  # the lower limit of hits throughout
    return min(half, max(both, least_perfect))


def _trinomial_limits(up: float, down: float, size: float, level: float) -> tuple[float, float]:
    """Tango's (1998) score limits for the difference of paired shares, of which ``up`` and ``down`` disagree."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    critical = float(ndtri((1 + level) / 2))

    def score(difference: float) -> float:
        middle = (2 * size - up + down) * difference - up - down
        product = 8 * size * down * difference * (1 - difference)
        falls = (np.sqrt(max(middle**2 + product, 0.0)) - middle) / (4 * size)
        variance = size * (2 * falls + difference * (1 - difference))
        return float((up - down - size * difference) / np.sqrt(max(variance, 1e-300)))

    figure = (up - down) / size
    low = -1.0 if figure <= _EDGE - 1 else brentq(lambda value: score(value) - critical, -1, figure)
    high = 1.0 if figure >= 1 - _EDGE else brentq(lambda value: score(value) + critical, figure, 1)
    return float(low), float(high)
