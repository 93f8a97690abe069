"""Layers and checks that several models share."""

from __future__ import annotations

import math

from torch import nn

from crosslens.core import UsageError


def projection(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with the first weights of VSE++ and its successors: uniform, as wide as both sides allow."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    bound = math.sqrt(6.0 / (inputs + outputs))
    nn.init.uniform_(layer.weight, -bound, bound)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def check_sizes(*, dropout: float = 0.0, **sizes: int) -> None:
    """Raise unless every size is at least 1, and dropout is a share below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise UsageError(f"{name} is {size}", fix=f"{name} must be at least 1", option=name)
    if not 0 <= dropout < 1:
        raise UsageError(f"dropout is {dropout}", fix="dropout must be at least 0 and below 1", option="dropout")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless the value of a setting is one of the choices."""
    if value not in choices:
        raise UsageError(f"{name} is {value!r}", fix=f"choose {' or '.join(choices)}", option=name)


def check_scale(name: str, value: float) -> None:
    """Raise unless the factor of a setting is a number above 0."""
    if not 0 < value < math.inf:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be above 0", option=name)


def check_share(name: str, value: float) -> None:
    """Raise unless a share is from 0 to 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be from 0 to 1", option=name)
