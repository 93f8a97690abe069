from __future__ import annotations

import pytest

from crosslens.synth import a, listing, number_word, pluralise, sentence
from tests.tables import each_row


@each_row(
    ("noun", "expected"),
    [
        ("apple", "an apple"),
        ("dog", "a dog"),
        ("orange car", "an orange car"),
        ("unicycle", "a unicycle"),
        ("one-eyed cat", "a one-eyed cat"),
        ("hourglass", "an hourglass"),
        ("umbrella", "an umbrella"),
        ("unhurried salad lover", "an unhurried salad lover"),
        ("upside-down sleeper", "an upside-down sleeper"),
        ("eight-armed swimmer", "an eight-armed swimmer"),
        ("European bird", "a European bird"),
    ],
)
def test_articles(noun: str, expected: str) -> None:
    assert a(noun) == expected


@each_row(
    ("noun", "expected"),
    [
        ("dog", "dogs"),
        ("bus", "buses"),
        ("fox", "foxes"),
        ("butterfly", "butterflies"),
        ("key", "keys"),
        ("woman in red", "women in red"),
        ("lamp with a red shade", "lamps with a red shade"),
        ("loaf of bread", "loaves of bread"),
        ("pair of glasses", "pairs of glasses"),
        ("snowman", "snowmen"),
        ("cactus", "cacti"),
        ("red fish", "red fish"),
        ("octopus", "octopuses"),
        ("leaf", "leaves"),
        ("watch", "watches"),
    ],
)
def test_plurals(noun: str, expected: str) -> None:
    assert pluralise(noun) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "zero"), (13, "thirteen"), (42, "forty-two"), (173, "one hundred and seventy-three"), (-5, "minus five")],
)
def test_numbers(number: int, expected: str) -> None:
    assert number_word(number) == expected


def test_phrases() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert sentence("the end") == "The end."
    assert sentence("really?") == "Really?"
