"""Is the difference between two runs on the same queries more than chance? A paired test by swapping images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.metric_values import Statistic
from crosslens.core.seeds import stream
from crosslens.statistics.bootstrap import Bootstrap
from crosslens.statistics.centre import FloatArray, IntArray, centre, parts, rounded
from crosslens.statistics.medians import MedianTable

_ROWS = 256
_CELLS = 1 << 21
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
) -> PairedTest:
    """Test whether two runs differ in ``statistic`` on the same queries.

    Under the null hypothesis it does not matter which run an image's values came from: each permutation swaps the two
    runs' values for a random half of the images. p = (1 + permutations at least as extreme) / (1 + permutations).
    Queries that lack a value in either run are left out of both.
    """
    first, second, clusters = np.asarray(first, np.float64), np.asarray(second, np.float64), np.asarray(clusters)
    if not len(first) == len(second) == len(clusters):
        counts = f"{len(first)} and {len(second)} values for {len(clusters)} clusters"
        raise InputError(counts, expected="one value of each run per query")
    if permutations < 1:
        raise UsageError(f"{permutations} permutations", fix="use 1 or more; 10000 is usual")
    either = np.isnan(first) | np.isnan(second)
    first, second = np.where(either, np.nan, first), np.where(either, np.nan, second)
    difference = centre(first, statistic, strata) - centre(second, statistic, strata)
    low, high = _interval(first, second, Bootstrap(clusters, resamples, seed, strata), statistic, level)
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
    first: FloatArray, second: FloatArray, bootstrap: Bootstrap, statistic: Statistic, level: float
) -> tuple[float, float]:
    if statistic == "mean":
        return bootstrap.estimate(first - second, level=level).interval
    if np.isnan(bootstrap.estimate(first - second, level=level).low):
        return float("nan"), float("nan")
    replicates = bootstrap.replicates(first, statistic) - bootstrap.replicates(second, statistic)
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


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
    for number, part in enumerate(parts(first, strata)):
        distinct, groups = np.unique(clusters[part], return_inverse=True)
        swaps = swaps_of(seed, number, permutations, len(distinct))
        swapped = _swapped_means if statistic == "mean" else _swapped_medians
        differences = swapped(first[part], second[part], groups, len(distinct), swaps, statistic)
        per_stratum.append(differences)
        slack += float(np.mean(np.abs(first[part] - second[part])))
    if not per_stratum:
        return float("nan")
    chance = np.abs(np.mean(per_stratum, axis=0))
    extreme = int((chance >= abs(difference) - SLACK * slack).sum())
    return (1 + extreme) / (1 + permutations)


def swaps_of(seed: int, stratum: int, permutations: int, size: int) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """1 where a cluster changes sides: permutations × clusters, a few permutations at a time."""
    random = stream(seed, "swaps", stratum)
    for start in range(0, permutations, _ROWS):
        rows = min(_ROWS, permutations - start)
        drawn = np.frombuffer(random.bytes(rows * ((size + 7) // 8)), np.uint8).reshape(rows, -1)
        yield np.unpackbits(drawn, axis=1, count=size)


def _swapped_means(
    first: FloatArray, second: FloatArray, groups: IntArray, size: int, swaps: Iterator[Any], _: Statistic
) -> FloatArray:
    sums = np.bincount(groups, first - second, size)
    total = sums.sum()
    return np.concatenate([total - 2 * np.einsum("pc,c->p", one, sums) for one in swaps]) / len(groups)


def _swapped_medians(
    first: FloatArray, second: FloatArray, groups: IntArray, size: int, swaps: Iterator[Any], statistic: Statistic
) -> FloatArray:
    # One table of both runs' values, the second run's clusters numbered after the first's: a swap moves weight across.
    table = MedianTable(np.concatenate([first, second]), np.concatenate([groups, groups + size]), 2 * size)
    everything = table.counts(np.ones((1, 2 * size), np.uint8))
    step = table.rows_within(_CELLS)
    differences = []
    for chunk in swaps:
        for start in range(0, len(chunk), step):
            one = chunk[start : start + step]
            counts = table.counts(np.hstack([1 - one, one]))
            ours, theirs = table.medians(counts), table.medians(everything - counts)
            differences.append(rounded(ours, statistic) - rounded(theirs, statistic))
    return np.concatenate(differences)
