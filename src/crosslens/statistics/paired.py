"""Is a difference more than chance? Paired tests over images and over repetitions, and corrections for many tests.

Where every query has its counterpart, :func:`paired_permutation` pairs queries. In :func:`paired_samples` only images
are the same: each has any number of values before and after, and is resampled, and swapped, with all its values.

A p-value counts random swaps that give at least the difference observed. Where hardly any of them does, p is estimated
by importance sampling: swaps are drawn so that large differences are frequent, and each counts by how much rarer it is
among plain swaps. Otherwise no p could be below 1 / (permutations + 1), which a correction for a few hundred tests
turns into "not significant", whatever the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError
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
from crosslens.storage import BoolArray, FloatArray, IntArray, random_stream
from crosslens.values import Statistic

_SWAPS = 256
_FEW, WEIGHTED = 10, 4000
"""Where fewer plain permutations (and less than a tenth) are as extreme, p is estimated from so many weighted ones."""
_TILT = 4.5
"""The mean of weighted permutations, in standard deviations of plain ones: p from 0.001 to 1e-8 is then precise."""
_PLAIN = 0.25
"""The share of weighted permutations that are drawn as plain ones are."""
_TIE_BREAK = 1e-3
"""Medians of ranks are whole numbers: most permutations give one of few differences, among which the number of values
above the common median decides. Otherwise a difference of one rank, which nearly all may give, would have p near 1."""
_SAME = 1e-9
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
    evidence: FloatArray | None = field(default=None, repr=False, compare=False, metadata={"json": False})
    """What the p-value depends on; see :func:`same_tests`."""

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
    runs' values for a random half of the images. p = (1 + permutations at least as extreme) / (1 + permutations), or
    its estimate from weighted permutations where fewer than 10 are as extreme. Queries that lack a value in either run
    are left out of both. ``bounds`` are those of a run's values.
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
        replicates = [bootstrap.replicates(values, statistic) for values in (first, second)]
        low, high = percentiles(replicates[0] - replicates[1], level)
    rows = list(valid_rows(first, strata))
    samples = [
        Samples(second[part], clusters[part], first[part], clusters[part], number, 1 / len(rows))
        for number, part in enumerate(rows)
    ]
    tables = _tables(samples, statistic)
    return PairedTest(
        difference,
        low,
        high,
        _p_value(tables, difference, permutations, seed),
        n=int((~either).sum()),
        clusters=len(np.unique(clusters[~either])),
        permutations=permutations,
        statistic=statistic,
        level=level,
        evidence=_evidence(tables),
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
            valid = ~np.isnan(values)
            object.__setattr__(self, side, values[valid])
            object.__setattr__(self, f"{side}_clusters", clusters[valid])


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
    and after lie within ``bounds``; the two-sided p-value swaps the sides of a random half of the images, and is
    estimated as that of :func:`paired_permutation`: with one value of each query on both sides it is the same, to the
    last digit.
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
        evidence=_evidence(tables),
    )
    relative = after / before - 1 if before and np.isfinite(before) else float("nan")
    return PairedChange(before, after, test, relative, relative_low, relative_high)


class _Means:
    """The means of one part under weights of its clusters."""

    def __init__(self, part: Samples, clusters: IntArray) -> None:
        self.part, self.size = part, len(clusters)
        self.figures = tuple(aggregate(values) for values in (part.before, part.after))
        groups = [np.searchsorted(clusters, ids) for ids in (part.before_clusters, part.after_clusters)]
        sides = zip(groups, (part.before, part.after), strict=True)
        self._sums = [np.asarray(np.bincount(group, values, self.size), np.float64) for group, values in sides]
        self._counts = [np.bincount(group, minlength=self.size).astype(np.float64) for group in groups]
        # What each cluster adds to the difference, and takes from it when it changes sides: to the first order, where
        # the sides have different numbers of values.
        sums, counts = self._sums[1] - self._sums[0], self._counts[1] - self._counts[0]
        total = float(sum(map(np.sum, self._counts)))
        pooled = float(sum(map(np.sum, self._sums))) / total if total else 0.0
        self.shares = part.weight * (sums - pooled * counts) * 2 / max(total, 1.0)
        self.moves = (sums != 0) | (counts != 0)

    @property
    def statistic(self) -> float:
        """What is tested."""
        return self.figures[1] - self.figures[0]

    @property
    def evidence(self) -> FloatArray:
        """The test depends on the clusters' shares of the difference, and on nothing else."""
        return self.shares

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
        before, after = (np.searchsorted(clusters, ids) for ids in (part.before_clusters, part.after_clusters))
        values = np.concatenate([part.before, part.after])
        self._table = MedianTable(values, np.concatenate([before, after + self.size]), 2 * self.size)
        # The median moves with the number of values on either side of the median of all.
        above = np.sign(values - np.median(values)) if len(values) else values
        sides = ((after, above[len(before) :]), (before, above[: len(before)]))
        after_above, before_above = (np.bincount(rows, signs, self.size) for rows, signs in sides)
        self._shares = _TIE_BREAK * (after_above - before_above) / max(len(values), 1)
        self.shares = part.weight * self._shares
        self.moves = np.ones(self.size, bool)
        order = np.lexsort([values, np.repeat([0, 1], [len(before), len(after)]), np.concatenate([before, after])])
        self.evidence = np.asarray(values[order], np.float64)

    def resampled(self, weights: Any) -> tuple[FloatArray, FloatArray]:
        """The figures before and after, for every row of how often each cluster is drawn."""
        nothing = np.zeros_like(weights)
        before, after = (
            self._floored(self._table.resampled(np.hstack(sides))) for sides in ((weights, nothing), (nothing, weights))
        )
        return before, after

    @property
    def statistic(self) -> float:
        """What is tested: the difference of the medians and, between equal ones, how many values are above them."""
        return self.figures[1] - self.figures[0] + float(self._shares.sum())

    def swapped(self, swaps: Any) -> FloatArray:
        """The statistic, for every row of which clusters change sides."""
        everything = self._table.counts(np.ones((1, 2 * self.size), np.uint8))
        differences = []
        for chunk in self._table.chunks(swaps):
            counts = self._table.counts(np.hstack([chunk, 1 - chunk]))
            after, before = (self._floored(self._table.medians(part)) for part in (counts, everything - counts))
            differences.append(after - before + self._shares.sum() - 2 * weighted_sums(chunk, self._shares))
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
    draws = Bootstrap(np.arange(0), resamples, seed)
    before, after = np.zeros(resamples), np.zeros(resamples)
    for table in tables:
        figures = [table.resampled(weights) for weights in draws.weights(table.size, table.part.stratum)]
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
            bits = np.frombuffer(random.bytes(rows * ((table.size + 7) // 8)), np.uint8).reshape(rows, -1)
            swapped.append(table.swapped(np.unpackbits(bits, axis=1, count=table.size)))
        chance += part.weight * np.concatenate(swapped)
        scale += part.weight * float(np.mean(np.abs(np.concatenate([part.before, part.after]))))
    observed = sum(table.part.weight * table.statistic for table in tables) if difference else 0.0
    least = abs(observed) - SLACK * scale
    extreme = int(_at_least(chance, least).sum())
    if extreme < min(_FEW, permutations / 10):
        return _rare_p_value(tables, least, seed)
    return (1 + extreme) / (1 + permutations)


def _at_least(differences: FloatArray, least: float) -> BoolArray:
    """Which are as extreme; a side without any value (NaN) is no evidence of a difference, and counts."""
    return np.isnan(differences) | (np.abs(differences) >= least)


def _rare_p_value(tables: Sequence[_Table], least: float, seed: int) -> float:
    """p by importance sampling, with the weight of the data themselves in the place of the +1 (Harrison 2012).

    Each cluster takes the side on which its share of the difference is positive with a chance above one half, which
    depends on how large the share is and not on which side it was observed: so the p-value is valid, for any number of
    permutations. By symmetry, one in two of them could have all signs turned round, and the weight assumes so. A part
    of them is plain, which keeps weights small where a difference does not follow from the shares.
    """
    plain = random_stream(seed, "plain swaps").random(WEIGHTED) < _PLAIN
    shares: dict[int, FloatArray] = {}
    for table in tables:
        shares[table.part.stratum] = shares.get(table.part.stratum, 0.0) + table.shares
    chances = _tilted(np.concatenate(list(shares.values())))  # in 65,536ths
    odds = np.arctanh(chances / 32768.0 - 1)
    chance, tilts, log_weight, observed, start = np.zeros(WEIGHTED), np.zeros(WEIGHTED), 0.0, 0.0, 0
    for stratum, share in shares.items():
        part = slice(start, start := start + len(share))
        members = [table for table in tables if table.part.stratum == stratum]
        moves = np.flatnonzero(np.any([table.moves for table in members], axis=0))
        own_odds, own_chances = odds[part][moves], chances[part][moves].astype(np.uint16)
        positive = share[moves] > 0
        observed += float(np.where(positive, own_odds, -own_odds).sum())
        log_weight += float(np.log(np.cosh(own_odds)).sum())
        random = random_stream(seed, "weighted swaps", stratum)
        for first in range(0, WEIGHTED, _SWAPS):
            rows = slice(first, min(first + _SWAPS, WEIGHTED))
            size = rows.stop - rows.start
            draws = np.frombuffer(random.bytes(2 * size * len(moves)), "<u2").reshape(size, -1) < np.where(
                plain[rows, None], np.uint16(32768), own_chances
            )
            swaps = np.zeros((size, len(share)), np.uint8)
            swaps[:, moves] = draws != positive
            tilts[rows] += weighted_sums(draws, 2 * own_odds) - own_odds.sum()
            for table in members:
                chance[rows] += table.part.weight * table.swapped(swaps)
    extremes = np.append(observed, tilts[_at_least(chance, least)])
    # How much likelier each is than among plain permutations, as a logarithm: the mean of both tilts.
    likelier = np.logaddexp(extremes, -extremes) - np.log(2) - log_weight
    weights = np.exp(-np.logaddexp(np.log(_PLAIN), np.log1p(-_PLAIN) + likelier))
    return float(np.clip(weights.sum() / (1 + WEIGHTED), np.finfo(np.float64).tiny, 1.0))


def _tilted(shares: FloatArray) -> IntArray:
    """The chance of each cluster's positive side, in 65,536ths: the larger its share, the likelier."""
    largest = float(np.abs(shares).max(initial=0.0))
    sizes = np.abs(shares) / (largest or 1.0)
    target = min(_TILT * float(np.sqrt((sizes**2).sum())), 0.9 * float(sizes.sum()))
    low, high = 0.0, 20.0
    for _ in range(60):  # the mean grows with the factor: halve the interval that it is in
        middle = (low + high) / 2
        low, high = (middle, high) if (sizes * np.tanh(middle * sizes)).sum() < target else (low, middle)
    chances = np.rint(32768 * (1 + np.tanh(low * sizes)))
    return np.asarray(np.clip(chances, 32768, 65535), np.int64)


def _evidence(tables: Sequence[_Table]) -> FloatArray:
    return np.concatenate([table.evidence for table in tables]) if tables else np.zeros(0)


def same_tests(tests: Sequence[PairedTest] | Sequence[PairedRepetitions]) -> list[int]:
    """For each test of the same two runs, the position of the first that is the same: itself, or one before it.

    Two tests of means are the same where every image (or repetition) adds the same to both differences, up to a factor:
    every permutation then has the same rank in both. Hit@1 and Fails are, and, with one relevant item per query, Hit@1
    and mAP@R. Which tests are the same is the same in every permutation, so it may be looked at before correcting.
    """
    scaled = []
    for test in tests:
        evidence = np.zeros(0) if test.evidence is None else test.evidence
        largest = np.abs(evidence).max(initial=0.0)
        scaled.append(evidence / largest if test.statistic == "mean" and largest else evidence)

    def same(test: int, other: int) -> bool:
        if tests[test].statistic != tests[other].statistic or not 1 < len(scaled[test]) == len(scaled[other]):
            return False
        signs = (1, -1) if tests[test].statistic == "mean" else (1,)
        return any(np.allclose(scaled[test], sign * scaled[other], rtol=0, atol=_SAME) for sign in signs)

    firsts: list[int] = []
    for position in range(len(tests)):
        firsts.append(next((first for first in dict.fromkeys(firsts) if same(position, first)), position))
    return firsts


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
    evidence: FloatArray | None = field(default=None, repr=False, compare=False, metadata={"json": False})
    """The differences; see :func:`same_tests`."""
    statistic = "mean"

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
    return PairedRepetitions(figure.mean, figure.low, figure.high, p_value, flipped, count, level, exact)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def correct(
    p_values: Sequence[float] | FloatArray, correction: str = "holm", same: Sequence[int] | None = None
) -> FloatArray:
    """Adjust by the name of a correction: ``holm``, ``bh`` or ``none``. NaN stays NaN.

    ``same`` are the positions that :func:`same_tests` gives: equal tests are counted once.
    """
    if correction not in CORRECTIONS:
        raise UnknownNameError("correction", correction, CORRECTIONS)
    result = np.array(p_values, np.float64)
    firsts = np.arange(len(result)) if same is None else np.asarray(same, np.int64)
    tested = np.flatnonzero(~np.isnan(result) & (firsts == np.arange(len(result))))
    wrong = tested[(result[tested] < 0) | (result[tested] > 1)]
    if len(wrong):
        raise InputError(f"p-value {result[wrong[0]]}", row=int(wrong[0]), expected="a number from 0 to 1")
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(CORRECTIONS[correction](result[order]), 1)
    return result[firsts]


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
    """How p-values were computed and corrected."""
    return f"p: {test}, two-sided, {corrected_words(correction, tests)}; {permutation_words(permutations)}."


def corrected_words(correction: str, tests: int) -> str:
    """``corrected by Holm for 8 tests``."""
    number = "" if correction == "none" else f" for {tests:,} test{'s' if tests != 1 else ''}"
    return f"{CORRECTION_WORDS[correction]}{number}"


def permutation_words(permutations: int) -> str:
    """How many permutations, plain and weighted."""
    return f"{permutations:,} permutations, and {WEIGHTED:,} weighted ones where fewer than {_FEW} are as extreme"


def floor_of_p(images: int, correction: str, tests: int) -> float:
    """The smallest p-value that so many images can give: only two of all ways to swap them are the most extreme.

    Holm multiplies the smallest by the number of tests.
    """
    return min(1.0, (tests if correction == "holm" else 1) * 2.0 ** (1 - min(images, 1000)))


POWER = 0.8
"""How often a difference that is called detectable is found."""


def detectable_difference(
    changes: FloatArray, clusters: IntArray, *, level: float = 0.95, tests: int = 1, span: float | None = None
) -> float:
    """The smallest mean change that a paired test of so many clusters (images) would find in 80 % of datasets.

    The changes are values of one run − those of the other; p-values are corrected for so many ``tests``. ``span``
    is the largest change that a query can have, such as 1 for shares: a mean of d takes at least d / span queries that
    change, so that their variance cannot be below that, however few differed here. NaN without changes, infinite where
    no p-value of so many clusters can be small enough.
    """
    valid = ~np.isnan(changes)
    groups, inverse = np.unique(clusters[valid], return_inverse=True)
    size, images = int(valid.sum()), len(groups)
    alpha = (1 - level) / tests
    if not size or (span is None and not np.any(changes[valid])):
        return float("nan")
    if floor_of_p(images, "none", 1) >= alpha:
        return float("inf")
    from scipy.special import ndtri, stdtrit

    factor = float(stdtrit(images - 1, 1 - alpha / 2) + ndtri(POWER))
    moved = np.bincount(inverse, changes[valid] - changes[valid].mean())
    error = float(np.sqrt(images / (images - 1) * np.sum(moved**2))) / size
    return max(factor * error, 0.0 if span is None else factor**2 * span / size)
