"""A recipe and data in, a model folder out; interrupted or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslens.core import Progress, Run, SilentProgress, fingerprint, tidy_output, torch_device, workspace
from crosslens.encode import Pretrained
from crosslens.train.compute.device import require_torch, thread_limit
from crosslens.train.compute.group import Group
from crosslens.train.compute.processes import check_processes, compute_together
from crosslens.train.curves import HERE, Trained
from crosslens.train.evaluation import TrainingMetrics
from crosslens.train.inputs.batches import pretrained_of
from crosslens.train.inputs.feature_sets import TrainingData
from crosslens.train.recipes.recipe import TrainingRecipe
from crosslens.train.stored.model_folder import MODEL_LAYOUT, TEST_RUN, finished_card, read_model, write_model
from crosslens.train.training import Training, Watch

CHECKPOINT = "checkpoint.safetensors"


def train_model(
    recipe: TrainingRecipe,
    data: TrainingData,
    output: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Train, validate every few epochs, keep the best checkpoint, and measure it on the test split.

    An interrupted call leaves its last checkpoint beside ``output``; the same call resumes there and ends with the same
    weights. ``watch`` is called with the row of every validation, those before an interruption included.
    """
    output, progress = Path(output), progress or SilentProgress()
    metrics = TrainingMetrics(recipe.settings)
    key = training_key(recipe, data.fingerprint(), pretrained_of(recipe, data))
    card = finished_card(output, key, overwrite)
    if card is None or not metrics.are_in(card["test"]):
        with workspace(output, key) as work:
            card = finished_card(output, key, overwrite)
            require_torch()
            if card is None:
                origin = data.train.origin
                facts = {"key": key, "features": {} if origin is None else origin.seen_from(output)}
                arguments = recipe, data, work.beside(CHECKPOINT), work.new, facts
                card = _train(arguments, progress, watch)
                work.publish(MODEL_LAYOUT)
            elif not metrics.are_in(card["test"]):
                card = _measured_again(recipe, data, output, work.new, card, progress)
                work.publish(MODEL_LAYOUT)
    tidy_output(output, key)
    return Trained(output, card)


def training_key(recipe: TrainingRecipe, data: str, pretrained: Pretrained | None) -> str:
    """Changes with everything that decides about the result; ``data`` is the fingerprint of the data."""
    identity = json.dumps(recipe.identity(), sort_keys=True, default=str)
    revision = "" if pretrained is None else pretrained.revision
    return fingerprint("training", {"recipe": identity, "data": data, "pretrained": revision})


_Arguments = tuple[TrainingRecipe, TrainingData, Path, Path, Mapping[str, Any]]
"""The recipe, the data, the checkpoint's file, the model's folder, and facts for the card."""


def _train(arguments: _Arguments, progress: Progress, watch: Watch | None) -> Mapping[str, Any]:
    """Train in this process or in several; the model is in its folder then, and its card is returned."""
    settings = arguments[0].settings
    device, size = torch_device(settings.device), settings.processes
    check_processes(size, device, settings.batch_size)
    if size == 1:
        return _train_share(*arguments, Group(device=device), progress=progress, watch=watch)
    card: Mapping[str, Any] = compute_together(_train_share, arguments, size, device, progress=progress, watch=watch)
    return card


def _train_share(
    recipe: TrainingRecipe, data: TrainingData, file: Path, folder: Path, facts: Mapping[str, Any],
    group: Group, *, progress: Progress | None = None, watch: Watch | None = None,
) -> Mapping[str, Any]:  # fmt: skip
    """What one of the processes does."""
    with thread_limit(recipe.settings.threads):
        training = Training(recipe, data, file, progress or SilentProgress(), watch, group)
        training.run()
        training.use_best()
        run = training.test_run()
    if run is None:
        return {}
    card = {**facts, **training.card(), "test": _figures(run)}
    write_model(folder, card, training.best, run, _page(card))
    return card


def _measured_again(
    recipe: TrainingRecipe, data: TrainingData, output: Path, folder: Path, card: Mapping[str, Any],
    progress: Progress,
) -> Mapping[str, Any]:  # fmt: skip
    """The card of a finished training with figures of further metrics; the folder is written anew.

    The run keeps what was measured before.
    """
    stored = read_model(output)
    with thread_limit(recipe.settings.threads):
        group = Group(device=torch_device(recipe.settings.device))
        training = Training(recipe, data, output / "none", progress, None, group)
        training.best = dict(stored.weights)
        training.use_best()
        run = training.test_run()
    assert run is not None
    run = replace(run, values={**Run.load(output / TEST_RUN).values, **run.values})
    card = {**card, "test": {**card["test"], **_figures(run)}}
    write_model(folder, card, stored.weights, run, _page(card))
    return card


def _page(card: Mapping[str, Any]) -> str:
    return Trained(HERE, card).content(".html").decode()


def _figures(run: Run) -> dict[str, float]:
    return {name: float(values.mean) for name, values in run.values.items()}
