"""Recipes run: stored with the hash of every input, repeated exactly, refused when inputs changed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.metrics import DEFAULT_METRICS, request
from crosslens.pipeline import EvaluateOptions, Recipe, run_recipe
from crosslens.values import Dataset, Run
from tests.pipeline.recipe.study import lists, recipe, stored_metrics


def test_executing(study: Path) -> None:
    run = run_recipe(recipe(study, name="mine"))
    assert run.name == "mine"
    assert {"i2t/Hit@1", "t2i/Hit@1", "Rsum"} <= set(run)
    assert list(run.columns["t2i"]["kind"])[:4] == ["a", "a", "a", "a"]


def test_a_stored_recipe_repeats_exactly(study: Path) -> None:
    first = run_recipe(recipe(study), study / "runs" / "one")
    stored = study / "runs" / "one" / "recipe.toml"
    content = tomllib.loads(stored.read_text())
    assert content["dataset"]["source"] == "../../data"
    assert content["inputs"]["image_embeddings"] == "../../img.npy"
    assert set(content["fingerprints"]) == {"dataset", "image_embeddings", "caption_embeddings"}
    again = run_recipe(Recipe.read(stored))
    assert again.fingerprint == first.fingerprint
    assert {name: values.interval for name, values in again.values.items()} == {
        name: values.interval for name, values in first.values.items()
    }


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (recipe, set()),
        (lambda study: recipe(study, options=EvaluateOptions(directions=("t2i",), resamples=20)), {"Rsum"}),
        (lambda study: lists(study, 5), {"Rsum", "Hit@10"}),
    ],
    ids=["both directions", "one direction", "short lists"],
)
def test_default_metrics_are_stored_by_name(
    study: Path, make: Callable[[Path], Recipe], missing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What crosslens computes by default may change; what a stored recipe repeats must not."""
    folder = study / "runs" / "one"
    first = run_recipe(make(study), folder)
    names = stored_metrics(folder)
    assert set(DEFAULT_METRICS) - set(names) == missing
    assert {name.rpartition("/")[2] for name in first} == set(names)
    assert first.recipe == Run.load(folder).recipe == (folder / "recipe.toml").read_text()
    monkeypatch.setattr(request, "DEFAULT_METRICS", ("Hit@3",))
    again = run_recipe(Recipe.read(folder / "recipe.toml"))
    assert again.fingerprint == first.fingerprint
    before = {file.name: file.read_bytes() for file in folder.glob("*.*")}
    assert run_recipe(Recipe.read(folder / "recipe.toml"), folder).fingerprint == first.fingerprint
    assert {file.name: file.read_bytes() for file in folder.glob("*.*")} == before


def test_an_edited_recipe_of_a_run_is_refused_and_kept(study: Path) -> None:
    folder = study / "runs" / "one"
    run_recipe(recipe(study), folder)
    (folder / "recipe.toml").write_text("# mine\n")
    with pytest.raises(InputError, match=r"recipe\.toml: the file has changed since it was written"):
        run_recipe(recipe(study), folder)
    assert (folder / "recipe.toml").read_text() == "# mine\n"


def test_the_folder_can_move_with_its_data(study: Path) -> None:
    first = run_recipe(recipe(study), study / "runs" / "one")
    moved = study.with_name(study.name + "-moved")
    study.rename(moved)
    assert run_recipe(Recipe.read(moved / "runs" / "one" / "recipe.toml")).fingerprint == first.fingerprint


def test_executing_a_stored_recipe_into_its_own_folder_finds_it_done(study: Path) -> None:
    first = run_recipe(recipe(study), study / "runs" / "one")
    stored = study / "runs" / "one" / "recipe.toml"
    text = stored.read_text()
    again = run_recipe(Recipe.read(stored), study / "runs" / "one")
    assert again.fingerprint == first.fingerprint
    assert stored.read_text() == text


def test_a_far_input_keeps_its_absolute_path(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    deep = study / "a" / "b" / "c" / "d" / "e"
    run_recipe(recipe(study), deep)
    assert tomllib.loads((deep / "recipe.toml").read_text())["inputs"]["image_embeddings"] == str(study / "img.npy")


@pytest.mark.parametrize(
    ("change", "file", "what"),
    [
        (lambda study: np.save(study / "img.npy", np.load(study / "img.npy") + 1), "img.npy", "image embeddings"),
        (lambda study: _recaption(study), "data", "dataset"),
    ],
)
def test_changed_inputs_are_refused(study: Path, change: Callable[[Path], None], file: str, what: str) -> None:
    run_recipe(recipe(study), study / "runs" / "one")
    stored = Recipe.read(study / "runs" / "one" / "recipe.toml")
    change(study)
    with pytest.raises(InputError, match=f"the {what} changed since the recipe was stored") as error:
        run_recipe(stored)
    assert error.value.file is not None
    assert Path(error.value.file).name == file
    assert "allow_changed=True" in str(error.value)
    assert run_recipe(stored, allow_changed=True)


def _recaption(study: Path) -> None:
    dataset = Dataset.load(study / "data")
    captions = dataset.captions.with_columns(text=dataset.captions["text"] + " more")
    replace(dataset, captions=captions).save(study / "data", overwrite=True)
