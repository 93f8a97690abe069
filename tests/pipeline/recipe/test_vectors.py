"""The vectors of a run are those that it was computed from, or an error says why there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.pipeline import (
    EvaluateOptions,
    InputOptions,
    recipe_of_run,
    run_recipe,
    vectors_key,
    vectors_of_run,
    without_vectors,
)
from crosslens.values import Dataset, Run
from tests.pipeline.recipe.study import recipe


def test_the_vectors_are_those_in_the_files(study: Path) -> None:
    run_recipe(recipe(study), study / "run")
    run = Run.load(study / "run")
    vectors = vectors_of_run(run)
    dataset = Dataset.load(study / "data")
    assert (vectors.images.ids, vectors.captions.ids) == (dataset.image_ids, dataset.caption_ids)
    np.testing.assert_array_equal(vectors.images.vectors, np.load(study / "img.npy"))
    np.testing.assert_array_equal(vectors.captions.vectors, np.load(study / "cap.npy"))


def test_the_key_changes_with_the_content_and_not_with_the_options(study: Path) -> None:
    run_recipe(recipe(study), study / "run")
    key = vectors_key(recipe_of_run(Run.load(study / "run")))  # type: ignore[arg-type]
    run_recipe(recipe(study, options=EvaluateOptions(metrics=("MRR",), resamples=0)), study / "other-options")
    assert vectors_key(recipe_of_run(Run.load(study / "other-options"))) == key  # type: ignore[arg-type]
    np.save(study / "img.npy", np.load(study / "img.npy") + 1)
    run_recipe(recipe(study), study / "other-vectors")
    assert vectors_key(recipe_of_run(Run.load(study / "other-vectors"))) != key  # type: ignore[arg-type]
    assert vectors_key(recipe(study)) is None  # a recipe that was never carried out states no content


def test_changed_files_are_refused(study: Path) -> None:
    run_recipe(recipe(study), study / "run")
    np.save(study / "cap.npy", np.load(study / "cap.npy") + 1)
    with pytest.raises(InputError, match="caption embeddings changed since the recipe was stored"):
        vectors_of_run(Run.load(study / "run"))


def test_runs_without_vectors(study: Path) -> None:
    dataset = Dataset.load(study / "data")
    np.save(study / "s.npy", np.random.default_rng(0).normal(size=(len(dataset.image_ids), len(dataset.caption_ids))))
    run_recipe(recipe(study, inputs=InputOptions(scores="s.npy")), study / "scored")
    scored = Run.load(study / "scored")
    assert without_vectors(recipe_of_run(scored)) == "The run was computed from a score matrix, without vectors."
    with pytest.raises(InputError, match="score matrix"):
        vectors_of_run(scored)
    bare = replace(scored, recipe="")
    assert recipe_of_run(bare) is None
    with pytest.raises(InputError, match="keeps no recipe"):
        vectors_of_run(bare)
