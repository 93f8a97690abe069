"""The paired test: exact by enumeration where that is possible, honest under the null, the same for the same seed."""

from __future__ import annotations

from itertools import product
from math import isnan

import numpy as np
import pytest

from crosslens.core.errors import InputError, UsageError
from crosslens.statistics import aggregate, paired_permutation
from tests.tables import each_row


def exact_p_value(first: np.ndarray, second: np.ndarray, clusters: np.ndarray, statistic: str) -> float:
    """Every way to swap the two runs, image by image."""
    names = np.unique(clusters)
    observed = abs(aggregate(first, statistic) - aggregate(second, statistic))
    extreme = 0
    for swaps in product([False, True], repeat=len(names)):
        swapped = np.isin(clusters, names[np.array(swaps)])
        ours, theirs = np.where(swapped, second, first), np.where(swapped, first, second)
        extreme += abs(aggregate(ours, statistic) - aggregate(theirs, statistic)) >= observed - 1e-9
    return extreme / 2 ** len(names)


@each_row("statistic", ["mean", "median", "floor-median"])
@each_row("seed", range(4))
def test_agrees_with_enumeration(statistic: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    clusters = random.integers(0, 8, 20)
    first = random.integers(1, 7, 20).astype(float)
    second = first + random.integers(-1, 4, 20)
    test = paired_permutation(first, second, clusters, statistic=statistic, permutations=20_000)
    assert test.p_value == pytest.approx(exact_p_value(first, second, clusters, statistic), abs=0.015)
    assert test.difference == pytest.approx(aggregate(first, statistic) - aggregate(second, statistic))
    assert (test.n, test.clusters) == (20, len(np.unique(clusters)))


def test_agrees_with_scipy() -> None:
    from scipy import stats

    random = np.random.default_rng(0)
    first, second = random.random(12), random.random(12) + 0.2
    theirs = stats.permutation_test(
        (first, second), lambda x, y: np.mean(x) - np.mean(y), permutation_type="samples", n_resamples=np.inf
    )
    ours = paired_permutation(first, second, np.arange(12), permutations=20_000)
    assert ours.difference == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.01)


def test_plus_one_correction() -> None:
    """A p-value is never 0: at best one in permutations + 1."""
    ones = np.ones(60)
    assert paired_permutation(ones, 0 * ones, np.arange(60), permutations=999).p_value == 1 / 1000
    assert paired_permutation(ones, ones, np.arange(60)).p_value == 1


def test_false_alarms_are_as_rare_as_promised() -> None:
    """With captions that share their image's luck; a test that swapped queries one by one would cry wolf."""
    random = np.random.default_rng(1)
    clusters = np.repeat(np.arange(30), 5)
    alarms = {"images": 0, "queries": 0}
    for trial in range(200):
        difference = random.normal(size=30)[clusters] + 0.1 * random.normal(size=150)
        for kind, groups in (("images", clusters), ("queries", np.arange(150))):
            test = paired_permutation(difference, 0 * difference, groups, permutations=199, resamples=0, seed=trial)
            alarms[kind] += test.p_value <= 0.05
    assert alarms["images"] / 200 <= 0.10
    assert alarms["queries"] / 200 > 0.2


def test_interval_fits_the_difference() -> None:
    random = np.random.default_rng(2)
    clusters = np.repeat(np.arange(200), 3)
    first = random.random(600)
    better = first + 0.1 + 0.05 * random.normal(size=200)[clusters]
    test = paired_permutation(better, first, clusters)
    assert test.low < 0.1 < test.high
    assert test.low == pytest.approx(test.difference - 1.96 * 0.05 / np.sqrt(200), abs=0.002)
    assert test.p_value < 0.001
    medians = paired_permutation(better, first, clusters, statistic="median")
    assert medians.low <= medians.difference <= medians.high


def test_folds() -> None:
    random = np.random.default_rng(3)
    first, second, folds = random.random(30), random.random(30), np.repeat([0, 1], [10, 20])
    test = paired_permutation(first, second, np.arange(30), strata=folds)
    by_fold = [(first - second)[folds == fold].mean() for fold in (0, 1)]
    assert test.difference == pytest.approx(np.mean(by_fold))
    assert test.low < test.difference < test.high
    assert 0 < test.p_value <= 1


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_same_seed_same_answer_in_any_order(statistic: str) -> None:
    random = np.random.default_rng(4)
    clusters = np.repeat(np.arange(40), 2)
    first, second = random.integers(1, 20, 80).astype(float), random.integers(1, 22, 80).astype(float)
    order = random.permutation(80)
    test = paired_permutation(first, second, clusters, statistic=statistic, seed=9)
    assert test == paired_permutation(first[order], second[order], clusters[order], statistic=statistic, seed=9)
    other = paired_permutation(second, first, clusters, statistic=statistic, seed=9)
    assert (other.difference, other.p_value) == (-test.difference, test.p_value)
    assert test.p_value != paired_permutation(first, second, clusters, statistic=statistic, seed=10).p_value


def test_queries_that_do_not_count() -> None:
    first, second = np.array([1, np.nan, 0, 1, 1]), np.array([0, 1, 0, np.nan, 1])
    test = paired_permutation(first, second, np.arange(5))
    assert test.n == test.clusters == 3
    assert test.difference == pytest.approx(1 / 3)
    nothing = paired_permutation(first * np.nan, second, np.arange(5))
    assert nothing.n == 0
    assert isnan(nothing.difference)
    assert isnan(nothing.p_value)
    assert isnan(paired_permutation(first[:1], second[:1], np.arange(1), statistic="median").low)


def test_wrong_arguments() -> None:
    with pytest.raises(InputError, match="2 and 3 values for 3 clusters"):
        paired_permutation(np.ones(2), np.ones(3), np.arange(3))
    with pytest.raises(UsageError, match="0 permutations"):
        paired_permutation(np.ones(2), np.ones(2), np.arange(2), permutations=0)
