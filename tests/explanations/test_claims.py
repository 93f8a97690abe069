"""Claims of sentences about random images: each is recomputed from the raw objects, and every word is claimed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosslens.explanations import AnnotatedImage, ImageObject
from crosslens.explanations.explanation import Claim, Sentence
from crosslens.explanations.mentions import Mention, QueryMentions, Vocabulary, check_mentions
from crosslens.explanations.sentences import RANKING, RIGHT, WORDS, QueryFacts, image_facts, mention_facts, sentences
from crosslens.language import load_wordnet

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

Case = tuple[QueryMentions, AnnotatedImage, AnnotatedImage, QueryFacts, set[str]]

nouns = st.sampled_from(sorted(SYNSETS))
corners = st.integers(0, 60)
boxes = st.tuples(corners, corners, st.integers(1, 40), st.integers(1, 40)).map(lambda box: tuple(map(float, box)))
attributes = st.lists(st.sampled_from([value for some in VALUES.values() for value in some]), max_size=2, unique=True)


@st.composite
def things(draw: st.DrawFn, source: str) -> ImageObject:
    name = draw(nouns)
    box = draw(st.none() | boxes) if source == "annotations" else None
    area = None if box is None else box[2] * box[3] / 10_000
    crowd = source == "annotations" and draw(st.integers(0, 9)) == 0
    return ImageObject(name, SYNSETS[name], box, area, tuple(draw(attributes)), crowd)  # type: ignore[arg-type]


@st.composite
def queries(draw: st.DrawFn) -> QueryMentions:
    """Mentions as the parser would return them, each noun at an offset of its own."""
    mentions: list[Mention] = []
    for position, name in enumerate(draw(st.lists(nouns, max_size=4, unique=True))):
        at, synset = 100 * position, SYNSETS[name]
        number = draw(st.none() | st.integers(1, 6))
        plural = number is not None and number > 1
        text = next((many for many, single in PLURALS.items() if single == name), name) if plural else name
        mentions.append(Mention("object", text, at, at + len(text), name, synset, name))
        if number is not None:
            mentions.append(Mention("count", NUMBERS[number], at + 20, at + 25, name, synset, NUMBERS[number]))
        for family, values in VALUES.items():
            if draw(st.integers(0, 3)) == 0:
                value = draw(st.sampled_from(values))
                mentions.append(Mention(family, value, at + 30, at + 35, name, synset, value))
        if position and draw(st.booleans()):
            noun = mentions[0].noun
            relation = draw(st.sampled_from(sorted(PREPOSITIONS.values())))
            mentions.append(
                Mention("relation", relation, at + 40, at + 50, name, synset, relation, noun, SYNSETS[noun])
            )
    return QueryMentions("a query", tuple(mentions))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    source = draw(st.sampled_from(["annotations", "annotations", "captions"]))
    pictures = [AnnotatedImage(name, tuple(draw(st.lists(things(source), max_size=6))), source) for name in ("g", "r")]  # type: ignore[arg-type]
    query = draw(queries())
    extra = draw(st.lists(nouns, max_size=6))
    names = {item.name for picture in pictures for item in picture.objects} | set(extra)
    vocabulary = Vocabulary({SYNSETS[name] for name in names}, names, complete=source == "captions")
    direction = draw(st.sampled_from(["t2i", "t2t", "i2t"]))
    rank = draw(st.none() | st.integers(1, 200))
    margin = draw(st.none() | st.floats(0, 5))
    at_least = draw(st.floats(0, 5)) if margin is None and rank != 1 and draw(st.booleans()) else None
    of_query, others = (check_mentions(query, picture, vocabulary) for picture in pictures)
    checked, home = (of_query, others) if direction == "i2t" else (others, of_query)
    values: dict[str, Any] = {**image_facts(*pictures), **mention_facts(query, checked, home)}
    facts = QueryFacts(direction, source, rank == 1, rank, 200, margin, at_least, **values)
    return query, pictures[0], pictures[1], facts, names


# What is true, computed again from the objects


@lru_cache
def above(synset: str) -> frozenset[str]:
    net, synsets, left = load_wordnet(), set(), [synset]
    while left:
        name = left.pop()
        synsets.add(name)
        left += [net.name(int(hypernym)) for hypernym in net.hypernyms(name)]
    return frozenset(synsets)


def those(picture: AnnotatedImage, name: str) -> list[ImageObject]:
    return [item for item in picture.objects if item.synset is not None and SYNSETS[name] in above(item.synset)]


def lacks(picture: AnnotatedImage, name: str) -> bool:
    maybe = [item for item in picture.objects if item.synset in above(SYNSETS[name])]
    return not those(picture, name) and not maybe


def on_side(item: ImageObject, second: ImageObject, side: str) -> bool:
    assert item.box is not None
    assert second.box is not None
    (x, y), (far_x, far_y) = ((box[0] + box[2] / 2, box[1] + box[3] / 2) for box in (item.box, second.box))
    return {"left": x < far_x, "right": x > far_x, "above": y < far_y, "below": y > far_y}[side]


def holds_of_picture(claim: Claim, picture: AnnotatedImage) -> bool:
    objects = those(picture, claim.name)
    if claim.kind == "has":
        return bool(objects)
    if claim.kind == "lacks":
        return lacks(picture, claim.name)
    if claim.kind in ("count", "single", "several"):
        sure = not any(item.crowd for item in objects) or claim.kind != "count"
        number = {"count": claim.value, "single": 1, "several": claim.value}[claim.kind]
        return sure and len(objects) == number and (claim.kind == "count" or (number == 1) == (claim.kind == "single"))
    if claim.kind in VALUES:
        values = [set(item.attributes) & set(VALUES[claim.kind]) for item in objects]
        return all(values) and set().union(*values) == set(claim.value)
    assert claim.kind == "not placed"
    side, second_name = claim.value
    pairs = [(item, far) for item in objects for far in those(picture, second_name) if item is not far]
    return bool(pairs) and not any(on_side(item, far, side) for item, far in pairs)


def holds_of_words(claim: Claim, query: QueryMentions, checked: AnnotatedImage, names: set[str]) -> bool:
    mentions = [word for word in query if word.noun == claim.name]
    if claim.kind == "name":
        return any(word.kind == "object" for word in mentions)
    if claim.kind == "count":
        return any(word.kind == "count" and word.value == NUMBERS[claim.value] for word in mentions)
    if claim.kind in VALUES:
        return any(word.kind == claim.kind and word.text == claim.value for word in mentions)
    if claim.kind == "place":
        side, second_name = claim.value
        return any(
            word.kind == "relation" and word.value == PREPOSITIONS[side] and word.other == second_name
            for word in mentions
        )
    if claim.kind == "unchecked":
        return not any(those(checked, word.noun) for word in query.of("object")) and not faulty(query, checked, names)
    assert claim.kind == "no fault"
    return not faulty(query, checked, names)


def faulty(query: QueryMentions, checked: AnnotatedImage, names: set[str]) -> bool:
    """Whether anything that the words say is not so: a thing that others have, a number, a colour."""
    for word in query:
        objects, synset = those(checked, word.noun), SYNSETS[word.noun]
        unsure = any(item.synset in above(synset) and item not in objects for item in checked.objects)
        looked_for = checked.source == "captions" or word.noun in names
        if not objects:
            if looked_for and not unsure:
                return True
        elif unsure:
            continue
        elif word.kind == "count" and checked.source == "annotations" and not any(item.crowd for item in objects):
            if looked_for and len(objects) != NUMBERS.index(word.value):
                return True
        elif word.kind in VALUES:
            values = [set(item.attributes) & set(VALUES[word.kind]) for item in objects]
            if all(values) and word.value not in set().union(*values):
                return True
    return False


def holds_of_ranking(claim: Claim, facts: QueryFacts) -> bool:
    value = {"rank": facts.rank, "gallery": facts.gallery, "list": facts.gallery, "margin": facts.margin}.get(
        claim.kind
    )
    if claim.kind == "margin at least":
        return claim.value == facts.margin_at_least
    return facts.rank is None if claim.kind == "unlisted" else claim.value == value


# What the sentence states, read back word by word


def named_in(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return {PLURALS.get(word, word) for word in words} & SYNSETS.keys()


def denied_in(text: str) -> Iterable[str]:
    for denial in re.findall(r"\bno ((?:\w+, )*\w+(?: or \w+)?)", text):
        yield from re.findall(r"\w+", denial.replace(" or ", " "))


def check_text(sentence: Sentence, facts: QueryFacts) -> None:
    text, claims = sentence.text, sentence.claims
    claimed_names = {claim.name for claim in claims} | {
        claim.value[1] for claim in claims if claim.kind in ("place", "not placed")
    }
    assert named_in(text) <= claimed_names
    unsaid = [name for name in claimed_names if name and name not in named_in(text)]
    assert not unsaid, "a claim that is not said"
    numbers = {NUMBERS[claim.value] for claim in claims if claim.kind == "count"}
    assert {word for word in re.findall(r"[a-z]+", text) if word in NUMBERS[2:]} <= numbers
    values = {
        value
        for claim in claims
        if claim.kind in VALUES
        for value in ([claim.value] if claim.about == WORDS else claim.value)
    }
    assert {word for word in re.findall(r"[a-z]+", text) if any(word in some for some in VALUES.values())} <= values
    lacking = {claim.name for claim in claims if claim.kind in ("lacks", "not placed")} | {"caption"}
    assert set(denied_in(text)) <= lacking
    if (match := re.search(r"comes (\w+) of", text)) is not None:
        rank = int(re.sub(r"\D", "", match[1]) or ORDINALS.index(match[1]) + 1)
        assert rank == facts.rank
    if (behind := re.search(r"([\d.e-]+) (?:behind|ahead)", text)) is not None:
        if "at least" in text:
            assert facts.margin_at_least is not None
            assert facts.margin_at_least * 0.98 <= float(behind[1]) <= facts.margin_at_least
        else:
            assert float(behind[1]) == pytest.approx(facts.margin, rel=5e-3)


@given(cases())
def test_every_claim_is_true_and_every_word_is_claimed(case: Case) -> None:
    query, right, wrong, facts, names = case
    checked = right if facts.direction == "i2t" else wrong
    both = sentences(facts)
    assert len(both) == 2
    if facts.source == "annotations":
        blamed = {finding.noun for finding in (*facts.lacking, *facts.lacking_both)}
        blamed |= {noun for noun, _, _ in facts.wrong_counts}
        assert blamed <= names, "blamed for what nobody looked for"
    for sentence in both:
        for claim in sentence.claims:
            if claim.about == RANKING:
                assert holds_of_ranking(claim, facts), claim
            elif claim.about == WORDS:
                assert holds_of_words(claim, query, checked, names), claim
            else:
                assert holds_of_picture(claim, right if claim.about == RIGHT else wrong), claim
        check_text(sentence, facts)
        if facts.source == "captions":
            assert not re.search(r"\bhas\b|\bhave\b", sentence.text), "captions mention, they do not have"
        assert sentence.text.endswith(".")
        assert sentence.text[0].isupper()
        assert "  " not in sentence.text
        assert not re.search(r"\ba [aeio]|\ban [^aeiou8h]", sentence.text), "a before a vowel"
