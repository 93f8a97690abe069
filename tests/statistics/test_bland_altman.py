"""Bland–Altman against the standard library's mean and standard deviation, and scales against slow definitions."""

from __future__ import annotations

import statistics as plain

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics import bland_altman, rescaled
from tests.tables import rest_slow

numbers = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=15)


@given(numbers)
def test_it_equals_the_definition(pairs: list[tuple[int, int]]) -> None:
    result = bland_altman(*zip(*pairs, strict=True))
    differences = [second - first for first, second in pairs]
    mean, sd = plain.mean(differences), plain.stdev(differences)
    assert result.mean.mean == pytest.approx(mean, abs=1e-9)
    assert result.sd == pytest.approx(sd, abs=1e-6)
    assert result.lower.mean == pytest.approx(mean - 1.96 * sd, abs=1e-5)
    assert result.upper.mean == pytest.approx(mean + 1.96 * sd, abs=1e-5)


def test_a_large_offset_does_not_cancel() -> None:
    """Sums of squares lost the standard deviation of differences about 10⁹."""
    random = np.random.default_rng(3)
    first, noise = random.normal(size=50), random.normal(size=50)
    near, far = bland_altman(first, first + noise), bland_altman(first, first + noise + 1e9)
    assert far.sd == pytest.approx(plain.stdev((first + noise + 1e9 - first).tolist()))
    assert far.sd == pytest.approx(near.sd, rel=1e-6)
    assert far.upper.high - far.upper.low == pytest.approx(near.upper.high - near.upper.low, rel=1e-5)


def test_the_interval_of_the_mean_is_students() -> None:
    random = np.random.default_rng(4)
    first, second = random.normal(size=(2, 12))
    expected = stats.ttest_rel(second, first).confidence_interval(0.9)
    assert bland_altman(first, second, level=0.9).mean.interval == pytest.approx((expected.low, expected.high))
    images = np.arange(30) // 3
    first, second = random.normal(size=(2, 30)) + random.normal(size=10)[images]
    per_image = [float(np.mean((second - first)[images == image])) for image in range(10)]
    expected = stats.ttest_1samp(per_image, 0).confidence_interval()
    assert bland_altman(first, second, images).mean.interval == pytest.approx((expected.low, expected.high))


def test_intervals_of_limits_of_many_normal_differences() -> None:
    """The standard error of a limit is about √(1/n + 1.96²/2n) standard deviations (Bland and Altman 1999)."""
    differences = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    result = bland_altman(np.zeros(4000), differences)
    half = 1.96 * np.sqrt(1 / 4000 + 1.96**2 / 8000)
    for limit in (result.lower, result.upper):
        assert limit.interval == pytest.approx((limit.mean - half, limit.mean + half), abs=3e-3)


@pytest.mark.parametrize(("images", "captions"), rest_slow([(10, 5), (10, 1), (30, 1)]))
def test_coverage_of_the_limits(images: int, captions: int) -> None:
    """Percentiles of resamples contained the true limits of ten images in 80 of 100 samples."""
    random = np.random.default_rng(6)
    clusters = np.repeat(np.arange(images), captions)
    inside = []
    for _ in range(1200):
        alike = random.normal(size=images)[clusters] if captions > 1 else 0.0
        differences = np.sqrt(0.3) * alike + np.sqrt(0.7 if captions > 1 else 1) * random.normal(size=len(clusters))
        result = bland_altman(0 * differences, differences, clusters)
        inside += [result.lower.low <= -1.96 <= result.lower.high, result.upper.low <= 1.96 <= result.upper.high]
    assert 0.93 <= np.mean(inside) <= 0.97


def test_where_there_is_no_interval() -> None:
    for result in (
        bland_altman([0.1, 0.2, 0.4], [0.4, 0.5, 0.7]),
        bland_altman([1, 2, 4], [4, 5, 9], np.zeros(3, int)),
        bland_altman([1, 2, 4], [4, 5, 9], intervals=False),
    ):
        assert all(np.isnan(end) for figure in (result.mean, result.lower) for end in figure.interval)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_scales_equal_slow_definitions(values: list[int]) -> None:
    n = len(values)
    ranks = [(sum(smaller < value for smaller in values) + values.count(value) / 2) / n for value in values]
    assert rescaled(values, "rank").tolist() == pytest.approx(ranks)
    constant = len(set(values)) == 1
    expected = [0.0] * n if constant else [(v - min(values)) / (max(values) - min(values)) for v in values]
    assert rescaled(values, "range").tolist() == pytest.approx(expected)
    expected = [0.0] * n if constant else [(v - plain.mean(values)) / plain.stdev(values) for v in values]
    assert rescaled(values, "z").tolist() == pytest.approx(expected)


def test_standardised_limits_are_the_correlation_in_other_words() -> None:
    random = np.random.default_rng(0)
    first = random.normal(size=200)
    second = first + random.normal(size=200)
    result = bland_altman(rescaled(first, "z"), rescaled(second, "z"))
    correlation = np.corrcoef(first, second)[0, 1]
    assert result.mean.mean == pytest.approx(0, abs=1e-12)
    assert result.sd == pytest.approx(np.sqrt(2 - 2 * correlation))


def test_bad_input() -> None:
    with pytest.raises(InputError, match="one of each per pair"):
        bland_altman([1, 2], [1])
    with pytest.raises(InputError, match="the difference is nan"):
        bland_altman([1, float("nan")], [1, 2])
    with pytest.raises(UnknownNameError, match="log"):
        rescaled([1], "log")
