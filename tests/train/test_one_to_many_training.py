"""PVSE, PCME and DivE in the trainer and on the command line: they learn, resume to the bit, and name mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tables import rest_slow

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import CrosslensError  # noqa: E402
from crosslens.train import TrainingData, TrainingRecipe, load_training_recipe, train_model  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402
from tests.commands import Call as Call, call as call  # noqa: E402

from .conftest import changed, write_flickr8k  # noqa: E402

PACKAGED = ("flickr8k-pvse-k2", "flickr8k-pcme", "flickr8k-dive")


def small(recipe: TrainingRecipe, name: str) -> TrainingRecipe:
    """A packaged recipe's model and losses, with small layers and a short training."""
    packaged = load_training_recipe(name)
    layers = {"dimension": 16, "word_dimension": 8}
    return replace(
        recipe, model=packaged.model, model_settings={**packaged.model_settings, **layers}, losses=packaged.losses
    )


@pytest.mark.parametrize("name", rest_slow(PACKAGED))
def test_training_interrupted_and_resumed_ends_with_the_same_weights(
    tmp_path: Path, recipe: TrainingRecipe, local_data: TrainingData, name: str
) -> None:
    recipe = changed(small(recipe, name), epochs=2, fraction=0.5)

    def stop(row: dict[str, Any]) -> None:
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    whole = train_model(recipe, local_data, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, local_data, tmp_path / "resumed", watch=stop)
    resumed = train_model(recipe, local_data, tmp_path / "resumed")
    first, second = (read_model(trained.path).weights for trained in (whole, resumed))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert resumed.card["history"] == whole.card["history"]
    assert resumed.test == whole.test


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGED)
def test_they_learn(tmp_path: Path, recipe: TrainingRecipe, local_data: TrainingData, name: str) -> None:
    trained = train_model(changed(small(recipe, name), epochs=6, batch_size=20), local_data, tmp_path / "model")
    rows = trained.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]
    chance = 100 * ((0.05 + 0.25 + 0.5) + (1 - 0.95 + 0.25 + 0.47))  # 20 images; 5 of 100 captions are relevant
    assert trained.test["Rsum"] > chance + 60


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_recipes_run(call: Call, tmp_path: Path, local_data: TrainingData, name: str) -> None:
    folder = write_flickr8k(tmp_path / "flickr8k", local_data)
    words = ("--fraction", "0.5", "--epochs", "1", "--batch-size", "25", "--device", "cpu", "--threads", "1", "--json")
    outcome = call("train", name, "--data", folder, *words, "-o", tmp_path / "model")
    assert outcome.code == 0, outcome.err
    assert {"Rsum", "i2t/Hit@1", "t2i/Hit@1"} <= set(outcome.json["test"])


def test_recipes_differ_from_their_base_in_the_head_and_its_losses_only() -> None:
    base = load_training_recipe("flickr8k-pvse-base")
    for name in PACKAGED:
        derived_recipe = load_training_recipe(name)
        assert derived_recipe.data == base.data
        towers = ("dimension", "text", "word_dimension", "dropout")
        assert [derived_recipe.model_settings[key] for key in towers] == [base.model_settings[key] for key in towers]
        budget = ("epochs", "max_steps", "learning_rate", "batch_size", "validate_every", "schedule")
        assert [getattr(derived_recipe.settings, key) for key in budget] == [
            getattr(base.settings, key) for key in budget
        ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_settings": {"k": 0}}, r"mine.toml.*\[model\] pvse: k is 0.*k must be at least 1"),
        ({"model_settings": {"k": 2.5}}, r"mine.toml.*k of \[model\] pvse is 2.5.*whole number"),
        ({"model_settings": {"text": "sentence"}}, r"mine.toml.*'sentence', and this model needs a vector per word"),
        ({"losses": ({"kind": "diversity", "form": "cosine"},)}, r"mine.toml.*choose gram or gaussian"),
        ({"losses": ({"kind": "vib"},)}, r"the loss vib needs a model with a variance per item"),
        ({"losses": ({"kind": "pcme", "scale": 3},)}, r"mine.toml.*pcme has no setting 'scale'"),
        ({"model": "vse", "losses": ({"kind": "diversity"},)}, r"several vectors per item"),
    ],
)
def test_mistakes_in_a_recipe_are_named(
    tmp_path: Path, recipe: TrainingRecipe, local_data: TrainingData, changes: dict[str, Any], message: str
) -> None:
    recipe = replace(recipe, source="mine.toml", **{"model": "pvse", **changes})
    with pytest.raises(CrosslensError, match=f"(?s){message}"):
        train_model(recipe, local_data, tmp_path / "model")


@pytest.mark.parametrize("name", PACKAGED)
def test_data_without_regions_are_refused(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, name: str
) -> None:
    with pytest.raises(CrosslensError, match="the data have no local features"):
        train_model(small(recipe, name), data, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGED)
def test_a_tenth_of_flickr8k_is_learned(tmp_path: Path, shared_data: Path, name: str) -> None:
    from crosslens.train import load_features

    recipe = load_training_recipe(name).with_settings({"fraction": 0.1, "device": "cpu", "threads": 1})
    trained = train_model(recipe, load_features(recipe.layout, shared_data / "flickr8k", recipe.data), tmp_path / "m")
    assert trained.card["validation"]["Rsum"] > 40
    assert np.isfinite([row["loss"] for row in trained.card["history"]]).all()
