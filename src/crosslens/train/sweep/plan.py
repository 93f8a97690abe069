"""The trainings of a sweep: what each is called, where it goes, and whether all of them can begin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, UsageError, argument, fingerprint, torch_device
from crosslens.similarity import load_similarity
from crosslens.train.evaluation import TrainingMetrics
from crosslens.train.inputs.batches import BatchPlan, pretrained_of
from crosslens.train.inputs.feature_sets import TrainingData, load_features
from crosslens.train.inputs.vocabulary import CaptionVocabulary
from crosslens.train.losses.protocol import build_loss
from crosslens.train.models.protocol import InputShape, build_model, prepare_model
from crosslens.train.recipes.recipe import TrainingRecipe, load_training_recipe
from crosslens.train.settings import check_settings
from crosslens.train.stored.model_folder import finished_card
from crosslens.train.sweep.grid import Combination, combinations
from crosslens.train.sweep.variables import RECIPE, Variable, model_entry, read_variables
from crosslens.train.trainer import training_key

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
        """The same trainings, which also measure these metrics on the test split."""
        measured = (
            replace(made, recipe=made.recipe.with_settings({"test_metrics": f"{own} {metrics}".strip()}))
            for made in self.combinations
            for own in (made.recipe.settings.test_metrics,)
        )
        return replace(self, combinations=tuple(measured))

    @property
    def varied(self) -> tuple[str, ...]:
        """The settings with more than one value."""
        return tuple(variable.name for variable in self.variables if len(variable.values) > 1)

    @property
    def name(self) -> str:
        """The recipes' names."""
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
    return SweepPlan(variables, read_seeds(seeds), combinations(loaded, variables), Path(data))


def read_seeds(seeds: int | str | Sequence[int]) -> tuple[int, ...]:
    """``5`` is how many, from 0; ``0,3,7`` or a sequence which ones."""
    problem = f"seeds are {seeds!r:.60}"
    fix = f"say how many, {argument('seeds', 5)}, or which, {argument('seeds', '0,3,7')}"
    try:
        if isinstance(seeds, str) and "," in seeds:
            seeds = [int(part) for part in seeds.split(",") if part.strip()]
        chosen = tuple(range(min(int(seeds), _MOST_SEEDS + 1))) if isinstance(seeds, int | str) else tuple(seeds)
    except ValueError:
        raise UsageError(problem, fix=fix, option="seeds") from None
    if not chosen or min(chosen) < 0:
        raise UsageError(problem, fix=fix, option="seeds")
    if len(chosen) > _MOST_SEEDS:
        raise UsageError(f"{problem}, more than {_MOST_SEEDS:,}", fix="name fewer", option="seeds")
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"{problem}, one of them twice", fix="name each seed once", option="seeds")
    return chosen


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
        """The data of a recipe."""
        name = self._name(recipe)
        if name not in self._loaded:
            self._loaded[name] = load_features(recipe.layout, self.folder, recipe.data, recipe.source)
        return self._loaded[name]

    def key(self, recipe: TrainingRecipe) -> str:
        """The key of a training on it."""
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
            _try_model(recipe, data.of(recipe))
        if build_loss(recipe.losses, recipe.source)[1]:
            phis.add(recipe.phi)
    for phi in sorted(phis):
        load_similarity(phi)
    for device in {combination.recipe.settings.device for combination in plan.combinations}:
        torch_device(device)
    return _state(plan, data, output, overwrite)


def _try_model(recipe: TrainingRecipe, data: TrainingData) -> None:
    """Make the model once: it refuses settings that it cannot have."""
    shapes = data.train.features.shapes
    text = (1,) if recipe.text_model else ()
    words = 0 if text else len(CaptionVocabulary.of(data.train.dataset.texts, recipe.least_count))
    shape = InputShape(shapes.get("vectors", (0,))[0], words, text, shapes.get("regions", ()))
    try:
        prepared = prepare_model(recipe.model, recipe.model_settings, data.train.dataset.texts, recipe.source)
        build_model(recipe.model, recipe.model_settings, shape, prepared, recipe.source)
    except CrosslensError:
        raise
    except Exception:  # it needs more than shapes: its training will say what is wrong, if anything is
        return


def _state(plan: SweepPlan, data: DataOfRecipes, output: Path, overwrite: bool) -> SweepState:
    finished: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, int] = {}
    for training in plan.trainings:
        card = finished_card(output / training.folder, data.key(training.recipe), overwrite)
        settings = training.recipe.settings
        if card is not None:
            if TrainingMetrics(settings).are_in(card["test"]):
                finished[training.folder] = card
            else:
                steps[training.folder] = 0
            continue
        part = data.of(training.recipe).train.part(settings.fraction, training.seed)
        steps[training.folder] = settings.steps(BatchPlan(part, settings.batch_size, training.seed).per_epoch)
    return SweepState(finished, steps)
