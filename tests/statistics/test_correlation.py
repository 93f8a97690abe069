"""Correlations: what scipy says, for ties and resamples too; judges against each other, by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.statistics import COEFFICIENTS, Bootstrap, correlations


def by_scipy(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    return {
        "pearson": float(scipy.stats.pearsonr(first, second)[0]),
        "spearman": float(scipy.stats.spearmanr(first, second)[0]),
        "kendall-b": float(scipy.stats.kendalltau(first, second, variant="b")[0]),
        "kendall-c": float(scipy.stats.kendalltau(first, second, variant="c")[0]),
    }


def graded(random: np.random.Generator, n: int, grades: int) -> tuple[np.ndarray, np.ndarray]:
    """A continuous score and grades that follow it, roughly."""
    score = random.normal(size=n)
    return score, np.clip(np.round(score + random.normal(size=n) + grades / 2), 1, grades)


@pytest.mark.parametrize(("n", "grades"), [(5, 2), (60, 2), (300, 4), (1000, 10), (1000, 1000)])
def test_scipy_says_the_same(n: int, grades: int) -> None:
    first, second = graded(np.random.default_rng(n + grades), n, grades)
    assert correlations(first, second).figures == pytest.approx(by_scipy(first, second), abs=1e-10)
    assert correlations(second, first).figures == pytest.approx(by_scipy(first, second), abs=1e-10)


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 3)), min_size=3, max_size=40))
def test_scipy_says_the_same_of_ties(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, float).T
    figures = correlations(first, second).figures
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert all(isnan(figure) for figure in figures.values())
    else:
        assert figures == pytest.approx(by_scipy(first, second), abs=1e-9)


def test_a_resample_is_the_pairs_of_the_images_drawn() -> None:
    random = np.random.default_rng(5)
    first, second = graded(random, 80, 4)
    clusters = random.integers(0, 15, 80)
    result = correlations(first, second, clusters, resamples=70, seed=2)
    names = np.unique(clusters)
    draws = np.concatenate(list(Bootstrap(clusters, 70, 2).weights(len(names))))
    for row, weights in enumerate(draws):
        members = np.concatenate(
            [np.tile(np.flatnonzero(clusters == name), times) for name, times in zip(names, weights, strict=True)]
        ).astype(int)
        expected = by_scipy(first[members], second[members])
        assert {name: replicates[row] for name, replicates in result.replicates.items()} == pytest.approx(
            expected, abs=1e-10
        )
    low, high = np.quantile(result.replicates["spearman"], [0.05, 0.95])
    estimate = result.estimate("spearman", 0.9)
    assert (estimate.low, estimate.high) == pytest.approx((low, high))


def test_differences_are_of_the_same_resamples() -> None:
    random = np.random.default_rng(6)
    first, second = graded(random, 200, 4)
    clusters = np.arange(200) // 4
    better = correlations(first, second, clusters, resamples=200)
    worse = correlations(first + random.normal(size=200), second, clusters, resamples=200)
    gain = better.less(worse, "pearson")
    assert gain.mean == pytest.approx(better.figures["pearson"] - worse.figures["pearson"])
    expected = np.quantile(better.replicates["pearson"] - worse.replicates["pearson"], [0.025, 0.975])
    assert gain.interval == pytest.approx(tuple(expected))
    nothing = better.less(better, "kendall-b")
    assert (nothing.mean, nothing.low, nothing.high) == (0, 0, 0)


def test_threads_and_order_change_nothing() -> None:
    random = np.random.default_rng(7)
    first, second = graded(random, 150, 4)
    clusters = random.integers(0, 30, 150)
    once = correlations(first, second, clusters, resamples=150, threads=1)
    again = correlations(first, second, clusters, resamples=150, threads=3)
    order = random.permutation(150)
    moved = correlations(first[order], second[order], clusters[order], resamples=150)
    for name in COEFFICIENTS:
        assert np.array_equal(once.replicates[name], again.replicates[name])
        assert once.replicates[name] == pytest.approx(moved.replicates[name], abs=1e-12)


def test_what_cannot_agree_has_no_figure() -> None:
    constant = correlations(np.ones(9), np.arange(9.0), np.arange(9), resamples=20)
    assert all(isnan(figure) for figure in constant.figures.values())
    assert isnan(constant.estimate("pearson").low)
    assert all(isnan(figure) for figure in correlations(np.ones(1), np.ones(1)).figures.values())
    one_image = correlations(np.arange(5.0), np.arange(5.0), np.zeros(5, int), resamples=10)
    assert one_image.figures["pearson"] == pytest.approx(1)
    assert isnan(one_image.estimate("pearson").low)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="row 2: the value is nan"):
        correlations(np.array([1, 2, np.nan]), np.arange(3.0))
    with pytest.raises(InputError, match="3 values against 2"):
        correlations(np.arange(3.0), np.arange(2.0))
    with pytest.raises(UsageError, match="confidence level"):
        correlations(np.arange(3.0), np.arange(3.0)).estimate("pearson", 95)


# Judges
