"""Intervals: they cover what they promise, resample images, and depend on nothing but data and seed."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from math import isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from crosslens.core import UnknownNameError, UsageError
from crosslens.statistics import Bootstrap, aggregate, estimate
from crosslens.statistics.bootstrap import FEWEST_CLUSTERS


def clustered(random: np.random.Generator, images: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Values of a few queries per image that share the image's luck."""
    clusters = np.repeat(np.arange(images), random.integers(1, 6, images))
    return random.normal(size=images)[clusters] + 0.3 * random.normal(size=len(clusters)), clusters


def slow_replicates(values: np.ndarray, clusters: np.ndarray, statistic: str, draws: np.ndarray) -> list[float]:
    """Resample by hand: put together the values of the clusters drawn."""
    names = np.unique(clusters)
    result = []
    for weights in draws:
        drawn = [values[clusters == name] for name, times in zip(names, weights, strict=True) for _ in range(times)]
        result.append(aggregate(np.concatenate(drawn), statistic))
    return result


@pytest.mark.parametrize("statistic", ["mean", "median", "floor-median"])
def test_agrees_with_resampling_by_hand(statistic: str) -> None:
    random = np.random.default_rng(1)
    clusters = random.integers(0, 12, 40)
    values = random.integers(1, 9, 40).astype(float)
    values[clusters == 3] = np.nan
    values[5] = np.nan
    bootstrap = Bootstrap(clusters, resamples=150, seed=4)
    valid = ~np.isnan(values)
    draws = np.concatenate(list(bootstrap._draw(0, len(np.unique(clusters[valid])))))
    assert (draws.sum(axis=1) == draws.shape[1]).all()
    expected = slow_replicates(values[valid], clusters[valid], statistic, draws)
    np.testing.assert_allclose(bootstrap.replicates(values, statistic), expected, rtol=1e-12)
    figure = bootstrap.estimate(values, statistic, method="percentile")
    assert figure.mean == aggregate(values[valid], statistic)
    assert figure.interval == pytest.approx(tuple(np.quantile(expected, [0.025, 0.975])))


def slow_studentised(values: np.ndarray, clusters: np.ndarray, draws: np.ndarray) -> tuple[float, float]:
    """Draw by draw, the mean's distance from that of the sample in standard errors of the draw."""
    images = len(np.unique(clusters))
    members = [values[clusters == name] for name in np.unique(clusters)]

    def mean_and_error(parts: list[np.ndarray]) -> tuple[float, float]:
        mean = np.concatenate(parts).mean()
        sums = [float((part - mean).sum()) for part in parts]
        count = sum(map(len, parts))
        return float(mean), float(np.sqrt(np.square(sums).sum() * images / (images - 1)) / count)

    mean, error = mean_and_error(members)
    offs = []
    for weights in draws:
        drawn, error_of_drawn = mean_and_error(
            [part for part, times in zip(members, weights, strict=True) for _ in range(times)]
        )
        offs.append((drawn - mean) / max(error_of_drawn, error / 3))
    tail = 0.025 * (images - 2) / (images + 2)
    student = stats.t.ppf(0.975, images - 1)
    below, above = np.quantile(offs, [tail, 1 - tail])
    return mean - max(above, student) * error, mean - min(below, -student) * error


@pytest.mark.parametrize("sizes", [(1, 2), (1, 6), (3, 4)])
def test_the_interval_of_an_unbounded_mean_against_a_slow_reference(sizes: tuple[int, int]) -> None:
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(15), random.integers(*sizes, 15))
    values = random.lognormal(size=len(clusters))
    bootstrap = Bootstrap(clusters, resamples=150, seed=4)
    expected = slow_studentised(values, clusters, np.concatenate(list(bootstrap.weights(15))))
    assert bootstrap.estimate(values).interval == pytest.approx(expected)
    assert bootstrap.estimate(values, bounds=(0, np.inf)).low == pytest.approx(max(expected[0], 0))
    assert bootstrap.estimate(1e6 + values).interval == pytest.approx([1e6 + end for end in expected], abs=1e-6)


DRAWN = {
    "normal": (lambda random, count: random.normal(5, 1, count), 5.0),
    "geometric": (lambda random, count: random.geometric(0.3, count).astype(float), 1 / 0.3),
    "log-normal": (lambda random, count: random.lognormal(size=count), float(np.exp(0.5))),
}


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("images", [10, 20, 50])
def test_unbounded_means_contain_the_truth(kind: str, images: int) -> None:
    """Percentiles of resampled means contained that of ten log-normal values in 77 % of samples."""
    draw, mean = DRAWN[kind]
    random, contained = np.random.default_rng(images), []
    for _ in range(300):
        figure = estimate(draw(random, images), np.arange(images), resamples=400)
        assert np.isnan(figure.low) or figure.low < figure.mean < figure.high
        contained.append(figure.low <= mean <= figure.high)
    assert np.mean(contained) > (0.9 if kind == "log-normal" else 0.92)


def test_an_unbounded_mean_of_few_images_has_no_interval() -> None:
    values = np.random.default_rng(1).normal(size=FEWEST_CLUSTERS)
    assert np.isfinite(estimate(values, np.arange(FEWEST_CLUSTERS)).interval).all()
    assert np.isnan(estimate(values[1:], np.arange(FEWEST_CLUSTERS - 1)).interval).all()
    assert np.isfinite(estimate((values > 0).astype(float)[1:], np.arange(9), bounds=(0, 1)).interval).all()


def test_a_mean_of_few_values_that_differ_has_a_finite_interval() -> None:
    """Most resamples of 49 zeros and a 3 have at most one 3, and many none, which have no standard error."""
    figure = estimate(np.eye(50)[0] * 3, np.arange(50), bounds=(0, np.inf))
    assert (figure.low, figure.mean) == (0, pytest.approx(0.06))
    assert 0.2 < figure.high < 0.4


@given(st.lists(st.integers(1, 5), min_size=2, max_size=12), st.integers(0, 5))
def test_medians_agree_with_numpy(values: list[int], seed: int) -> None:
    bootstrap = Bootstrap(np.arange(len(values)), resamples=20, seed=seed)
    draws = np.concatenate(list(bootstrap._draw(0, len(values))))
    expected = [np.median(np.repeat(values, weights)) for weights in draws]
    np.testing.assert_array_equal(bootstrap.replicates(np.array(values, float), "median"), expected)


@pytest.mark.slow  # the intervals are those by hand and of scipy
def test_covers_the_truth_about_as_often_as_it_says() -> None:
    """And resampling queries instead of images would not: its intervals are far too narrow."""
    random = np.random.default_rng(7)
    covered = {"images": 0, "queries": 0, "bca": 0}
    trials = 200
    for trial in range(trials):
        values, clusters = clustered(random)
        for kind, groups, method in (
            ("images", clusters, "percentile"),
            ("queries", np.arange(len(values)), "percentile"),
            ("bca", clusters, "bca"),
        ):
            low, high = estimate(values, groups, resamples=300, seed=trial, method=method).interval
            covered[kind] += low <= 0 <= high
    assert 0.90 <= covered["images"] / trials <= 0.99
    assert 0.90 <= covered["bca"] / trials <= 0.99
    assert covered["queries"] / trials < 0.85


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_agrees_with_scipy(method: str) -> None:
    from scipy import stats

    values = np.random.default_rng(3).exponential(size=80)
    ours = estimate(values, np.arange(80), resamples=20_000, method=method)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method=method, rng=1).confidence_interval
    assert ours.interval == pytest.approx(tuple(theirs), abs=0.01)


def test_same_seed_same_answer() -> None:
    values, clusters = clustered(np.random.default_rng(2))
    assert estimate(values, clusters, seed=3) == estimate(values, clusters, seed=3)
    assert estimate(values, clusters, seed=3).interval != estimate(values, clusters, seed=4).interval
    bootstrap = Bootstrap(clusters, seed=3)
    bootstrap.estimate(values**2)
    assert bootstrap.estimate(values) == estimate(values, clusters, seed=3), "one draw serves all metrics"


def test_columns_are_estimated_as_each_by_itself() -> None:
    values, clusters = clustered(np.random.default_rng(2))
    table = np.stack([values, values**2, np.ones_like(values), values, np.full_like(values, np.nan)], axis=1)
    table[::3, 3] = np.nan
    bootstrap = Bootstrap(clusters, resamples=100, seed=3)
    for column, ours in enumerate(bootstrap.estimate_columns(table, level=0.9)):
        alone = bootstrap.estimate(table[:, column], level=0.9)
        np.testing.assert_allclose([ours.mean, *ours.interval], [alone.mean, *alone.interval], rtol=1e-12)
    assert np.isnan(bootstrap.estimate_columns(table)[2].interval).all(), "nothing varies"


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_order_and_names_of_clusters_do_not_matter(statistic: str) -> None:
    values, clusters = clustered(np.random.default_rng(2))
    order = np.random.default_rng(3).permutation(len(values))
    first = estimate(values, clusters, statistic=statistic)
    again = estimate(values[order], 10 * clusters[order] - 70, statistic=statistic)
    np.testing.assert_allclose([first.mean, *first.interval], [again.mean, *again.interval], rtol=1e-13)


def test_large_draws_are_not_kept_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values, clusters = clustered(np.random.default_rng(2))
    kept = Bootstrap(clusters)
    expected = kept.estimate(values), kept.estimate(values, "median")
    monkeypatch.setattr("crosslens.statistics.bootstrap._KEPT_BYTES", 0)
    monkeypatch.setattr("crosslens.statistics.bootstrap._CELLS", 100)
    bounded = Bootstrap(clusters)
    assert (bounded.estimate(values), bounded.estimate(values, "median")) == expected
    assert not bounded._drawn


def test_number_of_threads_does_not_matter() -> None:
    program = (
        "import numpy as np; from crosslens.statistics import estimate; v = np.random.default_rng(0).random(20_000);"
        "print(estimate(v, np.arange(20_000) // 5), estimate(np.floor(9 * v), np.arange(20_000), statistic='median'))"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    others = "2" if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else "1"  # than this process has
    elsewhere = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **dict.fromkeys(names, others)},
        capture_output=True,
        text=True,
        check=True,
    )
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(program, {})
    assert here.getvalue() == elsewhere.stdout


def test_folds() -> None:
    """The figure is the mean over folds, not over queries; each fold is resampled by itself."""
    values = np.array([1, 1, 0, 1, 0, 0, 0, 0, 0, 1.0])
    folds = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
    figure = estimate(values, np.arange(10), strata=folds)
    assert figure.mean == pytest.approx((2 / 3 + 2 / 7) / 2)
    assert figure.low < figure.mean < figure.high
    cut = estimate(values, np.arange(10), strata=folds, bounds=(0, np.inf))
    assert (cut.low, cut.high) == (0, figure.high), "no value is below 0"
    steady = np.where(folds == 0, 1.0, 0.0)
    assert estimate(steady, np.arange(10), strata=folds).interval == pytest.approx((np.nan, np.nan), nan_ok=True), (
        "no value varies in a fold"
    )
    ranks = np.array([1, 1, 7, 3, 3, 3, 3, 9, 9, 9.0])
    assert estimate(ranks, np.arange(10), strata=folds, statistic="median").mean == 2


def test_pairs_belong_to_the_clusters_of_their_queries() -> None:
    random = np.random.default_rng(5)
    clusters, rows = np.repeat(np.arange(10), 2), np.repeat(np.arange(20), 3)
    values = random.normal(size=60)
    assert Bootstrap(clusters).estimate(values, rows=rows) == estimate(values, clusters[rows])


def test_too_little_for_an_interval() -> None:
    nothing = estimate(np.full(4, np.nan), np.arange(4))
    assert all(isnan(figure) for figure in (nothing.mean, nothing.low, nothing.high))
    for statistic in ("mean", "median"):
        single = estimate(np.array([1.0, 3.0, np.nan]), np.array([5, 5, 6]), statistic=statistic)
        assert single.mean == 2
        assert isnan(single.low)
        assert isnan(single.high)
    assert isnan(estimate(np.array([]), np.array([])).mean)
    assert isnan(estimate(np.arange(5.0), np.arange(5), resamples=0).low)


def test_wrong_arguments() -> None:
    values, clusters = np.arange(5.0), np.arange(5)
    with pytest.raises(UsageError, match=r"confidence level 95\n  fix: use a number between 0 and 1"):
        estimate(values, clusters, level=95)
    with pytest.raises(UsageError, match="-1 resamples"):
        estimate(values, clusters, resamples=-1)
    with pytest.raises(UsageError, match="unknown statistic 'mode'"):
        estimate(values, clusters, statistic="mode")
    with pytest.raises(UnknownNameError, match="unknown interval method 'exact'"):
        estimate(values, clusters, method="exact")
    with pytest.raises(UsageError, match="a BCa interval of a median"):
        estimate(values, clusters, statistic="median", method="bca")
