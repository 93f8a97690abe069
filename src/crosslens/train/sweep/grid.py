"""Every combination of the settings that a sweep varies, and the one that each is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from crosslens.core import UsageError
from crosslens.train.recipes.recipe import TrainingRecipe
from crosslens.train.sweep.variables import Variable, in_order, with_value

ABSENT = "–"
"""Shown where a setting belongs to a loss that a combination does not have."""


@dataclass(frozen=True)
class Combination:
    """One value of every setting."""

    values: Mapping[str, str]
    """Setting → value, as written."""
    recipe: TrainingRecipe
    baseline: int | None = None
    """The number of the combination that it is compared with: that of the first value of the first setting."""

    @property
    def label(self) -> str:
        """``loss=sam-random, fraction=0.1``; the recipe's name where nothing is set."""
        shown = (f"{name}={value}" for name, value in self.values.items() if value != ABSENT)
        return ", ".join(shown) or self.recipe.name


def combinations(recipe: TrainingRecipe, variables: Sequence[Variable]) -> tuple[Combination, ...]:
    """All of them, in the order of the values; two that come to the same training are one."""
    compared = next((variable for variable in variables if len(variable.values) > 1), None)
    number_of: dict[str, int] = {}
    made: list[tuple[Mapping[str, str], TrainingRecipe]] = []
    at: dict[tuple[str, ...], int] = {}
    for values in product(*(variable.values for variable in variables)):
        shown, own = _applied(recipe, variables, values)
        number = number_of.setdefault(_identity(own), len(made))
        if number == len(made):
            made.append((shown, own))
        at[values] = number
    _refuse_without_effect(variables, made)
    return tuple(
        Combination(shown, own, _baseline(number, variables, compared, at)) for number, (shown, own) in enumerate(made)
    )


def _applied(
    recipe: TrainingRecipe, variables: Sequence[Variable], values: Sequence[str]
) -> tuple[dict[str, str], TrainingRecipe]:
    text_of = {variable.name: value for variable, value in zip(variables, values, strict=True)}
    for variable in in_order(variables):
        changed = with_value(recipe, variable.name, text_of[variable.name])
        if changed is None:
            text_of[variable.name] = ABSENT
        recipe = changed or recipe
    return text_of, recipe


def _identity(recipe: TrainingRecipe) -> str:
    return json.dumps(recipe.identity(), sort_keys=True, default=str)


def _refuse_without_effect(variables: Sequence[Variable], made: Sequence[tuple[Mapping[str, str], object]]) -> None:
    for variable in variables:
        if all(shown[variable.name] == ABSENT for shown, _ in made):
            kind = variable.name.partition(".")[0]
            raise UsageError(
                f"{variable.name} is set, but no training has the loss {kind}",
                fix=f"name losses that have it by loss=…, or leave {variable.name} out", option="settings",
            )  # fmt: skip


def _baseline(
    number: int, variables: Sequence[Variable], compared: Variable | None, at: Mapping[tuple[str, ...], int]
) -> int | None:
    if compared is None:
        return None
    values = list(next(key for key, value in at.items() if value == number))
    values[list(variables).index(compared)] = compared.values[0]
    baseline = at[tuple(values)]
    return None if baseline == number else baseline
