"""What a metric would be in a larger gallery: an extrapolation, from how easily relevant items are beaten.

A query is described by one number p, the chance that an item drawn at random is scored above its best relevant one; in
a gallery with m other items the number of items before it is then binomial. How −Φ⁻¹(p) is distributed over queries is
fitted to the ranks as a mixture of two normal distributions. Beyond the gallery this is an assumption: intervals
resample images, refit, and take turns with one, two and three components, so that they also say how much depends on the
shape.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core import UsageError
from crosslens.metrics.family import RSUM_CUTOFFS, MetricSpec
from crosslens.metrics.sub_galleries import SubGalleries
from crosslens.statistics import Bootstrap, Estimate
from crosslens.storage import FloatArray, IntArray

_NODES = np.linspace(-4.5, 9.0, 240)
_COMPONENTS = (2, 1, 3)
"""Of the figure itself first; the resamples take turns."""
_LEAST_SPREAD = 0.15
_RESAMPLES = 200
_FIRST_STEPS, _STEPS = 400, 60
_EXACT = 64
"""Items before the relevant one that are counted exactly; larger numbers share bins of a few percent."""
EXTRAPOLATED = ("Hit", "Fails", "MRR", "MedR", "MeanR", "Rsum")
"""Metrics of the best-ranked relevant item, which one number per query describes."""

Mixture = tuple[FloatArray, FloatArray, FloatArray]
"""Shares, means and spreads of the components."""


class LargerGalleries:
    """Metrics of a ranking in galleries with more items than it has."""

    def __init__(self, galleries: SubGalleries, clusters: IntArray, resamples: int = 1000, seed: int = 0) -> None:
        self.galleries = galleries
        self._resamples = min(resamples, _RESAMPLES)
        positions = galleries.positions
        distinct, group = np.unique(clusters[positions.rows], return_inverse=True)
        first = positions.earlier[positions.starts][positions.case_of] == 0
        cases, groups = positions.case_of[first], group[first]
        # Levels: numbers of items before the relevant one, large ones in bins, and of relevant items.
        before, relevant = positions.before, positions.relevant
        bins = np.where(before <= _EXACT, before, _EXACT + np.floor(25 * np.log(np.maximum(before, _EXACT) / _EXACT)))
        _, level_of = np.unique(np.stack([bins.astype(np.int64), relevant]), axis=1, return_inverse=True)
        level_of = level_of.ravel()
        numbers = np.bincount(level_of)
        before_of_level, relevant_of_level = (np.bincount(level_of, part) / numbers for part in (before, relevant))
        self._relevant = relevant_of_level.astype(np.int64)
        self._likelihood = _likelihood(before_of_level, galleries.gallery - relevant_of_level)
        self._counts = _table(cases, groups, positions.starts, positions.weight, level_of, len(numbers), len(distinct))
        self._draws = Bootstrap(np.arange(len(distinct)), self._resamples, seed)
        self._size = len(distinct)

    def estimate(self, spec: MetricSpec, size: int, level: float = 0.95) -> Estimate:
        """The figure in a gallery of ``size`` items with its interval; it continues the exact curve."""
        if spec.family not in EXTRAPOLATED or spec.options not in ((), ("floor",)):
            raise UsageError(
                f"{spec} is not extrapolated beyond the gallery",
                fix=f"use sizes up to the gallery's, or one of {', '.join(EXTRAPOLATED)}",
            )
        figures = np.array([_figure(spec, shares, relevant, size) for shares, relevant in self._fits])
        gallery = self.galleries.gallery
        # The fit continues the exact curve; a median, which is a whole rank, is left as it is.
        if spec.family != "MedR" and (fitted := _figure(spec, *self._fits[0], gallery)):
            figures = figures * (float(np.nanmean(self.galleries.values(spec, gallery))) / fitted)
        if len(figures) < 3:
            return Estimate(float(figures[0]), float("nan"), float("nan"))
        low, high = np.quantile(figures[1:], [(1 - level) / 2, (1 + level) / 2])
        return Estimate(float(figures[0]), float(min(low, figures[0])), float(max(high, figures[0])))

    @cached_property
    def _fits(self) -> list[tuple[FloatArray, FloatArray]]:
        """Shares of the nodes and of each number of relevant items: of all queries first, then of every resample."""
        whole = np.asarray(self._counts.sum(axis=1), np.float64).ravel()
        starts = {
            components: _fitted(self._likelihood, whole, _start(self._likelihood, whole, components), _FIRST_STEPS)
            for components in _COMPONENTS
        }
        fits = [(_shares(starts[_COMPONENTS[0]]), self._relevant_shares(whole))]
        number = 0
        for weights in self._draws.weights(self._size) if self._resamples and self._size > 1 else ():
            for counts in np.asarray(self._counts @ weights.T.astype(np.float64)).T:
                start = starts[_COMPONENTS[number % len(_COMPONENTS)]]
                fits.append((_shares(_fitted(self._likelihood, counts, start, _STEPS)), self._relevant_shares(counts)))
                number += 1
        return fits

    def _relevant_shares(self, counts: FloatArray) -> FloatArray:
        """The share of queries with each number of relevant items, from 0 on."""
        return np.asarray(np.bincount(self._relevant, counts) / counts.sum(), np.float64)


def _figure(spec: MetricSpec, shares: FloatArray, relevant: FloatArray, size: int) -> float:
    """A metric in a gallery of ``size``, from the fitted distribution."""
    from scipy.special import ndtr

    chance = ndtr(-_NODES)
    kinds = [(int(count), float(relevant[count])) for count in np.flatnonzero(relevant)]
    if spec.family == "MedR":
        # The smallest rank that at least half of all queries do not exceed.
        low, high = 0, size
        while high - low > 1:
            middle = (low + high) // 2
            within = sum(share * float(shares @ _within(middle, size - count, chance)) for count, share in kinds)
            low, high = (low, middle) if within >= 0.5 else (middle, high)
        return float(high)
    figure = 0.0
    for count, share in kinds:
        others = size - count
        if spec.family == "Hit":
            mean = float(shares @ _within(spec.k, others, chance))
        elif spec.family == "Fails":
            mean = float(1 - shares @ _within(1, others, chance))
        elif spec.family == "Rsum":
            mean = float(100 * sum(shares @ _within(k, others, chance) for k in RSUM_CUTOFFS))
        elif spec.family == "MeanR":
            mean = float(1 + others * (shares @ chance))
        else:
            # E[1 / (X + 1)] of a binomial X; with a cutoff, the chances of a binomial of one trial more, up to k.
            some = -np.expm1((others + 1) * np.log1p(-chance))
            if spec.cutoff is not None:
                some = some - (1 - _within(spec.k + 1, others + 1, chance))
            mean = float(shares @ (some / ((others + 1) * chance)))
        figure += share * mean
    return figure


def _within(k: int, others: int, chance: FloatArray) -> FloatArray:
    """The chance that fewer than k of the others come before."""
    from scipy.special import bdtr

    return np.asarray(bdtr(min(k - 1, others), others, chance), np.float64)


def _likelihood(before: FloatArray, others: FloatArray) -> FloatArray:
    """How likely each level is at each node, up to a factor of the level."""
    from scipy.special import log_ndtr

    logarithm = before[:, None] * log_ndtr(-_NODES) + (others - before)[:, None] * log_ndtr(_NODES)
    return np.asarray(np.exp(logarithm - logarithm.max(axis=1, keepdims=True)), np.float64)


def _table(
    cases: IntArray, groups: IntArray, starts: IntArray, weight: FloatArray, level_of: IntArray, levels: int, size: int
) -> Any:
    """Levels × clusters: how many queries, or shares of them."""
    from scipy.sparse import coo_array

    sizes = np.diff(np.append(starts, len(weight)))[cases]
    entries = np.repeat(starts[cases] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return coo_array((weight[entries], (level_of[entries], np.repeat(groups, sizes))), shape=(levels, size)).tocsr()


def _shares(mixture: Mixture) -> FloatArray:
    shares, means, spreads = mixture
    return np.asarray(shares @ _densities(means, spreads), np.float64)


def _densities(means: FloatArray, spreads: FloatArray) -> FloatArray:
    logarithm = -0.5 * ((_NODES - means[:, None]) / spreads[:, None]) ** 2
    density = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    return np.asarray(density / density.sum(axis=1, keepdims=True), np.float64)


def _start(likelihood: FloatArray, counts: FloatArray, components: int) -> Mixture:
    """Components around the mean of a single normal distribution."""
    single: Mixture = (np.ones(1), np.array([2.0]), np.array([1.5]))
    _, mean, spread = _fitted(likelihood, counts, single, _STEPS)
    means = mean + spread * (np.linspace(-1, 1, components) if components > 1 else np.zeros(1))
    return np.full(components, 1 / components), means, np.tile(0.8 * spread, components)


def _fitted(likelihood: FloatArray, counts: FloatArray, start: Mixture, steps: int) -> Mixture:
    """Expectation and maximisation from ``start`` on, so many times."""
    shares, means, spreads = start
    present = counts > 0
    likelihood, counts = likelihood[present], counts[present]
    for _ in range(steps):
        density = _densities(means, spreads)
        node = shares @ density
        mass = (counts / np.maximum(likelihood @ node, 1e-300)) @ likelihood * node
        split = shares[:, None] * density * (mass / np.maximum(node, 1e-300))
        total = np.maximum(split.sum(axis=1), 1e-9)
        means = split @ _NODES / total
        variance = (split * (_NODES - means[:, None]) ** 2).sum(axis=1) / total
        spreads, shares = np.sqrt(np.maximum(variance, _LEAST_SPREAD**2)), total / total.sum()
    return shares, means, spreads
