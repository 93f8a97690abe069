"""The paired test: exact by enumeration where that is possible, honest under the null, the same for the same seed."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from math import isnan

import numpy as np
import pytest

from crosslens.core import InputError, UsageError
from crosslens.statistics import aggregate, holm, paired_permutation, same_tests
from tests.tables import each_row


def permuted_figure(first: np.ndarray, second: np.ndarray, statistic: str) -> float:
    """What a permutation is judged by: between equal differences of medians, the values above the common one decide."""
    difference = aggregate(first, statistic) - aggregate(second, statistic)
    if statistic == "mean":
        return difference
    both = np.concatenate([first, second])
    above = [np.sign(values - np.median(both)).sum() for values in (first, second)]
    return difference + 1e-3 * (above[0] - above[1]) / len(both)


def exact_p_value(first: np.ndarray, second: np.ndarray, clusters: np.ndarray, statistic: str) -> float:
    """Every way to swap the two runs, image by image."""
    if aggregate(first, statistic) == aggregate(second, statistic):
        return 1.0
    names = np.unique(clusters)
    observed = abs(permuted_figure(first, second, statistic))
    extreme = 0
    for swaps in product([False, True], repeat=len(names)):
        swapped = np.isin(clusters, names[np.array(swaps)])
        ours, theirs = np.where(swapped, second, first), np.where(swapped, first, second)
        extreme += abs(permuted_figure(ours, theirs, statistic)) >= observed - 1e-9
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
    """A p-value is never 0, and not below what so many images can give."""
    ones = np.ones(60)
    assert 2.0**-59 <= paired_permutation(ones, 0 * ones, np.arange(60), permutations=999).p_value < 1e-12
    assert paired_permutation(np.ones(5000), np.zeros(5000), np.arange(5000)).p_value > 0
    assert paired_permutation(ones, ones, np.arange(60)).p_value == 1


def exact_of_whole_numbers(differences: np.ndarray) -> float:
    """The distribution of the sum under random signs, one image after the other."""
    chances = np.ones(1)
    for size in np.abs(differences).astype(int):
        wider = np.zeros(len(chances) + 2 * size)
        wider[: len(chances)] += chances / 2
        wider[2 * size :] += chances / 2
        chances = wider
    sums = np.arange(len(chances)) - (len(chances) - 1) // 2
    return float(chances[np.abs(sums) >= abs(int(differences.sum()))].sum())


@each_row("images, shift", [(60, 0.6), (200, 0.3), (200, 0.45), (1000, 0.2), (3000, 0.15)])
def test_small_p_values_are_those_of_all_permutations(images: int, shift: float) -> None:
    """Far below 1 / permutations, which 1,000 permutations alone could not go under."""
    random = np.random.default_rng(images)
    signs = np.where(random.random(images) < (1 + shift) / 2, 1, -1)
    differences = signs * random.integers(0, 4, images)
    exact = exact_of_whole_numbers(differences)
    assert exact < 1e-3
    test = paired_permutation(differences, 0.0 * differences, np.arange(images), permutations=1000, resamples=0)
    assert test.p_value == pytest.approx(exact, rel=0.4)


def test_small_p_values_are_valid() -> None:
    """Over all signs of ten images, at most a share α of the p-values is at most α, for every α."""
    sizes = np.random.default_rng(5).integers(1, 9, 10).astype(float)
    p_values = []
    for signs in product([1.0, -1.0], repeat=9):  # both signs of the first have the same p-value
        differences = sizes * np.array((1.0, *signs))
        # So few plain permutations that weighted ones decide wherever none of them is as extreme.
        test = paired_permutation(differences, 0 * differences, np.arange(10), permutations=20, resamples=0)
        p_values.append(test.p_value)
    ascending = np.sort(p_values)
    assert ascending[0] < 0.004
    share = np.arange(1, len(ascending) + 1) / len(ascending)
    assert (share[ascending < 0.06] <= 1.1 * ascending[ascending < 0.06] + 0.004).all()


def test_without_a_difference_hardly_any_family_of_tests_finds_one() -> None:
    random = np.random.default_rng(6)
    significant_families = 0
    for trial in range(20):
        p_values = []
        for number in range(50):
            difference = random.normal(size=30) * random.choice([0.0, 1.0, 5.0], 30)
            test = paired_permutation(
                difference, 0 * difference, np.arange(30), permutations=200, resamples=0, seed=100 * trial + number
            )
            p_values.append(test.p_value)
        significant_families += bool(min(holm(p_values)) < 0.05)
    assert significant_families <= 4, "one in twenty is promised"


def test_a_median_that_differs_by_a_rank() -> None:
    """Ranks are whole numbers: nearly every permutation has medians one rank apart, and that decides nothing."""
    random = np.random.default_rng(381)
    clusters = np.repeat(np.arange(80), 5)
    first = np.floor(np.exp(random.normal(1.0, 1.2, 400))) + 1
    second = np.maximum(1, np.floor(first * np.exp(random.normal(-0.35, 0.4, 400))))
    test = paired_permutation(second, first, clusters, statistic="floor-median")
    assert test.high < 0
    assert test.p_value < 0.05, "the interval excludes 0"
    same = paired_permutation(first, first[::-1], clusters, statistic="median")
    assert (same.difference, same.p_value) == (0, 1)


def test_which_tests_are_the_same() -> None:
    random = np.random.default_rng(7)
    clusters = np.repeat(np.arange(40), 3)
    first, second = (random.random(120) < 0.5) * 1.0, (random.random(120) < 0.6) * 1.0
    ranks = [1 + 4 * (1 - hits) for hits in (first, second)]
    tests = [
        paired_permutation(left, right, clusters, resamples=0, statistic=statistic)
        for left, right, statistic in (
            (first, second, "mean"), (random.random(120), second, "mean"), (1 - first, 1 - second, "mean"),
            (100 * first, 100 * second, "mean"), (*ranks, "median"), (*ranks, "mean"), (*ranks, "floor-median"),
            (*ranks, "median"), (first + 0.25 * (clusters == 3), second, "mean"),
        )
    ]  # fmt: skip
    assert same_tests(tests) == [0, 1, 0, 0, 4, 0, 6, 4, 8]
    assert len({test.p_value for test, first_same in zip(tests, same_tests(tests), strict=True) if not first_same}) == 1


_PRINT_P = """
import numpy as np
from crosslens.statistics import paired_permutation
random = np.random.default_rng(8)
first = random.random(600)
for statistic in ("mean", "median"):
    values = (first + 0.2 * random.random(600), first, np.arange(600) // 2)
    print(paired_permutation(*values, statistic=statistic, permutations=300, resamples=0).p_value.hex())
"""


def test_the_same_p_at_any_number_of_threads() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_P], capture_output=True, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "3")
    }  # fmt: skip
    assert len(outputs) == 1
    assert "p-" in outputs.pop(), "small p-values, by weighted permutations"


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
    exchanged_test = paired_permutation(second, first, clusters, statistic=statistic, seed=9)
    assert (exchanged_test.difference, exchanged_test.p_value) == (-test.difference, test.p_value)
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
