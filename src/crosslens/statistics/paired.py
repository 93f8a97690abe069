"""Two samples of different sizes over the same images: before and after, with different captions of each image.

Where every query has its counterpart, :func:`paired_permutation` pairs queries. Here only images are the same: each has
any number of values before and after. The figure over all values before is compared with the figure over all values
after; images are resampled, and swapped, with all their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, Statistic, UsageError
from crosslens.statistics.aggregation import (
    FloatArray,
    IntArray,
    MedianTable,
    aggregate,
    floored,
    percentiles,
    require_statistic,
)
from crosslens.statistics.bootstrap import Bootstrap, valid_bounds, weighted_sums
from crosslens.statistics.bounded import (
    Bounds,
    Linearised,
    WeightedMean,
    bounded_interval,
    difference_bounds,
    linearise,
    stratified,
)
from crosslens.statistics.permutation import SLACK, PairedTest, swaps_of


@dataclass(frozen=True, eq=False)
class Samples:
    """Values before and after, each with the cluster (image) it belongs to; NaN is not counted.

    A figure may be a weighted sum over several: both directions of Rsum, or one part per fold. Those of one
    ``stratum`` share their clusters, which are drawn together.
    """

    before: FloatArray
    before_clusters: IntArray
    after: FloatArray
    after_clusters: IntArray
    stratum: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        for side in ("before", "after"):
            values = np.asarray(getattr(self, side), np.float64)
            clusters = np.asarray(getattr(self, f"{side}_clusters"))
            if len(values) != len(clusters):
                raise InputError(f"{len(values)} values for {len(clusters)} clusters", expected="one cluster per value")
            counted = ~np.isnan(values)
            object.__setattr__(self, side, values[counted])
            object.__setattr__(self, f"{side}_clusters", clusters[counted])


@dataclass(frozen=True)
class PairedChange:
    """The figures, after − before with its interval and p-value, and the same as a share of the figure before."""

    before: float
    after: float
    test: PairedTest
    relative: float
    relative_low: float
    relative_high: float


def paired_samples(
    samples: Samples | Sequence[Samples],
    *,
    statistic: Statistic = "mean",
    permutations: int = 10_000,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    bounds: Bounds | None = None,
) -> PairedChange:
    """How a figure changes from before to after, with images as the units of chance.

    The interval resamples images and takes both sides of each, or is a score interval for a mean whose values before
    and after lie within ``bounds``; the two-sided p-value swaps the sides of a random half of the images:
    p = (1 + permutations at least as extreme) / (1 + permutations). With one value of each query on both sides this
    is :func:`paired_permutation`, to the last digit.
    """
    require_statistic(statistic)
    if permutations < 0:
        fix = "use 0 (no p-value) or more; 10000 is usual"
        raise UsageError(f"{permutations} permutations", fix=fix, option="permutations")
    parts = [samples] if isinstance(samples, Samples) else list(samples)
    shared = _shared_clusters(parts)
    tables: list[_Table] = [
        _Means(part, shared[part.stratum]) if statistic == "mean" else _Medians(part, shared[part.stratum], statistic)
        for part in parts
    ]
    before, after = (float(sum(table.part.weight * table.figures[side] for table in tables)) for side in (0, 1))
    if bounds is not None and statistic == "mean" and resamples and _bounded(parts, bounds):
        intervals = _score_intervals(parts, shared, bounds, level)
    else:
        intervals = _intervals(tables, resamples, level, seed)
    low, high, relative_low, relative_high = intervals
    units = {table.part.stratum: table.size for table in tables}
    test = PairedTest(
        after - before,
        low,
        high,
        _p_value(tables, after - before, permutations, seed),
        n=sum(len(table.part.before) for table in tables),
        clusters=sum(units.values()),
        permutations=permutations,
        statistic=statistic,
        level=level,
    )
    return PairedChange(before, after, test, _ratio(before, after), relative_low, relative_high)


class _Means:
    """The means of one part under weights of its clusters."""

    def __init__(self, part: Samples, clusters: IntArray) -> None:
        self.part, self.size = part, len(clusters)
        self.figures = tuple(aggregate(values) for values in (part.before, part.after))
        groups = [np.searchsorted(clusters, own) for own in (part.before_clusters, part.after_clusters)]
        sides = zip(groups, (part.before, part.after), strict=True)
        self._sums = [np.asarray(np.bincount(group, values, self.size), np.float64) for group, values in sides]
        self._counts = [np.bincount(group, minlength=self.size).astype(np.float64) for group in groups]

    def resampled(self, weights: Any) -> tuple[FloatArray, FloatArray]:
        """The figures before and after, for every row of how often each cluster is drawn."""
        before, after = (
            _divided(_product(weights, sums), _product(weights, counts))
            for sums, counts in zip(self._sums, self._counts, strict=True)
        )
        return before, after

    def swapped(self, swaps: Any) -> FloatArray:
        """After − before, for every row of which clusters change sides."""
        sums = _product(swaps, self._sums[1] - self._sums[0])
        counts = _product(swaps, self._counts[1] - self._counts[0])
        before = _divided(self._sums[0].sum() + sums, self._counts[0].sum() + counts)
        after = _divided(self._sums[1].sum() - sums, self._counts[1].sum() - counts)
        return after - before


class _Medians:
    """The medians of one part under weights of its clusters, from one table of both sides' values."""

    def __init__(self, part: Samples, clusters: IntArray, statistic: Statistic) -> None:
        self.part, self.size, self._statistic = part, len(clusters), statistic
        self.figures = tuple(aggregate(values, statistic) for values in (part.before, part.after))
        before, after = (np.searchsorted(clusters, own) for own in (part.before_clusters, part.after_clusters))
        values = np.concatenate([part.before, part.after])
        self._table = MedianTable(values, np.concatenate([before, after + self.size]), 2 * self.size)

    def resampled(self, weights: Any) -> tuple[FloatArray, FloatArray]:
        """The figures before and after, for every row of how often each cluster is drawn."""
        nothing = np.zeros_like(weights)
        return self._medians(weights, nothing), self._medians(nothing, weights)

    def swapped(self, swaps: Any) -> FloatArray:
        """After − before, for every row of which clusters change sides."""
        stays = 1 - swaps
        return self._medians(swaps, stays) - self._medians(stays, swaps)

    def _medians(self, before: Any, after: Any) -> FloatArray:
        medians = self._table.resampled(np.hstack([before, after]))
        return np.asarray(floored(medians, self._statistic), np.float64)


_Table = _Means | _Medians


def _product(weights: Any, values: FloatArray) -> FloatArray:
    return weighted_sums(weights, values) if values.any() else np.zeros(len(weights))


def _divided(sums: FloatArray, counts: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / counts, np.float64)


def _shared_clusters(parts: Sequence[Samples]) -> dict[int, IntArray]:
    """Per stratum, the clusters that have a value anywhere."""
    known: dict[int, set[int]] = {}
    for part in parts:
        for clusters in (part.before_clusters, part.after_clusters):
            known.setdefault(part.stratum, set()).update(np.unique(clusters).tolist())
    return {stratum: np.array(sorted(known[stratum]), np.int64) for stratum in sorted(known)}


def _bounded(parts: Sequence[Samples], bounds: Bounds | None) -> bool:
    total = sum(part.weight for part in parts)
    sides = [side for part in parts for side in (part.before, part.after)]
    return bool(parts) and all(len(side) and valid_bounds(side * total, bounds) for side in sides)


def _score_intervals(
    parts: Sequence[Samples], shared: Mapping[int, IntArray], bounds: Bounds, level: float
) -> tuple[float, float, float, float]:
    """The interval of the difference, and the same about the relative change, scaled by its own standard error."""
    nan = float("nan")
    if any(len(clusters) < 2 for clusters in shared.values()):
        return nan, nan, nan, nan
    images = list(shared.values())
    before, after = (
        linearise(
            [WeightedMean(*side, part.weight, part.stratum) for part, side in zip(parts, sides, strict=True)], images
        )
        for sides in (
            [(part.before, part.before_clusters) for part in parts],
            [(part.after, part.after_clusters) for part in parts],
        )
    )
    low, high = bounded_interval(after.minus(before), difference_bounds(bounds), level)
    return low, high, *_relative_limits([(before, after)], low, high)


def relative_interval(
    befores: Sequence[FloatArray], afters: Sequence[FloatArray], clusters: IntArray, low: float, high: float
) -> tuple[float, float]:
    """The interval of (after − before) / before, mean over models, whose values are of the same queries.

    ``low`` and ``high`` are that of the mean difference. The limits are as far from the figure as those, times the
    ratio of the two standard errors; that of a ratio is by its linearisation, to which every image contributes its
    values before and after. NaN where ``low`` is, or where a figure before is 0.
    """
    if not np.isfinite(low):
        return float("nan"), float("nan")
    models = zip(befores, afters, strict=True)
    return _relative_limits(
        [(_over_images(before, clusters), _over_images(after, clusters)) for before, after in models], low, high
    )


def _over_images(values: FloatArray, clusters: IntArray) -> Linearised:
    return linearise(stratified(values, clusters, None))


def _relative_limits(models: Sequence[tuple[Linearised, Linearised]], low: float, high: float) -> tuple[float, float]:
    if any(not before.figure for before, _ in models):
        return float("nan"), float("nan")
    ratios = [after.figure / before.figure for before, after in models]
    shares = [
        (after.influence - ratio * before.influence) / before.figure
        for ratio, (before, after) in zip(ratios, models, strict=True)
    ]
    points = [after.influence - before.influence for before, after in models]
    share, spread = (float((np.mean(moves, axis=0) ** 2).sum()) ** 0.5 for moves in (shares, points))
    scale = share / spread if spread else float(np.mean([1 / before.figure for before, _ in models]))
    difference = float(np.mean([after.figure - before.figure for before, after in models]))
    middle = float(np.mean(ratios)) - 1
    return scale * (low - difference) + middle, scale * (high - difference) + middle


def _intervals(tables: Sequence[_Table], resamples: int, level: float, seed: int) -> tuple[float, float, float, float]:
    nan = float("nan")
    if not resamples or not tables or any(table.size < 2 for table in tables):
        return nan, nan, nan, nan
    drawn = Bootstrap(np.arange(0), resamples, seed)
    before, after = np.zeros(resamples), np.zeros(resamples)
    for table in tables:
        figures = [table.resampled(weights) for weights in drawn.weights(table.size, table.part.stratum)]
        before += table.part.weight * np.concatenate([first for first, _ in figures])
        after += table.part.weight * np.concatenate([second for _, second in figures])
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = after - before, after / before - 1
    (low, high), (relative_low, relative_high) = (
        percentiles(values, level) if np.isfinite(values).all() else (nan, nan) for values in replicates
    )
    return low, high, relative_low, relative_high


def _p_value(tables: Sequence[_Table], difference: float, permutations: int, seed: int) -> float:
    if not permutations or not tables or not np.isfinite(difference):
        return float("nan")
    chance, scale = np.zeros(permutations), 0.0
    for table in tables:
        part = table.part
        swaps = swaps_of(seed, part.stratum, permutations, table.size)
        chance += part.weight * np.concatenate([table.swapped(rows) for rows in swaps])
        scale += part.weight * float(np.mean(np.abs(np.concatenate([part.before, part.after]))))
    chance[np.isnan(chance)] = np.inf  # a side without any value is no evidence of a difference
    extreme = int((np.abs(chance) >= abs(difference) - SLACK * scale).sum())
    return (1 + extreme) / (1 + permutations)


def _ratio(before: float, after: float) -> float:
    return after / before - 1 if before and np.isfinite(before) else float("nan")
