"""A run in galleries of any size: its figures, with intervals over images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosslens.core import Ranking, Run, UsageError, split_name
from crosslens.metrics import LargerGalleries, MetricSpec, SubGalleries, Ties, family_of
from crosslens.pipeline.curves.results import GalleryPoint
from crosslens.statistics import Bootstrap, Estimate

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_HALF = 1e-12
"""Rounding must not decide whether a share is one half."""
IntArray = np.ndarray[Any, np.dtype[np.int64]]


class RankedRun:
    """One direction of one run, in galleries of any size."""

    def __init__(self, run: Run, direction: str, resamples: int, level: float, seed: int) -> None:
        ranking = ranking_of(run, direction)
        self.query_ids = ranking.query_ids
        self.clusters: IntArray = clusters_of(run, direction)
        self.galleries = SubGalleries(ranking, ties_of(run))
        self._draws = Bootstrap(self.clusters, resamples, seed)
        self._level, self._arguments = level, (resamples, seed)
        self._larger: LargerGalleries | None = None

    def point(self, spec: MetricSpec, size: int) -> GalleryPoint:
        """The figure at a size, exact or extrapolated."""
        if size > self.galleries.gallery:
            if self._larger is None:
                self._larger = LargerGalleries(self.galleries, self.clusters, *self._arguments)
            figure = self._larger.estimate(spec, size, self._level)
            return GalleryPoint(size, figure.mean, figure.low, figure.high, extrapolated=True)
        figure = self._median(spec, size) if spec.family == "MedR" else self._mean(spec, size)
        return GalleryPoint(size, figure.mean, figure.low, figure.high)

    def figure(self, spec: MetricSpec, size: int) -> float:
        """The exact figure alone."""
        if spec.family == "MedR":
            return self._median(spec, size, interval=False).mean
        return float(np.nanmean(self._values(spec, size)))

    def values(self, spec: MetricSpec, size: int) -> FloatArray:
        """The expected value of every query."""
        return self.galleries.values(spec, size)

    def _values(self, spec: MetricSpec, size: int) -> FloatArray:
        return self.galleries.pair_ranks(size) if spec.has("all") else self.values(spec, size)

    def _mean(self, spec: MetricSpec, size: int) -> Estimate:
        rows = self.galleries.positions.rows if spec.has("all") else None
        bounds = family_of(spec).bounds()
        return self._draws.estimate(self._values(spec, size), level=self._level, rows=rows, bounds=bounds)

    def _median(self, spec: MetricSpec, size: int, *, interval: bool = True) -> Estimate:
        """The median over queries and sub-galleries together: where the expected Hit@k passes one half.

        Its interval is where the interval of Hit@k contains one half (Woodruff's).
        """
        each = spec.has("all")
        rows = self.galleries.positions.rows if each else None

        def share(k: int) -> float:
            return float(np.nanmean(self.galleries.within(k, size, each=each)))

        def ends(k: int) -> Estimate:
            values = np.clip(self.galleries.within(k, size, each=each), 0, 1)
            return self._draws.estimate(values, level=self._level, rows=rows, bounds=(0, 1))

        lower = _first(size, lambda k: share(k) >= 0.5 - _HALF)
        upper = _first(size, lambda k: share(k) > 0.5 + _HALF, lower)
        middle = (lower + upper) / 2
        if not interval or not np.isfinite(ends(lower).low):
            return Estimate(_floored(middle, spec), float("nan"), float("nan"))
        low = _first(lower, lambda k: ends(k).high >= 0.5)
        high = _first(size, lambda k: ends(k).low >= 0.5, upper)
        return Estimate(_floored(middle, spec), float(low), float(high))


def _floored(median: float, spec: MetricSpec) -> float:
    return float(np.floor(median)) if spec.has("floor") else median


def _first(last: int, holds: Callable[[int], bool], start: int = 1) -> int:
    """The smallest k from ``start`` to ``last`` from which on it holds; ``last`` where it never does."""
    low, high = start, max(start, last)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def ranking_of(run: Run, direction: str) -> Ranking:
    """The ranking of a direction; raises where the run has none, or has one for each fold."""
    if direction not in run.rankings:
        kept = ", ".join(run.rankings) or "none"
        raise UsageError(f"{run.name} has no ranking of {direction}", fix=f"choose one that it has: {kept}")
    if run.provenance.get("options", {}).get("folds", 1) != 1:
        raise UsageError(f"{run.name} was ranked within folds", fix="evaluate it without folds for a curve")
    return run.rankings[direction]


def clusters_of(run: Run, direction: str) -> IntArray:
    """The image of every query of a direction."""
    clusters = [values.clusters for name, values in run.values.items() if split_name(name)[0] == direction]
    return clusters[0] if clusters else np.arange(len(run.rankings[direction].query_ids))


def ties_of(run: Run) -> Ties:
    """The tie mode that the run was evaluated with."""
    ties: Ties = run.provenance.get("options", {}).get("ties", "stable")
    return ties
