"""A recipe carried out: inputs read and checked, evaluated, and the recipe stored beside the result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import InputError, argument
from crosslens.encode import Cache, EncodeOptions
from crosslens.engine import Progress
from crosslens.metrics import parse_metrics
from crosslens.pipeline.evaluations.encoding import LoadedInputs
from crosslens.pipeline.evaluations.evaluation import evaluate
from crosslens.pipeline.recipe.inputs import fingerprints, inputs_of_run, load_inputs
from crosslens.pipeline.recipe.options import InputOptions, RerankOptions
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.similarity import CacheChoice
from crosslens.storage import (
    TrustCode,
    each_block,
    fingerprint,
    hold_output,
    is_prepared,
    local_output,
    named_by,
    offline,
    tidy_output,
    trusting,
)
from crosslens.values import RECIPE_FILE, RUN_FILE, RUN_LAYOUT, Dataset, Embeddings, Run, split_name

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
    allow_hosts: Iterable[str] = (),
) -> Run:
    """Evaluate what a recipe describes; with ``output`` the run folder keeps the recipe and its inputs' fingerprints.

    A recipe that has fingerprints requires inputs of exactly that content, unless ``allow_changed``. The stored recipe
    names the metrics that were computed, default ones too: a later crosslens may have other defaults. ``encoding`` is
    how a recipe's model runs, where it has one. ``trust_code`` allows code that files name to run: a recipe that was
    read, or the recipe of a run that ``scores_from`` names; ``allow_hosts`` are the hosts whose addresses in such files
    are opened (``"example.org"``, ``"s3://bucket"``). What a recipe made in Python names is run and opened anyway.
    """
    encoding = encoding or EncodeOptions(device=recipe.options.device)
    # The output is held before the inputs are read, which may take a model hours.
    with (
        offline(encoding.offline), local_output(output, RUN_LAYOUT) as folder, hold_output(folder),
        trusting(trust_code, allow_hosts), named_by(recipe.origin),
    ):  # fmt: skip
        absolute = recipe.absolute()
        loaded = load_inputs(absolute, encoding, progress)
        hashes: dict[str, str | tuple[str, ...]] = {}
        if folder is not None or recipe.fingerprints:
            hashes = {**fingerprints(absolute, loaded.dataset), **loaded.fingerprints}
        if not allow_changed:
            require_unchanged(absolute, hashes)
        name = recipe.name or (folder.resolve().name if folder is not None else None)
        options = absolute.options
        if options.metrics:  # under their canonical names: R@5 is stored as Hit@5
            options = replace(options, metrics=tuple(map(str, parse_metrics(options.metrics))))
        stored = replace(absolute, name=name, fingerprints=hashes, options=options)
        if folder is not None:  # near paths are relative to the run folder, so that both can move together
            if not is_prepared(folder):
                stored = stored.map_paths(lambda path: _near_path(folder, path))
            stored = replace(stored, base=folder)
            finished = not overwrite and all((folder / file).exists() for file in (RUN_FILE, RECIPE_FILE))
            if finished and (folder / RECIPE_FILE).read_bytes() == stored.to_toml().encode():
                run = Run.load(folder)
                tidy_output(folder, str(run.provenance.get("key")))
                return run
        arguments: dict[str, Any] = asdict(absolute.options) | vars(loaded)  # named as the keywords of evaluate
        del arguments["fingerprints"]
        arguments["metrics"] = absolute.options.metrics or None
        arguments["directions"] = loaded.directions or absolute.options.directions
        if (absolute.model.name or absolute.rerank.model) and absolute.options.backend == "numpy":
            arguments["device"] = None  # meant for the model: ranking with numpy has none
        # The cache of vectors is that of similarities, too.
        cache: CacheChoice = encoding.cache.folder if isinstance(encoding.cache, Cache) else encoding.cache

        def with_metrics(names: Iterable[str]) -> str:
            """The recipe as text, with the metrics that were computed: which of the default ones, is known only then.

            Those of a protocol are not listed: its name stands for them.
            """
            metrics = stored.options.metrics
            if stored.options.protocol is None:
                metrics = metrics or tuple(dict.fromkeys(split_name(metric)[1] for metric in names))
            return replace(stored, options=replace(stored.options, metrics=metrics)).to_toml()

        try:
            return evaluate(
                **arguments, name=name, output=folder, overwrite=overwrite, cache=cache, progress=progress,
                recipe="" if folder is None else with_metrics, command=command,
            )  # fmt: skip
        except InputError as error:
            if error.file is None:  # evaluating sees arrays, a person has files
                error.file, error.row = _error_source(absolute.inputs, loaded, error)
            raise


def require_unchanged(recipe: Recipe, hashes: Mapping[str, str | tuple[str, ...]]) -> None:
    """Raise where an input is no longer what the recipe's fingerprints describe."""
    for key, expected in recipe.fingerprints.items():
        now = hashes.get(key)
        if now == expected:
            continue
        owner = recipe if key in ("dataset", "queries", "plugins") else recipe.inputs
        file = recipe.dataset if key == "corpus" else getattr(owner, key, None)
        if isinstance(file, tuple):
            rows = zip(file, now or (), expected, strict=False)
            file = next((path for path, content, before in rows if content != before), None)
        raise InputError(
            f"the {key.replace('_', ' ')} changed since the recipe was stored",
            file=file,
            expected="the content that the recipe's [fingerprints] describe",
            fix=f"restore it, or pass {argument('allow_changed', True)} to evaluate what is there now",
        )


def _near_path(folder: Path, path: str) -> str:
    """Relative to the folder, unless it is far away."""
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
            rows = [  # in the file, which may have another order than the dataset
                start + int(row)
                for start, block in (each_block(vectors) if path is not None and vectors is not None else ())
                for row in np.flatnonzero((block == 0).all(axis=-1).reshape(len(block), -1).any(axis=1))
            ]
            if len(rows) > 1 and vectors is not None:
                error.add_context(f"{len(rows):,} of {len(vectors):,} vectors")
            if rows:
                return path, rows[0]
    files = [path for path in (*(path for path, _ in sides), *inputs.runs) if path is not None]
    return (" and ".join(files) or None), (error.row if len(files) == 1 else None)


@dataclass(frozen=True)
class RunVectors:
    """The images and captions of a run with their vectors; ``dataset`` is None where only ids are known."""

    images: Embeddings
    captions: Embeddings
    dataset: Dataset | None


def recipe_of_run(run: Run) -> Recipe | None:
    """The recipe in the run's folder; None where it has none."""
    if not run.recipe:
        return None
    home = run.home or Path()
    return Recipe.parse(run.recipe, home, home / RECIPE_FILE)


def without_vectors(recipe: Recipe | None) -> str | None:
    """Why a run of this recipe has no vectors; None where it has."""
    if recipe is None:
        return "The run keeps no recipe, so nobody knows which embeddings it was computed from."
    inputs = recipe.inputs
    if recipe.model.name is not None or (inputs.image_embeddings and inputs.caption_embeddings):
        return None
    kind = "a score matrix" if inputs.scores else "ranked lists"
    return f"The run was computed from {kind}, without vectors."


def vectors_key(recipe: Recipe) -> str | None:
    """A hash of the content that the vectors come from; None where the recipe does not state it."""
    stored: Mapping[str, Any] = recipe.fingerprints
    for names in (("image_embeddings", "caption_embeddings"), ("model", "items")):
        if all(stored.get(name) for name in names):
            relevant = (*names, "dataset", "queries", "corpus", "image_ids", "caption_ids")
            return fingerprint("vectors", {name: stored[name] for name in relevant if stored.get(name)})
    return None


def vectors_of_run(run: Run, options: EncodeOptions | None = None, progress: Progress | None = None) -> RunVectors:
    """The vectors of both sides, required to be those that the run was computed from.

    ``options`` say how the run's model is loaded, where it has one; what its cache holds is not encoded again.
    """

    def load(recipe: Recipe, options: EncodeOptions, progress: Progress | None) -> Any:
        bare = replace(
            recipe,
            inputs=replace(recipe.inputs, phi=(), scores_from=(), qrels=None),
            options=replace(recipe.options, metrics=()),
            rerank=RerankOptions(),
        )
        loaded = load_inputs(bare, options, progress)
        content = {**fingerprints(bare, loaded.dataset), **loaded.fingerprints}
        stated = {key: value for key, value in recipe.fingerprints.items() if key in content}
        require_unchanged(replace(recipe, fingerprints=stated), content)
        return loaded

    problem = without_vectors(recipe_of_run(run))
    if problem is not None or run.home is None:
        raise InputError(problem or "the run is in no folder", fix="use a run computed from embeddings or by a model")
    recipe, loaded = inputs_of_run(run.home, options or EncodeOptions(), progress, load)
    if loaded.images is None or loaded.captions is None:
        model = recipe.model.name or "the run"
        raise InputError(f"{model} scores pairs and has no vectors", fix="use a run of an encoder of images and texts")
    return RunVectors(loaded.images, loaded.captions, loaded.dataset)
