"""A recipe carried out: inputs read and checked, evaluated, and the recipe stored beside the result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from crosslens.core.atomic import write_text
from crosslens.core.errors import InputError
from crosslens.core.progress import Progress
from crosslens.core.run import RECIPE_FILE, RUN_FILE, Run, split_name
from crosslens.metrics import parse_metrics
from crosslens.pipeline.evaluate import evaluate
from crosslens.pipeline.recipe.blame import naming_files
from crosslens.pipeline.recipe.inputs import fingerprints, load
from crosslens.pipeline.recipe.model import Encoding
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
    encoding: Encoding | None = None,
) -> Run:
    """Evaluate what a recipe says; with ``output`` the run folder keeps the recipe and its inputs' fingerprints.

    A recipe that has fingerprints demands inputs of that very content, unless ``allow_changed``. The stored recipe
    names the metrics that were computed, asked for or not: a later crosslens may compute others by default.
    ``encoding`` says how a recipe's model works, where it has one.
    """
    absolute = recipe.absolute()
    loaded = load(absolute, encoding or Encoding(device=recipe.options.device), progress)
    wanted = output is not None or bool(recipe.fingerprints)
    found = {**fingerprints(absolute, loaded.dataset), **loaded.made_from} if wanted else {}
    if not allow_changed:
        _demand_same(absolute, found)
    name = recipe.name or (Path(output).resolve().name if output is not None else None)
    stored = replace(absolute, name=name, fingerprints=found, options=_plain(recipe.options))
    stored = stored if output is None else _near(stored, Path(output))
    options: dict[str, Any] = {key: None if value == () else value for key, value in asdict(recipe.options).items()}
    options["directions"] = loaded.directions or options["directions"]
    if (recipe.model.name or recipe.rerank.model) and recipe.options.backend == "numpy":
        options["device"] = None  # meant for the model: ranking with numpy has none
    run = _finished(stored, output)
    if run is None:
        with naming_files(absolute.inputs, loaded):
            run = evaluate(
                loaded.dataset,
                images=loaded.images,
                captions=loaded.captions,
                scores=loaded.scores,
                run=loaded.run,
                relevance=loaded.relevance,
                second_stage=loaded.second_stage,
                phi=loaded.phi,
                scores_from=loaded.scores_from,
                **options,
                name=name,
                output=output,
                overwrite=overwrite,
                recipe="" if output is None else stored.to_toml(),
                command=command,
                progress=progress,
            )
    return run if output is None or recipe.options.metrics else _with_metrics(run, stored, Path(output))


def _finished(stored: Recipe, output: str | Path | None) -> Run | None:
    """The run that stands in the folder, if it came from this very recipe."""
    if output is None or not (Path(output) / RUN_FILE).exists() or not (Path(output) / RECIPE_FILE).exists():
        return None
    same = (Path(output) / RECIPE_FILE).read_bytes() == stored.to_toml().encode()
    return Run.load(output) if same else None


def _with_metrics(run: Run, stored: Recipe, folder: Path) -> Run:
    """A run by default metrics, with a recipe that names them.

    Which ones could be had is known only once the run is there, so its recipe is completed after it; until then the
    folder holds one that says the same by leaving them out.
    """
    if run.recipe != stored.to_toml():
        return run  # an earlier run of the same work, with a recipe of its own
    metrics = tuple(dict.fromkeys(split_name(name)[1] for name in run))
    complete = replace(stored, options=replace(stored.options, metrics=metrics)).to_toml()
    write_text(folder / RECIPE_FILE, complete)
    return replace(run, recipe=complete)


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


def _near(recipe: Recipe, folder: Path) -> Recipe:
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
