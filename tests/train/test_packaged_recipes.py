"""Every recipe that comes with crosslens: it says what it is, and its model and losses can be built and trained."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import InputError, Registry, UsageError
from crosslens.train import (
    FEATURE_SETS,
    LOSSES,
    MODELS,
    ImageFeatures,
    Split,
    TrainingData,
    TrainingRecipe,
    load_training_recipe,
    recipe_groups,
    recipe_names,
    settings_of,
    tables_of,
    train_model,
)
from crosslens.train.recipe import check_settings, declared_settings
from tests.tables import covering, each_row

RECIPES = {name: load_training_recipe(name) for name in recipe_names()}
SMALL = {"dimension": 8, "word_dimension": 8, "similarity_dimension": 8, "concepts": 6}


def parts_of(recipe: TrainingRecipe) -> list[tuple[Registry[Any], str, dict[str, Any]]]:
    """Each registry with the kind and the settings that the recipe names."""
    losses = [{key: value for key, value in entry.items() if key != "weight"} for entry in recipe.losses]
    return [
        (FEATURE_SETS, recipe.layout, dict(recipe.data)),
        (MODELS, recipe.model, dict(recipe.model_settings)),
        *((LOSSES, entry.pop("kind"), entry) for entry in losses),
    ]


def require_kinds(recipe: TrainingRecipe) -> None:
    for registry, kind, _ in parts_of(recipe):
        if kind not in registry:
            pytest.skip(f"no {registry.kind} {kind}")


@each_row("name", RECIPES)
def test_kinds_and_settings_exist(name: str) -> None:
    pytest.importorskip("torch")
    recipe = RECIPES[name]
    assert recipe.name == name
    assert re.fullmatch(r"(flickr8k|f30k|coco|imp)-[a-z0-9-]+", name)
    assert recipe.about
    require_kinds(recipe)
    for registry, kind, settings in parts_of(recipe):
        assert settings.keys() <= declared_settings(registry[kind]).keys(), kind


def test_heads_share_their_settings() -> None:
    pytest.importorskip("torch")
    settings_of_head = {"pvse": {"k"}, "pcme": {"samples", "scale", "shift"}, "dive": {"k", "iterations", "alpha"}}
    shared = [
        {option.name: option for option in settings_of(MODELS[kind].value) if option.name not in names}
        for kind, names in settings_of_head.items()
    ]
    assert shared[0] == shared[1] == shared[2]
    assert (len(shared[0]), shared[0]["lora_alpha"].default, shared[0]["lora_rank"].annotation) == (9, 8.0, "int")
    recipe = RECIPES["imp-pvse-k5"]
    with pytest.raises(InputError, match="no setting 'lora_rnak'"):
        check_settings(MODELS["pvse"], {**recipe.model_settings, "lora_rnak": 4}, table="[model]", source="r.toml")


def key_of(recipe: TrainingRecipe) -> str:
    return json.dumps([recipe.model, recipe.model_settings, recipe.losses, recipe.phi], default=dict)


DIFFERENT = {
    key_of(recipe): recipe for recipe in RECIPES.values() if not recipe.text_model and recipe.layout != "images"
}
"""One recipe of each model with its losses; those that need the weights of an encoder are tested with it, such as
IMP's in test_adapted_heads."""


def choices(recipe: TrainingRecipe) -> list[str]:
    """What tells a training from others: model, losses, φ; the settings of models have tests of their own."""
    return [recipe.model, f"phi {recipe.phi}", *(str(loss["kind"]) for loss in recipe.losses)]


FAST = covering({recipe.name: choices(recipe) for recipe in DIFFERENT.values()})


@pytest.fixture(scope="module")
def local_data(data: TrainingData) -> TrainingData:
    def both(split: Split) -> Split:
        vectors = split.features.vectors
        assert vectors is not None
        return Split(split.dataset, ImageFeatures(vectors, np.stack([vectors, vectors[:, ::-1], -vectors], axis=1)))

    return TrainingData(both(data.train), both(data.validation), both(data.test))


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe, id=recipe.name, marks=() if recipe.name in FAST else pytest.mark.slow)
        for recipe in DIFFERENT.values()
    ],
)
def test_it_trains(recipe: TrainingRecipe, local_data: TrainingData, tmp_path: Path) -> None:
    """Two steps on a small collection, at a small size."""
    pytest.importorskip("torch")
    require_kinds(recipe)
    settings_of_model = declared_settings(MODELS[recipe.model])
    settings = recipe.settings
    small = replace(
        recipe, model_settings={**recipe.model_settings, **{k: v for k, v in SMALL.items() if k in settings_of_model}},
        least_count=1, settings=replace(settings, epochs=1, batch_size=100, device="cpu", threads=1),
    )  # fmt: skip
    trained = train_model(small, local_data, tmp_path / "model")
    assert trained.card["steps"] == 2
    assert np.isfinite(trained.card["history"][0]["loss"])


def test_published_rows_are_all_there() -> None:
    """As many rows as the tables have: 16 in Table 2 of FIVE, 18 in Table 3, 12 in Table 4, and so on."""
    rows = [(row.table, row.row) for recipe in RECIPES.values() for row in recipe.published]
    assert len(rows) == len(set(rows)), "a row belongs to one recipe"
    tables = {"FIVE Table 2": 16, "FIVE Table 3": 18, "FIVE Table 4": 12, "FIVE Table 5": 12}
    tables |= {"IMP Table 7": 21, "IMP Table 8": 7}
    assert {name: sum(table.startswith(name) for table, _ in rows) for name in tables} == tables
    for recipe in RECIPES.values():
        for row in recipe.published:
            assert row.figures
            assert ("--fraction" in row.flags) == (row.table.startswith("FIVE Table 2"))


def test_published_figures_of_imp_have_the_names_of_their_metrics() -> None:
    """As deviations.md explains: medians over all pairs, and full average precision where one item is relevant."""
    rows = [(recipe, row) for name, recipe in RECIPES.items() if name.startswith("imp-") for row in recipe.published]
    names = {"i2t/R@1", "t2i/R@1", "i2t/MedR[all]", "t2i/MedR[all]", "i2t/mAP@R", "t2i/AP"}
    for recipe, row in rows:
        assert set(row.figures) == names, row
        assert {name.partition("/")[2] for name in names} - {"R@1"} <= set(recipe.settings.test_metrics.split())
    assert len(rows) > 20


def test_published_settings() -> None:
    cvse = RECIPES["f30k-cvse-triplet"]
    assert cvse.losses[0] == {"kind": "triplet", "margin": 0.2, "negatives": "hardest", "weight": 3.0}
    expected = {"concepts": 300, "dimension": 1024, "word_dimension": 300, "both": True, "dropout": 0.4}
    assert cvse.model_settings == expected
    settings = cvse.settings
    assert (settings.batch_size, settings.optimizer, settings.learning_rate, settings.clip) == (128, "adam", 2e-4, 2.0)
    for name, recipe in RECIPES.items():
        if name.startswith("imp-"):
            settings = recipe.settings
            assert (settings.learning_rate, settings.epochs, settings.batch_size) == (1e-4, 6, 1024)
            assert settings.schedule == "cosine"
            assert (settings.image_rate, settings.text_rate) == (0.05, 0.5)
            assert (recipe.layout, recipe.data) == ("images", {"encoder": "clip:openai/clip-vit-base-patch32"})
            adapters = {"lora_rank": 8, "lora_alpha": 8.0, "lora_dropout": 0.0, "lora_targets": "q_proj, v_proj"}
            assert adapters.items() <= recipe.model_settings.items()


@each_row("name", [name for name in RECIPES if name.startswith("f30k-")])
def test_flickr8k_has_a_version_of_each(name: str) -> None:
    published, here = RECIPES[name].identity(), RECIPES[name.replace("f30k", "flickr8k")].identity()
    assert {key: value for key, value in published.items() if key not in ("layout", "data")} == {
        key: value for key, value in here.items() if key not in ("layout", "data")
    }


@each_row("name", [name for name in RECIPES if "-sam-" in name or "-released-" in name])
def test_adaptive_margins_keep_model_and_budget(name: str) -> None:
    """Whatever adds adaptive margins differs from the fixed margin of the same model in its losses alone."""
    head = re.match(r"[^-]+-[^-]+", name)
    assert head
    fixed, adaptive_identity = RECIPES[f"{head[0]}-triplet"].identity(), RECIPES[name].identity()
    names = [key for key in fixed if fixed[key] != adaptive_identity[key]]
    assert names == (["data", "losses"] if name.endswith("-5k") else ["losses"])


def test_groups_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.train.recipe.load_training_recipe", RECIPES.__getitem__)  # read once
    groups = recipe_groups()
    assert sorted(recipe.name for group in groups for recipe in group.recipes) == recipe_names()
    assert {group.title.split(",")[0] for group in groups} >= {"Flickr8k", "Flickr30k", "COCO"}
    recipes = list(chain.from_iterable(group.recipes for group in recipe_groups("F30K soft alone")))
    assert [recipe.name for recipe in recipes] == [f"f30k-cvse-sam-soft-tau{tau}-alone" for tau in (10, 3, 5)]
    assert {tables_of(recipe) for recipe in recipes} == {"FIVE Table 4"}
    assert tables_of(RECIPES["f30k-cvse-triplet"]) == "FIVE Tables 2, 3"
    singles = {recipe.model for group in recipe_groups("flickr8k vse") for recipe in group.recipes}
    assert singles == {"vse"}, "cvse and pvse are other words"
    with pytest.raises(UsageError, match="no recipe is described by 'f30k clip'"):
        recipe_groups("f30k clip")
