"""Why a sentence that belongs to no image retrieved an image: what it mentions, against both images."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from crosslens.core import MissingExtraError
from crosslens.explanations import compare_hits
from crosslens.values import Dataset

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")

CAPTIONS = {"park": ["a brown dog with a red ball"], "street": ["a black dog near a car"], "sea": ["a boat"]}


def annotated() -> Dataset:
    rows = [
        ("park", "dog", "dog.n.01", ["brown"]), ("park", "ball", "ball.n.01", ["red"]),
        ("street", "dog", "dog.n.01", ["black"]), ("street", "car", "car.n.01", []), ("sea", "boat", "boat.n.01", []),
    ]  # fmt: skip
    table = pl.DataFrame(
        {
            "image": [row[0] for row in rows], "object": [str(n) for n in range(len(rows))],
            "name": [row[1] for row in rows], "synset": [row[2] for row in rows],
            "attributes": [row[3] for row in rows],
        }
    )  # fmt: skip
    return replace(Dataset.of(CAPTIONS), objects=table)


def test_mentions_are_checked_against_both_images() -> None:
    comparison = compare_hits(annotated(), "a brown dog with a ball", ["park", "street", "sea"])
    assert comparison.images == ("park", "street")
    verdicts = {
        (checks[0].word.kind, checks[0].word.value): tuple(check.verdict for check in checks)
        for checks in comparison.checks
    }
    assert verdicts["object", "dog"] == ("satisfied", "satisfied")
    assert verdicts["object", "ball"] == ("satisfied", "violated")
    assert verdicts["colour", "brown"] == ("satisfied", "violated")
    assert (comparison.common, comparison.only_first, comparison.only_second) == (("dog",), ("ball",), ("car",))
    first, second = comparison.sentences
    assert first == "Of what the sentence mentions, the first image has brown, dog and ball."
    assert second == "Of what the sentence mentions, the second image has dog and lacks brown and ball."


def test_colours_of_absent_objects_are_not_listed() -> None:
    comparison = compare_hits(annotated(), "a brown dog", ["street", "sea"])
    assert comparison.violated(1) == ["dog"]


def test_without_annotations_captions_say_what_there_is() -> None:
    comparison = compare_hits(Dataset.of(CAPTIONS), "a dog near a car", ["street", "park"])
    assert comparison.source == "captions"
    assert comparison.satisfied(0) != []
    assert "car" in comparison.violated(1)


def test_one_image_and_no_sentence() -> None:
    alone = compare_hits(annotated(), "a dog", ["park"])
    assert alone.only_second == ()
    assert len(alone.sentences) == 1
    objects = compare_hits(annotated(), None, ["park", "street"])
    assert (objects.checks, objects.sentences, objects.common) == ((), [], ("dog",))


def test_without_a_parser_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MissingExtraError("parsing captions", "spacy", "language")

    monkeypatch.setattr("crosslens.explanations.explainer.mentioned_concepts", refuse)
    comparison = compare_hits(annotated(), "a dog", ["park", "street"])
    assert comparison.checks == ()
    assert "crosslens[language]" in comparison.notes[0]
