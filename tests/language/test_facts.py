"""What captions state: numbers in words and digits, and what a fact is said of."""

from __future__ import annotations

import pytest

from crosslens.language import FACT_READERS, Words, in_digits, read_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seven", (7, 1)), ("12", (12, 1)), ("sixty five", (65, 2)), ("six five", (6, 1)), ("a hundred", None),
        ("one hundred and forty six", (146, 5)), ("three hundred and dogs", (300, 2)), ("two dozen", (24, 2)),
        ("two thousand and one", (2001, 4)), ("five hundred twenty", (520, 3)), ("twenty and", (20, 1)), ("dogs", None),
        ("zero", (0, 1)), ("ten two", (10, 1)), ("dozen", None), ("one million two hundred thousand", (1200000, 5)),
    ],
)  # fmt: skip
def test_numbers_are_read(text: str, expected: tuple[int, int] | None) -> None:
    assert read_number(text.split()) == expected


def test_one_may_stand_for_a_thing() -> None:
    assert in_digits(["one", "of", "two", "dogs", "007", "twenty", "one"]) == ["one", "of", "2", "dogs", "007", "21"]


def test_each_kind_of_fact_is_read_with_its_place() -> None:
    words = Words('Two big dogs left of a red car are running, "STOP" says a sign.')
    facts = {
        kind: [words.written(fact.first, fact.last) for fact in read(words)] for kind, read in FACT_READERS.items()
    }
    assert facts == {
        "colour": ["red"], "count": ["Two"], "position": ["left"], "action": ["running"], "size": ["big"],
        "text": ["STOP"],
    }  # fmt: skip
