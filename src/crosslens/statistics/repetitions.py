"""Figures over repetitions of the same work (seeds): Student's t intervals and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslens.core import InputError
from crosslens.statistics.aggregation import FloatArray, require_level
from crosslens.statistics.bootstrap import Estimate
from crosslens.statistics.permutation import SLACK, paired_permutation

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
        return Estimate(float("nan"), float("nan"), float("nan"))
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
    return PairedRepetitions(
        figure.mean, figure.low, figure.high, p_value, _sign_flip_p(ours, theirs), len(differences), level
    )


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _sign_flip_p(first: FloatArray, second: FloatArray) -> float:
    """The share of all ways to flip the signs of the differences whose mean is at least as far from 0."""
    differences = first - second
    count = len(differences)
    if not count:
        return float("nan")
    if count > _MOST_FLIPPED:
        return paired_permutation(first, second, np.arange(count), resamples=0).p_value
    sums = np.zeros(1)
    for difference in differences.tolist():
        sums = np.concatenate([sums + difference, sums - difference])
    slack = SLACK * float(np.abs(differences).sum())
    return float(np.mean(np.abs(sums) >= abs(float(differences.sum())) - slack))
