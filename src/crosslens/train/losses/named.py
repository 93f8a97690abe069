"""Losses by short names: which ``[[loss]]`` entries ``sam-random`` stands for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from crosslens.core import UnknownNameError
from crosslens.train.losses.protocol import LOSSES

AS_IN_RECIPE = "recipe"
"""The name that leaves a recipe's own losses as they are."""

Losses = tuple[Mapping[str, Any], ...]


@cache
def named_losses() -> dict[str, Losses]:
    """Name → entries, as packaged."""
    content = tomllib.loads(files("crosslens.train.losses").joinpath("named.toml").read_text("utf-8"))
    return {name: tuple(entries) for name, entries in content.items()}


def losses_called(name: str) -> Losses:
    """The entries of a packaged name; of any other loss kind, that loss alone with its default settings."""
    named = named_losses()
    if name in named:
        return named[name]
    if name not in LOSSES:
        raise UnknownNameError("loss", name, {*named, *LOSSES.names(), AS_IN_RECIPE})
    return ({"kind": name},)
