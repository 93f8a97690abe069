"""Recipes: what comes with crosslens, what a file may say, and how mistakes in one are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.core import CrosslensError, InputError, UnknownNameError, UsageError
from crosslens.train import LOSSES, MODELS, TrainingSettings, load_training_recipe, recipe_names
from crosslens.train.recipe import check_settings

WHOLE = """
about = "mine"
phi = "cider"
least_count = 2

[data]
kind = "precomp"
test = "testall"

[model]
kind = "vse"
dimension = 64

[[loss]]
kind = "triplet"
margin = 0.1

[[loss]]
kind = "sam"
weight = 5.0

[training]
epochs = 3
learning_rate = 1e-3
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def test_packaged_recipes_can_be_read() -> None:
    assert {"flickr8k-vse-triplet", "flickr8k-vse-sam-random"} <= set(recipe_names())
    for name in recipe_names():
        recipe = load_training_recipe(name)
        assert recipe.name == name
        assert recipe.about


def test_sam_is_the_same_model_and_budget() -> None:
    triplet, sam = (load_training_recipe(f"flickr8k-vse-{name}").identity() for name in ("triplet", "sam-random"))
    assert [entry["kind"] for entry in sam.pop("losses")] == ["triplet", "sam"]
    assert [entry["kind"] for entry in triplet.pop("losses")] == ["triplet"]
    assert triplet == sam


def test_a_file_is_a_recipe(tmp_path: Path) -> None:
    recipe = load_training_recipe(written(tmp_path, WHOLE))
    assert (recipe.name, recipe.about, recipe.layout, recipe.model) == ("mine", "mine", "precomp", "vse")
    assert (recipe.data, recipe.model_settings) == ({"test": "testall"}, {"dimension": 64})
    assert recipe.losses == ({"kind": "triplet", "margin": 0.1}, {"kind": "sam", "weight": 5.0})
    assert recipe.settings == TrainingSettings(epochs=3, learning_rate=1e-3)
    assert recipe.least_count == 2
    assert load_training_recipe(str(tmp_path / "mine.toml")) == recipe


def test_settings_can_be_changed(tmp_path: Path) -> None:
    recipe = load_training_recipe(written(tmp_path, WHOLE))
    changed_recipe = recipe.with_settings({"seed": 4, "epochs": None, "threads": 2})
    assert (changed_recipe.settings.seed, changed_recipe.settings.epochs) == (4, 3)
    assert changed_recipe.identity() != recipe.identity()
    assert recipe.with_settings({"threads": 2, "device": "cpu"}).identity() == recipe.identity()
    with pytest.raises(UsageError, match="fraction must be at most 1"):
        recipe.with_settings({"fraction": 1.5})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('about = "mine"', 'abuot = "mine"', "line 2: unknown key 'abuot'.*did you mean about"),
        ('about = "mine"', "about = 3", "line 2: about = 3.*a text"),
        ("least_count = 2", "least_count = 0", "line 4: least_count = 0.*1 or more"),
        ("least_count = 2", "least_count = true", "line 4: least_count = True.*a whole number"),
        ("[data]\n", "[dat]\n", "line [0-9]+: unknown key 'dat'.*did you mean data"),
        ('[data]\nkind = "precomp"\ntest = "testall"\n', "", r"no table \[data\]"),
        ('kind = "precomp"', "", r"\[data\] has no kind"),
        ('kind = "vse"', "kind = 3", r"kind of \[model\] is 3"),
        ('kind = "sam"', "", r"\[\[loss\]\] has no kind"),
        ("[[loss]]", "[[training.loss]]", "no loss"),
        ("epochs = 3", "epohcs = 3", r"line [0-9]+: unknown key 'epohcs' in \[training\].*did you mean epochs"),
        ("epochs = 3", "epochs = 0", r"line [0-9]+: epochs is 0.*at least 1"),
        ("epochs = 3", "epochs = 1.5", "whole number"),
        ("epochs = 3", "metric = 3", r"line [0-9]+: metric = 3.*a text"),
        ("epochs = 3", 'schedule = "linear"', "unknown schedule 'linear'"),
        ("epochs = 3", "epochs = ", "not valid TOML"),
    ],
)
def test_mistakes_name_the_file_and_the_rule(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in WHOLE
    with pytest.raises(InputError, match=rf"(?s)mine.toml.*{message}"):
        load_training_recipe(written(tmp_path, WHOLE.replace(before, after)))


def test_training_that_is_no_table(tmp_path: Path) -> None:
    text = WHOLE.replace("[training]\nepochs = 3\nlearning_rate = 1e-3\n", "")
    with pytest.raises(InputError, match=r"mine.toml, line 1: training = 3"):
        load_training_recipe(written(tmp_path, "training = 3\n" + text))


def test_unknown_recipes_and_files(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="flickr8k-vse-triplet"):
        load_training_recipe("flickr8k-vse-triplte")
    with pytest.raises(CrosslensError, match=r"none.toml"):
        load_training_recipe(tmp_path / "none.toml")


def test_settings_of_a_model_or_a_loss_name_their_line(tmp_path: Path) -> None:
    for before, after, table, message in (
        ("dimension = 64", "dimensoin = 64", "[model]", "line 12: [model] vse has no setting 'dimensoin'"),
        ("dimension = 64", 'dimension = "64"', "[model]", "line 12: dimension of [model] vse is '64'"),
        ("weight = 5.0", "tau = true", "[[loss]]", "line 20: tau of [[loss]] sam is True"),
    ):
        recipe = load_training_recipe(written(tmp_path, WHOLE.replace(before, after)))
        entry, settings = MODELS["vse"], recipe.model_settings
        if table == "[[loss]]":
            entry, settings = LOSSES["sam"], {name: recipe.losses[1][name] for name in ("tau",)}
        with pytest.raises(InputError) as caught:
            check_settings(entry, settings, table=table, source=recipe.source)
        assert message in str(caught.value)
