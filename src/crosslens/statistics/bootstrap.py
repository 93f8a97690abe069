"""Figures with intervals over images: the captions of an image belong together, as they are not independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crosslens.core import Statistic, UnknownNameError, UsageError, argument, random_stream
from crosslens.statistics.aggregation import (
    FloatArray,
    IntArray,
    MedianTable,
    aggregate,
    floored,
    percentiles,
    require_level,
    require_statistic,
    valid_rows,
)
from crosslens.statistics.bounded import Bounds, Linearised, bounded_interval, linearise, stratified

Method = Literal["percentile", "bca"]
Weights = np.ndarray[Any, np.dtype[np.uint8]]

_ROWS = 64
"""Resamples drawn at a time; part of what makes a seed's draw what it is."""
_KEPT_BYTES = 1 << 28


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; the interval is NaN where the data do not determine one."""

    mean: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high


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

        There is one value per query, or any number with ``rows``, the query of each. The mean of values that lie
        within ``bounds`` gets a score interval (see :mod:`crosslens.statistics.bounded`), any other figure the
        percentiles of its resamples, and none where all values are equal: resampling cannot tell then.
        """
        require_level(level)
        values = np.asarray(values, np.float64)
        clusters, strata = self._labels(rows)
        figure = aggregate(values, statistic, strata)
        members = list(valid_rows(values, strata))
        if not self.resamples or not members or any(len(np.unique(clusters[part])) < 2 for part in members):
            return Estimate(figure, float("nan"), float("nan"))
        limits = valid_bounds(values, bounds)
        if method is None and statistic == "mean" and limits is not None:
            return Estimate(figure, *bounded_interval(linearise(stratified(values, clusters, strata)), limits, level))
        if method is None and statistic == "mean" and all(np.ptp(values[part]) == 0 for part in members):
            return Estimate(figure, float("nan"), float("nan"))
        replicates = self.replicates(values, statistic, rows)
        if method in (None, "percentile"):
            return Estimate(figure, *percentiles(replicates, level))
        if method != "bca":
            raise UnknownNameError("interval method", method, ("percentile", "bca"))
        if statistic != "mean":
            fix = f"use {argument('method', 'percentile')} for medians"
            raise UsageError(f"a BCa interval of a {statistic}", fix=fix, option="method")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = np.quantile(
            replicates, _bca_tails(tails, replicates, figure, _jackknife(values, clusters, members))
        )
        return Estimate(figure, float(low), float(high))

    def estimate_columns(self, values: FloatArray, *, level: float = 0.95) -> list[Estimate]:
        """The mean of each column of ``values`` (queries × columns) with its interval, as :meth:`estimate` gives it.

        Columns that have a value for the same queries share every draw: a million queries are drawn once, not once
        per column.
        """
        require_level(level)
        values = np.asarray(values, np.float64)
        estimates: dict[int, Estimate] = {}
        for columns in _alike(np.isnan(values)):
            shared = values[:, columns]
            ends = self._column_intervals(shared[~np.isnan(shared[:, 0])], ~np.isnan(shared[:, 0]), level)
            for column, (low, high) in zip(columns, ends, strict=True):
                estimates[column] = Estimate(aggregate(values[:, column], "mean", self.strata), low, high)
        return [estimates[column] for column in range(values.shape[1])]

    def _column_intervals(self, values: FloatArray, counted: Any, level: float) -> list[tuple[float, float]]:
        """The intervals of columns without gaps; ``counted`` says which queries their rows are."""
        none = (float("nan"), float("nan"))
        if self.strata is not None:
            raise UsageError("columns in strata", fix="estimate every column by itself")
        distinct, groups = np.unique(self.clusters[counted], return_inverse=True)
        if not self.resamples or len(distinct) < 2:
            return [none] * values.shape[1]
        sums = np.stack([np.bincount(groups, column, len(distinct)) for column in values.T], axis=1)
        counts = np.bincount(groups, minlength=len(distinct)).astype(np.float64)
        replicates = np.concatenate(
            [
                np.einsum("rc,cs->rs", weights, sums) / weighted_sums(weights, counts)[:, None]
                for weights in self.weights(len(distinct))
            ]
        )
        return [
            none if np.ptp(column) == 0 else percentiles(means, level)
            for column, means in zip(values.T, replicates.T, strict=True)
        ]

    def replicates(self, values: FloatArray, statistic: Statistic = "mean", rows: IntArray | None = None) -> FloatArray:
        """The figure of every resample, in the order drawn; clusters without a value are not part of the sample."""
        require_statistic(statistic)
        clusters, strata = self._labels(rows)
        per_stratum = []
        for number, part in enumerate(valid_rows(values, strata)):
            distinct, groups = np.unique(clusters[part], return_inverse=True)
            draws = self.weights(len(distinct), number)
            if statistic == "mean":
                per_stratum.append(_means(values[part], groups, len(distinct), draws))
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
            chosen = random.integers(0, size, size=(min(_ROWS, self.resamples - start), size), dtype=np.uint32)
            # A byte is enough: a count is at most ``size``, and above 255 only with a chance below 1e-500.
            yield np.array([np.bincount(row, minlength=size) for row in chosen], np.uint8)


def _alike(missing: Any) -> list[list[int]]:
    """The columns of a table of truths, those that are equal together."""
    groups: dict[bytes, list[int]] = {}
    for column in range(missing.shape[1]):
        groups.setdefault(np.packbits(missing[:, column]).tobytes(), []).append(column)
    return list(groups.values())


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
    none = Estimate(figure, float("nan"), float("nan"))
    clusters = [np.unique(draws.clusters[~np.isnan(values)]) for draws, values in parts]
    if not all(draws.resamples for draws, _ in parts) or len(np.unique(np.concatenate(clusters))) < 2:
        return none
    if bounds is not None and all(valid_bounds(values * len(parts), bounds) for _, values in parts):
        means = [mean for draws, values in parts for mean in stratified(values, draws.clusters, draws.strata)]
        return Estimate(figure, *bounded_interval(linearise(means), bounds, level))
    if min(map(len, clusters)) < 2:
        return none
    replicates = np.sum([draws.replicates(values) for draws, values in parts], axis=0)
    return Estimate(figure, *percentiles(replicates, level))


def share_of_sums(above: Any, below: Any, level: float = 0.95) -> Estimate:
    """Σ above ÷ Σ below with its interval, from one number of each per cluster; ``above`` is part of ``below``."""
    above, below = np.asarray(above)[np.asarray(below) > 0], np.asarray(below)[np.asarray(below) > 0]
    total = float(below.sum())
    if len(below) < 2:
        return Estimate(float(above.sum()) / total if total else float("nan"), float("nan"), float("nan"))
    figure = float(above.sum()) / total
    sample = Linearised(figure, (above - figure * below) / total, below / total, 1, figure * (1 - figure))
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


def _means(values: FloatArray, groups: IntArray, size: int, draws: Iterator[Weights]) -> FloatArray:
    sums = np.bincount(groups, values, size)
    counts = np.bincount(groups, minlength=size).astype(np.float64)
    return np.concatenate([weighted_sums(weights, sums) / weighted_sums(weights, counts) for weights in draws])


def weighted_sums(weights: Any, values: Any) -> FloatArray:
    """The sum of ``values`` (one per cluster) under each row of ``weights``."""
    # einsum, not a matrix product: BLAS adds in an order that depends on the number of threads.
    return np.asarray(np.einsum("rc,c->r", weights, values), np.float64)


def _jackknife(values: FloatArray, clusters: IntArray, members: list[IntArray]) -> FloatArray:
    """How far the figure moves when each cluster is left out in turn (the jackknife)."""
    moves = []
    for part in members:
        _, groups = np.unique(clusters[part], return_inverse=True)
        sums, counts = np.bincount(groups, values[part]), np.bincount(groups)
        without = (sums.sum() - sums) / (counts.sum() - counts)
        moves.append((without.mean() - without) / len(members))
    return np.concatenate(moves)


def _bca_tails(tails: FloatArray, replicates: FloatArray, figure: float, moves: FloatArray) -> FloatArray:
    """Shift the tails for bias and skew (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    below = np.mean(replicates < figure) + np.mean(replicates == figure) / 2
    squares = float((moves**2).sum())
    if not 0 < below < 1 or squares == 0:
        return tails
    bias, skew = ndtri(below), float((moves**3).sum()) / (6 * squares**1.5)
    shifted = bias + ndtri(tails)
    return np.asarray(ndtr(bias + shifted / (1 - skew * shifted)), np.float64)
