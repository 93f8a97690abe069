"""The threshold with the highest F1: scikit-learn's curve as the reference, ties, and input that has no threshold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import InputError
from crosslens.statistics.precision_recall import precision_recall


def slow_threshold(scores: list[float], labels: list[int]) -> float:
    """Every score as a threshold; the highest F1, exactly, and the lowest score among equals."""
    best, threshold_of_best = Fraction(-1), 0.0
    for threshold in sorted(set(scores)):
        matched = [label for score, label in zip(scores, labels, strict=True) if score >= threshold]
        f1 = Fraction(2 * sum(matched), len(matched) + sum(labels))
        if f1 > best:
            best, threshold_of_best = f1, threshold
    return threshold_of_best


@pytest.mark.slow
def test_it_equals_scikit_learn_on_1000_random_cases() -> None:
    curves = pytest.importorskip("sklearn.metrics").precision_recall_curve
    random = np.random.default_rng(14)
    for case in range(1000):
        size = int(random.integers(2, 40))
        scores = random.normal(size=size).round(int(random.integers(0, 4)))  # few decimals: many ties
        labels = random.random(size) < random.uniform(0.1, 0.9)
        labels[:2] = True, False
        scores = scores.astype(np.float32) if case % 2 else scores
        precision, recall, thresholds = curves(labels, scores)
        with np.errstate(invalid="ignore"):
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))[:-1]
        expected = thresholds[np.flatnonzero(np.isclose(f1, f1.max(), rtol=1e-12, atol=0))[0]]
        assert cl.match_threshold(scores, labels) == float(expected)


@given(st.lists(st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0]), st.integers(0, 1)), min_size=2))
def test_it_equals_the_definition(pairs: list[tuple[float, int]]) -> None:
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    if len(set(labels)) == 2:
        assert cl.match_threshold(scores, labels) == slow_threshold(scores, labels)


def test_the_threshold_is_inclusive_and_the_lowest_of_equals() -> None:
    assert cl.match_threshold([0.9, 0.1], [1, 0]) == 0.9
    # At 0.9: 2·1 ÷ (2 + 1) = 2/3. At 0.5: 2·2 ÷ (2 + 4) = 2/3.
    assert cl.match_threshold([0.9, 0.8, 0.7, 0.5], [1, 0, 0, 1]) == 0.5


def test_the_curve_counts_pairs() -> None:
    curve = precision_recall([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    assert curve.thresholds.tolist() == [0.8, 0.9]
    assert curve.precision.tolist() == [2 / 3, 1.0]
    assert curve.recall.tolist() == [1.0, 0.5]
    assert curve.f1.tolist() == [0.8, pytest.approx(2 / 3)]
    assert (curve.positives, curve.negatives, curve.threshold) == (2, 2, 0.8)


@pytest.mark.parametrize(
    ("scores", "labels", "problem"),
    [
        ([], [], "no scores"),
        ([1.0, 2.0], [1, 1], "no mismatch to choose a threshold by"),
        ([1.0, 2.0], [False, False], "no matching pair to choose a threshold by"),
        ([1.0, float("nan")], [1, 0], "nan among the scores"),
        ([1.0, float("inf")], [1, 0], "inf among the scores"),
        ([1.0, 2.0, 3.0], [1, 0], "3 scores and 2 labels"),
        ([1.0, 2.0], [1, 2], "label 2"),
        (["a", "b"], [1, 0], "scores of type"),
    ],
)
def test_input_without_a_threshold_is_one_clear_error(scores: Any, labels: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        cl.match_threshold(scores, labels)
