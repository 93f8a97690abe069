"""Graded metrics in recipes: similarities and relevance encoders by name, remembered and checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.core import CrosslensError, InputError
from crosslens.data import write_dataset
from crosslens.encode import EncodeOptions
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from crosslens.values import Embeddings
from tests.pipeline.graded_data import CAPTIONS, DATASET, IMAGES, PHI, RANDOM, SCORES


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write_dataset(DATASET, tmp_path / "captions.jsonl")
    np.save(tmp_path / "scores.npy", SCORES)
    np.save(tmp_path / "phi.npy", PHI)
    return tmp_path


def recipe(study: Path, *metrics: str, **inputs: tuple[str, ...]) -> Recipe:
    return Recipe(
        "captions.jsonl",
        inputs=InputOptions(scores="scores.npy", **inputs),
        options=EvaluateOptions(metrics=metrics),
        base=study,
    )


def test_recipes_remember_similarities_and_sources(study: Path) -> None:
    Embeddings(DATASET.image_ids, RANDOM.normal(size=(IMAGES, 4))).save(study / "vectors" / "images")
    Embeddings(DATASET.caption_ids, RANDOM.normal(size=(CAPTIONS, 4))).save(study / "vectors" / "captions")
    run_recipe(recipe(study, "Hit@1"), study / "runs" / "other")
    graded = recipe(
        study, "NCS[mine]@3", "NCS[cider]@3",
        *(f"DCGcm[scores_from={source}]@3" for source in ("v", "run", "file", "own")),
        phi=("mine=phi.npy",), scores_from=("v=vectors", "run=runs/other", "file=scores.npy"),
    )  # fmt: skip
    run = run_recipe(graded, study / "runs" / "graded")
    # A run of these very scores, and these scores, are the model's own.
    for source in ("run", "file"):
        np.testing.assert_array_equal(
            run[f"i2t/DCGcm[scores_from={source}]@3"].values, run["i2t/DCGcm[scores_from=own]@3"].values
        )
    assert run["i2t/DCGcm[scores_from=v]@3"].mean != run["i2t/DCGcm[scores_from=own]@3"].mean
    stored = Recipe.read(study / "runs" / "graded" / "recipe.toml")
    assert stored.inputs.phi == ("mine=../../phi.npy",)
    assert stored.inputs.scores_from == ("v=../../vectors", "run=../other", "file=../../scores.npy")
    assert stored.fingerprints["similarities"][0].startswith("cider=")
    again = run_recipe(stored, study / "again")
    assert again.fingerprint == run.fingerprint
    np.save(study / "phi.npy", PHI + 1)
    with pytest.raises(InputError, match="the phi changed since the recipe was stored"):
        run_recipe(stored, study / "changed")


@pytest.mark.parametrize(
    ("metrics", "inputs", "message"),
    [
        ("NCS[phi.npy]@3", {}, "phi.npy is a file; a metric takes the name of a similarity"),
        ("Hit@1", {"phi": ("mine=phi.npy",)}, "phi='mine=…' is not used by any metric"),
        ("NCS[mine]@3", {"phi": ("phi.npy",)}, "phi='phi.npy': not of the form"),
        ("NCS[mine]@3", {"phi": ("mine=phi.npy", "mine=phi.npy")}, "phi='mine' is given twice"),
        ("NCS[mine]@3", {"phi": ("mine=words.txt",)}, "phi='mine=.*words.txt' is not a matrix"),
        ("NCS[mine]@3", {"phi": ("mine=gone.npy",)}, "gone.npy"),
        ("DCGcm[scores_from=x]@3", {}, "scores_from=x is not defined"),
        ("DCGcm[scores_from=x]@3", {"scores_from": ("x=lists",)}, "a run of ranked lists"),
        ("DCGcm[scores_from=x]@3", {"scores_from": ("x=empty",)}, "neither a run nor embeddings"),
    ],
)
def test_mistakes_in_recipes(study: Path, metrics: str, inputs: dict[str, tuple[str, ...]], message: str) -> None:
    (study / "empty").mkdir()
    if "lists" in str(inputs):
        from crosslens.data import write_run
        from crosslens.values import RankedLists

        rows = {image: dict(zip(DATASET.caption_ids, map(float, row), strict=True))
                for image, row in zip(DATASET.image_ids, SCORES, strict=True)}  # fmt: skip
        write_run(RankedLists.of(rows), study / "lists.run")
        wrong_recipe = Recipe(
            "captions.jsonl",
            inputs=InputOptions(runs=("lists.run",)),
            options=EvaluateOptions(metrics=("Hit@1",)),
            base=study,
        )
        run_recipe(wrong_recipe, study / "lists")
    with pytest.raises(CrosslensError, match=message):
        run_recipe(recipe(study, metrics, **inputs), encoding=EncodeOptions(cache=False))
