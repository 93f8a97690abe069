"""AUPRC: scikit-learn's on 1,000 random cases, a slow reference from the definition, and the jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics import Area, auprc
from tests.tables import rest_slow


def slow_area(positive: list[bool], scores: list[float], kind: str) -> float:
    """From the definition: every distinct score is a threshold, retrieved is what scores at least that."""
    area, recall_before, precision_before = 0.0, 0.0, 1.0
    for threshold in sorted(set(scores), reverse=True):
        retrieved = [label for label, score in zip(positive, scores, strict=True) if score >= threshold]
        precision, recall = sum(retrieved) / len(retrieved), sum(retrieved) / sum(positive)
        height = precision if kind == "step" else (precision + precision_before) / 2
        area += (recall - recall_before) * height
        recall_before, precision_before = recall, precision
    return area


def random_case(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores; every other case has few distinct scores, so that many are tied."""
    random = np.random.default_rng(number)
    size = int(random.integers(1, 60))
    positive = random.random(size) < random.uniform(0.05, 0.95)
    positive[random.integers(size)] = True
    scores = random.normal(size=size) + positive
    return positive, np.round(scores) if number % 2 else scores


@pytest.mark.parametrize("cases", [range(150), pytest.param(range(150, 1000), marks=pytest.mark.slow)], ids=len)
def test_equals_scikit_learn_on_a_thousand_random_cases(cases: range) -> None:
    sklearn = pytest.importorskip("sklearn")
    metrics = pytest.importorskip("sklearn.metrics")
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):  # a third of the time
        for number in cases:
            positive, scores = random_case(number)
            expected = metrics.average_precision_score(positive, scores)
            assert abs(auprc(positive, scores).mean - expected) < 1e-12, number


def test_trapezoid_equals_scikit_learns_curve() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for number in range(50):
        positive, scores = random_case(number)
        precision, recall, _ = metrics.precision_recall_curve(positive, scores)
        assert auprc(positive, scores, kind="trapezoid").mean == pytest.approx(metrics.auc(recall, precision), abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=12))
def test_equals_the_slow_reference(pairs: list[tuple[bool, int]]) -> None:
    positive, scores = [label for label, _ in pairs], [float(score) for _, score in pairs]
    for kind in ("step", "trapezoid"):
        area = auprc(positive, scores, kind=kind).mean
        if not any(positive):
            assert np.isnan(area)
        else:
            assert area == pytest.approx(slow_area(positive, scores, kind), abs=1e-12)
            order = np.random.default_rng(0).permutation(len(pairs))
            assert auprc(np.array(positive)[order], np.array(scores)[order], kind=kind).mean == pytest.approx(area)


def test_a_constant_score_is_at_chance_and_a_perfect_one_is_one() -> None:
    positive = [True] * 3 + [False] * 9
    assert auprc(positive, [0.5] * 12).mean == pytest.approx(0.25)
    assert auprc(positive, [2.0] * 3 + [1.0] * 9).mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "decimals"), rest_slow([("trapezoid", 1), ("step", 1), ("step", 9), ("trapezoid", 9)], 2)
)
def test_interval_against_a_slow_jackknife(kind: Area, decimals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever many images contribute alike, it is the area ± Student's t × the standard error of the jackknife."""
    monkeypatch.setattr("crosslens.statistics.precision_recall._CELLS", 1000)  # images in several blocks
    random = np.random.default_rng(3)
    positive, clusters = np.arange(200) % 2 == 0, np.arange(200) // 2
    scores = (random.normal(size=200) + positive).round(decimals)
    figure = auprc(positive, scores, clusters, kind=kind, resamples=1)
    areas = []
    for image in range(100):
        others = clusters != image
        areas.append(slow_area(list(positive[others]), list(scores[others]), kind))
    error = np.sqrt(99 / 100 * np.sum((np.array(areas) - np.mean(areas)) ** 2))
    bias = 99 * (np.mean(areas) - figure.mean)
    assert figure.high - figure.low == pytest.approx(2 * stats.t.ppf(0.975, 99) * error + abs(bias), rel=0.04)
    assert (figure.low + figure.high) / 2 == pytest.approx(figure.mean - bias / 2, abs=0.25 * error)


@pytest.mark.slow  # the interval is that of the jackknife above
@pytest.mark.parametrize(("images", "shift"), [(20, 1.0), (50, 2.0)])
def test_coverage(images: int, shift: float) -> None:
    """Percentiles of resamples contained the true area in 83 to 89 of 100 samples, and lay above it in the rest."""
    thresholds = np.linspace(-8, 12, 20_001)
    hits, false = stats.norm.sf(thresholds - shift), stats.norm.sf(thresholds)
    true = -np.trapezoid(hits / np.maximum(hits + false, 1e-300), hits)
    random = np.random.default_rng(4)
    positive, clusters = np.arange(2 * images) % 2 == 0, np.arange(2 * images) // 2
    ends = np.array([
        auprc(positive, random.normal(size=2 * images) + shift * positive, clusters, resamples=1).interval
        for _ in range(600)
    ])  # fmt: skip
    too_high, too_low = float(np.mean(ends[:, 0] > true)), float(np.mean(ends[:, 1] < true))
    assert 0.93 - 0.015 <= 1 - too_high - too_low <= 0.97 + 0.015, "one standard error is 0.009"
    assert too_high < 0.06


def test_intervals_at_the_edges_and_of_many_images() -> None:
    perfect = auprc([True, False] * 50, [1.0, 0.0] * 50, np.arange(100) // 2, resamples=1)
    assert (perfect.mean, perfect.high) == (1, 1)
    assert 0.9 < perfect.low < 1, "resampling gave no width"
    assert np.isnan(auprc([True, False, False], [0.5, 0.1, 0.2], resamples=1).low)
    random = np.random.default_rng(5)
    positive = np.arange(4000) % 2 == 0
    scores = random.normal(size=4000) + positive
    grouped = auprc(positive, scores, np.arange(4000) // 2, resamples=1)
    again = auprc(positive, scores, np.arange(4000) // 2, resamples=1, seed=1)
    assert grouped.interval == pytest.approx(again.interval, abs=0.003)
    assert grouped.high - grouped.low == pytest.approx(0.033, abs=0.006)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="nan among the scores"):
        auprc([True, False], [0.5, float("nan")])
    with pytest.raises(InputError, match="2 scores and 1 labels"):
        auprc([True], [0.5, 0.1])
    with pytest.raises(UnknownNameError, match="rectangle"):
        auprc([True], [0.5], kind="rectangle")  # type: ignore[arg-type]
    assert np.isnan(auprc([], []).mean)
