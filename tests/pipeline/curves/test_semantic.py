"""Semantic recall against m."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.core import InputError, UsageError
from crosslens.pipeline import curve, evaluate, parse_counts
from crosslens.values import Dataset
from tests.pipeline.graded_data import DATASET, PHI, SCORES, expected


def test_curves_are_the_metrics_one_by_one() -> None:
    runs = [evaluate(DATASET, scores=scores, name=name) for name, scores in (("a", SCORES), ("b", SCORES[::-1]))]
    curves = curve(runs, DATASET, PHI, m=(1, 3, 7), k=2, resamples=20)
    assert list(curves.values) == ["a", "b"]
    for label, scores in (("a", SCORES), ("b", SCORES[::-1])):
        for family in ("SR", "SRhit"):
            for m, values in zip(curves.counts, curves.values[label][family], strict=True):
                by_hand = expected(f"{family}[m={m}, non-gt]@2", "t2i", scores, PHI, DATASET.caption_image)
                np.testing.assert_allclose(values.values, by_hand, rtol=1e-6)
    with_truth = curve(runs, DATASET, PHI, m=[2], k=2, non_gt=False, direction="i2t", resamples=0)
    by_hand = expected("SR[m=2]@2", "i2t", SCORES, PHI, DATASET.caption_image)
    np.testing.assert_allclose(with_truth.values["a"]["SR"][0].values, by_hand, rtol=1e-6)


def test_curves_need_runs_of_the_dataset() -> None:
    run = evaluate(DATASET, scores=SCORES, directions=["i2t"])
    with pytest.raises(UsageError, match="has no ranking of t2i"):
        curve([run], DATASET, PHI)
    part = Dataset.of({"x": ["a dog"], "y": ["a cat"]})
    with pytest.raises(InputError, match="is over other images or captions"):
        curve([run], part, direction="i2t")
    folded = evaluate(DATASET, scores=SCORES, folds=2)
    with pytest.raises(UsageError, match="within folds"):
        curve([folded], DATASET, PHI)


@pytest.mark.parametrize(
    ("text", "counts"), [("1..4", (1, 2, 3, 4)), ("1,5, 10", (1, 5, 10)), ("1..3,3,9", (1, 2, 3, 9)), ("7", (7,))]
)
def test_values_of_m(text: str, counts: tuple[int, ...]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "0..5", "5..1", "1-5", "a", "1..", "1..2000000000"])
def test_wrong_values_of_m(text: str) -> None:
    with pytest.raises(UsageError, match="values of m"):
        parse_counts(text)
