"""What a sweep varies (``--set NAME=V1,V2``), and its trainings: what each is called, where it goes, and whether all of
them can begin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from crosslens.core import ABSENT, CrosslensError, MissingExtraError, UnknownNameError, UsageError, ValueType, argument
from crosslens.engine import torch_device
from crosslens.similarity import load_similarity
from crosslens.storage import fingerprint
from crosslens.train.captions import BatchPlan, CaptionVocabulary, pretrained_of
from crosslens.train.evaluation import TrainingMetrics
from crosslens.train.features import FEATURE_SETS, TrainingData, load_features
from crosslens.train.losses import AS_IN_RECIPE, LOSSES, build_loss, losses_called
from crosslens.train.models.protocol import MODELS, InputShape, build_model, prepare_model
from crosslens.train.recipe import (
    IGNORED_FOR_IDENTITY,
    TrainingRecipe,
    TrainingSettings,
    check_settings,
    declared_settings,
    load_training_recipe,
)
from crosslens.train.stored.model_folder import finished_card
from crosslens.train.trainer import training_key

RECIPE, LOSS = "recipe", "loss"
ENTRIES = {"phi": "str", "text_model": "str", "least_count": "int"}
"""Entries of a recipe outside its tables, and their types."""
_WEIGHT = "weight"


@dataclass(frozen=True)
class Variable:
    """A setting and the values it takes, as they are written."""

    name: str
    values: tuple[str, ...]


def read_variables(words: Sequence[str] | Mapping[str, Sequence[Any]]) -> tuple[Variable, ...]:
    """Variables from ``["loss=triplet,sam-random", …]`` or from ``{"loss": ["triplet", "sam-random"], …}``."""
    if isinstance(words, Mapping):
        words_of = {True: "true", False: "false"}
        pairs = [
            (name, [words_of[value] if isinstance(value, bool) else str(value) for value in values])
            for name, values in words.items()
        ]
    else:
        pairs = []
        for word in words:
            name, sign, listed = (part.strip() for part in word.partition("="))
            if not sign or not name:
                raise UsageError(
                    f"{word!r:.60} sets nothing",
                    fix="write a setting and its values, as in loss=triplet,sam-random",
                    option="settings",
                )
            pairs.append((name, [value.strip() for value in listed.split(",")] if listed else []))
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


def with_value(recipe: TrainingRecipe, name: str, text: str) -> TrainingRecipe | None:
    """The recipe with one setting changed; None where it is a setting of a loss that the recipe does not have."""
    table, dot, setting = name.partition(".")
    if dot and table in ("model", "data", *LOSSES.names()):
        if table in ("model", "data"):
            entry = model_entry(recipe) if table == "model" else FEATURE_SETS[recipe.layout]
            part = "model_settings" if table == "model" else "data"
            changed: dict[str, Any] = {setting: read_value(text, _annotation(entry, setting))}
            return replace(recipe, **{part: getattr(recipe, part) | changed})
        value = read_value(text, "float" if setting == _WEIGHT else _annotation(LOSSES[table], setting))
        if not any(entry["kind"] == table for entry in recipe.losses):
            return None
        losses = ({**entry, setting: value} if entry["kind"] == table else entry for entry in recipe.losses)
        return replace(recipe, losses=tuple(losses))
    if name == RECIPE:
        loaded = load_training_recipe(text)
        return loaded.with_settings({"device": recipe.settings.device, "threads": recipe.settings.threads})
    if name == LOSS:
        return recipe if text == AS_IN_RECIPE else replace(recipe, losses=losses_called(text))
    if name in ENTRIES:
        values: dict[str, Any] = {name: read_value(text, ENTRIES[name])}
        return replace(recipe, **values)
    types = {entry.name: str(entry.type) for entry in fields(TrainingSettings)}
    if name == "seed":
        raise UsageError("seeds are not compared", fix=f"name them as {argument('seeds')}")
    if name in IGNORED_FOR_IDENTITY:
        fix = f"pass it for all trainings alike, as {argument(name)}"
        raise UsageError(f"{name} does not decide about the result", fix=fix)
    if name not in types:
        training = [setting for setting in types if setting not in ("seed", *IGNORED_FOR_IDENTITY)]
        kinds = dict.fromkeys(entry["kind"] for entry in recipe.losses)
        of_losses = [f"{kind}.{each}" for kind in kinds for each in (*declared_settings(LOSSES[kind]), _WEIGHT)]
        of_model = [f"model.{each}" for each in declared_settings(model_entry(recipe))]
        raise UnknownNameError("setting", name, [RECIPE, LOSS, *ENTRIES, *training, *of_model, *of_losses])
    return recipe.with_settings({name: read_value(text, types[name])})


def _annotation(entry: Any, setting: str) -> str:
    """The type of a setting of a registered model, loss or feature set."""
    declared = declared_settings(entry)
    if setting not in declared:
        raise UnknownNameError(f"setting of {entry.name}", setting, declared)
    return declared[setting]


def model_entry(recipe: TrainingRecipe) -> Any:
    """The registered model of a recipe."""
    try:
        return MODELS[recipe.model]
    except ImportError as error:
        raise MissingExtraError("training", str(error.name), "train") from error


def read_value(text: str, annotation: str) -> Any:
    """A value as its setting's type has it; of another type than these, what it looks like."""
    declared = ValueType.of(annotation)
    is_known = declared.only_plain and not declared.several
    with suppress(ValueError):
        if declared.kinds != (bool,) or text in ("true", "false"):  # as in a recipe
            return (declared if is_known else ValueType((int, float, bool))).read(text)
    if not is_known:
        return text
    raise UsageError(f"{text!r:.60} is not {declared.noun}", fix=f"write {declared.noun}")


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
        parts = (f"{name}={value}" for name, value in self.values.items() if value != ABSENT)
        return ", ".join(parts) or self.recipe.name


def combinations(recipe: TrainingRecipe, variables: Sequence[Variable]) -> tuple[Combination, ...]:
    """All of them, in the order of the values; two that come to the same training are one."""
    compared = next((variable for variable in variables if len(variable.values) > 1), None)
    number_of: dict[str, int] = {}
    distinct: list[tuple[dict[str, str], TrainingRecipe]] = []
    at: dict[tuple[str, ...], int] = {}
    for values in product(*(variable.values for variable in variables)):
        varied, entries = recipe, {variable.name: value for variable, value in zip(variables, values, strict=True)}
        # Recipes and losses first: the other settings are put into what those bring.
        for variable in sorted(variables, key=lambda entry: (entry.name != RECIPE, entry.name not in (RECIPE, LOSS))):
            name, text = variable.name, entries[variable.name]
            try:
                changed = with_value(varied, name, text)
            except CrosslensError as error:
                error.add_context(f"{name}={text}")
                error.option = "settings"
                raise
            if changed is None:
                entries[name] = ABSENT
            varied = changed or varied
        identity = json.dumps(varied.identity(), sort_keys=True, default=str)
        number = number_of.setdefault(identity, len(distinct))
        if number == len(distinct):
            distinct.append((entries, varied))
        at[values] = number
    for variable in variables:
        if all(entries[variable.name] == ABSENT for entries, _ in distinct):
            kind = variable.name.partition(".")[0]
            raise UsageError(
                f"{variable.name} is set, but no training has the loss {kind}",
                fix=f"name losses that have it by loss=…, or leave {variable.name} out",
                option="settings",
            )
    combined = []
    for number, (entries, varied) in enumerate(distinct):
        baseline = None
        if compared is not None:
            first = list(next(values for values, at_values in at.items() if at_values == number))
            first[list(variables).index(compared)] = compared.values[0]
            baseline = at[tuple(first)]
        combined.append(Combination(entries, varied, None if baseline == number else baseline))
    return tuple(combined)


_LONGEST = 120
"""Characters of a folder's name."""
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class PlannedTraining:
    """One training of a sweep."""

    combination: int
    seed: int
    recipe: TrainingRecipe
    folder: str
    """Below the sweep's folder."""


@dataclass(frozen=True)
class SweepPlan:
    """All trainings of a sweep."""

    variables: tuple[Variable, ...]
    seeds: tuple[int, ...]
    combinations: tuple[Combination, ...]
    data: Path

    @cached_property
    def trainings(self) -> tuple[PlannedTraining, ...]:
        """Seed by seed, so that an unfinished sweep has every combination with the same seeds."""
        folders = [folder_name(combination) for combination in self.combinations]
        return tuple(
            PlannedTraining(
                number, seed, combination.recipe.with_settings({"seed": seed}), f"{folders[number]}/seed-{seed}"
            )
            for seed in self.seeds
            for number, combination in enumerate(self.combinations)
        )

    def measuring(self, metrics: str) -> SweepPlan:
        """A plan whose trainings also measure these metrics on the test split."""
        measured = (
            replace(entry, recipe=entry.recipe.with_settings({"test_metrics": f"{metrics_named} {metrics}".strip()}))
            for entry in self.combinations
            for metrics_named in (entry.recipe.settings.test_metrics,)
        )
        return replace(self, combinations=tuple(measured))

    @property
    def varied(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables if len(variable.values) > 1)

    @property
    def name(self) -> str:
        return ", ".join(dict.fromkeys(combination.recipe.name for combination in self.combinations))


def plan_sweep(
    recipe: str | Path | TrainingRecipe | None,
    data: str | Path,
    settings: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    *,
    seeds: int | str | Sequence[int] = 5,
    device: str | None = None,
    threads: int = 1,
) -> SweepPlan:
    """The trainings of a recipe with every combination of ``settings``, and every seed.

    ``settings`` are texts such as ``"loss=triplet,sam-random"``, or a mapping of names to values. ``seeds`` is how many
    (5: the seeds 0 to 4), or which. Each training computes with ``threads`` threads, however many run side by side:
    the figures of a training depend on it in their last digits.
    """
    variables = read_variables(settings)
    if recipe is None:
        recipe = next((variable.values[0] for variable in variables if variable.name == RECIPE), None)
    if recipe is None:
        raise UsageError("no recipe", fix="name one (see crosslens train --list), or a file")
    loaded = recipe if isinstance(recipe, TrainingRecipe) else load_training_recipe(recipe)
    loaded = loaded.with_settings({"device": device, "threads": threads})
    problem = f"seeds are {seeds!r:.60}"
    fix = f"say how many, {argument('seeds', 5)}, or which, {argument('seeds', '0,3,7')}"
    try:
        if isinstance(seeds, str) and "," in seeds:
            seeds = [int(part) for part in seeds.split(",") if part.strip()]
        numbers = tuple(range(min(int(seeds), _MOST_SEEDS + 1))) if isinstance(seeds, int | str) else tuple(seeds)
    except ValueError:
        raise UsageError(problem, fix=fix, option="seeds") from None
    if not numbers or min(numbers) < 0:
        raise UsageError(problem, fix=fix, option="seeds")
    if len(numbers) > _MOST_SEEDS:
        raise UsageError(f"{problem}, more than {_MOST_SEEDS:,}", fix="name fewer", option="seeds")
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"{problem}, one of them twice", fix="name each seed once", option="seeds")
    return SweepPlan(variables, numbers, combinations(loaded, variables), Path(data))


def folder_name(combination: Combination) -> str:
    """A name for the combination that every file system takes."""
    name = re.sub(r"[^\w.=,+-]+", "-", combination.label.replace(", ", ","), flags=re.ASCII)
    if name == combination.label.replace(", ", ",") and len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{fingerprint('combination', {'label': combination.label})[:8]}"


class DataOfRecipes:
    """The data that recipes name in one folder, read once each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded: dict[str, TrainingData] = {}
        self._fingerprints: dict[str, str] = {}

    def of(self, recipe: TrainingRecipe) -> TrainingData:
        name = self._name(recipe)
        if name not in self._loaded:
            self._loaded[name] = load_features(recipe.layout, self.folder, recipe.data, recipe.source)
        return self._loaded[name]

    def key(self, recipe: TrainingRecipe) -> str:
        name = self._name(recipe)
        if name not in self._fingerprints:
            self._fingerprints[name] = self.of(recipe).fingerprint()
        return training_key(recipe, self._fingerprints[name], pretrained_of(recipe, self.of(recipe)))

    @staticmethod
    def _name(recipe: TrainingRecipe) -> str:
        return f"{recipe.layout} {sorted(recipe.data.items())}"


@dataclass(frozen=True)
class SweepState:
    """Where a sweep stands."""

    finished: Mapping[str, Mapping[str, Any]]
    """Folder → card of the trainings that are done and measured."""
    steps: Mapping[str, int]
    """Folder → steps of the others, at most; 0 of those that are only to be measured by further metrics."""


def check_plan(plan: SweepPlan, data: DataOfRecipes, output: Path, *, overwrite: bool = False) -> SweepState:
    """Raise for whatever can be known to be wrong with any training before the first begins."""
    phis = set[str]()
    for combination in plan.combinations:
        recipe = combination.recipe
        TrainingMetrics(recipe.settings)
        check_settings(model_entry(recipe), recipe.model_settings, table="[model]", source=recipe.source)
        if any(name.startswith("model.") for name in combination.values):
            # Make the model once: it refuses settings that it cannot have.
            split = data.of(recipe).train
            shapes, texts, text = split.features.shapes, split.dataset.texts, (1,) if recipe.text_model else ()
            words = 0 if text else len(CaptionVocabulary.of(texts, recipe.least_count))
            shape = InputShape(shapes.get("vectors", (0,))[0], words, text, shapes.get("regions", ()))
            try:
                prepared = prepare_model(recipe.model, recipe.model_settings, texts, recipe.source)
                build_model(recipe.model, recipe.model_settings, shape, prepared, recipe.source)
            except CrosslensError:
                raise
            except Exception:  # it needs more than shapes: its training will say what is wrong, if anything is
                pass
        if build_loss(recipe.losses, recipe.source)[1]:
            phis.add(recipe.phi)
    for phi in sorted(phis):
        load_similarity(phi)
    for device in {combination.recipe.settings.device for combination in plan.combinations}:
        torch_device(device)
    finished: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, int] = {}
    for training in plan.trainings:
        card = finished_card(output / training.folder, data.key(training.recipe), overwrite)
        settings = training.recipe.settings
        if card is None:
            part = data.of(training.recipe).train.part(settings.fraction, training.seed)
            steps[training.folder] = settings.steps(BatchPlan(part, settings.batch_size, training.seed).per_epoch)
        elif TrainingMetrics(settings).are_in(card["test"]):
            finished[training.folder] = card
        else:
            steps[training.folder] = 0
    return SweepState(finished, steps)
