"""What ``describe`` counts, on a dataset small enough to count by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from crosslens.data import Spread, describe, load_dataset
from crosslens.values import Dataset


@pytest.fixture
def dataset() -> Dataset:
    texts = [
        ("a", "A dog runs"),
        ("a", "a  dog RUNS"),
        ("a", "One two three four five"),
        ("b", "A dog runs"),
        ("b", "Cat"),
        ("c", "A line\nbreak here"),
    ]
    return Dataset(
        "small",
        pl.DataFrame(
            {
                "image": ["a", "b", "c", "d"],
                "width": [10, 10, 10, 10],
                "height": [8, 8, 8, 8],
                "kind": ["x", "x", "y", "y"],
            }
        ),
        pl.DataFrame(
            {
                "caption": [str(n) for n in range(6)],
                "image": [image for image, _ in texts],
                "text": [text for _, text in texts],
                "who": ["u", "v", "u", "v", "u", "v"],
            }
        ),
        pl.DataFrame(
            {
                "image": ["a", "a"],
                "object": ["1", "2"],
                "x": [5.0, None],
                "y": [0.0, None],
                "w": [9.0, None],
                "h": [2.0, None],
            }
        ),
    )


def test_counts(dataset: Dataset) -> None:
    description = describe(dataset)
    assert (description.images, description.captions, description.images_without_captions) == (4, 6, 1)
    assert description.captions_per_image == Spread(0.0, 1.5, 1.5, 3.0)
    assert description.captions_histogram == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert description.words == Spread(1.0, 19 / 6, 3.0, 5.0)
    assert (description.characters.min, description.characters.max) == (3.0, 23.0)
    assert (description.repeated_within, description.repeated_across) == (1, 3)
    assert (description.objects, description.objects_without_box, description.relations) == (2, 1, 0)
    assert description.groups == {"images.kind": 2, "captions.who": 2}
    assert description.problems == (
        "images without a caption: 1 of 4; as queries they are excluded, in the gallery they remain",
        "captions that repeat an earlier caption of their image: 1",
        "captions whose text another image has too: 3; retrieval cannot tell those images apart by them",
        "captions of fewer than three words: 1",
        "captions with a line break or a tab: 1",
        "objects without a box: 1",
        "boxes that reach beyond their image: 1",
    )


def test_prints_and_travels(dataset: Dataset) -> None:
    description = describe(dataset)
    assert json.loads(json.dumps(description.as_dict()))["captions_per_image"]["max"] == 3.0
    lines = str(description).splitlines()
    assert lines[0] == "small"
    assert "captions per image       mean 1.50, median 1.5, from 0 to 3" in lines
    assert "- boxes that reach beyond their image: 1" in lines
    assert max(map(len, lines)) <= 80


def test_lists_and_objects_group_too(dataset: Dataset) -> None:
    assert dataset.objects is not None
    tagged = replace(
        dataset,
        images=dataset.images.with_columns(tags=pl.Series([["sea"], ["sea", "sun"], [], None])),
        objects=dataset.objects.with_columns(name=pl.Series(["dog", "cat"])),
    )
    groups = describe(tagged).groups
    assert groups["objects"] == 2
    assert "images.tags" not in groups, "three values for four images: hardly groups"
    wide = replace(
        tagged, images=tagged.images.with_columns(tags=pl.Series([["sea"], ["sun", "sea"], ["sun"], ["sea"]]))
    )
    assert describe(wide).groups["images.tags"] == 2


def test_many_captions_share_one_bin() -> None:
    description = describe(Dataset.of({"a": [f"caption number {n}" for n in range(40)], "b": ["just one caption"]}))
    assert description.captions_histogram == {"1": 1, "12+": 1}


def test_a_description_is_a_list_with_its_problems_and_notes(tmp_path: Path) -> None:
    dataset = Dataset.of({"a": ["a dog", "a dog"], "b": ["a cat on a mat"]}, name="pets")
    described = describe(replace(dataset, card=replace(dataset.card, notes="one image left out")))
    lines = described.text(80).splitlines()
    assert lines[:4] == ["pets", "", "images                   2", "captions                 3"]
    assert "  images by count        1: 1, 2: 1" in lines
    start = lines.index("problems")
    assert lines[start + 1] == "- captions that repeat an earlier caption of their image: 1"
    assert lines[-1] == "note: one image left out"
    assert described.as_dict()["notes"] == ["one image left out"]
    page = described.save(tmp_path / "pets.html").read_text(encoding="utf-8")
    assert '<th scope="row">captions</th><td>3</td>' in page
    assert "- captions per image: mean 1.50" in described.save(tmp_path / "pets.md").read_text(encoding="utf-8")


def test_no_captions_at_all() -> None:
    empty = pl.DataFrame(schema={"caption": pl.String, "image": pl.String, "text": pl.String})
    description = describe(Dataset("bare", pl.DataFrame({"image": ["a"]}), empty))
    assert description.problems == ("no captions: only the images can be used",)
    assert description.words == Spread(0.0, 0.0, 0.0, 0.0)


def test_nothing_to_complain_about() -> None:
    assert describe(Dataset.of({"a": ["one two three"], "b": ["four five six"]})).problems == ()


@pytest.mark.slow  # as small ones above
def test_real_dataset(shared_data: Path) -> None:
    description = describe(load_dataset("flickr", captions=shared_data / "flickr8k" / "Flickr8k.token.txt"))
    assert description.captions_histogram == {"5": 8092}
    assert 10 < description.words.mean < 13


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two dogs play in the snow .", 6),
        ("A man's long-sleeved shirt, isn't it?", 9),
        ("At 10:30 a U.S. flag , 3,000 feet up !", 8),
        ("Ein Mädchen - im Café …", 4),
        (". - !", 0),
    ],
)
def test_words_are_tokens_that_are_not_punctuation(text: str, words: int) -> None:
    assert describe(Dataset.of({"a": [text]})).words.mean == words
