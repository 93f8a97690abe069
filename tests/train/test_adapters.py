"""Pretrained models trained further: adapters change and base weights do not, and only what was trained is stored."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extras import skip_without
from tests.tables import rest_slow

torch = pytest.importorskip("torch")
skip_without("train,encoders", "transformers", "peft", "PIL")

from crosslens.core import InputError, MissingExtraError, UsageError  # noqa: E402
from crosslens.encode import Pretrained, load_encoder  # noqa: E402
from crosslens.train import MODELS, ImageBatch, InputShape, TrainingData, load_features, train_model  # noqa: E402
from crosslens.train.models.pretrained import target_names  # noqa: E402
from crosslens.train.stored.checkpoint import load_trained_state, trained_state  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402
from tests.encode.tiny_models import TEXTS, pictures, save_model  # noqa: E402

from .adapted_models import (  # noqa: E402
    SPLITS,
    adapted,
    bases as bases,
    own_cache as own_cache,
    photos as photos,
    shape_of,
    text_recipe,
    tokens_of,
    with_pixels,
)
from .conftest import changed  # noqa: E402

# What the model computes


@pytest.mark.parametrize("kind", rest_slow(["clip", "siglip"]))
def test_at_first_adapters_change_no_score(bases: dict[str, Path], kind: str) -> None:
    base = load_encoder(f"{kind}:{bases[kind]}", device="cpu")
    images, captions = base.encode_images(pictures()), base.encode_texts(TEXTS)
    images, captions = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions))
    model = MODELS["dual-encoder"].value(shape_of(bases[kind]), lora_rank=4).eval()
    pixels = ImageBatch(pixels=torch.from_numpy(Pretrained(str(bases[kind])).pixels(pictures())))
    with torch.inference_mode():
        scores = model.scores(model.encode_images(pixels), model.encode_captions(tokens_of(bases[kind]))).numpy()
    np.testing.assert_allclose(scores, images @ captions.T, atol=1e-5)


def test_an_adapter_adds_a_product_of_two_small_matrices(bases: dict[str, Path]) -> None:
    """W + (alpha ÷ rank)·B·A, written out for one map."""
    model = MODELS["dual-encoder"].value(shape_of(bases["clip"]), lora_rank=2, lora_alpha=6.0).eval()
    layer = model.encoder.vision_model.encoder.layers[0].self_attn.q_proj
    with torch.no_grad():
        layer.lora_B["default"].weight.normal_()
        states = torch.randn(3, 16)
        a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
        expected = states @ (layer.base_layer.weight + 6.0 / 2 * b @ a).T + layer.base_layer.bias
        assert torch.allclose(layer(states), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_adapters_are_on_the_attention_of_both_towers(bases: dict[str, Path], kind: str) -> None:
    names = target_names(Pretrained(str(bases[kind])).module())
    expected = {
        f"{tower}_model.encoder.layers.{layer}.self_attn.{end}"
        for tower in ("text", "vision")
        for layer in (0, 1)
        for end in ("q_proj", "k_proj", "v_proj", "out_proj")
    }
    assert set(names) == expected, "SigLIP's pooling, torch's own attention, would ignore an adapter"
    assert all(name.endswith("fc1") for name in target_names(Pretrained(str(bases[kind])).module(), "fc1, none"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lora_rank": -1}, "lora_rank must be at least 0"),
        ({"lora_alpha": 0.0}, "lora_alpha must be above 0"),
        ({"lora_dropout": 1.0}, "lora_dropout must be"),
        ({"lora_targets": "nowhere"}, r"called nowhere\n.*name some in lora_targets: fc1"),
        ({"lora_rank": 0}, "nothing to train"),
    ],
)
def test_wrong_settings_are_named(bases: dict[str, Path], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MODELS["dual-encoder"].value(shape_of(bases["clip"]), **settings)


def test_models_that_cannot_be_adapted_are_refused(bases: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="does not compare pictures with texts"):
        MODELS["dual-encoder"].value(shape_of(bases["bert"]))
    with pytest.raises(UsageError, match="dual-encoder reads pictures"):
        MODELS["dual-encoder"].value(InputShape(6, 10))
    with pytest.raises(UsageError, match="is a dual encoder, not a text encoder"):
        MODELS["vse"].value(replace(shape_of(bases["clip"]), vector=6), text="encoder")
    with pytest.raises(UsageError, match="not of siglip"):
        Pretrained(f"siglip:{bases['clip']}")


def test_without_peft_the_extra_is_named(bases: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"crosslens\[train\]"):
        MODELS["dual-encoder"].value(shape_of(bases["clip"]))


# Training


def test_adapters_change_and_base_weights_do_not(tmp_path: Path, bases: dict[str, Path], photos: Path) -> None:
    data, before = with_pixels(photos, bases["clip"]), Pretrained(str(bases["clip"])).revision
    trained = train_model(adapted(), data, tmp_path / "model")
    stored = read_model(trained.path)
    assert all("lora_" in name or name == "loss.0_temperature" for name in stored.weights), "nothing of the base"
    assert stored.card["parameters"] == sum(tensor.numel() for tensor in stored.weights.values())
    assert Pretrained(str(bases["clip"])).revision == before == stored.card["shape"]["revision"]
    assert stored.card["shape"]["encoder"] == str(bases["clip"].resolve())
    rows = trained.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]

    torch.manual_seed(9)  # other adapters to begin with: what is stored must replace them
    model = MODELS["dual-encoder"].value(InputShape(**stored.card["shape"]), lora_rank=2)
    load_trained_state(model, stored.weights)
    assert all(torch.equal(trained_state(model)[name], stored.weights[name]) for name in trained_state(model))
    assert any(bool(tensor.any()) for name, tensor in stored.weights.items() if "lora_B" in name)
    base = Pretrained(str(bases["clip"])).module().state_dict()
    rebuilt = {name.replace(".base_layer", ""): tensor for name, tensor in model.encoder.state_dict().items()}
    assert all(torch.equal(rebuilt[name], tensor) for name, tensor in base.items())


def test_projections_can_be_trained_too(tmp_path: Path, bases: dict[str, Path], photos: Path) -> None:
    data = with_pixels(photos, bases["clip"])
    trained = train_model(changed(adapted(lora_rank=0, projection=True), epochs=1), data, tmp_path / "model")
    names = {name for name in read_model(trained.path).weights if not name.startswith("loss")}
    assert names == {"encoder.visual_projection.weight", "encoder.text_projection.weight"}


@pytest.mark.slow  # adapters with heads resume in test_adapted_heads
def test_an_interrupted_adaptation_ends_with_the_same_weights(
    tmp_path: Path, bases: dict[str, Path], photos: Path
) -> None:
    data, recipe = with_pixels(photos, bases["siglip"]), changed(adapted(lora_dropout=0.3), epochs=2)

    def stop(row: dict[str, Any]) -> None:
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop)
    resumed, whole = (train_model(recipe, data, tmp_path / name) for name in ("resumed", "whole"))
    assert (resumed.path / "weights.safetensors").read_bytes() == (whole.path / "weights.safetensors").read_bytes()
    assert resumed.test == whole.test


def test_adapters_of_another_base_are_refused(tmp_path: Path, bases: dict[str, Path]) -> None:
    folder = save_model("clip", tmp_path / "base")
    shape = shape_of(folder)
    MODELS["dual-encoder"].value(shape, lora_rank=1)
    save_model("clip", folder, seed=1)
    with pytest.raises(InputError, match="has changed since this model was trained on it"):
        MODELS["dual-encoder"].value(shape, lora_rank=1)


def test_a_model_of_features_says_that_there_are_none(tmp_path: Path, bases: dict[str, Path], photos: Path) -> None:
    data = with_pixels(photos, bases["clip"])
    with pytest.raises(InputError, match="the data have no local features"):
        train_model(replace(adapted(), model="vse", model_settings={}), data, tmp_path / "model")


# Text encoders


def test_a_text_encoder_is_the_mean_over_its_tokens(bases: dict[str, Path]) -> None:
    base = Pretrained(str(bases["bert"]))
    torch.manual_seed(0)
    whole = MODELS["vse"].value(replace(shape_of(bases["bert"]), vector=6), dimension=8, text="encoder").eval()
    tokens, module = base.tokens(TEXTS), base.module()
    with torch.inference_mode():
        together = whole.encode_captions(tokens_of(bases["bert"]))
        for row, text in enumerate(TEXTS):
            alone = base.tokens([text])
            states = module(input_ids=torch.from_numpy(alone.ids)).last_hidden_state[0]
            head = whole.text.head(sum(states) / len(states))
            assert torch.allclose(together[row], head / head.norm(), atol=1e-5), "padding does not matter"
        adapted_text = (
            MODELS["vse"]
            .value(replace(shape_of(bases["bert"]), vector=6), dimension=8, text="encoder", lora_rank=2)
            .eval()
        )
        adapted_text.text.head.load_state_dict(whole.text.head.state_dict())
        assert torch.allclose(adapted_text.encode_captions(tokens_of(bases["bert"])), together, atol=1e-6)
    assert tokens.lengths.tolist() == [len(base.tokens([text]).ids[0]) for text in TEXTS]


@pytest.mark.parametrize("rank", rest_slow([2, 0]))
def test_a_text_encoder_is_trained_further(
    tmp_path: Path, bases: dict[str, Path], data: TrainingData, rank: int
) -> None:
    trained = train_model(text_recipe(bases, lora_rank=rank), data, tmp_path / "model")
    names = [name for name in read_model(trained.path).weights if name.startswith("text.encoder.")]
    assert names
    assert not any("pooler" in name for name in names), "not used"
    assert all("lora_" in name for name in names) == bool(rank)
    rows = trained.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]
    stored = read_model(trained.path)
    model = MODELS["vse"].value(InputShape(**stored.card["shape"]), dimension=16, text="encoder", lora_rank=rank)
    load_trained_state(model, stored.weights)
    groups = model.rate_groups()
    assert {id(weight) for weight in groups["text"]} == {id(weight) for weight in model.text.encoder.parameters()}


def test_a_text_encoder_that_changed_is_another_training(
    tmp_path: Path, bases: dict[str, Path], data: TrainingData
) -> None:
    from shutil import copytree

    copied = {"bert": copytree(bases["bert"], tmp_path / "bert")}
    recipe = changed(text_recipe(copied), epochs=1, fraction=0.25)
    first = train_model(recipe, data, tmp_path / "model")
    config = copied["bert"] / "config.json"
    config.write_text(config.read_text() + "\n")
    with pytest.raises(Exception, match="already contains a different trained model"):
        train_model(recipe, data, first.path)


# Pictures


def test_pixels_are_computed_once_and_stay_on_disk(
    bases: dict[str, Path], photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    base, prepared = Pretrained(str(bases["clip"])), list[int]()
    compute_pixels = Pretrained.pixels
    monkeypatch.setattr(
        Pretrained, "pixels", lambda self, batch: prepared.append(len(batch)) or compute_pixels(self, batch)
    )
    first = with_pixels(photos, bases["clip"])
    assert sum(prepared) == sum(SPLITS.values())
    again = with_pixels(photos, bases["clip"])
    assert sum(prepared) == sum(SPLITS.values())
    assert again.train.features.identity().keys() == {"pixels", "pixel rows"}
    assert again.train.features.pixels.key == first.train.features.pixels.key
    files = [photos / "images" / f"train{number}.png" for number in range(8)]
    expected = compute_pixels(base, files)
    part = first.train.part(0.5, seed=3)
    assert part.features.pixels.path.parent == tmp_path / "cache" / "pixels"
    assert vars(part.features.pixels)["rows"].shape == (4,), "rows, not pixels, are in memory"
    rows = [int(image.removeprefix("train").removesuffix(".png")) for image in part.dataset.image_ids]
    batch = part.features.batch(np.array([1, 0]), "cpu")
    np.testing.assert_allclose(batch.pixels.numpy(), expected[[rows[1], rows[0]]], atol=2e-3)
    for file in (tmp_path / "cache" / "pixels").glob("*.npy"):
        file.write_bytes(file.read_bytes()[:-5])
    with_pixels(photos, bases["clip"])
    assert sum(prepared) == 2 * sum(SPLITS.values()), "damaged files are computed again"


def test_pictures_of_karpathy_s_splits(bases: dict[str, Path], photos: Path, tmp_path: Path) -> None:
    import json

    rows = [
        {
            "filename": f"{split}{number}.png", "split": {"dev": "val"}.get(split, split), "imgid": number,
            "sentids": [10 * at + k for k in range(2)],
            "sentences": [{"raw": f"caption {k}", "sentid": 10 * at + k} for k in (0, 1)],
        }
        for at, (split, number) in enumerate((s, n) for s, count in SPLITS.items() for n in range(count))
    ]  # fmt: skip
    (tmp_path / "dataset_x.json").write_text(json.dumps({"dataset": "x", "images": rows}))
    (tmp_path / "images").symlink_to(photos / "images")
    data = load_features("images", tmp_path, {"encoder": str(bases["clip"]), "captions": "dataset_x.json"})
    assert [len(split.features) for split in vars(data).values()] == [8, 4, 4]
    assert np.array_equal(
        data.test.features.pixels.read(), with_pixels(photos, bases["clip"]).test.features.pixels.read()
    )


def test_pictures_that_are_not_there(bases: dict[str, Path], photos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no encoder"):
        load_features("images", photos, {})
    with pytest.raises(InputError, match="nowhere"):
        load_features("images", photos, {"encoder": str(bases["clip"]), "pictures": "nowhere"})
    with pytest.raises(InputError, match="no such folder"):
        load_features("images", photos, {"encoder": str(tmp_path / "none")})
