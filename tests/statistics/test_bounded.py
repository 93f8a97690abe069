"""Intervals of bounded means: right at the edges, against slow references, and over a grid by simulation."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize, stats

from crosslens.statistics import Bootstrap, Samples, estimate, paired_permutation, paired_samples, sum_of_means
from crosslens.statistics.bounded import _binomial_limits, _trinomial_limits

SHARE = (0.0, 1.0)


def test_all_hits_leave_room_for_a_miss() -> None:
    """With the mid-P correction the lower limit L of n hits out of n has L^n = 2 × 2.5 %."""
    figure = estimate(np.ones(100), np.arange(100), bounds=SHARE)
    assert figure.mean == figure.high == 1
    assert figure.low == pytest.approx(0.05 ** (1 / 100))
    none = estimate(np.zeros(100), np.arange(100), bounds=SHARE)
    assert (none.low, none.high) == (0, pytest.approx(1 - figure.low))


def test_captions_of_one_image_are_no_more_than_one_where_nothing_varies() -> None:
    """500 hits of 100 images: whether captions of an image miss together is not known."""
    clusters = np.repeat(np.arange(100), 5)
    assert estimate(np.ones(500), clusters, bounds=SHARE) == estimate(np.ones(100), np.arange(100), bounds=SHARE)


@pytest.mark.parametrize(("hits", "size"), [(0, 12), (1, 12), (7, 12), (11, 12), (12, 12), (99, 100), (4990, 5000)])
def test_binomial_limits_against_the_mid_p_distribution(hits: int, size: int) -> None:
    low, high = _binomial_limits(hits, size, 0.95)
    exact = stats.binomtest(hits, size).proportion_ci(0.95)
    assert exact.low <= low <= hits / size <= high <= exact.high, "within Clopper and Pearson's limits"
    if hits:
        above = stats.binom.sf(hits, size, low) + stats.binom.pmf(hits, size, low) / 2
        assert above == pytest.approx(0.025, rel=1e-6)
    if hits < size:
        below = stats.binom.cdf(hits, size, high) - stats.binom.pmf(hits, size, high) / 2
        assert below == pytest.approx(0.025, rel=1e-6)


def slow_score(up: int, down: int, size: int, difference: float) -> float:
    """The score of a difference: the likelihood is maximised numerically, with the difference held fixed."""
    agree = size - up - down

    def loss(falls: float) -> float:
        rises = falls + difference
        chances = np.maximum([rises, falls, 1 - rises - falls], 1e-300)
        return -float(np.dot([up, down, agree], np.log(chances)))

    bounds = (max(0.0, -difference), (1 - difference) / 2)
    falls = float(optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-13}).x)
    variance = (2 * falls + difference - difference**2) / size
    return ((up - down) / size - difference) / variance**0.5


@pytest.mark.parametrize(("up", "down", "size"), [(5, 1, 20), (3, 3, 40), (12, 2, 30), (40, 25, 500), (1, 9, 11)])
def test_trinomial_limits_against_a_numeric_likelihood(up: int, down: int, size: int) -> None:
    low, high = _trinomial_limits(up, down, size, 0.95)
    critical = stats.norm.ppf(0.975)
    assert slow_score(up, down, size, low) == pytest.approx(critical, rel=1e-4)
    assert slow_score(up, down, size, high) == pytest.approx(-critical, rel=1e-4)


def test_identical_runs_may_differ_on_other_images() -> None:
    """No query of 100 disagrees: Tango's limits are ± z² ÷ (n + z²)."""
    values = np.random.default_rng(0).random(100).round()
    test = paired_permutation(values, values, np.arange(100), permutations=10, bounds=SHARE)
    edge = stats.norm.ppf(0.975) ** 2 / (100 + stats.norm.ppf(0.975) ** 2)
    assert (test.low, test.difference, test.high) == pytest.approx((-edge, 0, edge))


@given(st.lists(st.integers(0, 4), min_size=4, max_size=40), st.integers(1, 4), st.randoms())
def test_figure_inside_interval_inside_bounds_in_any_order(values: list[int], captions: int, random: object) -> None:
    levels = np.array(values) / 4
    clusters = np.arange(len(levels)) // captions
    figure = estimate(levels, clusters, bounds=SHARE)
    wide = estimate(levels, clusters, bounds=SHARE, level=0.99)
    if len(np.unique(clusters)) < 2:
        assert isnan(figure.low)
        return
    assert 0 <= wide.low <= figure.low <= figure.mean <= figure.high <= wide.high <= 1
    assert figure.low < figure.high, "never of no width"
    order = np.random.default_rng(len(values)).permutation(len(levels))
    again = estimate(levels[order], (clusters * 7 + 3)[order], bounds=SHARE)
    assert again.interval == pytest.approx(figure.interval, abs=1e-9)
    scaled = estimate(100 * levels, clusters, bounds=(0, 100))
    assert scaled.interval == pytest.approx((100 * figure.low, 100 * figure.high), abs=1e-7)


def test_queries_without_a_value_do_not_count() -> None:
    random = np.random.default_rng(2)
    values, clusters = random.random(60).round(), np.repeat(np.arange(20), 3)
    missing = clusters > 11
    expected = estimate(values[~missing], clusters[~missing], bounds=SHARE)
    assert estimate(np.where(missing, np.nan, values), clusters, bounds=SHARE) == expected


def test_values_outside_their_bounds_are_resampled() -> None:
    values = np.random.default_rng(3).normal(size=50)
    assert estimate(values, np.arange(50), bounds=SHARE) == estimate(values, np.arange(50))


def test_sum_of_both_directions_at_the_top() -> None:
    """600 of 600 for 50 images: as for any share, 0.05^(1/50) of it."""
    images, captions = Bootstrap(np.arange(50)), Bootstrap(np.repeat(np.arange(50), 5))
    figure = sum_of_means([(images, np.full(50, 300.0)), (captions, np.full(250, 300.0))], bounds=(0, 600))
    assert (figure.mean, figure.high, figure.low) == pytest.approx((600, 600, 600 * 0.05 ** (1 / 50)))


def test_paired_samples_agree_with_paired_queries() -> None:
    random = np.random.default_rng(4)
    clusters = np.repeat(np.arange(30), 4)
    before, after = (random.random(120) < chance for chance in (0.8, 0.9))
    both = paired_samples(Samples(before, clusters, after, clusters), permutations=5, bounds=SHARE)
    test = paired_permutation(after, before, clusters, permutations=5, bounds=SHARE)
    assert both.test.interval == pytest.approx(test.interval)
    assert both.relative_low < both.relative < both.relative_high


def test_a_change_from_perfect_to_perfect_has_an_interval() -> None:
    ones, clusters = np.ones(40), np.repeat(np.arange(20), 2)
    change = paired_samples(Samples(ones, clusters, np.ones(20), np.arange(20)), permutations=5, bounds=SHARE)
    assert change.test.low < 0 < change.test.high
    assert (change.relative_low, change.relative_high) == pytest.approx(change.test.interval)


def test_near_the_ceiling_the_interval_contains_the_truth() -> None:
    """Resampling contained a true 99 % in 65 of 100 samples of 100."""
    random = np.random.default_rng(5)
    contained = []
    for _ in range(400):
        figure = estimate((random.random(100) < 0.99).astype(float), np.arange(100), bounds=SHARE)
        contained.append(figure.low <= 0.99 <= figure.high)
    assert np.mean(contained) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("study", ["coverage", "coverage of differences", "coverage of Rsum"])
def test_coverage_over_the_grid(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """93 to 97 % everywhere; more only where fewer than 20 misses are expected. 600 repeats leave ± 2.5 points."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "reproduce"))
    import interval_coverage

    noise = 0.027
    for captions, images, setting, share, few in interval_coverage.cells(study, 600, seed=1):
        assert 0.93 - noise <= share, (str(captions), images, setting)
        assert few or share <= 0.97 + noise, (str(captions), images, setting)
