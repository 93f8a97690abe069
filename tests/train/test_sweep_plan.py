"""What a sweep consists of: settings and values, combinations and baselines, seeds, folders; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from crosslens.core import CrosslensError, UsageError
from crosslens.train import (
    TrainingData,
    TrainingRecipe,
    build_loss,
    load_training_recipe,
    losses_called,
    named_losses,
    plan_sweep,
    sweep_state,
)
from crosslens.train.sweep.plan import ABSENT, combinations, folder_name, read_variables, with_value
from tests.tables import each_row

from .conftest import changed, write_flickr8k


def grid(recipe: TrainingRecipe, *settings: str) -> Any:
    return combinations(recipe, read_variables(settings))


# Named losses


def test_sam_random_is_what_the_packaged_recipe_has() -> None:
    assert losses_called("sam-random") == load_training_recipe("flickr8k-vse-sam-random").losses
    assert losses_called("triplet") == load_training_recipe("flickr8k-vse-triplet").losses


def test_every_named_loss_can_be_built() -> None:
    for name in named_losses():
        build_loss(losses_called(name))
    assert losses_called("infonce") == ({"kind": "infonce"},), "a loss kind stands for itself"


# Settings put into a recipe


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("fraction", "0.1", {"settings": {"fraction": 0.1}}),
        ("epochs", "7", {"settings": {"epochs": 7}}),
        ("schedule", "cosine", {"settings": {"schedule": "cosine"}}),
        ("model.dimension", "32", {"model_settings": {"dimension": 32}}),
        ("model.both", "true", {"model_settings": {"both": True}}),
        ("model.dropout", "0", {"model_settings": {"dropout": 0.0}}),
        ("phi", "semantic", {"phi": "semantic"}),
        ("least_count", "2", {"least_count": 2}),
        ("data.train", "other", {"data": {"train": "other"}}),
    ],
)
def test_settings_of_every_table(recipe: TrainingRecipe, name: str, text: str, expected: dict[str, Any]) -> None:
    changed = with_value(recipe, name, text)
    assert changed is not None
    for field, values in expected.items():
        section = getattr(changed, field)
        if isinstance(values, dict):
            for key, value in values.items():
                stored = section[key] if isinstance(section, dict) else getattr(section, key)
                assert stored == value
                assert type(stored) is type(value)
        else:
            assert section == values


def test_settings_of_losses(recipe: TrainingRecipe) -> None:
    two = replace(recipe, losses=({"kind": "triplet"}, {"kind": "sam", "tau": 3.0}))
    changed = with_value(two, "sam.tau", "5")
    assert changed is not None
    assert changed.losses == ({"kind": "triplet"}, {"kind": "sam", "tau": 5.0})
    weighted = with_value(two, "sam.weight", "2")
    assert weighted is not None
    assert weighted.losses[1]["weight"] == 2.0
    assert with_value(recipe, "sam.tau", "5") is None, "this recipe has no such loss"


def test_a_recipe_by_name_keeps_device_and_threads(recipe: TrainingRecipe) -> None:
    changed = with_value(recipe, "recipe", "flickr8k-vse-triplet")
    assert changed is not None
    assert changed.name == "flickr8k-vse-triplet"
    assert (changed.settings.device, changed.settings.threads) == ("cpu", 1)


# Combinations


def test_all_combinations_in_order(recipe: TrainingRecipe) -> None:
    variants = grid(recipe, "loss=triplet,infonce", "fraction=0.5,1", "epochs=2")
    assert [entry.label for entry in variants] == [
        "loss=triplet, fraction=0.5, epochs=2",
        "loss=triplet, fraction=1, epochs=2",
        "loss=infonce, fraction=0.5, epochs=2",
        "loss=infonce, fraction=1, epochs=2",
    ]
    assert [entry.baseline for entry in variants] == [None, None, 0, 1]
    assert {entry.recipe.settings.epochs for entry in variants} == {2}
    assert [entry.recipe.losses[0]["kind"] for entry in variants] == ["triplet", "triplet", "infonce", "infonce"]


def test_a_setting_of_a_loss_is_left_out_where_there_is_no_such_loss(recipe: TrainingRecipe) -> None:
    variants = grid(recipe, "sam.tau=3,5", "loss=triplet,sam-random")
    assert [dict(entry.values) for entry in variants] == [
        {"sam.tau": ABSENT, "loss": "triplet"},
        {"sam.tau": "3", "loss": "sam-random"},
        {"sam.tau": "5", "loss": "sam-random"},
    ]
    assert [entry.baseline for entry in variants] == [None, None, 1]
    assert variants[2].recipe.losses[1]["tau"] == 5.0, "losses are put in before their settings"
    variants = grid(recipe, "loss=triplet,sam-random", "sam.tau=3,5")
    assert [entry.baseline for entry in variants] == [None, 0, 0]


def test_the_losses_of_the_recipe(recipe: TrainingRecipe) -> None:
    variants = grid(recipe, "loss=recipe,sam-soft")
    assert variants[0].recipe.losses == recipe.losses
    assert variants[1].recipe.losses[1]["sampling"] == "soft"


def test_without_settings_there_is_one_combination(recipe: TrainingRecipe) -> None:
    (only,) = grid(recipe)
    assert (only.label, only.baseline) == ("small", None)


# Mistakes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["loss"], "'loss' sets nothing"),
        (["=3"], "'=3' sets nothing"),
        (["loss="], "loss= names no value"),
        (["loss=triplet,"], "loss=triplet, has an empty value"),
        (["loss=triplet", "loss=infonce"], "loss is set twice"),
        (["fraction=0.1,0.1"], "fraction has the value 0.1 twice"),
        (["fracton=0.1"], "did you mean fraction"),
        (["loss=tripelt"], "did you mean triplet"),
        (["recipe=flickr8k-vse-tripelt"], "did you mean flickr8k-vse-triplet"),
        (["epochs=many"], "epochs=many: 'many' is not a whole number"),
        (["epochs=2.5"], "epochs=2.5: '2.5' is not a whole number"),
        (["epochs=0"], "epochs must be at least 1"),
        (["fraction=2"], "fraction must be at most 1"),
        (["fraction=nan"], "fraction must be a number"),
        (["schedule=stpe"], "did you mean step"),
        (["model.dimensions=3"], "did you mean dimension"),
        (["model.dimension=big"], "'big' is not a whole number"),
        (["model.both=1"], "'1' is not true or false"),
        (["sam.tua=3"], "did you mean tau"),
        (["sam.tau=3,5"], "sam.tau is set, but no training has the loss sam"),
        (["seed=1,2"], "seeds are not compared"),
        (["device=cpu,cuda"], "device does not decide about the result"),
        (["data.trian=x"], "did you mean train"),
    ],
)
def test_settings_that_cannot_be_swept(recipe: TrainingRecipe, settings: list[str], message: str) -> None:
    with pytest.raises(CrosslensError) as error:
        grid(recipe, *settings)
    assert message in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.text=lstm"], "text is 'lstm'"),
        (["loss=sam-random", "sam.tau=0"], "tau is 0"),
        (["loss=sam-random", "phi=cidre"], "did you mean cider"),
        (["metric=Rsom"], "Rsum"),
        (["batch_size=500"], "a batch of 500 pairs from 200 training captions"),
        (["fraction=1,0.25", "batch_size=60"], "a batch of 60 pairs from 50 training captions"),
    ],
)
def test_values_that_cannot_be_trained_are_refused_before_the_first_training(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, settings: list[str], message: str
) -> None:
    folder = write_flickr8k(tmp_path / "data", data)
    plan = plan_sweep(replace(recipe, layout="flickr8k"), folder, settings, seeds=1, device="cpu")
    with pytest.raises(CrosslensError, match=message):
        sweep_state(plan, tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


# Seeds and folders


@pytest.mark.parametrize(
    ("given", "expected"), [(3, (0, 1, 2)), ("3", (0, 1, 2)), ("0,3,7", (0, 3, 7)), ("4,", (4,)), ([5, 2], (5, 2))]
)
def test_seeds(recipe: TrainingRecipe, given: Any, expected: tuple[int, ...]) -> None:
    assert plan_sweep(recipe, "data", seeds=given).seeds == expected


@each_row("given", ["0", 0, "-1", "0,-1", "many", "1,,x", ",", [], "1,1", 10**12, "9" * 5000])
def test_wrong_seeds(recipe: TrainingRecipe, given: Any) -> None:
    with pytest.raises(UsageError, match="seeds are") as error:
        plan_sweep(recipe, "data", seeds=given)
    assert error.value.option == "seeds"


def test_folder_names(recipe: TrainingRecipe, tmp_path: Path) -> None:
    names = [folder_name(entry) for entry in grid(recipe, "text_model=sentence:a/b,sentence:a:b,../../x,a b")]
    assert len(set(names)) == 4
    assert all("/" not in name and ":" not in name and " " not in name for name in names)
    (long,) = grid(recipe, f"text_model={'x' * 500}")
    assert len(folder_name(long)) < 200
    assert folder_name(grid(recipe, "loss=triplet", "fraction=0.1")[0]) == "loss=triplet,fraction=0.1"


def test_a_plan_goes_seed_by_seed(recipe: TrainingRecipe) -> None:
    plan = plan_sweep(recipe, "data", {"loss": ["triplet", "infonce"], "model.both": [True]}, seeds=2, threads=1)
    assert [training.folder for training in plan.trainings] == [
        "loss=triplet,model.both=true/seed-0",
        "loss=infonce,model.both=true/seed-0",
        "loss=triplet,model.both=true/seed-1",
        "loss=infonce,model.both=true/seed-1",
    ]
    assert [training.recipe.settings.seed for training in plan.trainings] == [0, 0, 1, 1]
    assert plan.varied == ("loss",)


def test_a_plan_without_a_recipe(recipe: TrainingRecipe) -> None:
    assert plan_sweep(None, "data", ["recipe=flickr8k-vse-triplet"]).name == "flickr8k-vse-triplet"
    with pytest.raises(UsageError, match="no recipe"):
        plan_sweep(None, "data", ["fraction=0.1"])


def test_threads_do_not_come_from_the_number_of_jobs(recipe: TrainingRecipe) -> None:
    without = changed(recipe, threads=None)
    assert {entry.recipe.settings.threads for entry in plan_sweep(without, "data").combinations} == {1}
