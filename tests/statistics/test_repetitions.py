"""Figures over seeds: t intervals and paired tests, against scipy's own and against plain loops."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from crosslens.core import InputError, UsageError
from crosslens.statistics import mean_over_repetitions, paired_repetitions, same_tests

NUMBERS = st.lists(st.integers(-1000, 1000).map(lambda number: number / 8), min_size=2, max_size=8)


@given(NUMBERS, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_is_scipys(values: list[float], level: float) -> None:
    figure = mean_over_repetitions(values, level)
    assert figure.mean == pytest.approx(sum(values) / len(values), abs=1e-12)
    if len(set(values)) == 1:
        assert math.isnan(figure.low)
        assert math.isnan(figure.high)
        return
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    assert figure.interval == pytest.approx((low, high), rel=1e-9, abs=1e-9)


def test_an_interval_by_hand() -> None:
    figure = mean_over_repetitions([1.0, 2.0, 3.0])
    half = 4.302652729911275 / math.sqrt(3)  # the table's t for 2 degrees of freedom; the standard deviation is 1
    assert figure.interval == pytest.approx((2 - half, 2 + half))


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=2, max_size=7))
def test_the_paired_test_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(side, float) for side in zip(*pairs, strict=True))
    test = paired_repetitions(first, second)
    assert test.n == len(pairs)
    if len({ours - theirs for ours, theirs in pairs}) == 1:
        assert math.isnan(test.p_value)
        return
    expected = stats.ttest_rel(first, second)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7))
def test_sign_flips_by_plain_loops(pairs: list[tuple[int, int]]) -> None:
    differences = [ours - theirs for ours, theirs in pairs]
    sums = [sum(sign * value for sign, value in zip(signs, differences, strict=True))
            for signs in product((1, -1), repeat=len(pairs))]  # fmt: skip
    expected = sum(abs(total) >= abs(sum(differences)) for total in sums) / len(sums)
    test = paired_repetitions(*zip(*pairs, strict=True))
    assert test.sign_flip_p == pytest.approx(expected)
    assert test.sign_flip_p >= test.smallest_p


@pytest.mark.parametrize(
    ("first", "second"),
    [([0.83, 0.81], [0.80, 0.78]), ([1e6 + 0.1, 2e6 + 0.1], [1e6, 2e6]), ([0.1 + 0.2, 0.5], [0.3, 0.5])],
)
def test_equal_differences_determine_no_p(first: list[float], second: list[float]) -> None:
    """They differ by rounding: the t test took 10⁻¹⁶ for a spread, and gave p = 10⁻¹⁵."""
    test = paired_repetitions(first, second)
    assert test.difference == pytest.approx(first[0] - second[0], abs=1e-9)
    assert math.isnan(test.p_value)
    assert math.isnan(test.low)
    assert test.sign_flip_p >= test.smallest_p


def test_values_that_differ_by_rounding_have_no_interval() -> None:
    assert math.isnan(mean_over_repetitions([0.3, 0.1 + 0.2, 0.3]).low)
    assert not math.isnan(mean_over_repetitions([0.3, 0.3000001, 0.3]).low)


def test_the_smallest_p() -> None:
    test = paired_repetitions([2.0, 3.1, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.5])
    assert test.sign_flip_p == test.smallest_p == 0.0625
    assert test.p_value < 0.001, "the t test is not bound by it"


def test_many_repetitions_are_sampled() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(0.4, 1, 40), np.zeros(40)
    test = paired_repetitions(first, second)
    assert test.sign_flip_p == pytest.approx(test.p_value, abs=0.02)


def test_too_few_values() -> None:
    single = mean_over_repetitions([3.0])
    assert single.mean == 3.0
    assert math.isnan(single.low)
    assert math.isnan(mean_over_repetitions([]).mean)
    assert math.isnan(paired_repetitions([1.0], [2.0]).p_value)
    assert math.isnan(paired_repetitions([], []).sign_flip_p)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="2 and 1 values"):
        paired_repetitions([1.0, 2.0], [1.0])
    with pytest.raises(UsageError, match="confidence level"):
        mean_over_repetitions([1.0, 2.0], 95)


def test_equal_tests_over_repetitions() -> None:
    """Hit@1 and Fails over seeds are one test; of one seed, all differences are a number, and nothing is the same."""
    hits, others = [0.61, 0.64, 0.6], [0.5, 0.58, 0.55]
    ranks = paired_repetitions([3.0, 2.0, 4.0], [5.0, 5.5, 5.0])
    fails = paired_repetitions([1 - value for value in hits], [1 - value for value in others])
    assert same_tests([paired_repetitions(hits, others), ranks, fails]) == [0, 1, 0]
    assert same_tests([paired_repetitions([0.6], [0.5]), paired_repetitions([3.0], [5.0])]) == [0, 1]
