"""Learning rates: factors of towers, which parameters they change, and what a resumed training remembers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import CrosslensError  # noqa: E402
from crosslens.train import InputShape, TrainingData, TrainingRecipe, TrainingSettings, train_model  # noqa: E402
from crosslens.train.models.vectors import Vse  # noqa: E402
from crosslens.train.training import _FACTOR, build_optimizer, rate_factor  # noqa: E402

from .conftest import changed  # noqa: E402
from .test_trainer import stop_after, weights  # noqa: E402


class WithTemperature(Vse):
    """A model with a parameter that belongs to neither tower."""

    def __init__(self) -> None:
        super().__init__(InputShape(4, 6), dimension=3, word_dimension=2)
        self.temperature = torch.nn.Parameter(torch.ones(()))


def moves(settings: TrainingSettings, rate: float) -> dict[str, float]:
    """By how much one step with gradients of 1 lowers each parameter: Adam's first step is the rate itself."""
    model = WithTemperature()
    optimizer = build_optimizer(model, settings)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = rate * group[_FACTOR]
    optimizer.step()
    return {name: float((before[name] - parameter.detach()).mean()) for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_every_tower_moves_at_its_rate(optimizer: str) -> None:
    settings = TrainingSettings(optimizer=optimizer, image_rate=0.05, text_rate=0.5)
    factors = {"image": 0.05, "text": 0.5, "temperature": 1.0}
    for name, moved in moves(settings, 0.01).items():
        assert moved == pytest.approx(0.01 * factors[name.partition(".")[0]], rel=1e-3), name


def test_a_rate_of_zero_leaves_a_tower_alone() -> None:
    moved = moves(TrainingSettings(text_rate=0.0, weight_decay=0.1, optimizer="adamw"), 0.01)
    assert all((value == 0) == name.startswith("text.") for name, value in moved.items())


def test_frozen_parameters_are_in_no_group() -> None:
    model = WithTemperature()
    model.image.head.weight.requires_grad_(False)
    groups = build_optimizer(model, TrainingSettings(image_rate=0.1)).param_groups
    grouped = [parameter for group in groups for parameter in group["params"]]
    assert {id(p) for p in grouped} == {id(p) for p in model.parameters()} - {id(model.image.head.weight)}


class Unnamed(torch.nn.Linear):  # type: ignore[misc]
    """A model without groups."""


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "does not say which of its parameters"),
        ({"video": []}, "a group 'video'"),
        ({"image": "all", "text": "all"}, "a parameter in two groups"),
    ],
)
def test_models_that_name_no_usable_groups(groups: Any, message: str) -> None:
    model = Unnamed(2, 2)
    assert len(build_optimizer(model, TrainingSettings()).param_groups) == 1, "not asked without factors"
    if groups is not None:
        model.rate_groups = lambda: {name: list(model.parameters()) if value else [] for name, value in groups.items()}
    with pytest.raises(CrosslensError, match=message):
        build_optimizer(model, TrainingSettings(image_rate=0.5))


def test_a_resumed_training_keeps_its_rates(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    recipe = changed(recipe, epochs=2, image_rate=0.1, text_rate=2.0, schedule="cosine", warm_up=0.2)
    whole = train_model(recipe, data, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop_after(0))
    assert weights(train_model(recipe, data, tmp_path / "resumed").path) == weights(whole.path)
    plain = train_model(changed(recipe, image_rate=1.0), data, tmp_path / "plain")
    assert weights(plain.path) != weights(whole.path)


def test_schedules_equal_their_definitions() -> None:
    steps, per_epoch = 40, 10
    for step in range(steps):
        assert rate_factor(TrainingSettings(), step, steps, per_epoch) == 1
        fallen = rate_factor(TrainingSettings(schedule="step", decay_epochs=2), step, steps, per_epoch)
        assert fallen == pytest.approx(1.0 if step < 20 else 0.1)
        cosine = rate_factor(TrainingSettings(schedule="cosine", warm_up=0.25), step, steps, per_epoch)
        expected = (step + 1) / 10 if step < 10 else (1 + math.cos(math.pi * (step - 10) / 30)) / 2
        assert cosine == pytest.approx(expected)
