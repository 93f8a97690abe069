"""Arrays with the wrong rows: too many, too few, swapped, in another order; what the result says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.pipeline import InputOptions, Recipe, evaluate, run_recipe
from crosslens.values import Dataset, Embeddings

Array = np.ndarray[Any, Any]

IMAGES, PER_IMAGE = 40, 5
DATASET = Dataset.of({f"im{n}": [f"caption {n} {m}" for m in range(PER_IMAGE)] for n in range(IMAGES)})
_RANDOM = np.random.default_rng(0)
PICTURES = _RANDOM.standard_normal((IMAGES, 16)).astype(np.float32)
TEXTS = (np.repeat(PICTURES, PER_IMAGE, 0) + 0.5 * _RANDOM.standard_normal((IMAGES * PER_IMAGE, 16))).astype(np.float32)
REPEATED = np.repeat(PICTURES, PER_IMAGE, 0)


@pytest.mark.parametrize(
    ("images", "captions", "fix"),
    [
        (TEXTS, PICTURES, "200 is the number of captions: are the arrays swapped?"),
        (REPEATED, TEXTS, "is each image repeated for its captions? keep one row per image, such as images[::5]"),
        (PICTURES, PICTURES, "40 is the number of images: encode every caption, not one per image"),
        (PICTURES[:39], TEXTS, "encode the same split"),
    ],
)
def test_the_likely_mistake_is_named(images: Array, captions: Array, fix: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows of (image|caption) embeddings for") as error:
        evaluate(DATASET, images=images, captions=captions)
    assert fix in str(error.value)
    DATASET.save(tmp_path / "data")
    np.save(tmp_path / "img.npy", images)
    np.save(tmp_path / "cap.npy", captions)
    inputs = InputOptions(image_embeddings="img.npy", caption_embeddings="cap.npy")
    with pytest.raises(InputError, match=r"(img|cap)\.npy.*rows of (image|caption) embeddings for") as error:
        run_recipe(Recipe(dataset="./data", inputs=inputs, base=tmp_path))
    assert fix in str(error.value)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (DATASET.image_ids[:-1], "39 image ids for 40 rows of embeddings(.|\n)*add the missing id, probably 'im39'"),
        (
            ("image", *DATASET.image_ids),
            "41 image ids for 40 rows of embeddings(.|\n)*remove 'image', which is no image",
        ),
        (
            DATASET.image_ids[:30],
            "30 image ids for 40 rows of embeddings(.|\n)*in the order in which they were encoded",
        ),
    ],
)
def test_ids_that_are_not_as_many_as_rows(ids: tuple[str, ...], message: str, tmp_path: Path) -> None:
    DATASET.save(tmp_path / "data")
    np.save(tmp_path / "img.npy", PICTURES)
    np.save(tmp_path / "cap.npy", TEXTS)
    (tmp_path / "ids.txt").write_text("\n".join(ids) + "\n")
    inputs = InputOptions(image_embeddings="img.npy", caption_embeddings="cap.npy", image_ids="ids.txt")
    with pytest.raises(InputError, match=message):
        run_recipe(Recipe(dataset="./data", inputs=inputs, base=tmp_path))


def notes(images: Any, captions: Any, **options: Any) -> list[str]:
    run = evaluate(DATASET, images=images, captions=captions, metrics="Hit@1", resamples=0, **options)
    return list(run.provenance["notes"])


def test_rows_in_another_order_are_noted() -> None:
    assert notes(PICTURES, TEXTS) == []
    shifted = np.roll(TEXTS, PER_IMAGE, axis=0)
    assert notes(PICTURES, shifted) == ["i2t and t2i: no better than chance: are the rows in the dataset's order?"]
    assert notes(PICTURES, shifted, directions="t2i", folds=2)[0].startswith("t2i: no better than chance")


def test_a_weak_model_is_better_than_chance() -> None:
    weak = TEXTS + 3 * np.random.default_rng(1).standard_normal(TEXTS.shape)
    assert notes(PICTURES, weak) == []


def test_scores_that_are_all_equal_are_noted() -> None:
    run = evaluate(DATASET, scores=np.zeros((IMAGES, IMAGES * PER_IMAGE)), metrics="Hit@1", resamples=0)
    assert "no better than chance" in run.provenance["notes"][0]


def test_a_model_that_ranks_by_chance_is_asked_about_its_weights() -> None:
    shifted = Embeddings(DATASET.caption_ids, np.roll(TEXTS, PER_IMAGE, axis=0), model="clip")
    with_model = Embeddings(DATASET.image_ids, PICTURES, model="clip")
    assert "are the model's weights loaded" in notes(with_model, shifted)[0]


def test_few_images_are_not_judged() -> None:
    small = Dataset.of({f"im{n}": ["a caption"] for n in range(5)})
    run = evaluate(small, scores=np.zeros((5, 5)), metrics="Hit@1", resamples=0)
    assert run.provenance["notes"] == []


def test_the_note_is_stored_and_kept_when_the_run_is_found_again(tmp_path: Path) -> None:
    for _ in range(2):
        shifted = np.roll(TEXTS, PER_IMAGE, axis=0)
        run = evaluate(DATASET, images=PICTURES, captions=shifted, resamples=0, output=tmp_path / "run")
        assert "no better than chance" in run.provenance["notes"][-1]
