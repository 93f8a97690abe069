"""What findings are looked for in, of everything that can be audited: vectors, scores, lists, texts alone, a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import Subject
from crosslens.audits import AuditRequest, DatasetSource
from crosslens.audits.sources import audit_sources, subject_of
from crosslens.encode import EncodeOptions
from crosslens.pipeline import AuditOptions, EvaluateOptions, InputOptions, ModelOptions, run_recipe
from crosslens.storage import trusting
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from tests.pipeline.small_world import world

IMAGES = 12
PLAIN = EncodeOptions(cache=False)
MODEL = """
import numpy as np

class Letters:
    dim = 27
    revision = "one"
    def encode_images(self, images):
        return np.array([[np.asarray(image).mean() + n for n in range(27)] for image in images], np.float32)
    def encode_texts(self, texts):
        return np.array([[text.count(chr(97 + n)) for n in range(26)] + [1] for text in texts], np.float32)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    dataset, images, captions = world(images=IMAGES)
    dataset.save(tmp_path / "data")
    np.save("images.npy", images)
    np.save("captions.npy", captions)
    np.save("scores.npy", (images @ captions.T).astype(np.float32))
    return tmp_path


def subject(inputs: InputOptions = InputOptions(), **request: Any) -> Subject:  # noqa: B008  nothing changes it
    """The subject of the only source of a request, evaluated."""
    given = AuditRequest(**{"datasets": (DatasetSource("data"),), "inputs": inputs, **request})
    (source,) = audit_sources(given, AuditOptions(resamples=50))
    run = run_recipe(source.recipe, Path("run"), encoding=PLAIN)
    return subject_of(replace(source, folder=Path("run"), run=run), PLAIN, 3)


def test_of_vectors(here: Path) -> None:
    audit_subject = subject(InputOptions("images.npy", "captions.npy"))
    dataset, images, captions = world(images=IMAGES)
    assert audit_subject.dataset.fingerprint == dataset.fingerprint
    assert audit_subject.images is not None
    assert audit_subject.captions is not None
    np.testing.assert_array_equal(audit_subject.images.vectors, images)
    np.testing.assert_array_equal(audit_subject.captions.vectors, captions)
    assert (audit_subject.score, audit_subject.encode, audit_subject.seed) == ("cosine", None, 3)
    again = audit_subject.ranked()
    for direction in (TEXT_TO_IMAGE, IMAGE_TO_TEXT):
        np.testing.assert_array_equal(again.rankings[direction].above, audit_subject.rankings[direction].above)
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    first = np.argmax(unit @ captions.T, axis=0)
    np.testing.assert_array_equal(audit_subject.caption_hits, first == dataset.caption_image)


def test_vectors_by_id_are_in_the_order_of_the_dataset(here: Path) -> None:
    dataset, images, _ = world(images=IMAGES)
    order = np.random.default_rng(0).permutation(IMAGES)
    np.save("mixed.npy", images[order])
    Path("ids.txt").write_text("\n".join(dataset.image_ids[row] for row in order))
    audit_subject = subject(InputOptions("mixed.npy", "captions.npy", image_ids="ids.txt"))
    assert audit_subject.images is not None
    np.testing.assert_array_equal(audit_subject.images.vectors, images)
    assert list(audit_subject.images.ids) == list(dataset.image_ids)


def test_of_scores_there_are_rankings_alone(here: Path) -> None:
    audit_subject = subject(InputOptions(scores="scores.npy"))
    assert (audit_subject.images, audit_subject.captions, audit_subject.encode) == (None, None, None)
    scores = np.load("scores.npy")
    dataset = world(images=IMAGES)[0]
    np.testing.assert_array_equal(audit_subject.caption_hits, np.argmax(scores, axis=0) == dataset.caption_image)
    np.testing.assert_array_equal(
        audit_subject.image_hits, dataset.caption_image[np.argmax(scores, axis=1)] == np.arange(IMAGES)
    )


def test_of_lists_there_is_the_direction_that_was_given(here: Path) -> None:
    dataset = world(images=IMAGES)[0]
    lines = [
        f"{caption} Q0 {image} {rank} {100 - rank} m"
        for caption in dataset.caption_ids
        for rank, image in enumerate(dataset.image_ids, 1)
    ]
    Path("model.run").write_text("\n".join(lines))
    audit_subject = subject(InputOptions(runs=("model.run",)))
    assert (audit_subject.images, audit_subject.captions, audit_subject.encode) == (None, None, None)
    assert list(audit_subject.rankings) == [TEXT_TO_IMAGE]
    np.testing.assert_array_equal(audit_subject.caption_hits, dataset.caption_image == 0)
    assert np.isnan(audit_subject.image_hits).all(), "they did not ask"


@pytest.fixture
def model(here: Path) -> Path:
    (here / "model.py").write_text(MODEL)
    (here / "pictures").mkdir()
    captions = {f"{letter}.ppm": [f"a {letter * 3}", f"the {letter * 2}", f"{letter} here"] for letter in "bcdefg"}
    for row, image in enumerate(captions):
        (here / "pictures" / image).write_bytes(b"P6 4 4 255\n" + bytes([40 * row] * 48))
    cl.Dataset.of(captions, name="letters").save(here / "letters")
    return here


def test_of_a_model_texts_can_be_encoded(model: Path) -> None:
    from crosslens.analyze import probe_captions

    letters: Any = {
        "datasets": (DatasetSource("letters"),), "models": ("callable:model.py:Letters",),
        "model": ModelOptions(image_folder="pictures"),
    }  # fmt: skip
    with trusting(True):
        audit_subject = subject(**letters)
        assert audit_subject.encode is not None
        assert audit_subject.captions is not None
        texts = list(audit_subject.dataset.texts)
        np.testing.assert_allclose(audit_subject.encode(texts), audit_subject.captions.vectors)
        assert audit_subject.encode(["zz"])[0][25] == 2
    assert set(audit_subject.pictures) == set(audit_subject.dataset.image_ids)
    assert all(Path(path).is_file() for path in audit_subject.pictures.values())
    assert probe_captions(audit_subject) is not None


def test_of_texts_alone_captions_ask_for_images_by_their_texts(model: Path) -> None:
    letters: Any = {
        "datasets": (DatasetSource("letters"),), "models": ("callable:model.py:Letters",),
        "model": ModelOptions(image_text="mean"), "evaluate": EvaluateOptions(directions=("t2t",)),
    }  # fmt: skip
    with trusting(True):
        audit_subject = subject(**letters)
    assert set(audit_subject.rankings) == {TEXT_TO_IMAGE}
    assert set(audit_subject.rankings[TEXT_TO_IMAGE].item_ids) == set(audit_subject.dataset.image_ids)
    assert audit_subject.encode is None, "what its images are is made of texts, too"
    asked = audit_subject.rankings[TEXT_TO_IMAGE].query_ids
    assert set(asked) <= set(audit_subject.dataset.caption_ids)
    assert np.isfinite(audit_subject.caption_hits).sum() == len(asked)
    again = audit_subject.ranked()
    np.testing.assert_array_equal(again.caption_hits, audit_subject.caption_hits)
