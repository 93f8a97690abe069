"""A recipe carried out: inputs read and checked, evaluated, and the recipe stored beside the result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from crosslens.core.errors import InputError
from crosslens.core.progress import Progress
from crosslens.core.run import Run
from crosslens.metrics import parse_metrics
from crosslens.pipeline.evaluate import evaluate
from crosslens.pipeline.recipe.inputs import fingerprints, load
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.pipeline.recipe.values import Options

_MOST_STEPS_UP = 4


def execute(
    recipe: Recipe,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    allow_changed: bool = False,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
) -> Run:
    """Evaluate what a recipe says; with ``output`` the run folder keeps the recipe and its inputs' fingerprints.

    A recipe that has fingerprints demands inputs of that very content, unless ``allow_changed``.
    """
    absolute = recipe.absolute()
    loaded = load(absolute)
    wanted = output is not None or bool(recipe.fingerprints)
    found = fingerprints(absolute, loaded.dataset) if wanted else {}
    if not allow_changed:
        _demand_same(absolute, found)
    name = recipe.name or (Path(output).resolve().name if output is not None else None)
    stored = replace(absolute, name=name, fingerprints=found, options=_plain(recipe.options))
    options: dict[str, Any] = {key: None if value == () else value for key, value in asdict(recipe.options).items()}
    return evaluate(
        loaded.dataset,
        images=loaded.images,
        captions=loaded.captions,
        scores=loaded.scores,
        run=loaded.run,
        relevance=loaded.relevance,
        **options,
        name=name,
        output=output,
        overwrite=overwrite,
        recipe="" if output is None else _stored(stored, Path(output)).to_toml(),
        command=command,
        progress=progress,
    )


def _plain(options: Options) -> Options:
    """The same options with every metric under its own name: ``R@5`` is stored as ``Hit@5``."""
    if not options.metrics:
        return options
    return replace(options, metrics=tuple(str(one) for one in parse_metrics(options.metrics)))


def _demand_same(recipe: Recipe, found: Mapping[str, str | tuple[str, ...]]) -> None:
    for key, expected in recipe.fingerprints.items():
        if found.get(key) != expected:
            raise InputError(
                f"the {key.replace('_', ' ')} changed since the recipe was stored",
                file=_changed_place(recipe, key, found.get(key)),
                expected="the content that the recipe's [fingerprints] describe",
                fix="restore it, or pass --allow-changed to evaluate what is there now",
            )


def _changed_place(recipe: Recipe, key: str, found: str | tuple[str, ...] | None) -> str | None:
    place = recipe.dataset if key == "dataset" else getattr(recipe.inputs, key, None)
    if isinstance(place, tuple):
        pairs = zip(place, found or (), recipe.fingerprints[key], strict=False)
        return next((one for one, now, then in pairs if now != then), None)
    return place


def _stored(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe as it stands in the run folder: near paths from there, so that both can move together."""
    return replace(recipe.map_paths(lambda path: _from(folder, path)), base=folder)


def _from(folder: Path, path: str) -> str:
    try:
        shared = Path(os.path.commonpath([path, folder.absolute()]))
    except ValueError:  # another drive
        return path
    relative = Path(os.path.relpath(path, folder.absolute()))
    near = relative.parts.count(os.pardir) <= _MOST_STEPS_UP and shared != shared.parent
    return relative.as_posix() if near else path
