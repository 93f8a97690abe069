"""Trained models in use: rebuilt from their folders, as encoders, as scorers of pairs, and what is wrong with them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError, MissingExtraError, Registry, UsageError
from crosslens.encode import (
    Cache,
    Encoder,
    FeatureReader,
    MatrixScorer,
    SecondStage,
    encode_dataset,
    load_encoder,
    load_pair_scorer,
    map_path,
)
from crosslens.storage import trusting, write_header
from crosslens.train import CaptionBatch, ImageBatch, Trained, TrainingData, load_features, load_model, train_model
from crosslens.train.stored.model_folder import read_model
from tests.commands import Call as Call, call as call

from .conftest import changed, made_data, small_recipe, write_flickr8k
from .trained_models import pair_model, train_on_files

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, data: TrainingData) -> Trained:
    return train_on_files(tmp_path_factory.mktemp("vse"), data)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory, data: TrainingData) -> Iterator[Trained]:
    with pair_model() as kind:
        recipe = replace(small_recipe(), model=kind, model_settings={"dimension": 8})
        yield train_on_files(tmp_path_factory.mktemp("pairs"), data, recipe)


IMAGES, CAPTIONS = 4, 12
"""How many the slow reference scores."""


def slow_scores(folder: Path, data: TrainingData) -> np.ndarray:
    """The first pairs, each by itself: one image, one caption, no padding."""
    loaded = load_model(folder)
    split = data.test
    rows = []
    for vector in split.features.vectors[:IMAGES].astype(np.float16).astype(np.float32):
        row = []
        for text in split.dataset.texts[:CAPTIONS]:
            words, lengths = loaded.vocabulary.encode([text])
            captions = CaptionBatch(torch.from_numpy(words), torch.from_numpy(lengths))
            with torch.no_grad():
                image = loaded.model.encode_images(ImageBatch(torch.from_numpy(vector)[None]))
                row.append(float(loaded.model.scores(image, loaded.model.encode_captions(captions))))
        rows.append(row)
    return np.array(rows)


# The folder


def test_a_model_is_rebuilt_from_its_folder(trained: Trained) -> None:
    model, card, shape, vocabulary, revision = load_model(trained.path)
    assert card["test"] == trained.test
    assert shape.vector == 16
    assert len(vocabulary) == shape.words
    assert not model.training
    assert revision == load_model(trained.path).revision


def broken(folder: Path, **changes: Any) -> None:
    """A header with other entries (None: without), whose checksum is right all the same."""
    card = json.loads((folder / "header.json").read_text())
    card = {name: value for name, value in card.items() if name not in ("files", "checksum")} | changes
    card = {name: value for name, value in card.items() if value is not None}
    write_header(folder / "header.json", card, ("weights.safetensors",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"shape": {"vector": 17, "words": 9, "text": [], "regions": []}},
            "weights.safetensors.*do not fit the model 'vse'",
        ),
        ({"shape": {"vector": "x", "words": 9, "text": [], "regions": []}}, "shape of the inputs"),
        ({"shape": {"vector": 1}}, "shape of the inputs"),
        ({"shape": [1]}, "'shape' is"),
        ({"identity": {}}, "no 'model'"),
        ({"identity": {"model": "vse", "model_settings": {"depth": 1}}}, "no setting 'depth'"),
        ({"identity": {"model": "vsee", "model_settings": {}}}, "did you mean vse"),
        ({"identity": {"model": "vse", "model_settings": {"dimension": "x"}}}, "dimension of"),
        ({"vocabulary": [1]}, "vocabulary"),
        ({"vocabulary": "a"}, "'vocabulary' is"),
        ({"prepared": {"concepts": []}}, "no setting 'concepts'"),
        ({"identity": None}, "no 'identity'"),
        ({"shape": None}, "no 'shape'"),
        ({"vocabulary": None}, "no 'vocabulary'"),
        ({"features": "x"}, "'features' is 'x'"),
        ({"features": {"layout": 3}}, "'layout' of features is 3"),
        ({"features": {"options": []}}, "'options' of features"),
        ({"identity": {"model": "vse", "model_settings": {}, "text_model": 3}}, "'text_model' of identity"),
        ({"format": "crosslens/run"}, "contains crosslens/run"),
    ],
)
def test_a_wrong_card_is_refused(trained: Trained, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    copied = copy(trained.path, tmp_path / "copy")
    broken(copied, **changes)
    with pytest.raises(CrosslensError, match=message):
        load_model(copied)


def copy(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target


def test_damaged_and_foreign_folders_are_refused(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no header.json here"):
        load_model(tmp_path)
    copied = copy(trained.path, tmp_path / "copy")
    weights = (copied / "weights.safetensors").read_bytes()
    for content in (weights[:-4], b"\x80\x04pickle", weights.replace(weights[-8:], b"\0" * 8)):
        (copied / "weights.safetensors").write_bytes(content)
        with pytest.raises(InputError, match=r"weights.safetensors.*changed since it was written"):
            load_model(copied)
    for content in (weights[:-4], b"\x80\x04pickle"):
        (copied / "weights.safetensors").write_bytes(content)
        broken(copied)
        with pytest.raises(InputError, match=r"weights.safetensors.*damaged weights"):
            load_model(copied)
    (copied / "weights.safetensors").unlink()
    with pytest.raises(InputError, match="missing"):
        load_model(copied)


def test_without_torch_the_extra_is_named(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosslens\[train\]'"):
        load_encoder(f"path:{trained.path}")


def test_values_that_a_model_prepared_from_captions_are_restored(pairs: Trained, tmp_path: Path) -> None:
    copied = copy(pairs.path, tmp_path / "copy")
    broken(copied, prepared={"offsets": [1.0, 2.0]})
    assert load_model(copied).revision != load_model(pairs.path).revision
    # The buffer is one of the weights, so that these decide.
    assert float(load_model(copied).model.offset) == 0


def test_the_card_is_for_people(trained: Trained) -> None:
    text = (trained.path / "README.md").read_text()
    assert "# small" in text
    assert "40 images, 200 captions (100 % of the training images)" in text
    assert "seed 0" in text
    assert "patience" not in text, "a limit that there is not"
    assert "(best)" in text
    assert "path:FOLDER" in text
    assert str(trained.path) not in text
    code = text.split("```python\n")[1].split("```")[0].replace("FOLDER", str(trained.path))
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["encoder"].name == f"path:{trained.path.parent.name}/model"
    (trained.path / "README.md").write_text(text + "A sentence of mine.\n")
    load_model(trained.path)


# Encoders


def test_vectors_are_those_of_single_items(trained: Trained, data: TrainingData) -> None:
    encoder = load_encoder(f"path:{trained.path}", device="cpu")
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, FeatureReader)
    assert encoder.name == f"path:{trained.path.parent.name}/model"
    images = encoder.encode_images(encoder.features_of(data.test.dataset.image_ids))
    captions = encoder.encode_texts(data.test.dataset.texts)
    assert np.allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)
    scores = images[:IMAGES] @ captions[:CAPTIONS].T
    assert np.allclose(scores, slow_scores(trained.path, data), atol=1e-5)


def test_evaluation_gives_the_figures_of_the_card(trained: Trained, data: TrainingData) -> None:
    encoder = load_encoder(f"path:{trained.path}", device="cpu")
    encoded = encode_dataset(data.test.dataset, encoder)
    run = cl.evaluate(
        data.test.dataset, images=encoded.images, captions=encoded.captions, metrics=list(trained.test), resamples=0
    )
    assert {name: run[name].mean for name in trained.test} == pytest.approx(trained.test)


def test_vectors_are_cached_by_the_weights(data: TrainingData, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    vectors = []
    for seed in (0, 1):
        trained = train_on_files(tmp_path, data, epochs=1, seed=seed)
        encoder = load_encoder(f"path:{trained.path}", device="cpu")
        first = encode_dataset(data.test.dataset, encoder, cache=cache)
        encoder.encode_images = encoder.encode_texts = None  # type: ignore[method-assign,assignment]
        again = encode_dataset(data.test.dataset, encoder, cache=cache)
        assert np.array_equal(first.images.vectors, again.images.vectors)
        assert np.array_equal(first.captions.vectors, again.captions.vectors)
        vectors.append(first.images.vectors)
    assert not np.allclose(*vectors), "the same folder with other weights"


def test_features_are_found_where_they_are_named(trained: Trained, data: TrainingData, tmp_path: Path) -> None:
    ids = ["dev-3", "train-0.jpg"]  # one without its ending
    encoder = load_encoder(f"path:{trained.path}", device="cpu")
    rows = [row[0] for row in encoder.features_of(ids)]
    expected = [data.validation.features.vectors[3], data.train.features.vectors[0]]
    assert np.array_equal(rows, np.array(expected, np.float16))
    with pytest.raises(InputError, match=r"data: no features of the image 'x.jpg' and 1 more"):
        encoder.features_of(["dev-3.jpg", "x.jpg", "y.jpg"])
    copied = copy(trained.path, tmp_path / "copy")
    moved = load_encoder(f"path:{copied}", device="cpu")
    assert len(moved.encode_texts(["a dog"])) == 1, "texts need no features"
    with pytest.raises(UsageError, match=r"path:MODEL\?features=FOLDER"):
        moved.features_of(ids)
    model_address = f"path:{copied}?features={trained.path.parent / 'data'}"
    assert np.array_equal([row[0] for row in load_encoder(model_address, device="cpu").features_of(ids)], rows)
    wrong = cl.Embeddings(["a"], np.zeros((1, 5), np.float32))
    wrong.save(tmp_path / "other" / "images")
    with pytest.raises(InputError, match=r"shape \(5,\)[\s\S]*\(16,\), as path:.* was trained on"):
        load_encoder(f"path:{copied}?features={tmp_path / 'other'}", device="cpu").features_of(["a"])
    right = cl.Embeddings(["a"], np.ones((1, 16), np.float32))
    right.save(tmp_path / "right" / "images")
    encoder = load_encoder(f"path:{copied}?features={tmp_path / 'right'}", device="cpu")
    assert encoder.features_of(["a"])[0][0].tolist() == [1.0] * 16
    for source in ("fetures=x", "features="):
        with pytest.raises(UsageError, match="known: features=…"):
            load_encoder(f"path:{copied}?{source}")
    with pytest.raises(UsageError, match=r"no split 'tset'"):
        load_encoder(f"path:{trained.path}?split=tset", device="cpu").features_of(ids)


def test_images_of_several_splits_may_share_their_ids(tmp_path: Path, data: TrainingData) -> None:
    for name, split in (("train", data.train), ("dev", data.validation), ("test", data.test)):
        np.save(tmp_path / f"{name}_ims.npy", split.features.vectors)
        (tmp_path / f"{name}_caps.txt").write_text("\n".join(split.dataset.texts) + "\n")
    trained = train_model(changed(small_recipe(), epochs=1), load_features("precomp", tmp_path, {}), tmp_path / "model")
    dataset = cl.load_dataset("precomputed", folder=tmp_path, split="test")
    with pytest.raises(UsageError, match=r"'0' is in more than one split[\s\S]*path:MODEL\?split=test"):
        encode_dataset(dataset, load_encoder(f"path:{trained.path}", device="cpu"))
    encoded = encode_dataset(dataset, load_encoder(f"path:{trained.path}?split=test", device="cpu"))
    run = cl.evaluate(dataset, images=encoded.images, captions=encoded.captions, metrics="Rsum", resamples=0)
    assert run["Rsum"].mean == pytest.approx(trained.test["Rsum"])


def test_a_model_of_arrays_in_memory_says_so(data: TrainingData, tmp_path: Path) -> None:
    trained = train_model(changed(small_recipe(), epochs=1), made_data(), tmp_path / "model")
    encoder = load_encoder(f"path:{trained.path}", device="cpu")
    with pytest.raises(UsageError, match="trained on arrays in memory"):
        encoder.features_of(["a"])
    with pytest.raises(UsageError, match="not pictures"):
        encoder.encode_images([object()])


def test_paths_in_the_name_are_mapped(tmp_path: Path) -> None:
    for folder in ("model", "features"):
        (tmp_path / folder).mkdir()
    changed = [
        map_path(model, tmp_path, lambda path: f"X/{path}")
        for model in (
            "path:model", "path:model?split=test&features=features", "path:model?features=no", "path:nowhere",
            "path:model?with=features", "path:model?with=model&features=features&split=test",
        )
    ]  # fmt: skip
    assert changed == [
        "path:X/model", "path:X/model?split=test&features=X/features", "path:X/model?features=no", "path:nowhere",
        "path:X/model?with=X/features", "path:X/model?with=X/model&features=X/features&split=test",
    ]  # fmt: skip


def test_an_installation_that_lacks_the_entry_points_says_so() -> None:
    registry: Registry[Any] = Registry("encoder", "encoders-of-an-older-version", declared=("path",))
    with pytest.raises(CrosslensError, match=r"'path' is part of crosslens[\s\S]*install crosslens again"):
        registry["path"]
    assert "path" not in registry


# Models without vectors


def test_a_model_without_vectors_scores_all_pairs(pairs: Trained, data: TrainingData) -> None:
    scorer = load_encoder(f"path:{pairs.path}", device="cpu")
    assert isinstance(scorer, MatrixScorer)
    assert scorer.abilities == frozenset()
    dataset = data.test.dataset
    expected = slow_scores(pairs.path, data)
    features = scorer.features_of(dataset.image_ids)
    scores = scorer.score_matrix(features, dataset.texts)
    assert scores.shape == (20, 100)
    assert np.allclose(scores[:IMAGES, :CAPTIONS], expected, atol=1e-5)
    with pytest.raises(UsageError, match="scores pairs of an image and a text, and has no vectors"):
        encode_dataset(dataset, scorer)
    one_by_one = load_pair_scorer(f"path:{pairs.path}", device="cpu")
    some = [(3, 4), (0, 1), (3, 11), (2, 4)]
    images, texts = [features[row] for row, _ in some], [dataset.texts[column] for _, column in some]
    assert np.allclose(one_by_one.score_pairs(images, texts), [expected[pair] for pair in some], atol=1e-5)


def test_the_scores_of_two_models_are_averaged(call: Call, tmp_path: Path, region_data: TrainingData) -> None:
    """SGRAF: the mean of SGR and SAF, by the matrices of each."""
    small = {"dimension": 8, "word_dimension": 4, "similarity_dimension": 4}
    write_flickr8k(tmp_path / "data", region_data)
    features = load_features("flickr8k", tmp_path / "data", {"features": "efficientnet_lite0_grid3x3_pca256.npy"})
    for kind in ("sgr", "saf"):
        recipe = replace(small_recipe(), model=kind, model_settings=small)
        train_model(changed(recipe, epochs=1, fraction=0.25), features, tmp_path / kind)
    dataset = region_data.test.dataset
    sgr, saf, both = (
        load_encoder(f"path:{tmp_path / name}", device="cpu") for name in ("sgr", "saf", f"sgr?with={tmp_path / 'saf'}")
    )
    inputs = both.features_of(dataset.image_ids)
    single = [scorer.score_matrix(inputs, dataset.texts) for scorer in (sgr, saf)]
    mean = both.score_matrix(inputs, dataset.texts)
    assert mean == pytest.approx((single[0] + single[1]) / 2, abs=1e-7)
    assert np.abs(single[0] - single[1]).max() > 1e-3, "the models differ"
    assert both.name.endswith(f"sgr?with={tmp_path.name}/saf")
    assert len({sgr.revision, saf.revision, both.revision}) == 3
    by_hand = cl.evaluate(dataset, scores=(single[0] + single[1]) / 2, metrics=["Rsum"], resamples=0)["Rsum"].mean
    files = tmp_path / "data"
    outcome = call(
        "evaluate", "--model", f"path:{tmp_path / 'sgr'}?with={tmp_path / 'saf'}", "--dataset", "flickr", "--captions",
        files / "Flickr8k.token.txt", "--images", files / "Flickr_8k.testImages.txt", "--metrics", "Rsum", "--device",
        "cpu", "--resamples", "0", "-o", tmp_path / "run", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert outcome.json["metrics"]["Rsum"]["mean"] == pytest.approx(by_hand)
    train_on_files(tmp_path / "other", made_data(), epochs=1, fraction=0.25)
    with pytest.raises(UsageError, match="do not read the same features"):
        load_encoder(f"path:{tmp_path / 'sgr'}?with={tmp_path / 'other' / 'model'}", device="cpu")


def test_pairs_are_scored_again_from_the_cache(pairs: Trained, data: TrainingData, tmp_path: Path) -> None:
    dataset = data.test.dataset
    cache = Cache(tmp_path / "cache")
    stage = SecondStage.over(dataset, load_pair_scorer(f"path:{pairs.path}", device="cpu"), 5, cache=cache)
    asked = [(dataset.image_ids[2], dataset.caption_ids[7]), (dataset.image_ids[3], dataset.caption_ids[0])]
    scores = stage.score(asked)
    expected = slow_scores(pairs.path, data)
    assert np.allclose(scores, [expected[2, 7], expected[3, 0]], atol=1e-5)
    stage.scorer.score_pairs = None  # type: ignore[method-assign,assignment]
    assert np.array_equal(stage.score(asked), scores)


# Models of what crosslens encode wrote


def test_a_model_of_embeddings_reads_pictures(picture_home: Path) -> None:
    trained = Trained(picture_home / "model", read_model(picture_home / "model").card)
    pictures = picture_home / "data" / "pictures"
    encoder = load_encoder(f"path:{trained.path}", device="cpu")
    assert not isinstance(encoder, FeatureReader)
    dataset = cl.load_dataset(picture_home / "data" / "test-captions")
    encoded = encode_dataset(dataset, encoder, image_folder=pictures)
    run = cl.evaluate(
        dataset, images=encoded.images, captions=encoded.captions, metrics=list(trained.test), resamples=0
    )
    assert {name: run[name].mean for name in trained.test} == pytest.approx(trained.test)
    by_id = load_encoder(f"path:{trained.path}?features={picture_home / 'data' / 'test'}", device="cpu")
    assert np.allclose(encode_dataset(dataset, by_id).images.vectors, encoded.images.vectors, atol=1e-5)
    assert "made by tiny" in (trained.path / "README.md").read_text()


def test_another_encoder_than_that_of_the_training_is_refused(picture_home: Path) -> None:
    copied = copy(picture_home / "model", picture_home / "of another encoder")
    card = json.loads((copied / "header.json").read_text())
    broken(copied, features={**card["features"], "encoder": "tiny@0123456789ab"})
    with pytest.raises(InputError, match="no longer what the model was trained with"):
        load_encoder(f"path:{copied}", device="cpu")
    broken(copied, features={**card["features"], "encoder": ""})
    with pytest.raises(InputError, match="does not say which encoder"):
        load_encoder(f"path:{copied}", device="cpu")
    assert load_encoder(f"path:{copied}?encoder=tiny", device="cpu").abilities


def test_code_that_a_card_names_does_not_run(picture_home: Path, tmp_path: Path) -> None:
    copied = copy(picture_home / "model", picture_home / "of code")
    card = json.loads((copied / "header.json").read_text())
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')\n")
    features = {**card["features"], "options": {"encoder": f"callable:{tmp_path / 'evil.py'}:x"}}
    broken(copied, features=features)
    with pytest.raises(UsageError, match="names code that would run"):
        load_encoder(f"path:{copied}", device="cpu")
    with trusting(True), pytest.raises(SystemExit, match="ran"):
        load_encoder(f"path:{copied}", device="cpu")
