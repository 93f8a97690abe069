"""The two sentences of an explanation, as they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, strategies as st

from crosslens.explanations.explanation import Claim
from crosslens.explanations.sentences import OTHER, WORDS, ObjectPhrase, QueryFacts, WrongValue, rounded_down, sentences
from tests.tables import each_row


def facts(**changes: Any) -> QueryFacts:
    usual: dict[str, Any] = {"direction": "t2i", "source": "annotations", "succeeded": False, "rank": 2, "gallery": 120}
    return QueryFacts(**{**usual, "margin": 0.25, **changes})


def texts(**changes: Any) -> Sequence[str]:
    return [sentence.text for sentence in sentences(facts(**changes))]


DOG, FRISBEE = ObjectPhrase("dog"), ObjectPhrase("frisbee")


@each_row(
    ("changes", "first"),
    [
        ({"lacking": (FRISBEE,)}, "The query asks for a frisbee, but the retrieved picture has none."),
        ({"lacking": (DOG, FRISBEE)}, "The query asks for a dog and a frisbee, but the retrieved picture has neither."),
        (
            {"lacking": (ObjectPhrase("laptop", True, 8),)},
            "The query asks for eight laptops, but the retrieved picture has none.",
        ),
        (
            {"lacking": (FRISBEE,), "source": "captions"},
            "The query asks for a frisbee, which no caption of the retrieved picture mentions.",
        ),
        (
            {"lacking": (DOG, FRISBEE), "source": "captions"},
            "The query asks for a dog and a frisbee, but no caption of the retrieved picture mentions either of them.",
        ),
        ({"lacking_both": (DOG,)}, "The query names a dog, but neither picture has one."),
        ({"lacking_both": (ObjectPhrase("grass"),)}, "The query names grass, but neither picture has any."),
        (
            {"wrong_counts": (("sheep", 3, 12),)},
            "The query asks for three sheep, but the retrieved picture has twelve.",
        ),
        (
            {"wrong_values": (WrongValue(ObjectPhrase("umbrella"), "colour", "red", ("black", "white"), 1),)},
            "The query asks for a red umbrella, but the one in the retrieved picture is black and white.",
        ),
        (
            {"wrong_values": (WrongValue(ObjectPhrase("table", True), "material", "wooden", ("glass",), 2),)},
            "The query asks for wooden tables, but those in the retrieved picture are made of glass.",
        ),
        (
            {"wrong_values": (WrongValue(DOG, "colour", "brown", ("white",), 1),), "source": "captions"},
            "The query asks for a brown dog, but the captions of the retrieved picture call it white.",
        ),
        (
            {"misplaced": (("dog", "left", "apple"),)},
            "The query asks for a dog to the left of an apple, but in the retrieved picture no dog is "
            "to the left of an apple.",
        ),
        (
            {"lacking": (FRISBEE,), "wrong_counts": (("dog", 2, 1),)},
            "The query asks for a frisbee, but the retrieved picture has none; "
            "it also asks for two dogs, but the retrieved picture has one.",
        ),
        (
            {"fitting": (DOG, ObjectPhrase("skis", True))},
            "What can be checked of the query, a dog and skis, is in the retrieved picture.",
        ),
        ({}, "Nothing that the query asks for can be checked against the annotated objects."),
        ({"checked": False}, "The query was not read word by word."),
        (
            {"direction": "i2t", "lacking": (DOG,)},
            "The retrieved caption speaks of a dog, but the query picture has none.",
        ),
    ],
)
def test_the_first_sentence_says_what_was_asked_and_is_not_there(changes: dict[str, Any], first: str) -> None:
    assert texts(**changes)[0] == first


@each_row(
    ("changes", "second"),
    [
        ({}, "The right picture comes second of 120 pictures, 0.25 behind the first in score."),
        ({"rank": 113, "margin": None}, "The right picture comes 113th of 120 pictures."),
        (
            {"rank": 22, "margin": None, "margin_at_least": 0.33799},
            "The right picture comes 22nd of 120 pictures, at least 0.337 behind the first in score.",
        ),
        (
            {"margin": 1.81e-05},
            "The right picture comes second of 120 pictures, less than 0.0001 behind the first in score.",
        ),
        ({"rank": 22, "margin": None, "margin_at_least": 1.81e-05}, "The right picture comes 22nd of 120 pictures."),
        ({"margin": 0.0}, "The right picture comes second of 120 pictures, with the same score as the first."),
        ({"rank": None, "margin": None}, "The right picture is not in the list that was kept."),
        (
            {"margin": None, "only_right": (DOG, ObjectPhrase("ski", True)), "only_other": (ObjectPhrase("owl"),)},
            "The right picture comes second of 120 pictures; "
            "unlike the retrieved one, it has a dog and skis, but no owl.",
        ),
        (
            {"margin": None, "source": "captions", "only_right": (DOG,)},
            "The right picture comes second of 120 pictures; "
            "unlike those of the retrieved one, its captions mention a dog.",
        ),
        (
            {"margin": None, "counts": (("zebra", 5, 7),)},
            "The right picture comes second of 120 pictures; it has five zebras, the retrieved picture seven.",
        ),
        (
            {"margin": None, "shared": (DOG, FRISBEE)},
            "The right picture comes second of 120 pictures; both pictures have a dog and a frisbee.",
        ),
        (
            {"direction": "i2t", "gallery": 600, "only_right": (DOG,)},
            "The best caption of the query picture comes second of 600 captions, 0.25 behind the first in score; "
            "unlike the picture of the retrieved caption, the query picture has a dog.",
        ),
    ],
)
def test_the_second_sentence_says_how_far_and_what_differs(changes: dict[str, Any], second: str) -> None:
    assert texts(**changes)[1] == second


def test_a_success_says_by_how_much_first() -> None:
    first, second = texts(succeeded=True, rank=1, lacking=(DOG,))
    assert first == "The right picture comes first of 120 pictures, 0.25 ahead of the next in score."
    assert second == "The query asks for a dog, but the next picture has none."


def test_what_is_in_both_pictures_is_not_said_to_be_missing_from_one() -> None:
    """A lamp is in both, and only not where the query puts it."""
    lamp, door = ObjectPhrase("lamp"), ObjectPhrase("door")
    placed = {"misplaced": (("lamp", "left", "door"),), "shared": (lamp, door), "margin": None}
    assert texts(succeeded=True, rank=1, **placed) == [
        "The right picture comes first of 120 pictures; both pictures have a lamp and a door.",
        "The query asks for a lamp to the left of a door, but in the next picture no lamp is to the left of a door.",
    ]


def test_a_success_without_anything_beside_it() -> None:
    assert texts(succeeded=True, rank=1, margin=None, compared=False) == [
        "The right picture comes first of 120 pictures.",
        "No other picture was kept to compare it with.",
    ]


def test_what_was_asked_for_is_not_said_twice() -> None:
    first, second = texts(lacking=(DOG,), only_right=(DOG, ObjectPhrase("tree")), margin=None)
    assert "dog" in first
    assert second == "The right picture comes second of 120 pictures; unlike the retrieved one, it has a tree."


def test_sentences_have_claims() -> None:
    claims = sentences(facts(lacking=(DOG,)))[0].claims
    assert claims == (Claim(WORDS, "name", "dog"), Claim(OTHER, "lacks", "dog"))


@given(st.floats(min_value=5e-324, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(0.0999)
def test_at_least_so_much_is_never_more(value: float) -> None:
    rounded = float(rounded_down(value))
    assert rounded <= value
    assert rounded > 0.99 * value or value < 1e-300  # the smallest floats have fewer digits
