"""Correlation of two columns: Pearson, Spearman and Kendall, with intervals that resample images.

Pearson measures linear association, Spearman that of ranks, Kendall that of the order of pairs. τ-b corrects for ties
in either column; τ-c (Stuart) for scales with different numbers of steps, such as four grades against a continuous
score.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.bootstrap import Bootstrap, Estimate, percentiles, require_level
from crosslens.storage import Array, FloatArray, IntArray

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

PEARSON, SPEARMAN, KENDALL_B, KENDALL_C = range(4)


@_compiled
def _product_moment(first: Array, second: Array, weights: Array) -> float:
    total, mean_first, mean_second = 0.0, 0.0, 0.0
    for i in range(first.size):
        total += weights[i]
        mean_first += weights[i] * first[i]
        mean_second += weights[i] * second[i]
    mean_first /= total
    mean_second /= total
    products, squares_first, squares_second = 0.0, 0.0, 0.0
    for i in range(first.size):
        x, y = first[i] - mean_first, second[i] - mean_second
        products += weights[i] * x * y
        squares_first += weights[i] * x * x
        squares_second += weights[i] * y * y
    if squares_first <= 0.0 or squares_second <= 0.0:
        return np.nan
    share: float = products / np.sqrt(squares_first) / np.sqrt(squares_second)
    return min(1.0, max(-1.0, share))


@_compiled
def _counts(levels: Array, weights: Array, out: Array) -> None:
    """How many pairs each level has."""
    out[:] = 0
    for i in range(levels.size):
        out[levels[i]] += weights[i]


@_compiled
def _occupied(counts: Array) -> int:
    """How many levels occur at all."""
    occupied = 0
    for level in range(counts.size):
        occupied += counts[level] > 0
    return occupied


@_compiled
def _middle_ranks(counts: Array, levels: Array, out: Array) -> None:
    """The rank of every pair, equal values sharing the middle of their ranks."""
    middles = np.empty(counts.size, np.float64)
    before = 0
    for level in range(counts.size):
        middles[level] = before + (counts[level] + 1) / 2
        before += counts[level]
    for i in range(levels.size):
        out[i] = middles[levels[i]]


@_compiled
def _tied(counts: Array) -> float:
    pairs = 0.0
    for level in range(counts.size):
        pairs += counts[level] * (counts[level] - 1.0) / 2
    return pairs


@_compiled
def _up_to(tree: Array, level: int) -> int:
    """The sum of levels 0 … level of a Fenwick tree."""
    total = 0
    node = level + 1
    while node > 0:
        total += tree[node]
        node &= node - 1
    return total


@_compiled
def _add(tree: Array, level: int, amount: int) -> None:
    node = level + 1
    while node < tree.size:
        tree[node] += amount
        node += node & -node


@_compiled
def _concordant_less_discordant(first: Array, second: Array, weights: Array, tree: Array) -> float:
    """Pairs of pairs in the same order in both, less those in opposite orders; ``first`` ascends."""
    tree[:] = 0
    surplus, added, start = 0.0, 0, 0
    while start < first.size:
        end = start
        while end < first.size and first[end] == first[start]:
            if weights[end]:
                below = _up_to(tree, second[end] - 1)
                above = added - _up_to(tree, second[end])
                surplus += float(weights[end]) * (below - above)
            end += 1
        for i in range(start, end):  # only now: values that are equal in ``first`` are no pair
            if weights[i]:
                _add(tree, second[i], weights[i])
                added += weights[i]
        start = end
    return surplus


@_compiled
def resampled(
    first: Array,
    second: Array,
    first_levels: Array,
    second_levels: Array,
    clusters: Array,
    draws: Array,
    out: Array,
) -> None:
    """The four coefficients of every row of ``draws``, which says how often each cluster is drawn.

    ``*_levels`` number the distinct values from 0 up; the pairs ascend by ``first_levels``. NaN where a coefficient is
    undefined: one of the two sides is constant.
    """
    n = first.size
    weights = np.empty(n, np.int64)
    first_counts = np.empty(first_levels.max() + 1, np.int64)
    second_counts = np.empty(second_levels.max() + 1, np.int64)
    tree = np.empty(second_counts.size + 1, np.int64)
    first_ranks, second_ranks = np.empty(n), np.empty(n)
    for row in range(draws.shape[0]):
        total = 0.0
        for i in range(n):
            weights[i] = draws[row, clusters[i]]
            total += weights[i]
        _counts(first_levels, weights, first_counts)
        _counts(second_levels, weights, second_counts)
        fewest = min(_occupied(first_counts), _occupied(second_counts))
        if fewest < 2:
            out[row] = np.nan
            continue
        _middle_ranks(first_counts, first_levels, first_ranks)
        _middle_ranks(second_counts, second_levels, second_ranks)
        surplus = _concordant_less_discordant(first_levels, second_levels, weights, tree)
        comparable = total * (total - 1.0) / 2
        sides = np.sqrt(comparable - _tied(first_counts)) * np.sqrt(comparable - _tied(second_counts))
        out[row, PEARSON] = _product_moment(first, second, weights)
        out[row, SPEARMAN] = _product_moment(first_ranks, second_ranks, weights)
        out[row, KENDALL_B] = min(1.0, max(-1.0, surplus / sides))
        out[row, KENDALL_C] = 2 * surplus * fewest / (total * total * (fewest - 1.0))


COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c")


@dataclass(frozen=True, eq=False)
class Correlations:
    """The four coefficients of two columns, and of every resample of their clusters in the same order."""

    figures: Mapping[str, float]
    replicates: Mapping[str, FloatArray]

    def estimate(self, coefficient: str, level: float = 0.95) -> Estimate:
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

    NaN where one of the columns is constant: the coefficients are then undefined. A resample in which that happens is
    not counted in an interval. The same seed gives the same replicates with any number of threads.
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


@dataclass(frozen=True, eq=False)
class _Columns:
    """Two columns as the kernel needs them: sorted once, for all resamples."""

    parts: tuple[Array, Array, Array, Array, Array]

    @staticmethod
    def of(first: FloatArray, second: FloatArray, groups: IntArray) -> _Columns:
        levels = [np.unique(column, return_inverse=True)[1] for column in (first, second)]
        values = [first, second]
        if levels[0].max() < levels[1].max():  # the tree of the inner loop is over the side with fewer values
            levels.reverse()
            values.reverse()
        order = np.argsort(levels[0], kind="stable")
        first, second = (column[order] for column in values)
        return _Columns((first, second, levels[0][order], levels[1][order], groups[order]))

    def coefficients(self, draws: Array) -> FloatArray:
        out = np.empty((len(draws), len(COEFFICIENTS)))
        resampled(*self.parts, draws, out)
        return out

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
    require_level(level)
    valid = replicates[np.isfinite(replicates)]
    if not np.isfinite(figure) or not len(valid):
        return Estimate(figure)
    return Estimate(figure, *percentiles(valid, level))


LIMIT = 1.96
"""Standard deviations between the mean difference and a limit: 95 % of normally distributed differences are inside."""

_PRIOR_IMAGES = 20
"""How many images the tails of the normal distribution count for, beside those that the differences show.

Chosen by simulation (``reproduce/interval_coverage.py``): a few images do not show how heavy the tails are.
"""

SCALES = ("raw", "z", "rank", "range")
"""``raw``: as they are. ``z``: less their mean, in their standard deviations. ``rank``: the share of values below, ties
in the middle. ``range``: from 0, the lowest, to 1, the highest."""


@dataclass(frozen=True)
class BlandAltman:
    """The mean of second − first, its standard deviation (n − 1), and the limits of agreement, mean ± 1.96 sd."""

    mean: Estimate
    sd: float
    lower: Estimate
    upper: Estimate
    n: int


def rescaled(values: Any, scale: str) -> FloatArray:
    """Values on a scale on which two measurements in different units can be compared; a constant one is 0 there."""
    values = np.asarray(values, np.float64)
    if scale == "raw":
        return np.asarray(values, np.float64)
    if scale == "z":
        spread = values.std(ddof=1) if len(values) > 1 else 0.0
        return np.asarray((values - values.mean()) / spread if spread > 0 else 0 * values, np.float64)
    if scale == "range":
        width = np.ptp(values) if len(values) else 0.0
        return np.asarray((values - values.min()) / width if width > 0 else 0 * values, np.float64)
    if scale == "rank":
        _, levels, counts = np.unique(values, return_inverse=True, return_counts=True)
        below = np.cumsum(counts) - counts
        return np.asarray((below + counts / 2)[levels] / max(1, len(values)), np.float64)
    raise UnknownNameError("scale", scale, SCALES)


def bland_altman(
    first: Any, second: Any, clusters: IntArray | None = None, *, intervals: bool = True, level: float = 0.95
) -> BlandAltman:
    """Mean difference and limits of agreement of two columns, with intervals over ``clusters`` (images).

    The interval of the mean is Student's, that of a limit combines it with the interval of the standard deviation
    (MOVER, Zou 2013). There is none for a single image, or where all differences are equal.
    """
    require_level(level)
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"{first.shape} values against {second.shape}", expected="one of each per pair")
    differences = second - first
    if not np.isfinite(differences).all():
        row = int(np.argmax(~np.isfinite(differences)))
        raise InputError(f"the difference is {differences[row]}", row=row, expected="finite numbers")
    count, nan = len(differences), float("nan")
    mean = float(differences.mean()) if count else nan
    deviations = differences - mean
    sd = float(np.sqrt((deviations**2).sum() / (count - 1))) if count > 1 else nan
    groups = np.unique(np.arange(count) if clusters is None else np.asarray(clusters), return_inverse=True)[1]
    ends = dict.fromkeys((0, -1, 1), (nan, nan))
    if intervals and len(np.unique(groups)) > 1 and sd > 1e-12 * np.abs(differences).max():
        ends = {side: (mean + low, mean + high) for side, (low, high) in _limits(deviations, groups, level).items()}
    figures = {side: Estimate(mean + side * LIMIT * sd, *end) for side, end in ends.items()}
    return BlandAltman(figures[0], sd, figures[-1], figures[1], count)


def _limits(deviations: FloatArray, groups: IntArray, level: float) -> dict[int, tuple[float, float]]:
    """The intervals of the mean difference (0) and of the limits below (−1) and above (1) it, less the mean."""
    from scipy.special import chdtri, stdtrit

    count, sizes = len(deviations), np.bincount(groups)
    images = len(sizes)
    scale = images / (images - 1) / count**2
    squares = deviations**2
    moves, spreads = np.bincount(groups, deviations), np.bincount(groups, squares - squares.mean())
    of_mean, of_variance = scale * float(moves @ moves), scale * float(spreads @ spreads)
    variance = float(squares.mean()) + of_mean
    # Were the differences normal, and those of an image as alike as the variance of the mean says.
    captions = float(sizes @ sizes) / count
    alike = min(max((of_mean * count / variance - 1) / (captions - 1), 0.0), 1.0) if captions > 1 else 0.0
    normal = 2 * variance**2 / count * (1 + (captions - 1) * alike**2)
    share = images / (images + _PRIOR_IMAGES)
    freedom = max(2 * variance**2 / (share * of_variance + (1 - share) * normal) - 1, 1.0)
    together = share * scale * float(moves @ spreads) / max((of_mean * of_variance) ** 0.5, 1e-300)
    tails = (1 + level) / 2, (1 - level) / 2
    half = float(stdtrit(images - 1, tails[0])) * of_mean**0.5
    far = LIMIT * variance**0.5
    short, long = (far * abs(float(np.sqrt(freedom / chdtri(freedom, 1 - tail))) - 1) for tail in tails)
    limits = {0: (-half, half)}
    for side, (below, above) in ((-1, (long, short)), (1, (short, long))):
        low, high = (np.sqrt(half**2 + part**2 + 2 * side * together * half * part) for part in (below, above))
        limits[side] = (side * far - float(low), side * far + float(high))
    return limits
