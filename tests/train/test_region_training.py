"""Region models through the trainer: they learn, resume to the bit, are scored in blocks, and name mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.tables import rest_slow

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import InputError  # noqa: E402
from crosslens.engine import SilentProgress  # noqa: E402
from crosslens.train import (  # noqa: E402
    MODELS,
    InputShape,
    TrainingData,
    TrainingRecipe,
    build_loss,
    evaluation,
    load_model,
    load_training_recipe,
    train_model,
)
from crosslens.train.captions import CaptionSource, CaptionVocabulary  # noqa: E402
from crosslens.train.evaluation import SplitMetrics  # noqa: E402
from crosslens.train.models.protocol import build_model  # noqa: E402
from crosslens.train.processes import Group  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402

from .conftest import changed, made_data  # noqa: E402
from .test_trainer import partial, stop_after, weights  # noqa: E402

SMALL = {"dimension": 16, "word_dimension": 8}
SETTINGS: dict[str, dict[str, Any]] = {
    "scan-t2i": {"both": False},
    "scan-i2t": {"direction": "i2t", "aggregation": "lse"},
    "vsrn": {"layers": 2},
    "vsrn-captioning": {"layers": 2},
    "cvse": {"concepts": 12, "dropout": 0.1},
    "sgr": {"similarity_dimension": 16, "steps": 1, "dropout": 0.1},
    "saf": {"similarity_dimension": 16, "dropout": 0.1},
}
LOSSES: dict[str, list[dict[str, Any]]] = {
    "scan": [{"kind": "triplet"}],
    "cvse": [{"kind": "triplet", "weight": 3.0}, {"kind": "consensus"}],
    "vsrn-captioning": [{"kind": "infonce"}, {"kind": "captioning", "dimension": 16, "word_dimension": 8}],
}
CHANCE = 100 * ((0.05 + 0.25 + 0.5) + (1 - 0.95 + 0.25 + 0.47))
"""Rsum among 20 images with 5 captions each."""
every_model = pytest.mark.parametrize("name", SETTINGS)
SPECIAL = ("vsrn-captioning", "cvse")
"""A decoder in the loss; values prepared from captions, and dropout: the others have no more state than these."""
special_models = pytest.mark.parametrize(
    "name", rest_slow([*SPECIAL, *(name for name in SETTINGS if name not in SPECIAL)], fast=len(SPECIAL))
)


def recipe_of(recipe: TrainingRecipe, name: str, **settings: Any) -> TrainingRecipe:
    kind = name.split("-")[0]
    losses = tuple(LOSSES.get(name, LOSSES.get(kind, [{"kind": "infonce"}])))
    changed_recipe = replace(recipe, model=kind, model_settings={**SMALL, **SETTINGS[name]}, losses=losses)
    return changed(changed_recipe, **settings)


@pytest.mark.parametrize(
    ("name", "epochs"),
    [
        ("scan-t2i", 5),
        pytest.param("scan-i2t", 5, marks=pytest.mark.slow),
        pytest.param("cvse", 3, marks=pytest.mark.slow),
        pytest.param("vsrn-captioning", 4, marks=pytest.mark.slow),
        pytest.param("vsrn", 6, marks=pytest.mark.slow),
        pytest.param("sgr", 7, marks=pytest.mark.slow),
        pytest.param("saf", 6, marks=pytest.mark.slow),
    ],
)
def test_it_learns(tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData, name: str, epochs: int) -> None:
    trained = train_model(recipe_of(recipe, name, epochs=epochs, batch_size=20), region_data, tmp_path / "model")
    assert trained.test["Rsum"] > CHANCE + 100
    rows = trained.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]


@special_models
def test_it_resumes_to_the_bit(
    tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData, name: str
) -> None:  # fmt: skip
    recipe = recipe_of(recipe, name, epochs=2, fraction=0.25, batch_size=20)
    whole = train_model(recipe, region_data, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, region_data, tmp_path / "resumed", watch=stop_after(0))
    assert partial(tmp_path / "resumed").exists()
    resumed = train_model(recipe, region_data, tmp_path / "resumed")
    assert weights(resumed.path) == weights(whole.path)
    assert resumed.test == whole.test


@special_models
def test_a_global_vector_is_one_more_region(tmp_path: Path, recipe: TrainingRecipe, name: str) -> None:
    trained = train_model(
        recipe_of(recipe, name, epochs=1, fraction=0.25), made_data("vectors", "regions"), tmp_path / "model"
    )
    assert trained.card["shape"] == {
        "vector": 16,
        "words": 15,
        "text": (),
        "regions": (4, 16),
        "encoder": "",
        "revision": "",
    }
    assert any("whole" in weight for weight in read_model(trained.path).weights)


def test_a_stored_model_is_rebuilt_without_the_training_captions(
    tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData
) -> None:
    recipe = recipe_of(recipe, "cvse", epochs=1, fraction=0.25)
    stored = read_model(train_model(recipe, region_data, tmp_path / "model").path)
    shape = InputShape(**stored.card["shape"])
    built = build_model("cvse", recipe.model_settings, shape, stored.card["prepared"], "card").eval()
    built.load_state_dict(stored.weights)
    vocabulary = CaptionVocabulary(tuple(stored.card["vocabulary"]))
    captions = CaptionSource(*vocabulary.encode(region_data.test.dataset.texts))
    scores = evaluation.score_matrix(built, region_data.test, captions, Group(device="cpu"))
    measured = SplitMetrics(region_data.test.dataset, "Rsum", progress=SilentProgress())(scores)
    assert measured["Rsum"] == stored.card["test"]["Rsum"]


def test_a_small_vocabulary_has_fewer_concepts_and_the_card_says_so(
    tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData
) -> None:
    small = recipe_of(recipe, "cvse", epochs=1, fraction=0.5)
    small = replace(small, model_settings={**small.model_settings, "concepts": 300})
    trained = train_model(small, region_data, tmp_path / "model")
    note = "12 concepts, not 300: the vocabulary has no more content words"
    assert trained.as_dict()["notes"] == [note]
    assert f"| note | {note} |" in (trained.path / "README.md").read_text()
    assert load_model(trained.path).model.graph.adjacency.shape == (12, 12)
    assert train_model(recipe_of(recipe, "cvse", epochs=1, fraction=0.5), region_data, tmp_path / "twelve").notes == []


@pytest.mark.parametrize("name", ["scan-t2i", "scan-i2t", "vsrn", "cvse", "sgr", "saf"])
def test_packaged_recipes_build_their_model(name: str) -> None:
    recipe = load_training_recipe(f"flickr8k-{name}")
    vector = 1280 if "global" in recipe.data["features"] else 0
    prepared = {"concept_numbers": list(range(2, 302)), "concept_edges": []} if name == "cvse" else {}
    settings = {**recipe.model_settings, "dimension": 8}
    model = build_model(recipe.model, settings, InputShape(vector, 400, (), (9, 256)), prepared, recipe.source)
    assert (model.regions.whole is None) == (vector == 0)
    assert recipe.settings.batch_size == 128
    assert recipe.settings.clip == 2.0
    build_loss(recipe.losses)


# Scores of a split


@every_model
def test_scores_of_a_split_in_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions of different lengths, blocks of a few pairs: each score is that of the image and the caption alone."""
    split = made_data("regions").test
    texts = tuple(" ".join(text.split()[: 2 + at % 4]) for at, text in enumerate(split.dataset.texts))
    source = CaptionSource(*CaptionVocabulary.of(texts, 1).encode(texts))
    torch.manual_seed(0)
    prepared = {"concept_numbers": list(range(3, 15)), "concept_edges": [[0, 1]]} if name == "cvse" else {}
    model = MODELS[name.split("-")[0]].value(InputShape(0, 15, (), (4, 16)), **SMALL, **SETTINGS[name], **prepared)
    model.eval()
    monkeypatch.setattr(evaluation, "_IMAGES", 7)
    monkeypatch.setattr(evaluation, "_CAPTIONS", 30)
    monkeypatch.setattr(evaluation, "LARGEST_BLOCK", 5_000)
    scores = evaluation.score_matrix(model, split, source, Group(device="cpu"))
    with torch.inference_mode():
        for image, caption in [(0, 0), (19, 99), (6, 29), (7, 30), (13, 61)]:
            images = model.encode_images(split.features.batch(slice(image, image + 1), "cpu"))
            alone = model.scores(images, model.encode_captions(source.batch(np.array([caption]), "cpu")))
            assert scores[image, caption] == pytest.approx(float(alone), abs=1e-5)


def test_encodings_keep_their_names_in_blocks() -> None:
    class Named(NamedTuple):
        vectors: Any
        shifts: Any

    class Model:
        def scores(self, images: Named, captions: Named) -> Any:
            return images.vectors @ captions.vectors.T + images.shifts[:, None]

        def numbers_per_pair(self, images: Named, captions: Named) -> int:
            return 10

    images, captions = (Named(torch.randn(count, 3), torch.randn(count)) for count in (5, 7))
    whole = Model().scores(images, captions).numpy()
    for rows, columns, block in evaluation.scores_in_blocks(Model(), images, captions, 60):  # type: ignore[arg-type]
        assert block.size <= 6
        assert block == pytest.approx(whole[rows, columns], abs=1e-6)


# Mistakes


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("scan-t2i", {"direction": "both"}, r"\[model\] scan: direction is 'both'.*choose t2i or i2t"),
        ("scan-t2i", {"text": "sentence"}, r"\[model\] scan has no setting 'text'"),
        ("cvse", {"concepts": 0}, r"\[model\] cvse: concepts is 0"),
        ("cvse", {"concept_numbers": [1]}, r"\[model\] cvse has no setting 'concept_numbers'"),
        ("sgr", {"steps": "three"}, r"steps of \[model\] sgr is 'three'"),
    ],
)
def test_mistakes_name_the_recipe(
    tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData, name: str, settings: dict[str, Any], message: str
) -> None:
    recipe_with_mistake = recipe_of(recipe, name)
    recipe_with_mistake = replace(
        recipe_with_mistake, source="mine.toml", model_settings={**recipe_with_mistake.model_settings, **settings}
    )
    with pytest.raises(InputError, match=f"(?s)mine.toml.*{message}"):
        train_model(recipe_with_mistake, region_data, tmp_path / "model")


def test_global_features_alone_are_not_enough(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    with pytest.raises(InputError, match="scan: the data have no local features"):
        train_model(recipe_of(recipe, "scan-t2i"), data, tmp_path / "model")
