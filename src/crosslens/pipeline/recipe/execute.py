"""A recipe carried out: inputs read and checked, evaluated, and the recipe stored beside the result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    RECIPE_FILE,
    RUN_FILE,
    Embeddings,
    InputError,
    Progress,
    Run,
    TrustCode,
    argument,
    code_named_by,
    each_block,
    hold_output,
    split_name,
    tidy_output,
    trusting,
)
from crosslens.encode import Cache, EncodeOptions
from crosslens.metrics import parse_metrics
from crosslens.pipeline.encoding import LoadedInputs
from crosslens.pipeline.evaluation import evaluate
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.recipe.inputs import fingerprints, load_inputs
from crosslens.pipeline.recipe.options import InputOptions
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.similarity import CacheChoice

_MOST_STEPS_UP = 4


def run_recipe(
    recipe: Recipe,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    allow_changed: bool = False,
    progress: Progress | None = None,
    command: Sequence[str] | None = None,
    encoding: EncodeOptions | None = None,
    trust_code: TrustCode | None = None,
) -> Run:
    """Evaluate what a recipe describes; with ``output`` the run folder keeps the recipe and its inputs' fingerprints.

    A recipe that has fingerprints requires inputs of exactly that content, unless ``allow_changed``. The stored recipe
    names the metrics that were computed, default ones too: a later crosslens may have other defaults. ``encoding`` is
    how a recipe's model runs, where it has one. ``trust_code`` allows code that files name to run: a recipe that was
    read, or the recipe of a run that ``scores_from`` names. What a recipe made in Python names runs anyway.
    """
    # The output is held before the inputs are read, which may take a model hours.
    with hold_output(output), trusting(trust_code), code_named_by(recipe.origin):
        return _run(
            recipe, output, encoding, overwrite=overwrite, allow_changed=allow_changed, progress=progress,
            command=command,
        )  # fmt: skip


def _run(
    recipe: Recipe, output: str | Path | None, encoding: EncodeOptions | None, *, allow_changed: bool, **keywords: Any
) -> Run:
    absolute = recipe.absolute()
    encoding = encoding or EncodeOptions(device=recipe.options.device)
    loaded = load_inputs(absolute, encoding, keywords["progress"])
    hashes: dict[str, str | tuple[str, ...]] = {}
    if output is not None or recipe.fingerprints:
        hashes = {**fingerprints(absolute, loaded.dataset), **loaded.fingerprints}
    if not allow_changed:
        require_unchanged(absolute, hashes)
    name = recipe.name or (Path(output).resolve().name if output is not None else None)
    stored = replace(absolute, name=name, fingerprints=hashes, options=_canonical(recipe.options))
    if output is not None:  # near paths are relative to the run folder, so that both can move together
        folder = Path(output)
        stored = replace(stored.map_paths(lambda path: _relative_path(folder, path)), base=folder)
    finished = None if keywords["overwrite"] else _finished(stored, output)
    if finished is not None:
        return finished
    written = "" if output is None else partial(_with_metrics, stored)
    return _evaluate(
        absolute, loaded, name=name, output=output, recipe=written, cache=_cache_choice(encoding), **keywords
    )


def _evaluate(absolute: Recipe, loaded: LoadedInputs, **keywords: Any) -> Run:
    """Evaluate the inputs, whose names are those of the keywords of :func:`evaluate`.

    An error that names no file is given one, and the row in it: evaluating sees arrays, a person has files.
    """
    arguments: dict[str, Any] = asdict(absolute.options) | vars(loaded)
    del arguments["fingerprints"]
    arguments["metrics"] = absolute.options.metrics or None
    arguments["directions"] = loaded.directions or absolute.options.directions
    if (absolute.model.name or absolute.rerank.model) and absolute.options.backend == "numpy":
        arguments["device"] = None  # meant for the model: ranking with numpy has none
    try:
        return evaluate(**arguments, **keywords)
    except InputError as error:
        if error.file is None:
            error.file, error.row = _error_source(absolute.inputs, loaded, error)
        raise


def _cache_choice(encoding: EncodeOptions) -> CacheChoice:
    """The cache of vectors is that of similarities, too."""
    return encoding.cache.folder if isinstance(encoding.cache, Cache) else encoding.cache


def _finished(stored: Recipe, output: str | Path | None) -> Run | None:
    """The run in the folder, if it came from exactly this recipe."""
    if output is None or not all((Path(output) / name).exists() for name in (RUN_FILE, RECIPE_FILE)):
        return None
    same = (Path(output) / RECIPE_FILE).read_bytes() == stored.to_toml().encode()
    run = Run.load(output) if same else None
    if run is not None:
        tidy_output(output, str(run.provenance.get("key")))
    return run


def _with_metrics(stored: Recipe, names: Iterable[str]) -> str:
    """The recipe as text, with the metrics that were computed: which of the default ones, is known only then.

    Those of a protocol are not listed: its name stands for them.
    """
    if stored.options.protocol is not None:
        return stored.to_toml()
    metrics = stored.options.metrics or tuple(dict.fromkeys(split_name(name)[1] for name in names))
    return replace(stored, options=replace(stored.options, metrics=metrics)).to_toml()


def _canonical(options: EvaluateOptions) -> EvaluateOptions:
    """The same options with every metric under its canonical name: ``R@5`` is stored as ``Hit@5``."""
    return replace(options, metrics=tuple(map(str, parse_metrics(options.metrics)))) if options.metrics else options


def require_unchanged(recipe: Recipe, hashes: Mapping[str, str | tuple[str, ...]]) -> None:
    """Raise where an input is no longer what the recipe's fingerprints describe."""
    for key, expected in recipe.fingerprints.items():
        if hashes.get(key) != expected:
            raise InputError(
                f"the {key.replace('_', ' ')} changed since the recipe was stored",
                file=_changed_file(recipe, key, hashes.get(key)),
                expected="the content that the recipe's [fingerprints] describe",
                fix=f"restore it, or pass {argument('allow_changed', True)} to evaluate what is there now",
            )


def _changed_file(recipe: Recipe, key: str, hashes: str | tuple[str, ...] | None) -> str | None:
    if key == "corpus":
        return recipe.dataset
    owner = recipe if key in ("dataset", "queries", "plugins") else recipe.inputs
    path = getattr(owner, key, None)
    if isinstance(path, tuple):
        rows = zip(path, hashes or (), recipe.fingerprints[key], strict=False)
        return next((file for file, now, before in rows if now != before), None)
    return path


def _relative_path(folder: Path, path: str) -> str:
    try:
        shared = Path(os.path.commonpath([path, folder.absolute()]))
    except ValueError:  # another drive
        return path
    relative = Path(os.path.relpath(path, folder.absolute()))
    near = relative.parts.count(os.pardir) <= _MOST_STEPS_UP and shared != shared.parent
    return relative.as_posix() if near else path


def _error_source(inputs: InputOptions, loaded: LoadedInputs, error: InputError) -> tuple[str | None, int | str | None]:
    """The file that holds what an error is about, and the row."""
    if inputs.scores is not None:
        return inputs.scores, error.row
    sides = ((inputs.image_embeddings, loaded.images), (inputs.caption_embeddings, loaded.captions))
    if error.code == "zero-vector":
        for path, vectors in sides:
            row = None if vectors is None else _first_zero_vector(vectors)
            if path is not None and row is not None:
                return path, row  # the row in the file, which may have another order than the dataset
    files = [path for path in (*(path for path, _ in sides), *inputs.runs) if path is not None]
    return (" and ".join(files) or None), (error.row if len(files) == 1 else None)


def _first_zero_vector(embeddings: Embeddings) -> int | None:
    """The row of the first item with a vector of zeros."""
    for start, block in each_block(embeddings):
        rows = np.flatnonzero((block == 0).all(axis=-1).reshape(len(block), -1).any(axis=1))
        if len(rows):
            return start + int(rows[0])
    return None
