"""What a sweep varies: ``--set NAME=V1,V2``, read, and put into a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from crosslens.core import CrosslensError, MissingExtraError, UnknownNameError, UsageError, argument
from crosslens.train.inputs.feature_sets import FEATURE_SETS
from crosslens.train.losses.protocol import AS_IN_RECIPE, LOSSES, losses_called
from crosslens.train.models.protocol import MODELS
from crosslens.train.recipes.recipe import IGNORED_FOR_IDENTITY, TrainingRecipe, TrainingSettings, load_training_recipe
from crosslens.train.settings import declared_settings

RECIPE, LOSS = "recipe", "loss"
ENTRIES = {"phi": "str", "text_model": "str", "least_count": "int"}
"""Entries of a recipe outside its tables, and their types."""
_NOUNS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_WEIGHT = "weight"


@dataclass(frozen=True)
class Variable:
    """A setting and the values it takes, as they are written."""

    name: str
    values: tuple[str, ...]


def read_variables(words: Sequence[str] | Mapping[str, Sequence[Any]]) -> tuple[Variable, ...]:
    """Variables from ``["loss=triplet,sam-random", …]`` or from ``{"loss": ["triplet", "sam-random"], …}``."""
    if isinstance(words, Mapping):
        pairs = [(name, [_written(value) for value in values]) for name, values in words.items()]
    else:
        pairs = [_pair(word) for word in words]
    variables: dict[str, Variable] = {}
    for name, values in pairs:
        if name in variables:
            raise UsageError(f"{name} is set twice", fix=f"list all its values at once: {name}=…,…", option="settings")
        if not values or not all(values):
            problem = f"{name}={','.join(values)} " + ("has an empty value" if any(values) else "names no value")
            raise UsageError(problem, fix=f"write the values after the =, as in {name}=V1,V2", option="settings")
        repeated = [value for value in values if values.count(value) > 1]
        if repeated:
            raise UsageError(f"{name} has the value {repeated[0]} twice", fix="write it once", option="settings")
        variables[name] = Variable(name, tuple(values))
    return tuple(variables.values())


def _pair(word: str) -> tuple[str, list[str]]:
    name, sign, values = word.partition("=")
    if not sign or not name.strip():
        raise UsageError(
            f"{word!r:.60} sets nothing", fix="write a setting and its values, as in loss=triplet,sam-random",
            option="settings",
        )  # fmt: skip
    return name.strip(), [value.strip() for value in values.split(",")] if values.strip() else []


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_order(variables: Sequence[Variable]) -> list[Variable]:
    """Recipes and losses first: the other settings are put into what those bring."""
    first = [variable for name in (RECIPE, LOSS) for variable in variables if variable.name == name]
    return [*first, *(variable for variable in variables if variable not in first)]


def with_value(recipe: TrainingRecipe, name: str, text: str) -> TrainingRecipe | None:
    """The recipe with one setting changed; None where it is a setting of a loss that the recipe does not have."""
    try:
        return _changed(recipe, name, text)
    except CrosslensError as error:
        error.add_context(f"{name}={text}")
        error.option = "settings"
        raise


def _changed(recipe: TrainingRecipe, name: str, text: str) -> TrainingRecipe | None:
    table, dot, setting = name.partition(".")
    if dot and table in ("model", "data", *LOSSES.names()):
        return _in_table(recipe, table, setting, text)
    if name == RECIPE:
        loaded = load_training_recipe(text)
        return loaded.with_settings({"device": recipe.settings.device, "threads": recipe.settings.threads})
    if name == LOSS:
        return recipe if text == AS_IN_RECIPE else replace(recipe, losses=losses_called(text))
    if name in ENTRIES:
        values: dict[str, Any] = {name: read_value(text, ENTRIES[name])}
        return replace(recipe, **values)
    types = {entry.name: str(entry.type) for entry in fields(TrainingSettings)}
    _refuse_other_flags(name)
    if name not in types:
        raise UnknownNameError("setting", name, known_settings(recipe))
    return recipe.with_settings({name: read_value(text, types[name])})


def _refuse_other_flags(name: str) -> None:
    if name == "seed":
        raise UsageError("seeds are not compared", fix=f"name them as {argument('seeds')}")
    if name in IGNORED_FOR_IDENTITY:
        fix = f"pass it for all trainings alike, as {argument(name)}"
        raise UsageError(f"{name} does not decide about the result", fix=fix)


def _in_table(recipe: TrainingRecipe, table: str, setting: str, text: str) -> TrainingRecipe | None:
    if table == "model":
        value = read_value(text, _annotation(model_entry(recipe), setting))
        return replace(recipe, model_settings={**recipe.model_settings, setting: value})
    if table == "data":
        value = read_value(text, _annotation(FEATURE_SETS[recipe.layout], setting))
        return replace(recipe, data={**recipe.data, setting: value})
    value = read_value(text, "float" if setting == _WEIGHT else _annotation(LOSSES[table], setting))
    if not any(entry["kind"] == table for entry in recipe.losses):
        return None
    losses = ({**entry, setting: value} if entry["kind"] == table else entry for entry in recipe.losses)
    return replace(recipe, losses=tuple(losses))


def _annotation(entry: Any, setting: str) -> str:
    """The type of a setting of a registered model, loss or feature set."""
    known = declared_settings(entry)
    if setting not in known:
        raise UnknownNameError(f"setting of {entry.name}", setting, known)
    return known[setting]


def model_entry(recipe: TrainingRecipe) -> Any:
    """The registered model of a recipe."""
    try:
        return MODELS[recipe.model]
    except ImportError as error:
        raise MissingExtraError("training", str(error.name), "train") from error


def known_settings(recipe: TrainingRecipe) -> list[str]:
    """Every name that can be set for a recipe."""
    own = [entry.name for entry in fields(TrainingSettings) if entry.name not in ("seed", *IGNORED_FOR_IDENTITY)]
    kinds = dict.fromkeys(entry["kind"] for entry in recipe.losses)
    losses = [f"{kind}.{name}" for kind in kinds for name in (*declared_settings(LOSSES[kind]), _WEIGHT)]
    model = [f"model.{name}" for name in declared_settings(model_entry(recipe))]
    return [RECIPE, LOSS, *ENTRIES, *own, *model, *losses]


def read_value(text: str, annotation: str) -> Any:
    """A value as its setting's type has it; of another type than these, what it looks like."""
    kinds = [part.strip() for part in annotation.split("|") if part.strip() != "None"]
    if "str" in kinds:
        return text
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _truth}
    wanted = [kind for kind in readers if kind in kinds] or list(readers)
    for kind in wanted:
        try:
            return readers[kind](text)
        except ValueError:
            continue
    if kinds[0] not in readers:
        return text
    raise UsageError(f"{text!r:.60} is not {_NOUNS[kinds[0]]}", fix=f"write {_NOUNS[kinds[0]]}")


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"
