"""Plain English about random pictures: every claim is recomputed from the raw objects, and no word goes unclaimed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crosslens.explain.local.facts import Facts, Misplaced, Named, WrongCount, WrongValue, picture_facts, word_facts
from crosslens.explain.local.phrases import rounded_down
from crosslens.explain.local.sentences import OTHER, RANKING, RIGHT, WORDS, Claim, Sentence, sentences
from crosslens.explain.words.pictures import Picture, Thing
from crosslens.explain.words.query_answers import Vocabulary, answers
from crosslens.explain.words.query_words import QueryWords, Word
from crosslens.language.wordnet import wordnet

SYNSETS = {
    "dog": "dog.n.01", "poodle": "poodle.n.01", "animal": "animal.n.01", "cat": "cat.n.01", "person": "person.n.01",
    "man": "man.n.01", "woman": "woman.n.01", "frisbee": "frisbee.n.01", "tree": "tree.n.01", "apple": "apple.n.01",
    "bus": "bus.n.01", "sheep": "sheep.n.01",
}  # fmt: skip
PLURALS = {
    "dogs": "dog", "poodles": "poodle", "animals": "animal", "cats": "cat", "people": "person", "men": "man",
    "women": "woman", "frisbees": "frisbee", "trees": "tree", "apples": "apple", "buses": "bus",
}  # fmt: skip
VALUES = {"colour": ("red", "white", "black"), "size": ("small", "large"), "material": ("wood", "glass")}
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
PREPOSITIONS = {"left": "to left of", "right": "to right of", "above": "above", "below": "under"}

Case = tuple[QueryWords, Picture, Picture, Facts, set[str]]

nouns = st.sampled_from(sorted(SYNSETS))
corners = st.integers(0, 60)
boxes = st.tuples(corners, corners, st.integers(1, 40), st.integers(1, 40)).map(lambda box: tuple(map(float, box)))
attributes = st.lists(st.sampled_from([one for some in VALUES.values() for one in some]), max_size=2, unique=True)


@st.composite
def things(draw: st.DrawFn, source: str) -> Thing:
    name = draw(nouns)
    box = draw(st.none() | boxes) if source == "annotations" else None
    area = None if box is None else box[2] * box[3] / 10_000
    crowd = source == "annotations" and draw(st.integers(0, 9)) == 0
    return Thing(name, SYNSETS[name], box, area, tuple(draw(attributes)), crowd)  # type: ignore[arg-type]


@st.composite
def queries(draw: st.DrawFn) -> QueryWords:
    """Words as the parser would find them; every one of a different thing stands at a place of its own."""
    found: list[Word] = []
    for place, name in enumerate(draw(st.lists(nouns, max_size=4, unique=True))):
        at, synset = 100 * place, SYNSETS[name]
        number = draw(st.none() | st.integers(1, 6))
        plural = number is not None and number > 1
        text = next((many for many, single in PLURALS.items() if single == name), name) if plural else name
        found.append(Word("object", text, at, at + len(text), name, synset, name))
        if number is not None:
            found.append(Word("count", NUMBERS[number], at + 20, at + 25, name, synset, NUMBERS[number]))
        for family, values in VALUES.items():
            if draw(st.integers(0, 3)) == 0:
                value = draw(st.sampled_from(values))
                found.append(Word(family, value, at + 30, at + 35, name, synset, value))
        if place and draw(st.booleans()):
            other = found[0].thing
            relation = draw(st.sampled_from(sorted(PREPOSITIONS.values())))
            found.append(Word("relation", relation, at + 40, at + 50, name, synset, relation, other, SYNSETS[other]))
    return QueryWords("a query", tuple(found))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    source = draw(st.sampled_from(["annotations", "annotations", "captions"]))
    pictures = [Picture(name, tuple(draw(st.lists(things(source), max_size=6))), source) for name in ("g", "r")]  # type: ignore[arg-type]
    query = draw(queries())
    extra = draw(st.lists(nouns, max_size=6))
    names = {thing.name for picture in pictures for thing in picture.things} | set(extra)
    vocabulary = Vocabulary({SYNSETS[name] for name in names}, names, complete=source == "captions")
    direction = draw(st.sampled_from(["t2i", "t2t", "i2t"]))
    rank = draw(st.none() | st.integers(1, 200))
    margin = draw(st.none() | st.floats(0, 5))
    at_least = draw(st.floats(0, 5)) if margin is None and rank != 1 and draw(st.booleans()) else None
    own, others = (answers(query, picture, vocabulary) for picture in pictures)
    checked, home = (own, others) if direction == "i2t" else (others, own)
    known: dict[str, Any] = {**picture_facts(*pictures), **word_facts(query, checked, home)}
    facts = Facts(direction, source, rank == 1, rank, 200, margin, at_least, **known)
    return query, pictures[0], pictures[1], facts, names


# What is true, worked out again from the objects


@lru_cache
def above(synset: str) -> frozenset[str]:
    net, found, left = wordnet(), set(), [synset]
    while left:
        one = left.pop()
        found.add(one)
        left += [net.name(int(other)) for other in net.hypernyms(one)]
    return frozenset(found)


def those(picture: Picture, name: str) -> list[Thing]:
    return [one for one in picture.things if one.synset is not None and SYNSETS[name] in above(one.synset)]


def lacks(picture: Picture, name: str) -> bool:
    maybe = [one for one in picture.things if one.synset in above(SYNSETS[name])]
    return not those(picture, name) and not maybe


def on_side(one: Thing, other: Thing, side: str) -> bool:
    assert one.box is not None
    assert other.box is not None
    (x, y), (far_x, far_y) = ((box[0] + box[2] / 2, box[1] + box[3] / 2) for box in (one.box, other.box))
    return {"left": x < far_x, "right": x > far_x, "above": y < far_y, "below": y > far_y}[side]


def holds_of_picture(claim: Claim, picture: Picture) -> bool:
    found = those(picture, claim.name)
    if claim.kind == "has":
        return bool(found)
    if claim.kind == "lacks":
        return lacks(picture, claim.name)
    if claim.kind in ("count", "single", "several"):
        sure = not any(one.crowd for one in found) or claim.kind != "count"
        number = {"count": claim.value, "single": 1, "several": claim.value}[claim.kind]
        return sure and len(found) == number and (claim.kind == "count" or (number == 1) == (claim.kind == "single"))
    if claim.kind in VALUES:
        values = [set(one.attributes) & set(VALUES[claim.kind]) for one in found]
        return all(values) and set().union(*values) == set(claim.value)
    assert claim.kind == "not placed"
    side, other = claim.value
    pairs = [(one, far) for one in found for far in those(picture, other) if one is not far]
    return bool(pairs) and not any(on_side(one, far, side) for one, far in pairs)


def holds_of_words(claim: Claim, query: QueryWords, checked: Picture, names: set[str]) -> bool:
    own = [word for word in query if word.thing == claim.name]
    if claim.kind == "name":
        return any(word.kind == "object" for word in own)
    if claim.kind == "count":
        return any(word.kind == "count" and word.value == NUMBERS[claim.value] for word in own)
    if claim.kind in VALUES:
        return any(word.kind == claim.kind and word.text == claim.value for word in own)
    if claim.kind == "place":
        side, other = claim.value
        return any(word.kind == "relation" and word.value == PREPOSITIONS[side] and word.other == other for word in own)
    if claim.kind == "unchecked":
        return not any(those(checked, word.thing) for word in query.of("object")) and not faulty(query, checked, names)
    assert claim.kind == "no fault"
    return not faulty(query, checked, names)


def faulty(query: QueryWords, checked: Picture, names: set[str]) -> bool:
    """Whether anything that the words say is not so: a thing that others have, a number, a colour."""
    for word in query:
        found, synset = those(checked, word.thing), SYNSETS[word.thing]
        unsure = any(one.synset in above(synset) and one not in found for one in checked.things)
        looked_for = checked.source == "captions" or word.thing in names
        if not found:
            if looked_for and not unsure:
                return True
        elif unsure:
            continue
        elif word.kind == "count" and checked.source == "annotations" and not any(one.crowd for one in found):
            if looked_for and len(found) != NUMBERS.index(word.value):
                return True
        elif word.kind in VALUES:
            values = [set(one.attributes) & set(VALUES[word.kind]) for one in found]
            if all(values) and word.value not in set().union(*values):
                return True
    return False


def holds_of_ranking(claim: Claim, facts: Facts) -> bool:
    value = {"rank": facts.rank, "gallery": facts.gallery, "margin": facts.margin}.get(claim.kind)
    if claim.kind == "margin at least":
        return claim.value == facts.margin_at_least
    return facts.rank is None if claim.kind == "unlisted" else claim.value == value


# What the sentence says, read back word by word


def named_in(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return {PLURALS.get(word, word) for word in words} & SYNSETS.keys()


def denied_in(text: str) -> Iterable[str]:
    for denial in re.findall(r"\bno ((?:\w+, )*\w+(?: or \w+)?)", text):
        yield from re.findall(r"\w+", denial.replace(" or ", " "))


def check_text(sentence: Sentence, facts: Facts) -> None:
    text, claims = sentence.text, sentence.claims
    about = {claim.name for claim in claims} | {
        claim.value[1] for claim in claims if claim.kind in ("place", "not placed")
    }
    assert named_in(text) <= about
    unsaid = [name for name in about if name and name not in named_in(text)]
    assert not unsaid, "a claim that is not said"
    numbers = {NUMBERS[claim.value] for claim in claims if claim.kind == "count"}
    assert {word for word in re.findall(r"[a-z]+", text) if word in NUMBERS[2:]} <= numbers
    values = {
        one
        for claim in claims
        if claim.kind in VALUES
        for one in ([claim.value] if claim.about == WORDS else claim.value)
    }
    assert {word for word in re.findall(r"[a-z]+", text) if any(word in some for some in VALUES.values())} <= values
    lacking = {claim.name for claim in claims if claim.kind in ("lacks", "not placed")} | {"caption"}
    assert set(denied_in(text)) <= lacking
    if (place := re.search(r"comes (\w+) of", text)) is not None:
        rank = int(re.sub(r"\D", "", place[1]) or ORDINALS.index(place[1]) + 1)
        assert rank == facts.rank
    if (behind := re.search(r"([\d.e-]+) (?:behind|ahead)", text)) is not None:
        if "at least" in text:
            assert facts.margin_at_least is not None
            assert facts.margin_at_least * 0.98 <= float(behind[1]) <= facts.margin_at_least
        else:
            assert float(behind[1]) == pytest.approx(facts.margin, rel=5e-3)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_every_claim_is_true_and_every_word_is_claimed(case: Case) -> None:
    query, right, other, facts, names = case
    checked = right if facts.direction == "i2t" else other
    found = sentences(facts)
    assert len(found) == 2
    if facts.source == "annotations":
        blamed = {one.thing for one in (*facts.lacking, *facts.lacking_both, *facts.wrong_counts)}
        assert blamed <= names, "blamed for what nobody looked for"
    for sentence in found:
        for claim in sentence.claims:
            if claim.about == RANKING:
                assert holds_of_ranking(claim, facts), claim
            elif claim.about == WORDS:
                assert holds_of_words(claim, query, checked, names), claim
            else:
                assert holds_of_picture(claim, right if claim.about == RIGHT else other), claim
        check_text(sentence, facts)
        if facts.source == "captions":
            assert not re.search(r"\bhas\b|\bhave\b", sentence.text), "captions mention, they do not have"
        assert sentence.text.endswith(".")
        assert sentence.text[0].isupper()
        assert "  " not in sentence.text
        assert not re.search(r"\ba [aeio]|\ban [^aeiou8h]", sentence.text), "a before a vowel"


# How it reads


def facts(**known: Any) -> Facts:
    usual: dict[str, Any] = {"direction": "t2i", "source": "annotations", "succeeded": False, "rank": 2, "gallery": 120}
    return Facts(**{**usual, "margin": 0.25, **known})


def texts(**known: Any) -> Sequence[str]:
    return [sentence.text for sentence in sentences(facts(**known))]


DOG, FRISBEE = Named("dog"), Named("frisbee")


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ({"lacking": (FRISBEE,)}, "The query asks for a frisbee, but the retrieved picture has none."),
        ({"lacking": (DOG, FRISBEE)}, "The query asks for a dog and a frisbee, but the retrieved picture has neither."),
        (
            {"lacking": (Named("laptop", True, 8),)},
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
        ({"lacking_both": (Named("grass"),)}, "The query names grass, but neither picture has any."),
        (
            {"wrong_counts": (WrongCount("sheep", 3, 12),)},
            "The query asks for three sheep, but the retrieved picture has twelve.",
        ),
        (
            {"wrong_values": (WrongValue(Named("umbrella"), "colour", "red", ("black", "white"), 1),)},
            "The query asks for a red umbrella, but the one in the retrieved picture is black and white.",
        ),
        (
            {"wrong_values": (WrongValue(Named("table", True), "material", "wooden", ("glass",), 2),)},
            "The query asks for wooden tables, but those in the retrieved picture are made of glass.",
        ),
        (
            {"wrong_values": (WrongValue(DOG, "colour", "brown", ("white",), 1),), "source": "captions"},
            "The query asks for a brown dog, but the captions of the retrieved picture call it white.",
        ),
        (
            {"misplaced": (Misplaced("dog", "left", "apple"),)},
            "The query asks for a dog to the left of an apple, but in the retrieved picture no dog is there.",
        ),
        (
            {"lacking": (FRISBEE,), "wrong_counts": (WrongCount("dog", 2, 1),)},
            "The query asks for a frisbee, but the retrieved picture has none; "
            "it also asks for two dogs, but the retrieved picture has one.",
        ),
        (
            {"fitting": (DOG, Named("skis", True))},
            "As far as the words of the query can be checked, the retrieved picture fits: it has a dog and skis.",
        ),
        ({}, "Nothing that the query asks for can be checked against the annotated objects."),
        ({"checked": False}, "The query was not read word by word."),
        (
            {"direction": "i2t", "lacking": (DOG,)},
            "The retrieved caption speaks of a dog, but the query picture has none.",
        ),
    ],
)
def test_the_first_sentence_says_what_was_asked_and_is_not_there(known: dict[str, Any], first: str) -> None:
    assert texts(**known)[0] == first


@pytest.mark.parametrize(
    ("known", "second"),
    [
        ({}, "The right picture comes second of 120 pictures, 0.25 behind the first in score."),
        ({"rank": 113, "margin": None}, "The right picture comes 113th of 120 pictures."),
        (
            {"rank": 22, "margin": None, "margin_at_least": 0.33799},
            "The right picture comes 22nd of 120 pictures, at least 0.337 behind the first in score.",
        ),
        ({"margin": 0.0}, "The right picture comes second of 120 pictures, with the same score as the first."),
        ({"rank": None, "margin": None}, "The right picture is not in the list that was kept."),
        (
            {"margin": None, "only_right": (DOG, Named("ski", True)), "only_other": (Named("owl"),)},
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
            {"margin": None, "both": (DOG, FRISBEE)},
            "The right picture comes second of 120 pictures; both pictures have a dog and a frisbee.",
        ),
        (
            {"direction": "i2t", "gallery": 600, "only_right": (DOG,)},
            "The best caption of the query picture comes second of 600 captions, 0.25 behind the first in score; "
            "unlike the picture of the retrieved caption, the query picture has a dog.",
        ),
    ],
)
def test_the_second_sentence_says_how_far_and_what_differs(known: dict[str, Any], second: str) -> None:
    assert texts(**known)[1] == second


def test_a_success_says_by_how_much_first() -> None:
    first, second = texts(succeeded=True, rank=1, lacking=(DOG,))
    assert first == "The right picture comes first of 120 pictures, 0.25 ahead of the next in score."
    assert second == "The query asks for a dog, but the next picture has none."


def test_a_success_without_anything_beside_it() -> None:
    assert texts(succeeded=True, rank=1, margin=None, compared=False) == [
        "The right picture comes first of 120 pictures.",
        "No other picture was kept to compare it with.",
    ]


def test_what_was_asked_for_is_not_said_twice() -> None:
    first, second = texts(lacking=(DOG,), only_right=(DOG, Named("tree")), margin=None)
    assert "dog" in first
    assert second == "The right picture comes second of 120 pictures; unlike the retrieved one, it has a tree."


def test_what_was_asked_for_by_another_word_is_not_said_twice() -> None:
    """Where a *television* is lacking, that the right picture has a TV says nothing new."""
    right = Picture("g", (Thing("tv", "television_receiver.n.01"), Thing("sink", "sink.n.01")))
    other = Picture("r", (Thing("oven", "oven.n.01"),))
    assert picture_facts(right, other)["only_right"] == (Named("sink"), Named("tv"))
    assert picture_facts(right, other, ["television"])["only_right"] == (Named("sink"),)


def test_two_words_for_the_same_thing_name_it_once() -> None:
    words = [Word("object", name, at, at + 5, name, None, name) for at, name in enumerate(["sheet", "paper", "dog"])]
    picture = Picture("r", (Thing("sheet of paper", "sheet.n.02"), Thing("dog", "dog.n.01")))
    found = answers(QueryWords("", tuple(words)), picture, Vocabulary([], []))
    assert [one.verdict for one in found] == ["satisfied"] * 3, "both words call it"
    assert word_facts(QueryWords("", tuple(words)), found, found)["fitting"] == (Named("sheet"), DOG)


def test_claims_are_part_of_json() -> None:
    claims = sentences(facts(lacking=(DOG,)))[0].as_dict()["claims"]
    assert claims == [
        {"about": WORDS, "kind": "name", "name": "dog", "value": None},
        {"about": OTHER, "kind": "lacks", "name": "dog", "value": None},
    ]


@given(st.floats(min_value=5e-324, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(0.0999)
def test_at_least_so_much_is_never_more(value: float) -> None:
    shown = float(rounded_down(value))
    assert shown <= value
    assert shown > 0.99 * value or value < 1e-300  # the smallest floats have fewer digits
