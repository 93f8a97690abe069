"""The vectors that a stored run was computed from: read again, or encoded again by its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslens.core import Dataset, Embeddings, InputError, Progress, Run, fingerprint
from crosslens.encode import EncodeOptions
from crosslens.pipeline.recipe.execute import require_unchanged
from crosslens.pipeline.recipe.graded_inputs import inputs_of_run
from crosslens.pipeline.recipe.inputs import fingerprints, load_inputs
from crosslens.pipeline.recipe.options import RerankOptions
from crosslens.pipeline.recipe.recipe import Recipe

_EMBEDDING_FILES = ("image_embeddings", "caption_embeddings")
_MODEL = ("model", "items")


@dataclass(frozen=True)
class RunVectors:
    """The images and captions of a run with their vectors; ``dataset`` is None where only ids are known."""

    images: Embeddings
    captions: Embeddings
    dataset: Dataset | None


def recipe_of_run(run: Run) -> Recipe | None:
    """The recipe in the run's folder; None where it has none."""
    return Recipe.parse(run.recipe, run.home or Path()) if run.recipe else None


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
    for names in (_EMBEDDING_FILES, _MODEL):
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
