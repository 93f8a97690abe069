"""Hard negatives from their files to figures: models, vectors, captions alone, perturbations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import load_hard_negatives, perturbed_negatives
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.encode import Cache
from crosslens.perturbations import perturbations_with
from tests.analyze.negative_files import relations, write_sugar, write_winoground
from tests.data.files import write_json
from tests.language.pipelines import needs_a_pipeline

COLOURS = ("red", "green", "blue")


class Colours:
    """Pictures by their mean colour, texts by the colours they name: what a person would do on these cases."""

    name = "colours"

    def encode_images(self, images: Sequence[Any]) -> np.ndarray[Any, Any]:
        return np.array([np.asarray(image, np.float32).mean(axis=(0, 1)) + 1 for image in images])

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        return np.array([[text.lower().count(colour) + 0.1 for colour in COLOURS] for text in texts], np.float32)


class Words:
    """A text encoder: which of a few words a text has."""

    name = "words"

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        vocabulary = ("red", "blue", "square", "circle", "tree", "over")
        return np.array([[text.lower().count(word) + 0.01 for word in vocabulary] for text in texts], np.float32)


def paint(folder: Path, **colours: tuple[int, int, int]) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    folder.mkdir(parents=True, exist_ok=True)
    for name, colour in colours.items():
        image.new("RGB", (8, 4), colour).save(folder / f"{name}.png")


# Models


def test_a_model_that_sees_colours(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    folder = write_sugar(tmp_path / "s")
    photos = tmp_path / "photos"
    photos.mkdir()
    image.new("RGB", (4, 4), (250, 0, 0)).save(photos / "1.jpg")
    image.new("RGB", (4, 4), (0, 0, 250)).save(photos / "2.jpg")
    result = cl.analyze.score_hard_negatives(folder, Colours(), image_folder=photos, resamples=20)
    assert result.model == "colours"
    assert dict(result.cases.select("case", "correct").iter_rows()) == {
        "replace_att/0": True, "replace_obj/0": False, "replace_obj/7": False, "swap_obj/0": False,
    }  # fmt: skip
    assert result.cases["tied"].to_list() == [False, True, True, True], "it cannot tell shapes or order"
    (photos / "2.jpg").unlink()
    with pytest.raises(InputError, match=r"2\.jpg"):
        cl.analyze.score_hard_negatives(folder, Colours(), image_folder=photos)
    part = cl.analyze.score_hard_negatives(folder, Colours(), image_folder=photos, skip_missing=True, resamples=0)
    assert (part.left_out, len(part.negatives)) == (2, 2)


def test_aro_shows_the_box_and_not_the_photo(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    (tmp_path / "images").mkdir()
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4, 0], pixels[:, 4:, 2] = 250, 250
    image.fromarray(pixels).save(tmp_path / "images" / "9.png")
    images_scored: list[tuple[int, ...]] = []

    class Seeing(Colours):
        def encode_images(self, images: Sequence[Any]) -> np.ndarray[Any, Any]:
            images_scored.extend(
                (*image.size, *np.asarray(image).mean(axis=(0, 1)).round().astype(int).tolist()) for image in images
            )
            return super().encode_images(images)

    file = write_json(tmp_path / "visual_genome_relation.json", relations()[:2])
    cl.analyze.score_hard_negatives(file, Seeing(), resamples=0)
    assert sorted(images_scored) == [(4, 4, 0, 0, 250), (4, 4, 250, 0, 0)]
    images_scored.clear()
    cl.analyze.score_hard_negatives(file, Seeing(), crop=False, resamples=0)
    assert images_scored == [(8, 4, 125, 0, 125)]


def test_winoground_with_a_model_of_both_sides(tmp_path: Path) -> None:
    folder = write_winoground(tmp_path)
    names = [f"ex_{n}_img_{side}" for n in range(3) for side in (0, 1)]
    paint(folder / "images", **{name: ((250, 0, 0), (0, 0, 250))[n % 2] for n, name in enumerate(names)})
    result = cl.analyze.score_hard_negatives(folder, Colours(), resamples=0)
    assert {row.measure for row in result.figures} == {"text", "image", "group"}
    assert result.figure(measure="group").tied == 1.0, "both captions have the same words"
    assert result.figure("Object", "text").cases == 2
    assert result.figure("Series", "text").cases == 1
    assert result.figure(measure="group").chance == pytest.approx(1 / 6)


class Matching:
    """Looks at both at once: is the first colour that the text names the picture's?"""

    name, revision = "matching", "1"

    def __init__(self) -> None:
        self.pairs = 0

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.pairs += len(images)
        image = pytest.importorskip("PIL.Image")
        result = []
        for path, text in zip(images, texts, strict=True):
            with image.open(path) as picture:
                colour = COLOURS[int(np.argmax(picture.getpixel((0, 0))))]
            colours = [word for word in text.split() if word in COLOURS]
            result.append(float(bool(colours) and colours[0] == colour))
        return np.array(result)


def test_a_model_of_pairs(tmp_path: Path) -> None:
    folder = write_winoground(tmp_path)
    names = [f"ex_{n}_img_{side}" for n in range(3) for side in (0, 1)]
    paint(folder / "images", **{name: ((250, 0, 0), (0, 0, 250))[n % 2] for n, name in enumerate(names)})
    model = Matching()
    result = cl.analyze.score_hard_negatives(folder, pair_model=model, cache=Cache(tmp_path / "cache"), resamples=0)
    assert result.cases["group_correct"].to_list() == [True, False, False]
    assert (result.model, model.pairs) == ("matching", 12)
    again = cl.analyze.score_hard_negatives(folder, pair_model=model, cache=Cache(tmp_path / "cache"), resamples=0)
    assert model.pairs == 12, "kept from the first time"
    np.testing.assert_array_equal(again.scores, result.scores)


# Vectors


def test_vectors_are_found_by_the_ids_of_the_dataset(tmp_path: Path) -> None:
    cases = load_hard_negatives(write_sugar(tmp_path / "s"))
    dataset = cases.as_dataset()
    assert {"case", "right", "kind", "group"} <= set(dataset.captions.columns)
    random = np.random.default_rng(2)
    images, captions = random.normal(size=(2, 5)), random.normal(size=(8, 5))
    result = cl.analyze.score_hard_negatives(cases, images=images, captions=captions, resamples=0)
    units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (images, captions)]
    cosines = units[1] @ units[0].T
    expected = [cosines[2 * n, owner] - cosines[2 * n + 1, owner] for n, owner in enumerate([0, 0, 1, 1])]
    np.testing.assert_allclose(result.outcomes.margins["accuracy"], expected, atol=1e-6)
    mixed = random.permutation(8)
    shuffled = cl.Embeddings.of(captions[mixed], [dataset.caption_ids[row] for row in mixed])
    again = cl.analyze.score_hard_negatives(
        cases, images=cl.Embeddings.of(images, dataset.image_ids), captions=shuffled, resamples=0
    )
    np.testing.assert_array_equal(again.scores, result.scores)
    less = cl.Embeddings.of(captions[:7], dataset.caption_ids[:7])
    with pytest.raises(InputError, match="swap_obj/0:wrong"):
        cl.analyze.score_hard_negatives(cases, images=images, captions=less)
    assert (
        cl.analyze.score_hard_negatives(cases, images=images, captions=less, skip_missing=True, resamples=0).left_out
        == 1
    )
    with pytest.raises(InputError, match="none of the pairs"):
        cl.analyze.score_hard_negatives(cases, images=cl.Embeddings.of(images), captions=captions)


def test_several_vectors_per_image(tmp_path: Path) -> None:
    cases = load_hard_negatives(write_sugar(tmp_path / "s"))
    random = np.random.default_rng(3)
    images, captions = random.normal(size=(2, 3, 5)), random.normal(size=(8, 5))
    result = cl.analyze.score_hard_negatives(cases, images=images, captions=captions, resamples=0)
    left, right = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) for vectors in (images, captions))
    expected = [(left[owner] @ right[row]).max() for row, owner in enumerate([0, 0, 0, 0, 1, 1, 1, 1])]
    np.testing.assert_allclose(result.scores, expected, atol=1e-6)


def test_scores_come_from_one_place(tmp_path: Path) -> None:
    cases = load_hard_negatives(write_sugar(tmp_path / "s"))
    with pytest.raises(UsageError, match="no scores"):
        cl.analyze.score_hard_negatives(cases)
    with pytest.raises(UsageError, match="several"):
        cl.analyze.score_hard_negatives(cases, blind="shorter", scores=pl.DataFrame())
    with pytest.raises(UsageError, match="no embeddings of captions"):
        cl.analyze.score_hard_negatives(cases, images=np.ones((2, 3)))
    with pytest.raises(UsageError, match="perturbations"):
        cl.analyze.score_hard_negatives(cases, blind="shorter", perturbations="antonym")
    with pytest.raises(UsageError, match="no hard negatives"):
        cl.analyze.score_hard_negatives(blind="shorter", perturbations="antonym")
    with pytest.raises(CrosslensError, match="shorter"):
        cl.analyze.score_hard_negatives(cases, blind="short")


def test_blind_looks_at_lengths(tmp_path: Path) -> None:
    result = cl.analyze.score_hard_negatives(write_sugar(tmp_path / "s"), blind="shorter", resamples=0)
    assert result.cases["correct"].to_list() == [True, True, False, False]
    assert result.cases["tied"].to_list() == [False, False, False, True]


# Captions alone


def described(**more: list[str]) -> cl.Dataset:
    return cl.Dataset.of(
        {
            "1": ["a red square", "a square in red", "red"],
            "2": ["blue", "a blue square", "the square is blue"],
            **more,
        },
        images={"file": ["somewhere/1.jpg", "2.jpg", *(f"{name}.jpg" for name in more)]},
    )


def test_a_picture_is_the_mean_of_its_other_captions(tmp_path: Path) -> None:
    cases = load_hard_negatives(write_sugar(tmp_path / "s"))
    result = cl.analyze.score_hard_negatives(cases, Words(), image_text=described(), resamples=0)
    encode = Words().encode_texts
    others = {
        "replace_att/0": ["a square in red", "red"],
        "replace_obj/0": ["a square in red", "red"],
        "replace_obj/7": ["blue", "the square is blue"],
        "swap_obj/0": ["blue", "a blue square", "the square is blue"],
    }
    for row in result.cases.iter_rows(named=True):
        mean = encode(others[row["case"]]).mean(axis=0)
        for side in ("right", "wrong"):
            text = encode([row[side]])[0]
            cosine = mean @ text / np.linalg.norm(mean) / np.linalg.norm(text)
            assert row[f"{side}_score"] == pytest.approx(cosine, abs=1e-6), row["case"]


def test_pictures_without_other_captions(tmp_path: Path) -> None:
    cases = load_hard_negatives(write_sugar(tmp_path / "s"))
    only = cl.Dataset.of({"1.jpg": ["a red square", "A red  square ."]})
    with pytest.raises(InputError, match="no captions of the images"):
        cl.analyze.score_hard_negatives(cases, Words(), image_text=only)
    part = cl.Dataset.of({"1.jpg": ["a red square", "red"]})
    with pytest.raises(InputError, match="replace_obj/7"):
        cl.analyze.score_hard_negatives(cases, Words(), image_text=part)
    assert (
        cl.analyze.score_hard_negatives(cases, Words(), image_text=part, skip_missing=True, resamples=0).left_out == 2
    )
    with pytest.raises(UsageError, match="encodes texts, not images"):
        cl.analyze.score_hard_negatives(cases, Words())


# Perturbations


CAPTIONS = cl.Dataset.of(
    {"a": ["one two three four five", "x"], "b": ["red blue green red"]}, images={"file": ["a.png", "b.png"]}
)


def test_perturbed_captions_are_wrong_ones() -> None:
    result = perturbed_negatives(CAPTIONS, "shuffle_all_words,shuffle_within_trigrams", seed=4)
    assert set(result.cases["perturbation"]) == {"shuffle_all_words", "shuffle_within_trigrams"}
    assert "a#1/shuffle_all_words" not in set(result.cases["case"]), "nothing to shuffle in one word"
    changed = dict(zip(CAPTIONS.caption_ids, cl.perturb("shuffle_all_words", CAPTIONS, seed=4), strict=True))
    texts = dict(zip(result.dataset.caption_ids, result.dataset.texts, strict=True))
    assert texts["a#0/shuffle_all_words:right"] == "one two three four five"
    assert texts["a#0/shuffle_all_words:wrong"] == changed["a#0"].text
    assert result.notes == ("Changed, of 3 captions: shuffle_all_words 2, shuffle_within_trigrams 2.",)
    assert result.averaged == "perturbation"
    assert result.dataset.images["file"].to_list() == ["a.png", "b.png"]


def test_perturbed_together_is_one_case_per_caption() -> None:
    result = perturbed_negatives(CAPTIONS, ["shuffle_all_words", "shuffle_trigrams"], together=True)
    assert result.cases["case"].to_list() == ["a#0", "b#0"]
    assert result.chances["accuracy"].tolist() == [1 / 3, 1 / 3]
    assert result.dataset.caption_ids[:3] == ("a#0:right", "a#0:wrong-shuffle_all_words", "a#0:wrong-shuffle_trigrams")


def test_harmless_perturbations_are_told() -> None:
    notes = perturbed_negatives(CAPTIONS, "char_swap").notes
    assert any("char_swap" in note and "leave a caption right" in note for note in notes)


def test_perturbations_that_apply_to_nothing() -> None:
    with pytest.raises(InputError, match="none of 1 caption"):
        perturbed_negatives(cl.Dataset.of({"a": ["x"]}), "shuffle_all_words")


def test_a_bag_of_words_cannot_tell_shuffles() -> None:
    result = cl.analyze.score_hard_negatives(
        None, Words(), dataset=CAPTIONS, perturbations="shuffle_all_words", image_text=described(
            a=["over the square", "a tree"], b=["red and blue", "a red tree"]
        ), resamples=0,
    )  # fmt: skip
    assert (result.figure().value, result.figure().tied) == (0.0, 1.0)


@needs_a_pipeline
def test_order_cases_have_four_wrong_captions(tmp_path: Path) -> None:
    rows = [{"image": "a.jpg", "caption": ["the small black dog runs over a wide green field near the old house"]}]
    result = load_hard_negatives(write_json(tmp_path / "flickr30k_test.json", rows))
    assert result.pairs.height == 1 + len(perturbations_with("aro"))
    right, *wrong = (sorted(text.split()) for text in result.dataset.texts)
    assert all(text == right for text in wrong)
    assert result.chances["accuracy"].tolist() == [0.2]


def test_pictures_changed_are_no_wrong_captions() -> None:
    with pytest.raises(UsageError, match="blur@3 perturbs images"):
        perturbed_negatives(CAPTIONS, "shuffle_all_words,blur@3")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"by": ["style"]}, "by= has no effect with perturbations"),
        ({"form": "aro"}, "form= has no effect with perturbations"),
        ({"crop": False}, "crop= has no effect with perturbations"),
    ],
)
def test_what_perturbations_have_no_use_for_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        cl.analyze.score_hard_negatives(dataset=CAPTIONS, perturbations="shuffle_all_words", blind="shorter", **given)


def test_an_unknown_option_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(CrosslensError, match="did you mean tolerance"):
        cl.analyze.score_hard_negatives(write_sugar(tmp_path), blind="shorter", tolerence=0.1)


def test_cases_from_files_are_not_put_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="together= has no effect with files"):
        cl.analyze.score_hard_negatives(write_sugar(tmp_path), blind="shorter", together=True)
