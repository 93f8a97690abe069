"""PVSE, PCME and DivE on a dual encoder with LoRA adapters: they begin as the encoder, and learn from there."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extras import skip_without
from tests.tables import rest_slow

torch = pytest.importorskip("torch")
skip_without("train,encoders", "transformers", "peft", "PIL")

from torch.nn.functional import normalize  # noqa: E402

import crosslens as cl  # noqa: E402
from crosslens.core import InputError, UsageError  # noqa: E402
from crosslens.encode import Pretrained, load_encoder  # noqa: E402
from crosslens.train import (  # noqa: E402
    MODELS,
    CaptionBatch,
    ImageBatch,
    TrainingData,
    TrainingRecipe,
    load_features,
    load_training_recipe,
    recipe_names,
    train_model,
)
from crosslens.train.captions import words_of  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402
from crosslens.train.training import build_optimizer  # noqa: E402
from tests.commands import Call as Call, call as call  # noqa: E402
from tests.encode.tiny_models import MARKS, TEXT, TEXTS, pictures, save_model, save_tokenizer  # noqa: E402

from .adapted_models import bases as bases, own_cache as own_cache, photos as photos, shape_of, tokens_of, with_pixels  # noqa: E402
from .conftest import changed  # noqa: E402

HEADS: dict[str, dict[str, Any]] = {"pvse": {"k": 3}, "dive": {"k": 3}, "pcme": {}}
RECIPES = [name for name in recipe_names() if name.startswith("imp-")]


def model(kind: str, folder: Path, **settings: Any) -> Any:
    torch.manual_seed(0)
    return MODELS[kind].value(shape_of(folder), **{**HEADS.get(kind, {}), "lora_rank": 2, **settings}).double().eval()


@cache
def inputs(folder: Path, texts: tuple[str, ...] = tuple(TEXTS)) -> tuple[ImageBatch, CaptionBatch]:
    pixels = Pretrained(str(folder)).pixels(pictures())
    return ImageBatch(pixels=torch.from_numpy(pixels).double()), tokens_of(folder, list(texts))


@cache
def own_vectors(folder: Path) -> tuple[Any, Any]:
    """The encoder's own vectors of the same pictures and texts, by the library alone."""
    base, (images, captions) = Pretrained(str(folder)).module().double(), inputs(folder)
    with torch.inference_mode():
        of_images = base.get_image_features(pixel_values=images.pixels).pooler_output
        of_texts = base.get_text_features(input_ids=captions.tokens, attention_mask=captions.mask).pooler_output
    return normalize(of_images, dim=-1), normalize(of_texts, dim=-1)


def encoded(built: Any, folder: Path) -> tuple[Any, Any]:
    images, captions = inputs(folder)
    with torch.inference_mode():
        return built.encode_images(images), built.encode_captions(captions)


def orders(scores: Any) -> tuple[list[Any], list[Any]]:
    """Of every image its captions, and of every caption its images, the best first."""
    return scores.argsort(dim=1, descending=True).tolist(), scores.argsort(dim=0, descending=True).tolist()


def mean_cosines(kind: str, built: Any, images: Any, captions: Any) -> Any:
    """The scores; of PCME the cosines of its means."""
    return images.mean @ captions.mean.T if kind == "pcme" else built.scores(images, captions)


# Where training begins


@pytest.mark.parametrize(
    ("kind", "base"),
    rest_slow(
        [
            ("pvse", "clip"),
            ("dive", "siglip"),
            ("pcme", "clip"),
            ("pvse", "siglip"),
            ("dive", "clip"),
            ("pcme", "siglip"),
        ],
        fast=2,
    ),
)
def test_at_step_0_the_scores_rank_as_the_encoders_own(bases: dict[str, Path], kind: str, base: str) -> None:
    images, captions = own_vectors(bases[base])
    cosines, built = images @ captions.T, model(kind, bases[base])
    scores = built.scores(*encoded(built, bases[base]))
    assert orders(scores) == orders(cosines)
    expected = {
        "pvse": cosines,
        "dive": cosines + np.log(3) / 16,  # smooth Chamfer of three equal vectors, with alpha 16
        "pcme": 15 - 15 * (2 - 2 * cosines).sqrt(),  # every sample is the mean: one distance, its own log-odds
    }
    assert torch.allclose(scores, expected[kind], atol=1e-9)


@pytest.mark.parametrize("kind", rest_slow(["pcme", "pvse", "dive"]))
def test_with_zero_residuals_the_scores_rank_as_the_encoders_own(bases: dict[str, Path], kind: str) -> None:
    """Also with open gates: nothing but the residual changes a vector. With residuals it does."""
    images, captions = own_vectors(bases["clip"])
    built = model(kind, bases["clip"])
    with torch.no_grad():
        for head in (built.image, built.text):
            (head.mean if kind == "pcme" else head).gate.fill_(1.0)
        moved = mean_cosines(kind, built, *encoded(built, bases["clip"]))
        for head in (built.image, built.text):
            norm = {"pvse": lambda h: h.norm, "pcme": lambda h: h.mean.norm, "dive": lambda h: h.slots.last}[kind](head)
            norm.weight.zero_()
            norm.bias.zero_()
    assert orders(mean_cosines(kind, built, *encoded(built, bases["clip"]))) == orders(images @ captions.T)
    assert not torch.allclose(moved, images @ captions.T, atol=0.01)


@pytest.mark.parametrize("kind", rest_slow(["dive", "pvse", "pcme"]))
def test_a_frozen_encoder_can_carry_heads(bases: dict[str, Path], kind: str) -> None:
    built = model(kind, bases["clip"], lora_rank=0)
    assert not any(weight.requires_grad for weight in built.parts.parameters())
    assert any(weight.requires_grad for weight in built.image.parameters())


# What heads see


@pytest.mark.parametrize("base", rest_slow(["clip", "siglip"]))
def test_heads_see_patches_and_tokens_of_the_last_layer(bases: dict[str, Path], base: str) -> None:
    module, built = Pretrained(str(bases[base])).module().double(), model("pvse", bases[base])
    images, captions = inputs(bases[base])
    with torch.inference_mode():
        encoded = built.parts.images(images), built.parts.captions(captions)
        patches = module.vision_model(pixel_values=images.pixels).last_hidden_state
        tokens = module.text_model(input_ids=captions.tokens, attention_mask=captions.mask).last_hidden_state
    assert torch.allclose(encoded[0].local, patches[:, 1:] if base == "clip" else patches), "16 patches, no class token"
    assert encoded[0].local.shape[1] == 16
    assert torch.allclose(encoded[1].local, tokens)
    assert torch.equal(encoded[1].padding, captions.mask == 0)
    for part, vectors in zip(encoded, own_vectors(bases[base]), strict=True):
        assert torch.allclose(normalize(part.vector, dim=-1), vectors)


@pytest.mark.parametrize("kind", rest_slow(["dive", "pvse", "pcme"]))
def test_padding_does_not_matter(bases: dict[str, Path], kind: str) -> None:
    built = opened(model(kind, bases["clip"]))
    together = encoded(built, bases["clip"])[1]
    for row, text in enumerate(TEXTS):
        with torch.inference_mode():
            alone = built.encode_captions(inputs(bases["clip"], (text,))[1])
        for whole, part in zip(together, alone, strict=True):
            assert torch.allclose(whole[row], part[0], atol=1e-6)


def test_an_encoder_without_states_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not return the states of patches and tokens"):
        model("pvse", save_model("blip", tmp_path / "blip"))


@pytest.mark.parametrize(("settings", "message"), [({"k": 0}, "k is 0"), ({"dropout": 1.0}, "dropout must be")])
def test_wrong_settings_are_named(bases: dict[str, Path], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model("dive", bases["clip"], **settings)


# What learns


def opened(built: Any) -> Any:
    """The model some steps later: gates and adapters, which begin at 0 and hide others' gradients, are not 0."""
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if name.endswith("gate") or "lora_B" in name:
                weight.normal_(std=0.5)
    return built


@pytest.mark.parametrize("kind", rest_slow(["pvse", "dive", "pcme"]))
def test_gradient_reaches_adapters_and_heads_only(bases: dict[str, Path], kind: str) -> None:
    built, (images, captions) = opened(model(kind, bases["clip"])), inputs(bases["clip"])
    scores = built.scores(built.encode_images(images), built.encode_captions(captions))
    (-scores.log_softmax(dim=1).diagonal().sum()).backward()
    for name, weight in built.named_parameters():
        trained = "lora_" in name or not name.startswith("parts.encoder.")
        assert weight.requires_grad == trained
        if trained:
            assert weight.grad is not None, name
            assert bool(weight.grad.any()) or (kind, name) == ("pcme", "shift"), name  # the softmax ignores a shift
        else:
            assert weight.grad is None, name
    assert sum("lora_" in name for name, _ in built.named_parameters()) == 2 * 2 * 2 * 4, (
        "towers, layers, A and B, maps"
    )


@pytest.mark.parametrize("kind", rest_slow(["pcme", "pvse", "dive"]))
def test_towers_have_rates_of_their_own_and_heads_the_full_one(bases: dict[str, Path], kind: str) -> None:
    built = model(kind, bases["clip"])
    groups = build_optimizer(built, load_training_recipe("imp-pcme").settings).param_groups
    names = {id(weight): name for name, weight in built.named_parameters()}
    for group, begins in zip(
        groups, ("parts.encoder.vision", "parts.encoder.text", ("image", "text", "s")), strict=True
    ):
        assert all(names[id(weight)].startswith(begins) for weight in group["params"])
    assert [group["factor"] for group in groups] == [0.05, 0.5, 1.0]


def small(name: str, **settings: Any) -> TrainingRecipe:
    return changed(
        load_training_recipe(name), **{"epochs": 2, "batch_size": 20, "device": "cpu", "threads": 1, **settings}
    )


@pytest.mark.parametrize("name", rest_slow(RECIPES))
def test_recipes_train_adapters_and_heads_and_resume(
    tmp_path: Path, bases: dict[str, Path], photos: Path, name: str
) -> None:
    recipe, data = small(name), with_pixels(photos, bases["clip"])

    def stop(row: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    whole = train_model(recipe, data, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop)
    resumed = train_model(recipe, data, tmp_path / "resumed")
    assert (resumed.path / "weights.safetensors").read_bytes() == (whole.path / "weights.safetensors").read_bytes()
    assert resumed.test == whole.test
    stored = read_model(whole.path)
    assert all("lora_" in key for key in stored.weights if "encoder." in key), "nothing of the encoder itself"
    assert {key.partition(".lora_")[0][-6:] for key in stored.weights if "lora_" in key} == {"q_proj", "v_proj"}
    assert np.isfinite([row["loss"] for row in whole.card["history"]]).all()


@pytest.mark.slow
def test_another_seed_is_another_model(tmp_path: Path, bases: dict[str, Path], photos: Path) -> None:
    data = with_pixels(photos, bases["clip"])
    weights = [
        (train_model(small("imp-dive-k2", seed=seed), data, tmp_path / name).path / "weights.safetensors").read_bytes()
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    ]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("name", rest_slow(["imp-pvse-k2", "imp-pcme", "imp-dive-k2"]))
def test_a_trained_model_is_evaluated_on_pictures(
    call: Call, tmp_path: Path, bases: dict[str, Path], photos: Path, name: str
) -> None:
    """From the command line, with the encoder of the recipe replaced by a folder; and after the encoder has moved."""
    recipe_file = tmp_path / "own.toml"
    recipe_file.write_text(f'base = "{name}"\n[data]\nencoder = "{bases["clip"]}"\n')
    words = ("--epochs", "1", "--batch-size", "20", "--device", "cpu", "--threads", "1", "--json")
    trained = call("train", recipe_file, "--data", photos, *words, "-o", tmp_path / "model")
    assert trained.code == 0, trained.err
    outcome = call(
        "evaluate", "--model", f"path:{tmp_path / 'model'}", "--dataset", "flickr", "--captions",
        photos / "Flickr8k.token.txt", "--images", photos / "Flickr_8k.testImages.txt", "--image-folder",
        photos / "images", "--metrics", "Hit@1 Hit@5 Hit@10 MedR Rsum MedR[all] mAP@R AP", "--device", "cpu", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    measured = {metric: values["mean"] for metric, values in outcome.json["metrics"].items()}
    assert measured == pytest.approx(trained.json["test"])
    scorer = load_encoder(f"path:{tmp_path / 'model'}?encoder={bases['clip']}", device="cpu")
    assert scorer.score_pairs(pictures(), TEXTS).shape == (4,)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="has changed since this model was trained on it"):
        load_encoder(
            f"path:{tmp_path / 'model'}?encoder={save_model('clip', tmp_path / 'other', seed=1)}", device="cpu"
        )


# Drawn scenes


TRAIN, VALIDATION, TEST = 400, 50, 150


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes with two captions each, as Karpathy's splits, and a random CLIP that knows their words."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("drawn") / "scenes"
    dataset = write_scenes(folder, TRAIN + VALIDATION + TEST, "colour,object,location,figure", seed=3, workers=1)
    splits = ["train"] * TRAIN + ["val"] * VALIDATION + ["test"] * TEST
    texts = [[text for text, image in zip(dataset.texts, dataset.caption_image, strict=True) if image == row][:2]
             for row in range(len(splits))]  # fmt: skip
    files = sorted(path.name for path in (folder / "images").glob("*.png"))
    entries = [
        {
            "filename": name, "imgid": row, "split": split,
            "sentences": [{"raw": text, "sentid": 2 * row + at} for at, text in enumerate(texts_of_image)],
        }
        for row, (name, split, texts_of_image) in enumerate(zip(files, splits, texts, strict=True))
    ]  # fmt: skip
    (folder.parent / "scenes.json").write_text(json.dumps({"images": entries}))
    words = sorted({word for texts_of_image in texts for text in texts_of_image for word in words_of(text)})
    torch.manual_seed(0)
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    built = CLIPModel(
        CLIPConfig(
            text_config={**TEXT, **tower, **MARKS, "vocab_size": len(words) + 4, "max_position_embeddings": 48},
            vision_config={**tower, "image_size": 32, "patch_size": 8}, projection_dim=32,
        )
    )  # fmt: skip
    with torch.no_grad():  # random weights of the library are small beside the embeddings of positions
        built.vision_model.embeddings.patch_embedding.weight.mul_(4)
        built.text_model.embeddings.token_embedding.weight.mul_(20)
    encoder = folder.parent / "clip"
    built.save_pretrained(encoder)
    save_tokenizer(encoder, 48, words)
    size = {"height": 32, "width": 32}
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size).save_pretrained(encoder)
    return folder.parent


def scene_data(folder: Path) -> TrainingData:
    options = {"encoder": f"clip:{folder / 'clip'}", "captions": "scenes.json", "pictures": "scenes/images"}
    return load_features("images", folder, options)


@pytest.mark.slow
def test_a_training_on_drawn_scenes_beats_the_plain_encoder_by_more_than_its_interval(
    call: Call, scenes: Path, tmp_path: Path
) -> None:
    """Adapters at IMP's rates with each head, beside the encoder as it is and beside adapters without a head.

    A random encoder gives hardly any hardest negatives to learn from, so InfoNCE takes the place of the triplet loss.
    """
    words = (
        "--dataset", "karpathy", "--captions", scenes / "scenes.json", "--split", "test", "--image-folder",
        scenes / "scenes" / "images", "--metrics", "Hit@1 Hit@5 Hit@10 Rsum", "--device", "cpu",
    )  # fmt: skip
    heads = ("imp-pvse-k2", "imp-dive-k2", "imp-pcme")
    models = {"plain": f"clip:{scenes / 'clip'}"}
    for name in ("imp-pvse-base", *heads):
        recipe = small(name, epochs=20, batch_size=64, learning_rate=1e-2, validate_every=10)
        losses = [
            {"kind": "infonce", "temperature": 0.05} if loss["kind"] == "triplet" else loss for loss in recipe.losses
        ]
        train_model(replace(recipe, losses=tuple(losses)), scene_data(scenes), tmp_path / name)
        models[name] = f"path:{tmp_path / name}"
    for name, encoder in models.items():
        outcome = call("evaluate", "--model", encoder, *words, "-o", tmp_path / "runs" / name)
        assert outcome.code == 0, outcome.err
    runs = [tmp_path / "runs" / name for name in models]
    compared = cl.compare(*runs, metrics="Rsum", all_pairs=True).results
    print(*(f"{r.other} − {r.baseline}: {r.difference:+.1f} [{r.low:.1f}, {r.high:.1f}]" for r in compared), sep="\n")
    against_plain = {result.other: result.low for result in compared if result.baseline == "plain"}
    assert all(against_plain[name] > 0 for name in heads), against_plain
