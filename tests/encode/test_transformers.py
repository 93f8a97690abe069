"""Every transformers adapter on a tiny random model: the library's own call, to 1e-5, at any batch size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import InputError, UsageError
from crosslens.encode import ENCODERS, load_encoder
from tests.encode.tiny_models import MODELS, TEXTS, pictures, save_model
from tests.extras import skip_without
from tests.tables import rest_slow

pytest.importorskip("torch", reason="pip install 'crosslens[encoders]'")
skip_without("encoders", "transformers")

DUAL = [kind for kind in MODELS if kind != "dinov2"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: save_model(kind, folder / kind) for kind in MODELS}


def library(kind: str, folder: Path) -> tuple[Any, Any, Any]:
    """The model, its inputs as the library's own classes prepare them, and the full forward pass."""
    import torch
    import transformers

    name = {"blip": "BlipForImageTextRetrieval", "blip2": "Blip2ForImageTextRetrieval"}.get(kind, "AutoModel")
    model = getattr(transformers, name).from_pretrained(folder).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = dict(images(pictures(), return_tensors="pt"))
    if kind != "dinov2":
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        padding = "max_length" if kind == "siglip" else True
        inputs |= dict(tokenizer(TEXTS, padding=padding, truncation=True, max_length=24, return_tensors="pt"))
    call = {"blip": {"use_itm_head": False}, "blip2": {"use_image_text_matching_head": False}}.get(kind, {})
    with torch.inference_mode():
        return model, inputs, model(**inputs, **call)


def unit(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", [kind for kind in DUAL if kind not in ("flava", "blip", "blip2")])
def test_dual_encoders_give_the_logits_of_the_full_model(models: dict[str, Path], kind: str) -> None:
    encoder = load_encoder(f"{kind}:{models[kind]}", device="cpu")
    model, _, whole = library(kind, models[kind])
    images, texts = encoder.encode_images(pictures()), encoder.encode_texts(TEXTS)
    np.testing.assert_allclose(unit(images), unit(whole.image_embeds.numpy()), atol=1e-5)
    np.testing.assert_allclose(unit(texts), unit(whole.text_embeds.numpy()), atol=1e-5)
    assert encoder.logit_scale is not None
    bias = float(model.logit_bias.detach()) if kind == "siglip" else 0.0
    logits = encoder.logit_scale * unit(images) @ unit(texts).T + bias
    np.testing.assert_allclose(logits, whole.logits_per_image.numpy(), atol=1e-5 * max(1, encoder.logit_scale))
    assert encoder.dimension == images.shape[1] == texts.shape[1]


def test_flava_projects_the_first_token(models: dict[str, Path]) -> None:
    import torch

    encoder = load_encoder(f"flava:{models['flava']}", device="cpu")
    model, inputs, whole = library("flava", models["flava"])
    with torch.inference_mode():
        images = model.image_projection(whole.image_embeddings)[:, 0]
        texts = model.text_projection(whole.text_embeddings)[:, 0]
    assert "pixel_values" in inputs
    np.testing.assert_allclose(encoder.encode_images(pictures()), images.numpy(), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts.numpy(), atol=1e-5)
    assert encoder.logit_scale == pytest.approx(float(model.logit_scale.detach().exp()))


def test_blip_gives_the_contrastive_scores(models: dict[str, Path]) -> None:
    encoder = load_encoder(f"blip:{models['blip']}", device="cpu")
    _, _, whole = library("blip", models["blip"])
    scores = unit(encoder.encode_images(pictures())) @ unit(encoder.encode_texts(TEXTS)).T
    np.testing.assert_allclose(scores, whole.itm_score.numpy(), atol=1e-5)


def test_blip2_scores_by_the_best_of_several_vectors(models: dict[str, Path]) -> None:
    import crosslens as cl
    from crosslens.rank import scorer_of

    encoder = load_encoder(f"blip2:{models['blip2']}", device="cpu")
    _, _, whole = library("blip2", models["blip2"])
    images, texts = encoder.encode_images(pictures()), encoder.encode_texts(TEXTS)
    assert images.shape == (4, 3, 12)
    scorer = scorer_of(cl.Embeddings.of(images), cl.Embeddings.of(texts), "max")
    rows, columns = np.indices((4, 4)).reshape(2, -1)
    np.testing.assert_allclose(scorer.exact(rows, columns).reshape(4, 4), whole.logits_per_image.numpy(), atol=1e-5)


def test_dinov2_gives_the_class_token(models: dict[str, Path]) -> None:
    encoder = load_encoder(f"dinov2:{models['dinov2']}", device="cpu")
    _, _, whole = library("dinov2", models["dinov2"])
    np.testing.assert_allclose(encoder.encode_images(pictures()), whole.pooler_output.numpy(), atol=1e-5)
    assert encoder.abilities == {"images"}
    with pytest.raises(UsageError, match="encodes images, not texts"):
        encoder.encode_texts(TEXTS)


@pytest.mark.slow  # test_contract asks the same of every encoder
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_vectors_do_not_depend_on_the_batch(models: dict[str, Path], kind: str) -> None:
    encoder = load_encoder(f"{kind}:{models[kind]}", device="cpu")
    images = pictures()
    alone = np.concatenate([encoder.encode_images([image]) for image in images])
    np.testing.assert_allclose(encoder.encode_images(images), alone, atol=1e-5)
    if kind in DUAL:
        alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])
        np.testing.assert_allclose(encoder.encode_texts(TEXTS), alone, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "precision"),
    rest_slow(
        [
            ("clip", "bf16"),
            ("blip2", "fp16"),
            ("siglip", "bf16"),
            ("siglip", "fp16"),
            ("clip", "fp16"),
            ("blip2", "bf16"),
        ],
        fast=2,
    ),
)
def test_half_precision_is_near(models: dict[str, Path], kind: str, precision: str) -> None:
    exact = load_encoder(f"{kind}:{models[kind]}", device="cpu")
    near = load_encoder(f"{kind}:{models[kind]}", device="cpu", precision=precision)
    for exact_vectors, near_vectors in (
        (exact.encode_images(pictures()), near.encode_images(pictures())),
        (exact.encode_texts(TEXTS), near.encode_texts(TEXTS)),
    ):
        assert near_vectors.dtype == np.float32
        assert (unit(exact_vectors) * unit(near_vectors)).sum(axis=-1).min() > 0.99


def test_long_texts_are_cut_like_the_library_does(models: dict[str, Path]) -> None:
    encoder = load_encoder(f"clip:{models['clip']}", device="cpu")
    assert encoder.encode_texts(["dog " * 500]).shape == (1, 12)


def test_paths_serve_as_pictures(models: dict[str, Path], tmp_path: Path) -> None:
    encoder = load_encoder(f"clip:{models['clip']}", device="cpu")
    pictures()[0].save(tmp_path / "one.png")
    np.testing.assert_allclose(encoder.encode_images([tmp_path / "one.png"]), encoder.encode_images(pictures()[:1]))


def test_the_revision_is_that_of_the_weights(models: dict[str, Path], tmp_path: Path) -> None:
    first = load_encoder(f"clip:{models['clip']}", device="cpu").revision
    assert first == load_encoder(f"clip:{save_model('clip', tmp_path / 'same')}", device="cpu").revision
    assert first != load_encoder(f"clip:{save_model('clip', tmp_path / 'other', seed=1)}", device="cpu").revision


def test_another_architecture_is_named(models: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="siglip") as raised:
        load_encoder(f"clip:{models['siglip']}")
    assert "siglip:" in str(raised.value.fix)


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no model"):
        load_encoder(f"clip:{tmp_path}")
    with pytest.raises(InputError, match="no such folder"):
        load_encoder(f"clip:{tmp_path}/nothing")


def test_a_damaged_model_is_said_with_its_folder(models: dict[str, Path], tmp_path: Path) -> None:
    folder = save_model("clip", tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="cannot be loaded") as raised:
        load_encoder(f"clip:{folder}")
    assert str(folder) in str(raised.value)


def test_an_unknown_device(models: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="device"):
        load_encoder(f"clip:{models['clip']}", device="toaster")


def test_torchvision_is_not_needed(models: dict[str, Path]) -> None:
    """The processors used are those that need Pillow and numpy alone."""
    encoder: Any = load_encoder(f"clip:{models['clip']}", device="cpu")
    assert type(encoder._prepare).__name__.endswith("Pil")
    assert "image_mean" in json.loads(encoder.preprocessing)["images"]


def test_every_kind_has_an_example() -> None:
    for entry in ENCODERS:
        if entry.details.get("extra", "") and entry.details.get("needs_source", True):
            assert entry.details["example"]


def test_the_hub_s_local_cache_serves_without_a_network(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache as it is copied to a machine without a network, read by the real library."""
    import shutil

    import huggingface_hub

    commit = "0123456789abcdef0123456789abcdef01234567"
    place = tmp_path / "models--owner--tiny"
    shutil.copytree(models["clip"], place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    encoder = load_encoder("clip:owner/tiny", device="cpu", offline=True)
    assert (encoder.name, encoder.revision) == ("clip:owner/tiny", commit)
    with pytest.raises(UsageError, match="offline mode"):
        load_encoder("clip:owner/other", offline=True)
