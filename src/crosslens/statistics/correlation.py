"""Do two columns of numbers agree? Pearson, Spearman and Kendall, with intervals that resample images.

Pearson asks for a straight line, Spearman for the same order by ranks, Kendall for the same order pair by pair. τ-b
corrects for ties on either side; τ-c (Stuart) for scales with different numbers of steps, such as four grades against a
continuous score.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.statistics.bootstrap import Bootstrap, Estimate
from crosslens.statistics.centre import FloatArray, IntArray
from crosslens.statistics.correlation_kernels import Array, resampled

COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c")


@dataclass(frozen=True, eq=False)
class Correlations:
    """The four coefficients of two columns, and of every resample of their clusters in the same order."""

    figures: Mapping[str, float]
    replicates: Mapping[str, FloatArray]

    def estimate(self, coefficient: str, level: float = 0.95) -> Estimate:
        """A coefficient with its interval."""
        return _estimate(self.figures[coefficient], self.replicates[coefficient], level)

    def less(self, other: Correlations, coefficient: str, level: float = 0.95) -> Estimate:
        """This coefficient less the other's, on the same pairs and the same resamples of images."""
        figure = self.figures[coefficient] - other.figures[coefficient]
        return _estimate(figure, self.replicates[coefficient] - other.replicates[coefficient], level)


def correlations(
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray | None = None,
    *,
    resamples: int = 0,
    seed: int = 0,
    threads: int | None = None,
) -> Correlations:
    """Pearson, Spearman, Kendall τ-b and τ-c of two columns, and the same for resamples of ``clusters`` (images).

    NaN where one of the columns is constant: nothing can agree with a constant. A resample in which that happens has no
    value and is not counted in an interval. The same seed gives the same replicates at any number of threads.
    """
    first, second = _column(first), _column(second)
    if len(first) != len(second):
        raise InputError(f"{len(first)} values against {len(second)}", expected="one of each per pair")
    groups = np.arange(len(first)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    whole = np.ones((1, int(groups.max(initial=-1)) + 1), np.uint8)
    if len(first) < 2:
        empty = {name: np.full(resamples, np.nan) for name in COEFFICIENTS}
        return Correlations(dict.fromkeys(COEFFICIENTS, float("nan")), empty)
    columns = _Columns.of(first, second, groups)
    figures = columns.coefficients(whole)[0]
    draws = Bootstrap(groups, resamples, seed).weights(whole.shape[1])
    rows = columns.all(draws, threads) if resamples and whole.shape[1] > 1 else np.full((resamples, 4), np.nan)
    return Correlations(
        dict(zip(COEFFICIENTS, figures.tolist(), strict=True)), dict(zip(COEFFICIENTS, rows.T, strict=True))
    )


def pearson(first: FloatArray, second: FloatArray) -> float:
    """Pearson's r: how near the pairs lie to a straight line."""
    return correlations(first, second).figures["pearson"]


def spearman(first: FloatArray, second: FloatArray) -> float:
    """Spearman's ρ: Pearson's r of the ranks, equal values sharing the middle of theirs."""
    return correlations(first, second).figures["spearman"]


def kendall(first: FloatArray, second: FloatArray, variant: str = "b") -> float:
    """Kendall's τ, ``b`` or ``c``."""
    if variant not in ("b", "c"):
        raise UsageError(f"Kendall's τ-{variant}", fix="use 'b' or 'c'")
    return correlations(first, second).figures[f"kendall-{variant}"]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Two columns as the kernel wants them: sorted once, for all resamples."""

    parts: tuple[Array, Array, Array, Array, Array]

    @staticmethod
    def of(first: FloatArray, second: FloatArray, groups: IntArray) -> _Columns:
        levels = [np.unique(one, return_inverse=True)[1] for one in (first, second)]
        values = [first, second]
        if levels[0].max() < levels[1].max():  # the tree of the inner loop is over the side with fewer values
            levels.reverse()
            values.reverse()
        order = np.argsort(levels[0], kind="stable")
        first, second = (one[order] for one in values)
        return _Columns((first, second, levels[0][order], levels[1][order], groups[order]))

    def coefficients(self, draws: Array) -> FloatArray:
        found = np.empty((len(draws), len(COEFFICIENTS)))
        resampled(*self.parts, draws, found)
        return found

    def all(self, draws: Iterator[Array], threads: int | None) -> FloatArray:
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            return np.concatenate(list(pool.map(self.coefficients, draws)))


def _column(values: FloatArray) -> FloatArray:
    column = np.ascontiguousarray(values, np.float64)
    if not np.isfinite(column).all():
        row = int(np.argmax(~np.isfinite(column)))
        raise InputError(f"the value is {column[row]}", row=row, expected="finite numbers", fix="leave the pair out")
    return column


def _estimate(figure: float, replicates: FloatArray, level: float) -> Estimate:
    if not 0 < level < 1:
        raise UsageError(f"confidence level {level}", fix="use a number between 0 and 1, such as 0.95")
    valid = replicates[np.isfinite(replicates)]
    if not np.isfinite(figure) or not len(valid):
        return Estimate(figure, float("nan"), float("nan"))
    low, high = np.quantile(valid, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(figure, float(low), float(high))
