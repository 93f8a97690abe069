"""Is the difference between two runs on the same queries more than chance? A paired test by swapping images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, Statistic, UsageError, random_stream
from crosslens.statistics.aggregation import (
    FloatArray,
    IntArray,
    MedianTable,
    aggregate,
    floored,
    percentiles,
    valid_rows,
)
from crosslens.statistics.bootstrap import Bootstrap, weighted_sums
from crosslens.statistics.bounded import Bounds, difference_bounds

_ROWS = 256
SLACK = 1e-12
"""Two differences count as equal within this share of the sum of all absolute ones: rounding must not decide."""


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
    low, high = _interval(first, second, bootstrap, statistic, level, bounds and difference_bounds(bounds))
    return PairedTest(
        difference,
        low,
        high,
        _p_value(first, second, clusters, strata, statistic, difference, permutations, seed),
        n=int((~either).sum()),
        clusters=len(np.unique(clusters[~either])),
        permutations=permutations,
        statistic=statistic,
        level=level,
    )


def _interval(
    first: FloatArray,
    second: FloatArray,
    bootstrap: Bootstrap,
    statistic: Statistic,
    level: float,
    bounds: Bounds | None,
) -> tuple[float, float]:
    if statistic == "mean":
        return bootstrap.estimate(first - second, level=level, bounds=bounds).interval
    if np.isnan(bootstrap.estimate(first - second, level=level, method="percentile").low):
        return float("nan"), float("nan")
    return percentiles(bootstrap.replicates(first, statistic) - bootstrap.replicates(second, statistic), level)


def _p_value(
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray,
    strata: IntArray | None,
    statistic: Statistic,
    difference: float,
    permutations: int,
    seed: int,
) -> float:
    per_stratum, slack = [], 0.0
    for number, part in enumerate(valid_rows(first, strata)):
        distinct, groups = np.unique(clusters[part], return_inverse=True)
        swaps = swaps_of(seed, number, permutations, len(distinct))
        swapped = _swapped_means if statistic == "mean" else _swapped_medians
        per_stratum.append(swapped(first[part], second[part], groups, len(distinct), swaps, statistic))
        slack += float(np.mean(np.abs(first[part] - second[part])))
    if not per_stratum:
        return float("nan")
    chance = np.abs(np.mean(per_stratum, axis=0))
    extreme = int((chance >= abs(difference) - SLACK * slack).sum())
    return (1 + extreme) / (1 + permutations)


def swaps_of(seed: int, stratum: int, permutations: int, size: int) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """1 where a cluster changes sides: permutations × clusters, a few permutations at a time."""
    random = random_stream(seed, "swaps", stratum)
    for start in range(0, permutations, _ROWS):
        rows = min(_ROWS, permutations - start)
        drawn = np.frombuffer(random.bytes(rows * ((size + 7) // 8)), np.uint8).reshape(rows, -1)
        yield np.unpackbits(drawn, axis=1, count=size)


def _swapped_means(
    first: FloatArray, second: FloatArray, groups: IntArray, size: int, swaps: Iterator[Any], _: Statistic
) -> FloatArray:
    sums = np.bincount(groups, first - second, size)
    total = sums.sum()
    return np.concatenate([total - 2 * weighted_sums(chunk, sums) for chunk in swaps]) / len(groups)


def _swapped_medians(
    first: FloatArray, second: FloatArray, groups: IntArray, size: int, swaps: Iterator[Any], statistic: Statistic
) -> FloatArray:
    # One table of both runs' values, the second run's clusters numbered after the first's: a swap moves weight across.
    table = MedianTable(np.concatenate([first, second]), np.concatenate([groups, groups + size]), 2 * size)
    everything = table.counts(np.ones((1, 2 * size), np.uint8))
    differences = []
    for chunk in (part for rows in swaps for part in table.chunks(rows)):
        counts = table.counts(np.hstack([1 - chunk, chunk]))
        medians = (floored(table.medians(own), statistic) for own in (counts, everything - counts))
        differences.append(next(medians) - next(medians))
    return np.concatenate(differences)
