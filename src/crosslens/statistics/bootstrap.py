"""Figures with intervals over images: the captions of an image belong together, as they are not independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crosslens.core import UnknownNameError, UsageError, argument
from crosslens.storage import FloatArray, IntArray, random_stream
from crosslens.values import Statistic

_CELLS = 1 << 21
"""Counts that a median table works on at once."""


def aggregate(values: FloatArray, statistic: Statistic = "mean", strata: IntArray | None = None) -> float:
    """The statistic of the values that are not NaN; with ``strata`` (folds), the mean of it over the strata."""
    require_statistic(statistic)
    aggregator = np.mean if statistic == "mean" else np.median
    figures = [floored(aggregator(values[rows]), statistic) for rows in valid_rows(values, strata)]
    return float(np.mean(figures)) if figures else float("nan")


def floored(figures: FloatArray | np.floating[Any], statistic: Statistic) -> Any:
    """Figures as they are, or floored: floor(median of 0-based ranks) + 1 is the floor of the median of ranks."""
    return np.floor(figures) if statistic == "floor-median" else figures


def valid_rows(values: FloatArray, strata: IntArray | None) -> Iterator[IntArray]:
    """The rows of each stratum whose values are not NaN; strata without any are left out."""
    valid = np.flatnonzero(~np.isnan(values))
    if strata is None:
        if len(valid):
            yield valid
        return
    for stratum in np.unique(strata[valid]):
        yield valid[strata[valid] == stratum]


def require_statistic(statistic: str) -> None:
    """Raise for a statistic that is not one of the three."""
    if statistic not in ("mean", "median", "floor-median"):
        raise UsageError(f"unknown statistic {statistic!r}", fix="use 'mean', 'median' or 'floor-median'")


def percentiles(replicates: FloatArray, level: float) -> tuple[float, float]:
    """The bounds between which the middle ``level`` of the replicates lie."""
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def require_level(level: float) -> None:
    """Raise for a confidence level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"confidence level {level}", fix="use a number between 0 and 1, such as 0.95", option="level")


class MedianTable:
    """How often each distinct value occurs in each group, for the medians of many resamples of the same values.

    A resample is a weight per group, so its values are one product of the table with the weights: nothing is sorted
    again, and ranks, of which few are distinct, make a small table.
    """

    def __init__(self, values: FloatArray, groups: IntArray, size: int) -> None:
        from scipy.sparse import coo_array

        self.levels, level_of = np.unique(values, return_inverse=True)
        ones = np.ones(len(values), np.int32)
        self._groups = size
        self._counts = coo_array((ones, (level_of, groups)), shape=(len(self.levels), size)).tocsr()

    def resampled(self, weights: Any) -> FloatArray:
        """The median of each resample, for ``weights`` resamples × groups."""
        return np.concatenate([self.medians(self.counts(chunk)) for chunk in self.chunks(weights)])

    def chunks(self, weights: Any) -> Iterator[Any]:
        """The rows of ``weights``, as many at a time as keep their counts within a bounded memory."""
        step = max(1, _CELLS // max(1, len(self.levels), self._groups))
        return (weights[start : start + step] for start in range(0, len(weights), step))

    def counts(self, weights: Any) -> IntArray:
        """How often each level occurs in each resample: levels × resamples, for ``weights`` resamples × groups."""
        return np.asarray(self._counts @ np.ascontiguousarray(weights.T, np.int32), np.int64)

    def medians(self, counts: IntArray) -> FloatArray:
        """The median of each resample whose level counts are given (a column each); NaN where it is empty."""
        running = np.cumsum(counts, axis=0)
        total = running[-1]
        lower = (running < (total + 1) // 2).sum(axis=0)
        upper = (running < total // 2 + 1).sum(axis=0)
        last = len(self.levels) - 1
        middle = (self.levels[np.minimum(lower, last)] + self.levels[np.minimum(upper, last)]) / 2
        return np.where(total > 0, middle, np.nan)


Bounds = tuple[float, float]
"""The lowest and the highest value; infinite where there is none."""
NO_INTERVAL: Bounds = (float("nan"), float("nan"))

_EDGE = 1e-12
"""What rounding may take from a figure at its bound."""
_PRIOR = 0.75
"""What the largest variance counts for, where that of m images with misses counts for m ** 1.5.

Chosen by simulation (``reproduce/interval_coverage.py``): less covers below 93 % where misses come in clusters, more
covers above 97 % where they do not.
"""
_GRADED = 1e-9
"""Values whose variance is by more than this share below the largest of their mean are not all hits or misses."""
_SHORTFALL = 1.4
"""The most that may lie outside an interval, as a share of what should: at 95 %, never more than 7 %."""
_NORMAL = 1e5
"""From so many hits and misses on, a share is normally distributed as far as anyone can see."""
FEWEST_CLUSTERS = 10
"""Below this many images the mean of values without a range has no interval.

Chosen by simulation: of five to eight images no method that was tried contains the mean of log-normal values (σ 1) in
more than 91 % of samples.
"""
_LEAST_ERROR = 1 / 3
"""The least standard error of a resample, as a share of the sample's: one that misses the few values that differ would
have none."""


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

    ``sizes`` is the number of images of each stratum, which follow each other; ``spread`` is the variance of a single
    value.
    """

    figure: float
    influence: FloatArray
    weights: FloatArray
    sizes: tuple[int, ...]
    spread: float

    @property
    def strata(self) -> int:
        return len(self.sizes)

    @property
    def variance(self) -> float:
        images = len(self.influence)
        return float((self.influence**2).sum()) * images / max(images - self.strata, 1)

    def minus(self, other: Linearised) -> Linearised:
        """The difference of two figures over the same images."""
        weights = (self.weights + other.weights) / 2
        figure, influence = self.figure - other.figure, self.influence - other.influence
        return Linearised(figure, influence, weights, self.sizes, self.spread + other.spread)


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
    groups = images or [np.unique(np.concatenate([m.clusters for m in means if m.stratum == s])) for s in strata]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in groups])])
    influence, weights = np.zeros(starts[-1]), np.zeros(starts[-1])
    figure, spread, total = 0.0, 0.0, sum(mean.weight for mean in means)
    for mean in means:
        stratum = strata.index(mean.stratum)
        rows = starts[stratum] + np.searchsorted(groups[stratum], mean.clusters)
        average = float(np.mean(mean.values))
        share = mean.weight / len(mean.values)
        influence += share * np.bincount(rows, mean.values - average, starts[-1])
        weights += share / total * np.bincount(rows, minlength=starts[-1])
        figure += mean.weight * average
        spread += mean.weight * total * float(np.var(mean.values))
    return Linearised(figure, influence, weights, tuple(map(len, groups)), spread)


def mean_interval(sample: Linearised, bounds: Bounds | None, level: float, draws: Bootstrap) -> Bounds:
    """The interval of a mean (or a sum of means, or a difference) by the method that its values allow.

    Values with a lowest and a highest value (hits, grades) have a score interval, see :func:`bounded_interval`; any
    other mean (ranks, counts, DCG) the studentised bootstrap, see :func:`studentised_intervals`, cut off at the end
    that its values have. There is none without resamples, or where the images do not determine one.
    """
    if not draws.resamples or len(sample.influence) < 2 or min(sample.sizes) < 2:
        return NO_INTERVAL
    if bounds is not None and np.isfinite(bounds).all():
        return bounded_interval(sample, bounds, level)
    ((low, high),) = studentised_intervals([sample], draws, level)
    start, end = bounds or (-np.inf, np.inf)
    return max(low, start), min(high, end)


def studentised_intervals(samples: Sequence[Linearised], draws: Bootstrap, level: float) -> list[Bounds]:
    """Bootstrap-t: how many of its own standard errors the mean of a resample is off, at the tails, of either side.

    The tails are at least those of Student's t, as a sample without long tails may be of a population that has them,
    and a little farther out than ``level`` where images are few. There is no interval below :data:`FEWEST_CLUSTERS`
    images, or where nothing varies. All samples are of the same images, which are drawn once.
    """
    from scipy.special import stdtrit

    sizes = samples[0].sizes
    images, freedom = sum(sizes), max(sum(sizes) - len(sizes), 1)
    if images < FEWEST_CLUSTERS:
        return [NO_INTERVAL] * len(samples)
    offs, squares = np.zeros((2, len(samples), draws.resamples))
    for stratum, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        moves = np.stack([sample.influence[end - size : end] for sample in samples])
        shares = np.stack([sample.weights[end - size : end] for sample in samples])
        shares = shares / shares.sum(axis=1, keepdims=True)
        of_weights: list[FloatArray] = []
        if np.ptp(shares) > _EDGE / size:  # else each resample has the same weight
            of_weights = [shares, moves * shares, shares**2]
        columns = np.concatenate([moves, moves**2, *of_weights])
        # einsum, not a matrix product: BLAS adds in an order that depends on the number of threads.
        sums = [np.einsum("rc,kc->kr", weights, columns) for weights in draws.weights(size, stratum)]
        total, square, *rest = np.split(np.concatenate(sums, axis=1), 2 + len(of_weights))
        weight, product, own_square = rest or (1.0, total / size, 1 / size)
        off = total / weight
        offs += off
        squares += (square - 2 * off * product + off**2 * own_square) / weight**2
    errors = np.sqrt(np.maximum(squares * images / freedom, 0))
    outside = (1 - level) / 2 * (images - 2) / (images + 2)
    student = float(stdtrit(freedom, (1 + level) / 2))
    intervals = []
    for sample, own_offs, own_errors in zip(samples, offs, errors, strict=True):
        error = sample.variance**0.5
        if error <= _EDGE * abs(sample.figure):
            intervals.append(NO_INTERVAL)
            continue
        below, above = np.quantile(own_offs / np.maximum(own_errors, _LEAST_ERROR * error), [outside, 1 - outside])
        low, high = max(float(above), student) * error, min(float(below), -student) * error
        intervals.append((sample.figure - low, sample.figure - high))
    return intervals


def bounded_interval(sample: Linearised, bounds: Bounds, level: float) -> tuple[float, float]:
    """The interval of a mean whose values lie within ``bounds``; those of a difference start below 0.

    Resampling says nothing where nothing varies: 100 hits out of 100 give an interval of no width. A share has a known
    distribution instead. Values of one image are not independent, so the binomial (for a difference, the trinomial)
    distribution is taken at the number of independent images that would give the variance that is seen between images
    (Korn and Graubard 1998). Few misses say little about that variance: it is then drawn towards the largest one that
    values of their spread can have, all values of an image alike. Grades that are far from both ends say nothing about
    images that fail altogether, see :func:`_limit_with_unseen`.
    """
    is_share = bounds[0] >= 0
    start, scale = (bounds[0], bounds[1] - bounds[0]) if is_share else (0, max(-bounds[0], bounds[1]))
    influence, spread = sample.influence / scale, sample.spread / scale**2
    sample = Linearised((sample.figure - start) / scale, influence, sample.weights, sample.sizes, spread)
    figure = min(max(sample.figure, 0.0), 1.0) if is_share else sample.figure
    parts = sample.influence + figure * sample.weights
    up, down = float(np.clip(parts, 0, None).sum()), float(np.clip(-parts, 0, None).sum())
    if is_share:
        variance, rarer = figure * (1 - figure), min(figure, 1 - figure)
        events = np.clip(sample.weights - parts if figure >= 0.5 else parts, 0, None)
    else:
        variance, rarer, events = up + down - figure**2, up + down, np.abs(parts)
    size = _effective_images(sample, variance, events, level, share=is_share)
    if rarer * size > _NORMAL:
        from scipy.special import ndtri

        half = float(ndtri((1 + level) / 2)) * (variance / size) ** 0.5
        low, high = figure - half, figure + half
    elif is_share:
        low, high = _binomial_limits(figure * size, size, level)
    else:
        low, high = _trinomial_limits(up * size, down * size, size, level)
    if is_share and sample.spread < (1 - _GRADED) * variance:
        low, high = (
            min(low, _limit_with_unseen(sample, 0.0, level)),
            max(high, _limit_with_unseen(sample, 1.0, level)),
        )
    return start + scale * low, start + scale * high


def _limit_with_unseen(sample: Linearised, end: float, level: float) -> float:
    """The limit on the side of ``end`` (0 or 1) of a sample to which an image with that value has been added.

    Twenty grades of about 0.9 do not exclude that one image in ten fails altogether: the limit of n grades v is about
    v · (1 − 3/n), as the rule of three has it. The image that is added has the weight of an average one where none of
    the sample is near that end, or the sample is skewed towards it, and fades where the sample shows what is there.
    """
    from scipy.special import stdtrit

    distance = end - sample.figure
    images, unit = len(sample.weights), float((sample.weights**2).sum())
    if abs(distance) < _EDGE:
        return end
    toward = np.sign(distance) * sample.influence
    at_end = float((np.clip(toward, 0, None) ** 2).sum()) / (distance * unit) ** 2  # in images that are at the end
    squares = float((toward**2).sum())
    skew = float((toward**3).sum()) / (squares * abs(distance) * unit) if squares > 0 else 0.0
    narrow = 1 - min(sample.spread / (sample.figure * (1 - sample.figure)), 1.0)  # 0: every value is at one of the ends
    added = unit * narrow * min(max(1 - at_end, skew, 0.0), 1.0)
    figure = (sample.figure + added * end) / (1 + added)
    moves = (sample.influence + (sample.figure - figure) * sample.weights) / (1 + added)
    square = float((moves**2).sum()) + (added * (end - figure) / (1 + added)) ** 2
    freedom = images + 1 - sample.strata
    error = (square * (images + 1) / freedom) ** 0.5
    limit = figure + np.sign(distance) * float(stdtrit(freedom, (1 + level) / 2)) * error
    return float(min(max(limit, 0.0), 1.0))


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
    coverage = informative / len(events) if share else 1.0
    certainty = min(coverage, 1.0) if sample.spread > 1e-24 else 0.0
    spread = certainty * min(sample.spread, outcome_variance) + (1 - certainty) * outcome_variance
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

    half, whole = (float(brentq(excess, 0, 1, args=(outside,))) for outside in ((1 - level) / 2, 1 - level))
    least_perfect = float((_SHORTFALL * (1 - level) / 2) ** (1 / size))  # the lower limit of hits throughout
    return min(half, max(whole, least_perfect))


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


Method = Literal["percentile", "bca"]
Weights = np.ndarray[Any, np.dtype[np.uint8]]

_ROWS = 64
"""Resamples drawn at a time; part of what makes a seed's draw what it is."""
_KEPT_BYTES = 1 << 28


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; the interval is NaN where the data do not determine one."""

    mean: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def cells(self) -> tuple[float | None, ...]:
        """The figure and the ends of its interval, as tables hold them: None where there is none."""
        return tuple(end if np.isfinite(end) else None for end in (self.mean, self.low, self.high))


class Bootstrap:
    """Resamples of clusters, drawn once and applied to any number of metrics.

    ``clusters`` names the image of every query, ``strata`` (folds) the part it belongs to: resampling happens within
    strata and the figure is the mean over them. A draw depends on the seed, the stratum and the number of clusters
    that have a value, and refers to clusters in ascending order: not on the order of queries, nor on threads.
    """

    def __init__(
        self, clusters: IntArray, resamples: int = 1000, seed: int = 0, strata: IntArray | None = None
    ) -> None:
        if resamples < 0:
            fix = "use 0 (no interval) or more; 1000 is usual"
            raise UsageError(f"{resamples} resamples", fix=fix, option="resamples")
        self.clusters = np.asarray(clusters)
        self.strata = None if strata is None else np.asarray(strata)
        self.resamples = resamples
        self.seed = seed
        self._drawn: dict[tuple[int, int], list[Weights]] = {}

    def estimate(
        self,
        values: FloatArray,
        statistic: Statistic = "mean",
        *,
        level: float = 0.95,
        rows: IntArray | None = None,
        bounds: Bounds | None = None,
        method: Method | None = None,
    ) -> Estimate:
        """The figure of ``values`` (NaN: not counted) with its interval.

        There is one value per query, or any number with ``rows``, the query of each. A mean gets the interval of
        :func:`mean_interval`, of values that lie within ``bounds``; a median the percentiles of its resamples. There is
        none where all values are equal and their range is not known: resampling cannot tell then.
        """
        require_level(level)
        values = np.asarray(values, np.float64)
        clusters, strata = self._labels(rows)
        figure = aggregate(values, statistic, strata)
        members = list(valid_rows(values, strata))
        if not self.resamples or not members or any(len(np.unique(clusters[part])) < 2 for part in members):
            return Estimate(figure)
        if method is None and statistic == "mean":
            sample = linearise(stratified(values, clusters, strata))
            return Estimate(figure, *mean_interval(sample, valid_bounds(values, bounds), level, self))
        replicates = self.replicates(values, statistic, rows)
        if method in (None, "percentile"):
            return Estimate(figure, *percentiles(replicates, level))
        if method != "bca":
            raise UnknownNameError("interval method", method, ("percentile", "bca"))
        if statistic != "mean":
            fix = f"use {argument('method', 'percentile')} for medians"
            raise UsageError(f"a BCa interval of a {statistic}", fix=fix, option="method")
        moves = []  # how far the figure moves when each cluster is left out in turn (the jackknife)
        for part in members:
            _, groups = np.unique(clusters[part], return_inverse=True)
            sums, counts = np.bincount(groups, values[part]), np.bincount(groups)
            without = (sums.sum() - sums) / (counts.sum() - counts)
            moves.append((without.mean() - without) / len(members))
        low, high = np.quantile(replicates, _bca_tails(level, replicates, figure, np.concatenate(moves)))
        return Estimate(figure, float(low), float(high))

    def estimate_columns(self, values: FloatArray, *, level: float = 0.95) -> list[Estimate]:
        """The mean of each column of ``values`` (queries × columns) with its interval, as :meth:`estimate` gives it.

        Columns that have a value for the same queries share every draw: a million queries are drawn once, not once
        per column.
        """
        require_level(level)
        if self.strata is not None:
            raise UsageError("columns in strata", fix="estimate every column by itself")
        values = np.asarray(values, np.float64)
        estimates: dict[int, Estimate] = {}
        alike: dict[bytes, list[int]] = {}
        for column in range(values.shape[1]):
            alike.setdefault(np.packbits(np.isnan(values[:, column])).tobytes(), []).append(column)
        for columns in alike.values():
            valid = ~np.isnan(values[:, columns[0]])
            clusters, intervals = self.clusters[valid], [NO_INTERVAL] * len(columns)
            if self.resamples and len(np.unique(clusters)) > 1:
                samples = [linearise([WeightedMean(values[valid, column], clusters)]) for column in columns]
                intervals = studentised_intervals(samples, self, level)
            for column, interval in zip(columns, intervals, strict=True):
                estimates[column] = Estimate(aggregate(values[:, column]), *interval)
        return [estimates[column] for column in range(values.shape[1])]

    def replicates(self, values: FloatArray, statistic: Statistic = "mean", rows: IntArray | None = None) -> FloatArray:
        """The figure of every resample, in the order drawn; clusters without a value are not part of the sample."""
        require_statistic(statistic)
        clusters, strata = self._labels(rows)
        per_stratum = []
        for number, part in enumerate(valid_rows(values, strata)):
            distinct, groups = np.unique(clusters[part], return_inverse=True)
            draws = self.weights(len(distinct), number)
            if statistic == "mean":
                sums = np.bincount(groups, values[part], len(distinct))
                counts = np.bincount(groups, minlength=len(distinct)).astype(np.float64)
                means = [weighted_sums(weights, sums) / weighted_sums(weights, counts) for weights in draws]
                per_stratum.append(np.concatenate(means))
            else:
                table = MedianTable(values[part], groups, len(distinct))
                medians = np.concatenate([table.resampled(weights) for weights in draws])
                per_stratum.append(floored(medians, statistic))
        if not per_stratum:
            return np.full(self.resamples, np.nan)
        return np.asarray(np.mean(per_stratum, axis=0), np.float64)

    def weights(self, size: int, stratum: int = 0) -> Iterator[Weights]:
        """How often each of ``size`` clusters is drawn: resamples × clusters, a few resamples at a time."""
        if size * self.resamples > _KEPT_BYTES:
            return self._draw(stratum, size)
        if (stratum, size) not in self._drawn:
            self._drawn[stratum, size] = list(self._draw(stratum, size))
        return iter(self._drawn[stratum, size])

    def _labels(self, rows: IntArray | None) -> tuple[IntArray, IntArray | None]:
        if rows is None:
            return self.clusters, self.strata
        return self.clusters[rows], None if self.strata is None else self.strata[rows]

    def _draw(self, stratum: int, size: int) -> Iterator[Weights]:
        random = random_stream(self.seed, "bootstrap", stratum)
        for start in range(0, self.resamples, _ROWS):
            rows = random.integers(0, size, size=(min(_ROWS, self.resamples - start), size), dtype=np.uint32)
            # A byte is enough: a count is at most ``size``, and above 255 only with a chance below 1e-500.
            yield np.array([np.bincount(row, minlength=size) for row in rows], np.uint8)


def valid_bounds(values: FloatArray, bounds: Bounds | None) -> Bounds | None:
    """The bounds, or None where there are none or a value lies outside."""
    return None if bounds is None or ((values < bounds[0]) | (values > bounds[1])).any() else bounds


def sum_of_means(
    parts: Sequence[tuple[Bootstrap, FloatArray]], level: float = 0.95, bounds: Bounds | None = None
) -> Estimate:
    """A sum of means over different queries of the same clusters, which belong together: both directions, say.

    ``bounds`` are those of the sum, which all parts share equally.
    """
    figure = float(sum(aggregate(values, "mean", draws.strata) for draws, values in parts))
    means = [mean for draws, values in parts for mean in stratified(values, draws.clusters, draws.strata)]
    if not means or not all(draws.resamples for draws, _ in parts):
        return Estimate(figure)
    valid = all(valid_bounds(values * len(parts), bounds) for _, values in parts)
    return Estimate(figure, *mean_interval(linearise(means), bounds if valid else None, level, parts[0][0]))


def share_of_sums(above: Any, below: Any, level: float = 0.95) -> Estimate:
    """Σ above ÷ Σ below with its interval, from one number of each per cluster; ``above`` is part of ``below``."""
    above, below = np.asarray(above)[np.asarray(below) > 0], np.asarray(below)[np.asarray(below) > 0]
    total = float(below.sum())
    if len(below) < 2:
        return Estimate(float(above.sum()) / total if total else float("nan"), float("nan"), float("nan"))
    figure = float(above.sum()) / total
    sample = Linearised(figure, (above - figure * below) / total, below / total, (len(below),), figure * (1 - figure))
    return Estimate(figure, *bounded_interval(sample, (0, 1), level))


def estimate(
    values: FloatArray,
    clusters: IntArray,
    *,
    statistic: Statistic = "mean",
    strata: IntArray | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    bounds: Bounds | None = None,
    method: Method | None = None,
) -> Estimate:
    """The figure of ``values`` with its interval over ``clusters``; see :class:`Bootstrap` for many metrics."""
    return Bootstrap(clusters, resamples, seed, strata).estimate(
        values, statistic, level=level, bounds=bounds, method=method
    )


def weighted_sums(weights: Any, values: Any) -> FloatArray:
    """The sum of ``values`` (one per cluster) under each row of ``weights``."""
    # einsum, not a matrix product: BLAS adds in an order that depends on the number of threads.
    return np.asarray(np.einsum("rc,c->r", weights, values), np.float64)


def _bca_tails(level: float, replicates: FloatArray, figure: float, moves: FloatArray) -> FloatArray:
    """The tails, shifted for bias and skew (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    below = np.mean(replicates < figure) + np.mean(replicates == figure) / 2
    squares = float((moves**2).sum())
    if not 0 < below < 1 or squares == 0:
        return tails
    bias, skew = ndtri(below), float((moves**3).sum()) / (6 * squares**1.5)
    shifted = bias + ndtri(tails)
    return np.asarray(ndtr(bias + shifted / (1 - skew * shifted)), np.float64)
