"""AUPRC: scikit-learn's on 1,000 random cases, a slow reference from the definition, and resampled images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics import auprc
from crosslens.statistics.bootstrap import Bootstrap
from crosslens.statistics.precision_recall import SortedPairs


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


@given(st.lists(st.tuples(st.booleans(), st.integers(-2, 2), st.integers(0, 3)), min_size=1, max_size=10))
def test_a_weight_repeats_a_pair(rows: list[tuple[bool, int, int]]) -> None:
    positive, scores = [row[0] for row in rows], [float(row[1]) for row in rows]
    drawn = [(label, score) for label, score, weight in rows for _ in range(weight)]
    area = SortedPairs(positive, scores).areas(np.array([[row[2] for row in rows]]))[0]
    if not any(label for label, _ in drawn):
        assert np.isnan(area)
    else:
        assert area == pytest.approx(slow_area([d[0] for d in drawn], [d[1] for d in drawn], "step"))


def test_a_constant_score_is_at_chance_and_a_perfect_one_is_one() -> None:
    positive = [True] * 3 + [False] * 9
    assert auprc(positive, [0.5] * 12).mean == pytest.approx(0.25)
    assert auprc(positive, [2.0] * 3 + [1.0] * 9).mean == pytest.approx(1.0)


def test_interval_is_that_of_resampled_images() -> None:
    positive, scores = random_case(40)
    clusters = np.arange(len(scores)) // 3
    figure = auprc(positive, scores, clusters, resamples=200, seed=7)
    replicates = []
    for draws in Bootstrap(clusters, 200, 7).weights(int(clusters.max()) + 1):
        for draw in draws:
            rows = [row for row in range(len(scores)) for _ in range(draw[clusters[row]])]
            if any(positive[rows]):
                replicates.append(slow_area(list(positive[rows]), list(scores[rows]), "step"))
    assert figure.interval == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])), abs=1e-12)
    assert figure.low <= figure.mean <= figure.high


def test_bad_input() -> None:
    with pytest.raises(InputError, match="the score is nan"):
        auprc([True, False], [0.5, float("nan")])
    with pytest.raises(InputError, match="one of each per pair"):
        auprc([True], [0.5, 0.1])
    with pytest.raises(UnknownNameError, match="rectangle"):
        auprc([True], [0.5], kind="rectangle")  # type: ignore[arg-type]
    assert np.isnan(auprc([], []).mean)
