"""Is a difference more than chance? Paired tests over images and over repetitions, and corrections for many tests.

Where every query has its counterpart, :func:`paired_permutation` pairs queries. In :func:`paired_samples` only images
are the same: each has any number of values before and after, and is resampled, and swapped, with all its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from crosslens.core import FloatArray, InputError, IntArray, Statistic, UnknownNameError, UsageError, random_stream
from crosslens.statistics.bootstrap import (
    NO_INTERVAL,
    Bootstrap,
    Bounds,
    Estimate,
    Linearised,
    MedianTable,
    WeightedMean,
    aggregate,
    difference_bounds,
    floored,
    linearise,
    mean_interval,
    percentiles,
    require_level,
    require_statistic,
    stratified,
    valid_bounds,
    valid_rows,
    weighted_sums,
)

_SWAPS = 256
SLACK = 1e-12
"""Two differences count as equal within this share of the sum of all absolute ones: rounding must not decide."""
_LARGEST_EXPONENT = 700.0
"""Beyond, a ratio is larger than any number."""


@dataclass(frozen=True)
class PairedTest:
    """The difference first − second, its interval (paired bootstrap over images) and its two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    clusters: int
    permutations: int
    statistic: Statistic = "mean"
    level: float = 0.95

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high


def paired_permutation(
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray,
    *,
    statistic: Statistic = "mean",
    strata: IntArray | None = None,
    permutations: int = 10_000,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    bounds: Bounds | None = None,
) -> PairedTest:
    """Test whether two runs differ in ``statistic`` on the same queries.

    Under the null hypothesis it does not matter which run an image's values came from: each permutation swaps the two
    runs' values for a random half of the images. p = (1 + permutations at least as extreme) / (1 + permutations).
    Queries that lack a value in either run are left out of both. ``bounds`` are those of a run's values.
    """
    first, second, clusters = np.asarray(first, np.float64), np.asarray(second, np.float64), np.asarray(clusters)
    if not len(first) == len(second) == len(clusters):
        counts = f"{len(first)} and {len(second)} values for {len(clusters)} clusters"
        raise InputError(counts, expected="one value of each run per query")
    if permutations < 1:
        fix = "use 1 or more; 10000 is usual"
        raise UsageError(f"{permutations} permutations", fix=fix, option="permutations")
    either = np.isnan(first) | np.isnan(second)
    first, second = np.where(either, np.nan, first), np.where(either, np.nan, second)
    difference = aggregate(first, statistic, strata) - aggregate(second, statistic, strata)
    bootstrap = Bootstrap(clusters, resamples, seed, strata)
    limits, low, high = bounds and difference_bounds(bounds), float("nan"), float("nan")
    if statistic == "mean":
        low, high = bootstrap.estimate(first - second, level=level, bounds=limits).interval
    elif not np.isnan(bootstrap.estimate(first - second, level=level, method="percentile").low):
        drawn = [bootstrap.replicates(values, statistic) for values in (first, second)]
        low, high = percentiles(drawn[0] - drawn[1], level)
    rows = list(valid_rows(first, strata))
    samples = [
        Samples(second[part], clusters[part], first[part], clusters[part], number, 1 / len(rows))
        for number, part in enumerate(rows)
    ]
    return PairedTest(
        difference,
        low,
        high,
        _p_value(_tables(samples, statistic), difference, permutations, seed),
        n=int((~either).sum()),
        clusters=len(np.unique(clusters[~either])),
        permutations=permutations,
        statistic=statistic,
        level=level,
    )


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
    shared, tables = _shared_clusters(parts), _tables(parts, statistic)
    before, after = (float(sum(table.part.weight * table.figures[side] for table in tables)) for side in (0, 1))
    total = sum(part.weight for part in parts)
    sides = [side for part in parts for side in (part.before, part.after)]
    if statistic != "mean":
        intervals = _median_intervals(tables, resamples, level, seed)
    elif not sides or not all(map(len, sides)):
        intervals = (*NO_INTERVAL, *NO_INTERVAL)
    else:
        linear_before, linear_after = (
            linearise(
                [
                    WeightedMean(getattr(part, side), getattr(part, f"{side}_clusters"), part.weight, part.stratum)
                    for part in parts
                ],
                list(shared.values()),
            )
            for side in ("before", "after")
        )
        valid = bounds is not None and all(valid_bounds(side * total, bounds) for side in sides)
        limits = difference_bounds(bounds) if bounds is not None and valid else None
        draws = Bootstrap(np.arange(0), resamples, seed)
        ends = mean_interval(linear_after.minus(linear_before), limits, level, draws)
        # About the relative change the same, scaled by its own standard error.
        intervals = (*ends, *_relative_limits([(linear_before, linear_after)], *ends))
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
    relative = after / before - 1 if before and np.isfinite(before) else float("nan")
    return PairedChange(before, after, test, relative, relative_low, relative_high)


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
        before, after = (
            self._floored(self._table.resampled(np.hstack(both))) for both in ((weights, nothing), (nothing, weights))
        )
        return before, after

    def swapped(self, swaps: Any) -> FloatArray:
        """After − before, for every row of which clusters change sides."""
        everything = self._table.counts(np.ones((1, 2 * self.size), np.uint8))
        differences = []
        for chunk in self._table.chunks(swaps):
            counts = self._table.counts(np.hstack([chunk, 1 - chunk]))
            after, before = (self._floored(self._table.medians(part)) for part in (counts, everything - counts))
            differences.append(after - before)
        return np.concatenate(differences)

    def _floored(self, medians: FloatArray) -> FloatArray:
        return np.asarray(floored(medians, self._statistic), np.float64)


_Table = _Means | _Medians


def _product(weights: Any, values: FloatArray) -> FloatArray:
    return weighted_sums(weights, values) if values.any() else np.zeros(len(weights))


def _divided(sums: FloatArray, counts: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / counts, np.float64)


def _tables(parts: Sequence[Samples], statistic: Statistic) -> list[_Table]:
    shared = _shared_clusters(parts)
    return [
        _Means(part, shared[part.stratum]) if statistic == "mean" else _Medians(part, shared[part.stratum], statistic)
        for part in parts
    ]


def _shared_clusters(parts: Sequence[Samples]) -> dict[int, IntArray]:
    """Per stratum, the clusters that have a value anywhere, in ascending order."""
    return {
        stratum: np.unique(
            np.concatenate(
                [
                    clusters
                    for part in parts
                    if part.stratum == stratum
                    for clusters in (part.before_clusters, part.after_clusters)
                ]
            )
        )
        for stratum in sorted({part.stratum for part in parts})
    }


def relative_interval(
    befores: Sequence[FloatArray], afters: Sequence[FloatArray], clusters: IntArray, low: float, high: float
) -> tuple[float, float]:
    """The interval of (after − before) / before, mean over models, whose values are of the same queries.

    ``low`` and ``high`` are that of the mean difference. On the scale of log (after ÷ before), the limits are as many
    standard errors from the figure as those, so that nothing is below −100 %; the standard error of a ratio is by its
    linearisation, to which every image contributes its values before and after. Where the figure after is 0, only the
    upper limit is a question, and is that of the difference as a share of the figure before. NaN where ``low`` is,
    where a figure before is 0, and where one is negative.
    """
    models = zip(befores, afters, strict=True)
    return _relative_limits(
        [(_over_images(before, clusters), _over_images(after, clusters)) for before, after in models], low, high
    )


def _over_images(values: FloatArray, clusters: IntArray) -> Linearised:
    return linearise(stratified(values, clusters, None))


def _relative_limits(models: Sequence[tuple[Linearised, Linearised]], low: float, high: float) -> tuple[float, float]:
    if not np.isfinite(low) or any(before.figure <= 0 or after.figure < 0 for before, after in models):
        return NO_INTERVAL
    ratios = [after.figure / before.figure for before, after in models]
    shares = [
        (after.influence - ratio * before.influence) / before.figure
        for ratio, (before, after) in zip(ratios, models, strict=True)
    ]
    points = [after.influence - before.influence for before, after in models]
    share, spread = (float((np.mean(moves, axis=0) ** 2).sum()) ** 0.5 for moves in (shares, points))
    difference = float(np.mean([after.figure - before.figure for before, after in models]))
    middle, of_before = float(np.mean(ratios)), float(np.mean([1 / before.figure for before, _ in models]))
    if middle == 0:
        return -1.0, of_before * (high - difference) - 1
    scale = (share / spread if spread else of_before) / middle
    below, above = scale * (low - difference), min(scale * (high - difference), _LARGEST_EXPONENT)
    return middle * math.exp(below) - 1, middle * math.exp(above) - 1


def _median_intervals(
    tables: Sequence[_Table], resamples: int, level: float, seed: int
) -> tuple[float, float, float, float]:
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
        random, swapped = random_stream(seed, "swaps", part.stratum), []
        for start in range(0, permutations, _SWAPS):  # a bit of each cluster: 1 where it changes sides
            rows = min(_SWAPS, permutations - start)
            drawn = np.frombuffer(random.bytes(rows * ((table.size + 7) // 8)), np.uint8).reshape(rows, -1)
            swapped.append(table.swapped(np.unpackbits(drawn, axis=1, count=table.size)))
        chance += part.weight * np.concatenate(swapped)
        scale += part.weight * float(np.mean(np.abs(np.concatenate([part.before, part.after]))))
    chance[np.isnan(chance)] = np.inf  # a side without any value is no evidence of a difference
    extreme = int((np.abs(chance) >= abs(difference) - SLACK * scale).sum())
    return (1 + extreme) / (1 + permutations)


_MOST_FLIPPED = 16
"""Up to so many repetitions, all ways to flip signs are counted; beyond, a sample of them."""


@dataclass(frozen=True)
class PairedRepetitions:
    """The difference first − second over paired repetitions, its t interval, and two p-values, both two-sided.

    ``p_value`` is of the paired t test, which takes the differences to be normally distributed; ``sign_flip_p`` needs
    no such assumption, and cannot be below ``smallest_p``. NaN where the differences do not determine them.
    """

    difference: float
    low: float
    high: float
    p_value: float
    sign_flip_p: float
    n: int
    level: float = 0.95

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that flipping the signs of so many differences can give."""
        return 2.0 ** (1 - self.n) if self.n else 1.0


def mean_over_repetitions(values: Sequence[float] | FloatArray, level: float = 0.95) -> Estimate:
    """The mean and its t interval; no interval for a single value, or where all values are equal but for rounding."""
    require_level(level)
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return Estimate(float("nan"))
    mean, half = float(numbers.mean()), float("nan")
    if len(numbers) > 1 and np.ptp(numbers) > SLACK * np.abs(numbers).sum():
        from scipy.special import stdtrit

        half = float(stdtrit(len(numbers) - 1, (1 + level) / 2)) * _standard_error(numbers)
    return Estimate(mean, mean - half, mean + half)


def paired_repetitions(
    first: Sequence[float] | FloatArray, second: Sequence[float] | FloatArray, level: float = 0.95
) -> PairedRepetitions:
    """Compare two series, repetition by repetition (the same seeds in the same order)."""
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} values", expected="one value of each per repetition")
    ours, theirs = np.asarray(first, np.float64), np.asarray(second, np.float64)
    differences = ours - theirs
    if len(differences) and np.ptp(differences) <= SLACK * (np.abs(ours) + np.abs(theirs)).sum():
        differences[:] = differences.mean()  # equal but for the rounding of the values, which may be far larger
    figure = mean_over_repetitions(differences, level)
    p_value = float("nan")
    if not np.isnan(figure.low):
        from scipy.special import stdtr

        t = figure.mean / _standard_error(differences)
        p_value = 2 * float(stdtr(len(differences) - 1, -abs(t)))
    # The share of all ways to flip the signs of the differences whose mean is at least as far from 0.
    flipped, count, exact = float("nan"), len(differences), ours - theirs
    if count > _MOST_FLIPPED:
        flipped = paired_permutation(ours, theirs, np.arange(count), resamples=0).p_value
    elif count:
        sums = np.zeros(1)
        for difference in exact.tolist():
            sums = np.concatenate([sums + difference, sums - difference])
        slack = SLACK * float(np.abs(exact).sum())
        flipped = float(np.mean(np.abs(sums) >= abs(float(exact.sum())) - slack))
    return PairedRepetitions(figure.mean, figure.low, figure.high, p_value, flipped, count, level)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def correct(p_values: Sequence[float] | FloatArray, correction: str = "holm") -> FloatArray:
    """Adjust by the name of a correction: ``holm``, ``bh`` or ``none``. NaN stays NaN."""
    if correction not in CORRECTIONS:
        raise UnknownNameError("correction", correction, CORRECTIONS)
    result = np.array(p_values, np.float64)
    tested = np.flatnonzero(~np.isnan(result))
    wrong = tested[(result[tested] < 0) | (result[tested] > 1)]
    if len(wrong):
        raise InputError(f"p-value {result[wrong[0]]}", row=int(wrong[0]), expected="a number from 0 to 1")
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(CORRECTIONS[correction](result[order]), 1)
    return result


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Holm's step-down adjustment: the chance of any false finding stays below the level."""
    return correct(p_values, "holm")


CORRECTIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "holm": lambda ascending: np.maximum.accumulate(ascending * np.arange(len(ascending), 0, -1)),
        "bh": lambda ascending: np.minimum.accumulate(
            (ascending * len(ascending) / np.arange(1, len(ascending) + 1))[::-1]
        )[::-1],
        "none": lambda ascending: ascending,
    }
)
"""Name → how ascending p-values are adjusted."""
CORRECTION_WORDS = MappingProxyType(
    {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}
)
"""How a sentence about p-values says it."""


def significance_sentence(test: str, permutations: int, correction: str, tests: int) -> str:
    """How p-values were computed and corrected, and the smallest that can come out of it."""
    number = "" if correction == "none" else f" for {tests:,} test{'s' if tests != 1 else ''}"
    least = floor_of_p(permutations, correction, tests)
    return (
        f"p: {test}, two-sided, {CORRECTION_WORDS[correction]}{number}; {permutations:,} permutations give no p below "
        f"{least:.2g}."
    )


def floor_of_p(permutations: int, correction: str, tests: int) -> float:
    """The smallest p-value that so many permutations can give; Holm multiplies the smallest by the number of tests."""
    return (tests if correction == "holm" else 1) / (permutations + 1)
