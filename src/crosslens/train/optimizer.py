"""The optimiser: which parameters take steps, at which rates, and how the rates fall."""

from __future__ import annotations

import math
from typing import Any

from crosslens.core import CrosslensError
from crosslens.train.recipes.recipe import COSINE, STEP, TrainingSettings

_FACTOR = "factor"
"""In a parameter group: by what the learning rate is multiplied for it."""


def build_optimizer(model: Any, settings: TrainingSettings) -> Any:
    """The optimiser of a model's trainable parameters, in groups of one rate each."""
    import torch

    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    groups = rate_groups(model, settings)
    return kind(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def rate_groups(model: Any, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Parameters with the factor of their rate: the image's, the text's, all others; empty groups are left out."""
    factors = {"image": settings.image_rate, "text": settings.text_rate}
    if set(factors.values()) == {1.0}:  # also for models that name no groups
        return [{"params": _trainable(model.parameters()), _FACTOR: 1.0}]
    if not hasattr(model, "rate_groups"):
        raise CrosslensError(
            f"image_rate is {settings.image_rate} and text_rate is {settings.text_rate}, "
            f"and {type(model).__name__} does not say which of its parameters are the image's and the text's",
            fix="leave both at 1, or give the model a method rate_groups", code="no-rate-groups",
        )  # fmt: skip
    named = {name: _trainable(parameters) for name, parameters in model.rate_groups().items()}
    unknown = named.keys() - factors.keys()
    taken = [id(parameter) for parameters in named.values() for parameter in parameters]
    if unknown or len(taken) > len(set(taken)):
        problem = f"a group {min(unknown)!r}" if unknown else "a parameter in two groups"
        raise CrosslensError(
            f"rate_groups of {type(model).__name__} has {problem}",
            fix="return the groups image and text, each parameter in one at most", code="no-rate-groups",
        )  # fmt: skip
    rest = [parameter for parameter in _trainable(model.parameters()) if id(parameter) not in set(taken)]
    groups = [{"params": parameters, _FACTOR: factors[name]} for name, parameters in named.items()]
    return [group for group in (*groups, {"params": rest, _FACTOR: 1.0}) if group["params"]]


def _trainable(parameters: Any) -> list[Any]:
    return [parameter for parameter in parameters if parameter.requires_grad]


def set_rate(optimizer: Any, rate: float) -> None:
    """Let every group take its next step at its share of ``rate``."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group[_FACTOR]


def rate_factor(settings: TrainingSettings, step: int, steps: int, per_epoch: int) -> float:
    """The share of the highest learning rate at a step."""
    warm_up = settings.warm_up * steps
    if step < warm_up:
        return min(1.0, (step + 1) / warm_up)
    if settings.schedule == STEP:
        return float(0.1 ** (step // (per_epoch * settings.decay_epochs)))
    if settings.schedule == COSINE:
        return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1.0, steps - warm_up)))
    return 1.0
