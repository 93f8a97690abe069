"""What is said of pictures by their captions alone: only what a caption says of that very thing."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.explanations import explain_queries, objects_of
from crosslens.pipeline import evaluate
from crosslens.values import Dataset

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")


def explained(query: str, retrieved: list[str], captions: tuple[str, ...] = ()) -> str:
    """The words about a query that retrieves the picture of other captions."""
    dataset = Dataset.of({"right": [query, *captions], "other": retrieved})
    scores = np.zeros((2, len(dataset.texts)))
    scores[1] = 1
    run = evaluate(dataset, scores=scores, metrics=["Hit@1"], resamples=0)
    (explanation,) = explain_queries(run, dataset, ["right#0"], "t2i")
    return " ".join(sentence.text for sentence in explanation.sentences)


def test_a_girl_with_long_hair_is_not_long() -> None:
    assert "call it" not in explained("A small girl sits on a bench.", ["A long haired girl sits on a bench."])
    assert "asks for a long girl" not in explained("A long haired girl on a bench.", ["A small girl sits on a bench."])
    text = explained("A small dog sits on a bench.", ["A large dog sits on a bench."])
    assert "asks for a small dog, but the captions of the retrieved picture call it large" in text


def test_an_adjective_of_another_noun_does_not_count() -> None:
    rider = ["The bike rider is wearing a silver helmet and red shirt ."]
    assert "silver" not in explained("A boy in a blue shirt rides a bike .", rider)


def test_colours_that_the_parser_lost_contradict_nothing() -> None:
    assert "call it white" not in explained("A brown dog yawns .", ["Brown and white dog yawning ."])


def test_listed_values_are_named_together() -> None:
    text = explained("A black and grey dog plays with a ball .", ["A brown and white dog plays with a ball ."])
    assert text.count("asks for") == 1
    assert "asks for a black and grey dog, but the captions of the retrieved picture call it brown and white" in text


@pytest.mark.parametrize("word", ["espana", "down"])
def test_unknown_words_are_no_objects(word: str) -> None:
    query = f"A man holds the {word} near a car ."
    text = explained(query, ["A man stands near a car ."], captions=(f"The {word} is held by a man .",))
    assert word not in text


def test_a_word_that_is_a_place_and_a_garment_is_an_object() -> None:
    assert "a jersey, which no caption" in explained("A man in a jersey .", ["A man in a coat ."])


@pytest.mark.parametrize("noun", ["donkey", "table", "sign", "football", "poster"])
def test_an_object_that_wordnet_first_lists_as_something_else_is_missing(noun: str) -> None:
    """A donkey is a party's emblem first, a table an array, a sign a clue, football a game, a poster a message."""
    text = explained(f"A man sits beside a {noun} .", ["A man sits on a bench ."])
    assert f"asks for a {noun}, which no caption of the retrieved picture mentions" in text
    text = explained("A man on a bench .", ["A man on a bench ."], captions=(f"A man beside a {noun} and a bench .",))
    assert f"unlike those of the retrieved one, its captions mention a {noun}" in text


@pytest.mark.parametrize("noun", ["game", "party", "love", "way"])
def test_what_is_an_object_in_a_rare_sense_only_is_not_missing(noun: str) -> None:
    """Hunters call animals game, and WordNet a beloved person a love."""
    assert noun not in explained(f"A man enjoys the {noun} .", ["A man sits on a bench ."])


def test_what_a_caption_says_inside_a_name_is_not_missing() -> None:
    text = explained("A towel in a bathroom .", ["A toy sits in a bathroom stall ."])
    assert "a towel, which no caption" in text
    assert "bathroom" not in text


def test_pairs_are_plural() -> None:
    text = explained("A man on a bench .", ["A man on a bench ."], captions=("A man in blue jeans and shorts .",))
    assert "jeans and shorts" in text


def test_concepts_and_attributes_are_counted_as_before() -> None:
    """The concept metrics see every word that the scene graphs have, whatever sentences say of it."""
    objects = objects_of(Dataset.of({"right": ["The rider is wearing a silver helmet and red shirt at the espana ."]}))
    shirt = objects.names.index("shirt")
    assert "espana" in objects.names
    assert "silver" in objects.attributes[shirt], "as the scene graph has it"
    assert "silver" in objects.loose[shirt]
