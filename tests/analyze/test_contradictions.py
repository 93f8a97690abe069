"""Captions that deny each other; captions edited in one fact are always denied."""

from __future__ import annotations

import pytest

from crosslens.analyze import contradicts
from crosslens.analyze.label_quality.contradictions import near_twins
from crosslens.synth import generate
from crosslens.values import Dataset


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A red car on a street.", "The blue car waits."),
        ("A girl in red.", "A girl in green runs."),
        ("Two dogs run.", "A dog runs."),
        ("Nine black laptops.", "There are eight black laptops on graph paper."),
        ("Three birds on a wire.", "Birds: there are five birds."),
        ("A cat left of a hat.", "A cat to the right of a hat."),
        ("Under a starry sky a laptop below a shirt.", "Under a starry sky a laptop above a shirt."),
        ('A sign that says "STOP".', 'A sign reading "GO".'),
        ("A picture of Stonehenge.", "A picture of the Eiffel Tower."),
        ("79 - 64 is 15.", "79 - 65 is 14."),
        ("A dog chases a man.", "A man chases a dog."),
        ("A big dog sleeps.", "A tiny dog sleeps."),
        ("A man with a hat.", "A man without a hat."),
        ("The door is open.", "The door is closed."),
        ("A horse eats hay.", "A cow eats hay."),
        ("A woman sits.", "A man sits."),
        ("A person rides a surfboard.", "A person rides a skateboard."),
        ("The sum of sixty-five and forty-two is asked for.", "56 + 86 = 142, written on a page."),
        ("Twenty-six cars in a lot.", "27 cars in a lot."),
        ("On dots a yellow kite and a cup.", "On dots a yellow spoon and a cup."),
    ],
)
def test_what_cannot_both_be_true(first: str, second: str) -> None:
    assert contradicts(first, second), (first, second)
    assert contradicts(second, first), (second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A dog runs on the grass.", "A brown dog is running outside."),
        ("Two dogs play.", "Several dogs play in the snow."),
        ("A gray cat.", "A grey cat sleeps."),
        ("A black and white cow.", "A white cow in a field."),
        ("A man rides a bike.", "A man in a red shirt rides his bike down a hill."),
        ("A child smiles.", "A child smiles."),
        ("The sum of sixty-five and forty-two is asked for.", "The sum of 65 and 42."),
        ("One hundred and five take away forty-eight makes fifty-seven.", "105 minus 48; the missing result is 57."),
        ("Two dogs run.", "2 dogs run."),
        ("Two men watch 3 dogs.", "2 men with three dogs."),
        ("One of the dogs sleeps.", "Two dogs."),
        ("A black dog and a white dog.", "Two dogs."),
        ("A dog plays with another dog.", "Two dogs play."),
        ("A clock at twenty to seven.", "A clock at 6:40."),
        ("A scarlet car.", "A red car in the street."),
        ("A dog leaps over a log.", "A dog jumping over a log."),
        ("A cat lies on a sofa.", "A cat asleep on a couch."),
        ("Nine black laptops.", "There are nine black laptops on graph paper."),
    ],
)
def test_what_can_both_be_true(first: str, second: str) -> None:
    assert contradicts(first, second) is None
    assert contradicts(second, first) is None


def test_captions_of_twins_deny_each_other() -> None:
    scenes = list(generate(60, seed=7, version="v1"))
    pairs = [
        (mine.text, theirs.text)
        for original, twin in zip(scenes[:60], scenes[60:], strict=True)
        for mine, theirs in zip(original.captions, twin.captions, strict=True)
        if mine.text != theirs.text
    ]
    denied = sum(contradicts(*pair) is not None for pair in pairs)
    assert denied >= 0.97 * len(pairs)


def test_near_twins_of_a_gallery() -> None:
    dataset = Dataset.of({"a": ["A red car on a street."], "b": ["A blue car on a street."], "c": ["A cat asleep."]})
    assert near_twins(dataset) == [(0, 1), (1, 0)]
