"""Which model is better: one statement of two models, none where the data do not decide."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.analyze import Subject
from crosslens.audits.comparing import (
    compare_models,
    compare_with_planted,
    plant_equal_model,
    plant_worse_model,
    run_of,
)
from tests.pipeline.small_world import world


def model(seed: int = 0, images: int = 150, spread: float = 0.8) -> Subject:
    dataset, pictures, _ = world(images)
    stream = np.random.default_rng(seed)
    texts = pictures[dataset.caption_image] + spread * stream.standard_normal((len(dataset.caption_ids), 12))
    return Subject.of(dataset, pictures, texts.astype(np.float32))


@pytest.mark.parametrize("strength", [0.05, 0.1, 0.2])
def test_a_worse_model_is_named(strength: float) -> None:
    subject = model()
    planted = plant_worse_model(subject, strength, np.random.default_rng(1))
    (observation,) = compare_with_planted(subject, planted.subject).findings()
    assert observation.kind == "better"
    assert observation.p is not None
    assert observation.p < 0.01
    assert (observation.words["best"], observation.words["second"]) == ("as given", "planted")
    assert observation.effect.low is not None
    assert observation.effect.high is not None
    assert observation.effect.low <= strength <= observation.effect.high
    assert {entry["query"] for entry in observation.evidence} <= planted.ids


def test_the_same_lists_are_equal() -> None:
    subject = model()
    planted = plant_equal_model(subject, 1.0, np.random.default_rng(1))
    (observation,) = compare_with_planted(subject, planted.subject).findings()
    assert (observation.kind, observation.bounded) == ("no-difference", True)
    assert observation.words["why"] == "they give the same lists"


def test_equally_good_models_are_not_ordered() -> None:
    """Two models with independent errors: at most one audit in twenty says that one is better."""
    false_claims = 0
    for seed in range(20):
        result = compare_models({name: run_of(model(2 * seed + n, 60), name) for n, name in enumerate("ab")})
        false_claims += sum(observation.p is not None and observation.p < 0.05 for observation in result.findings())
        assert not any(observation.bounded for observation in result.findings()), (
            "too few images to say that there is no difference"
        )
    assert false_claims <= 3


def test_of_several_models_the_best_and_the_next_best() -> None:
    subject = model()
    worse, worst = (plant_worse_model(subject, loss, np.random.default_rng(2)).subject for loss in (0.1, 0.3))
    runs = {"a": subject, "b": worse, "c": subject, "d": worst}
    result = compare_models({name: run_of(given, name) for name, given in runs.items()})
    equal, better = result.findings()
    assert (equal.kind, equal.words["runs"]) == ("no-difference", "a and c")
    assert (better.kind, better.words["best"], better.words["second"]) == ("better", "a and c", "b")
    two = compare_models({name: run_of(runs[name], name) for name in "ab"})
    assert result.ahead is not None
    assert two.ahead is not None
    assert result.ahead.high - result.ahead.low > two.ahead.high - two.ahead.low, "corrected for the search"


def test_no_difference_needs_a_narrow_interval_and_no_significance() -> None:
    subject = model(images=600, spread=0.3)
    hits = np.flatnonzero(subject.caption_hits == 1)
    few = plant_worse_model(subject, 2 / len(hits), np.random.default_rng(0)).subject
    (observation,) = compare_with_planted(subject, few).findings()
    assert observation.kind == "no-difference"
    assert "points [" in observation.words["why"]
    planted = plant_worse_model(subject, 0.015, np.random.default_rng(0)).subject
    (observation,) = compare_with_planted(subject, planted).findings()
    assert observation.kind == "better", "a small difference that is certain is a difference"


def test_one_run_or_none_says_nothing() -> None:
    assert not list(compare_models({}).findings())
    assert not list(compare_models({"a": run_of(model(), "a")}).findings())
