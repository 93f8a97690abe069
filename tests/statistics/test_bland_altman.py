"""Bland–Altman against the standard library's mean and standard deviation, and scales against slow definitions."""

from __future__ import annotations

import statistics as plain

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics import bland_altman, rescaled
from crosslens.statistics.bootstrap import Bootstrap

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


def test_intervals_are_those_of_resampled_images() -> None:
    random = np.random.default_rng(4)
    first, second, images = random.normal(size=30), random.normal(size=30) + 1, np.arange(30) // 3
    result = bland_altman(first, second, images, resamples=100, seed=5)
    upper = []
    for draws in Bootstrap(images, 100, 5).weights(10):
        for draw in draws:
            rows = [row for row in range(30) for _ in range(draw[images[row]])]
            differences = [float(second[row] - first[row]) for row in rows]
            upper.append(plain.mean(differences) + 1.96 * plain.stdev(differences))
    assert result.upper.interval == pytest.approx(tuple(np.quantile(upper, [0.025, 0.975])))
    assert result.upper.low < result.upper.mean < result.upper.high


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_scales_equal_slow_definitions(values: list[int]) -> None:
    n = len(values)
    ranks = [(sum(other < value for other in values) + values.count(value) / 2) / n for value in values]
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
