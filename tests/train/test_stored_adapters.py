"""Stored models on a pretrained encoder in use, by their folder: the figures of their cards, in every command."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extras import skip_without

torch = pytest.importorskip("torch")
skip_without("train,encoders", "transformers", "peft", "PIL")

import crosslens as cl  # noqa: E402
from crosslens.core import CrosslensError, InputError, UsageError  # noqa: E402
from crosslens.encode import FeatureReader, Pretrained, load_encoder, load_pair_scorer  # noqa: E402
from crosslens.train import CaptionBatch, ImageBatch, Trained, load_model, train_model  # noqa: E402
from tests.commands import Call as Call, call as call  # noqa: E402
from tests.encode.tiny_models import TEXTS, pictures, save_model  # noqa: E402

from .adapted_models import adapted, bases as bases, own_cache as own_cache, photos as photos, text_recipe, with_pixels  # noqa: E402
from .conftest import changed, made_data  # noqa: E402
from .trained_models import train_on_files  # noqa: E402


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(tmp_path_factory.getbasetemp() / "pixel-cache"))
        yield


@pytest.fixture(scope="module", params=["clip", pytest.param("siglip", marks=pytest.mark.slow)])
def dual(
    request: pytest.FixtureRequest, cache: None, bases: dict[str, Path], photos: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Trained:  # fmt: skip
    folder = tmp_path_factory.mktemp(request.param) / "model"
    return train_model(changed(adapted(), epochs=2), with_pixels(photos, bases[request.param]), folder)


@pytest.fixture(scope="module")
def texts(bases: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """As ``flickr8k-best``: global and local features, and a text encoder that is trained further."""
    folder = tmp_path_factory.mktemp("texts")
    recipe = text_recipe(bases, image="grid", standardise=True)
    recipe = replace(recipe, data={"features": "efficientnet_lite0_global.npy+efficientnet_lite0_grid3x3_pca256.npy"})
    return train_on_files(folder, made_data("vectors", "regions"), recipe, options=recipe.data, fraction=0.25)


def dataset_of(folder: Path) -> tuple[object, ...]:
    captions, images = folder / "Flickr8k.token.txt", folder / "Flickr_8k.testImages.txt"
    return "--dataset", "flickr", "--captions", captions, "--images", images


def figures(call: Call, model: str, *more: object) -> dict[str, float]:
    words = ("--metrics", "Hit@1 Hit@5 Hit@10 MedR Rsum", "--device", "cpu", "--json")
    outcome = call("evaluate", "--model", model, *words, *more)
    assert outcome.code == 0, outcome.err
    return {name: metric["mean"] for name, metric in outcome.json["metrics"].items()}


# Dual encoders


def test_a_dual_encoder_is_evaluated_on_pictures(call: Call, dual: Trained, photos: Path) -> None:
    words = (*dataset_of(photos), "--image-folder", photos / "images")
    assert figures(call, f"path:{dual.path}", *words) == pytest.approx(dual.test)
    assert "Images are read as pictures." in (dual.path / "README.md").read_text()


@pytest.mark.slow
def test_a_run_of_a_dual_encoder_is_explained(call: Call, dual: Trained, photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    figures(call, f"path:{dual.path}", *dataset_of(photos), "--image-folder", photos / "images", "-o", tmp_path / "run")
    explained = call("explain", tmp_path / "run", "--json")
    assert explained.code == 0, explained.err
    assert explained.json["queries"] == 20


def test_vectors_are_those_of_single_items(dual: Trained) -> None:
    encoder = load_encoder(f"path:{dual.path}", device="cpu")
    assert not isinstance(encoder, FeatureReader)
    images, captions = encoder.encode_images(pictures()), encoder.encode_texts(TEXTS)
    model, card, *_ = load_model(dual.path)
    base = Pretrained(card["shape"]["encoder"])
    for picture, vector in zip(pictures(), images, strict=True):
        pixels = base.pixels([picture]).astype(np.float16).astype(np.float32)
        with torch.inference_mode():
            alone = model.encode_images(ImageBatch(pixels=torch.from_numpy(pixels)))[0].numpy()
        np.testing.assert_allclose(vector, alone, atol=1e-5)
    for text, vector in zip(TEXTS, captions, strict=True):
        ids, mask, _ = base.tokens([text])
        batch = CaptionBatch(
            None, None, None, torch.from_numpy(ids), None if mask is None else torch.from_numpy(np.asarray(mask))
        )
        with torch.inference_mode():
            np.testing.assert_allclose(vector, model.encode_captions(batch)[0].numpy(), atol=1e-5)
    scores = load_pair_scorer(f"path:{dual.path}", device="cpu").score_pairs(pictures(), TEXTS)
    np.testing.assert_allclose(scores, (images * captions).sum(axis=1), atol=1e-5)


def test_pictures_and_captions_are_changed(call: Call, dual: Trained, photos: Path, tmp_path: Path) -> None:
    study = call(
        "robustness", "--model", f"path:{dual.path}", *dataset_of(photos), "--image-folder", photos / "images",
        "--perturbations", "char_swap,blur@3", "--device", "cpu", "--permutations", "5", "--resamples", "5",
        "-o", tmp_path / "study", "--json",
    )  # fmt: skip
    assert study.code == 0, study.err
    (original,) = (tmp_path / "study").glob("**/original/run.json")
    assert cl.Run.load(original.parent)["Rsum"].mean == pytest.approx(dual.test["Rsum"])


def test_encode_writes_the_vectors(call: Call, dual: Trained, photos: Path, tmp_path: Path) -> None:
    words = (*dataset_of(photos), "--image-folder", photos / "images", "--device", "cpu", "-o", tmp_path / "vectors")
    outcome = call("encode", "--model", f"path:{dual.path}", *words)
    assert outcome.code == 0, outcome.err
    stored = cl.Embeddings.load(tmp_path / "vectors" / "images")
    files = [photos / "images" / name for name in stored.ids]
    expected = load_encoder(f"path:{dual.path}", device="cpu").encode_images(files)
    np.testing.assert_allclose(stored.vectors, expected, atol=1e-5)


def test_an_encoder_that_moved_is_named_and_another_is_refused(
    cache: None, bases: dict[str, Path], photos: Path, tmp_path: Path
) -> None:
    base = shutil.copytree(bases["clip"], tmp_path / "base")
    trained = train_model(changed(adapted(), epochs=1), with_pixels(photos, base), tmp_path / "model")
    expected = load_encoder(f"path:{trained.path}", device="cpu").encode_texts(TEXTS)
    moved = base.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="base: no such folder"):
        load_encoder(f"path:{trained.path}", device="cpu")
    encoder = load_encoder(f"path:{trained.path}?encoder=clip:{moved}", device="cpu")
    assert np.array_equal(encoder.encode_texts(TEXTS), expected)
    save_model("clip", moved, seed=1)
    with pytest.raises(InputError, match="has changed since this model was trained on it"):
        load_encoder(f"path:{trained.path}?encoder=clip:{moved}", device="cpu")


def test_a_dual_encoder_has_no_features(dual: Trained, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reads pictures, not features"):
        load_encoder(f"path:{dual.path}?features={tmp_path}", device="cpu")


# Text encoders


def test_a_model_with_a_text_encoder_is_evaluated(
    call: Call, texts: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crosslens.train.stored import models

    monkeypatch.setattr(models, "load_encoder", None)  # no frozen sentence encoder beside the one that was trained
    words = (*dataset_of(texts.path.parent / "data"), "-o", tmp_path / "run")
    assert figures(call, f"path:{texts.path}", *words) == pytest.approx(texts.test)
    assert figures(call, f"path:{texts.path}", *words[:-2], "--batch-size", "7") == pytest.approx(texts.test)


@pytest.mark.slow  # as pictures and captions above
def test_captions_are_changed_before_a_text_encoder(call: Call, texts: Trained, tmp_path: Path) -> None:
    study = call(
        "robustness", "--model", f"path:{texts.path}", *dataset_of(texts.path.parent / "data"), "--perturbations",
        "char_swap", "--device", "cpu", "--permutations", "5", "--resamples", "5", "-o", tmp_path / "study", "--json",
    )  # fmt: skip
    assert study.code == 0, study.err
    (original,) = (tmp_path / "study").glob("**/original/run.json")
    assert cl.Run.load(original.parent)["Rsum"].mean == pytest.approx(texts.test["Rsum"])


def test_a_card_names_no_code_as_its_encoder(texts: Trained, tmp_path: Path) -> None:
    from crosslens.storage import write_header

    copied = shutil.copytree(texts.path, tmp_path / "copy")
    card = json.loads((copied / "header.json").read_text())
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')\n")
    shape = {**card["shape"], "encoder": f"callable:{tmp_path / 'evil.py'}:x"}
    kept = {name: value for name, value in card.items() if name not in ("files", "checksum")}
    write_header(copied / "header.json", {**kept, "shape": shape}, ("weights.safetensors",))
    with pytest.raises(CrosslensError, match=r"evil\.py:x: no such folder"):
        load_encoder(f"path:{copied}", device="cpu")
