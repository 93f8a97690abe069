"""Intervals by resampling images: the captions of an image are drawn together, as they are not independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.core.metric_values import Statistic
from crosslens.core.seeds import stream
from crosslens.statistics.centre import FloatArray, IntArray, centre, parts, require_statistic, rounded
from crosslens.statistics.medians import MedianTable

Method = Literal["percentile", "bca"]
Weights = np.ndarray[Any, np.dtype[np.uint8]]

_ROWS = 64
"""Resamples drawn at a time; part of what makes a seed's draw what it is."""
_KEPT_BYTES = 1 << 28
_CELLS = 1 << 21


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; the interval is NaN where the data cannot give one."""

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
            raise UsageError(f"{resamples} resamples", fix="use 0 (no interval) or more; 1000 is usual")
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
        method: Method = "percentile",
    ) -> Estimate:
        """The figure of ``values`` (NaN: not counted) with its interval.

        There is one value per query, or several with ``rows`` telling the query of each.
        """
        if not 0 < level < 1:
            raise UsageError(f"confidence level {level}", fix="use a number between 0 and 1, such as 0.95")
        values = np.asarray(values, np.float64)
        clusters, strata = self._labels(rows)
        figure = centre(values, statistic, strata)
        members = list(parts(values, strata))
        if not self.resamples or not members or any(len(np.unique(clusters[one])) < 2 for one in members):
            return Estimate(figure, float("nan"), float("nan"))
        replicates = self.replicates(values, statistic, rows)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if method == "bca":
            if statistic != "mean":
                raise UsageError(f"a BCa interval of a {statistic}", fix="use method='percentile' for medians")
            tails = _bca_tails(tails, replicates, figure, _left_out_figures(values, clusters, members))
        elif method != "percentile":
            raise UsageError(f"unknown interval method {method!r}", fix="use 'percentile' or 'bca'")
        low, high = np.quantile(replicates, tails)
        return Estimate(figure, float(low), float(high))

    def replicates(self, values: FloatArray, statistic: Statistic = "mean", rows: IntArray | None = None) -> FloatArray:
        """The figure of every resample, in the order drawn; clusters without a value are not part of the sample."""
        require_statistic(statistic)
        clusters, strata = self._labels(rows)
        per_stratum = []
        for number, part in enumerate(parts(values, strata)):
            distinct, groups = np.unique(clusters[part], return_inverse=True)
            draws = self._weights(number, len(distinct))
            if statistic == "mean":
                per_stratum.append(_means(values[part], groups, len(distinct), draws))
            else:
                per_stratum.append(rounded(_medians(values[part], groups, len(distinct), draws), statistic))
        if not per_stratum:
            return np.full(self.resamples, np.nan)
        return np.asarray(np.mean(per_stratum, axis=0), np.float64)

    def weights(self, size: int, stratum: int = 0) -> Iterator[Weights]:
        """How often each of ``size`` clusters is drawn: resamples × clusters, a few resamples at a time."""
        return self._weights(stratum, size)

    def _labels(self, rows: IntArray | None) -> tuple[IntArray, IntArray | None]:
        if rows is None:
            return self.clusters, self.strata
        return self.clusters[rows], None if self.strata is None else self.strata[rows]

    def _weights(self, stratum: int, size: int) -> Iterator[Weights]:
        """How often each of ``size`` clusters is drawn, for all resamples, a few of them at a time."""
        if size * self.resamples > _KEPT_BYTES:
            return self._draw(stratum, size)
        if (stratum, size) not in self._drawn:
            self._drawn[stratum, size] = list(self._draw(stratum, size))
        return iter(self._drawn[stratum, size])

    def _draw(self, stratum: int, size: int) -> Iterator[Weights]:
        random = stream(self.seed, "bootstrap", stratum)
        for start in range(0, self.resamples, _ROWS):
            chosen = random.integers(0, size, size=(min(_ROWS, self.resamples - start), size), dtype=np.uint32)
            # A byte is enough: a count is at most ``size``, and above 255 only with a chance below 1e-500.
            yield np.array([np.bincount(row, minlength=size) for row in chosen], np.uint8)


def sum_of_means(parts: Sequence[tuple[Bootstrap, FloatArray]], level: float = 0.95) -> Estimate:
    """A sum of means over different queries of the same clusters, which are drawn together: both directions, say."""
    single = [draws.estimate(values, level=level) for draws, values in parts]
    figure = float(sum(one.mean for one in single))
    if any(np.isnan(one.low) for one in single):
        return Estimate(figure, float("nan"), float("nan"))
    replicates = np.sum([draws.replicates(values) for draws, values in parts], axis=0)
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(figure, float(low), float(high))


def estimate(
    values: FloatArray,
    clusters: IntArray,
    *,
    statistic: Statistic = "mean",
    strata: IntArray | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "percentile",
) -> Estimate:
    """The figure of ``values`` with a bootstrap interval over ``clusters``; see :class:`Bootstrap` for many metrics."""
    return Bootstrap(clusters, resamples, seed, strata).estimate(values, statistic, level=level, method=method)


def _means(values: FloatArray, groups: IntArray, size: int, draws: Iterator[Weights]) -> FloatArray:
    sums = np.bincount(groups, values, size)
    counts = np.bincount(groups, minlength=size).astype(np.float64)
    # einsum, not a matrix product: BLAS adds in an order that depends on the number of threads.
    return np.concatenate([np.einsum("rc,c->r", one, sums) / np.einsum("rc,c->r", one, counts) for one in draws])


def _medians(values: FloatArray, groups: IntArray, size: int, draws: Iterator[Weights]) -> FloatArray:
    table = MedianTable(values, groups, size)
    step = table.rows_within(_CELLS)
    return np.concatenate(
        [table.medians(table.counts(one[start : start + step])) for one in draws for start in range(0, len(one), step)]
    )


def _left_out_figures(values: FloatArray, clusters: IntArray, members: list[IntArray]) -> FloatArray:
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
