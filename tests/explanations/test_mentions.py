"""What queries ask for, and whether pictures have it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from crosslens.explanations import OPEN, SATISFIED, VIOLATED, AnnotatedImage, ImageObject, hypernyms_of
from crosslens.explanations.concepts import plain_objects
from crosslens.explanations.lexicon import shortest_path
from crosslens.explanations.mentions import Mention, QueryMentions, Vocabulary, check_mentions, mentioned_concepts
from crosslens.language import load_wordnet
from tests.tables import each_row

TEXT = "Two small brown dogs playing with a frisbee to the left of a tall man."


def read(text: str) -> QueryMentions:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    return mentioned_concepts([text])[0]


def objects_of_query(query: QueryMentions) -> set[tuple[str, str, str]]:
    return {(word.kind, word.noun, word.value) for word in query}


def test_every_word_is_found_where_it_stands() -> None:
    query = read(TEXT)
    assert objects_of_query(query) == {
        ("object", "dog", "dog"),
        ("count", "dog", "two"),
        ("size", "dog", "small"),
        ("colour", "dog", "brown"),
        ("action", "dog", "play"),
        ("relation", "dog", "with"),
        ("relation", "dog", "to left of"),
        ("object", "frisbee", "frisbee"),
        ("object", "man", "man"),
        ("size", "man", "tall"),
    }
    assert all(TEXT[word.start : word.end] == word.text for word in query)
    spans = {word.value: word.text for word in query}
    assert spans["to left of"] == "to the left of"
    assert (spans["dog"], spans["two"], spans["play"]) == ("dogs", "Two", "playing")


def test_names_of_several_words_and_counts_in_any_form() -> None:
    query = read("A couple of fire hydrants and 12 wooden chairs")
    assert ("count", "fire hydrant", "two") in objects_of_query(query)
    assert ("material", "chair", "wood") in objects_of_query(query)
    assert {word.noun: word.number for word in query.of("count")} == {"fire hydrant": 2, "chair": 12}
    assert {word.text for word in query.of("object")} == {"fire hydrants", "chairs"}


def test_someone_asks_for_nobody_and_people_are_persons() -> None:
    assert not read("Someone put it there").of("object")
    assert read("some people in a park").mentioned(["person.n.01"])


def test_annotated_concepts_are_mentioned_by_synonyms_and_kinds() -> None:
    annotated = ["dog.n.01", "poodle.n.01", "person.n.01", "frisbee.n.01", "cat.n.01", "animal.n.01"]
    assert read(TEXT).mentioned(annotated) == {"dog.n.01", "poodle.n.01", "person.n.01", "frisbee.n.01"}
    assert read("a bike").mentioned(["bicycle.n.01", "car.n.01"]) == {"bicycle.n.01"}


def test_equal_texts_are_read_alike_and_in_their_order() -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    texts = [TEXT, "a red bus", TEXT]
    assert [query.text for query in mentioned_concepts(texts)] == texts


# Against pictures

VOCABULARY = Vocabulary(["dog.n.01", "man.n.01", "cat.n.01"], {"dog", "man", "cat"})


def word(kind: str, value: str = "dog", noun: str = "dog", target: str = "") -> Mention:
    return Mention(
        kind, value, 0, len(value), noun, f"{noun}.n.01", value, target, f"{target}.n.01" if target else None
    )


def thing(name: str, *attributes: str, at: tuple[float, float] | None = None, crowd: bool = False) -> ImageObject:
    box = None if at is None else (*at, 10.0, 10.0)
    return ImageObject(name, f"{name}.n.01", box, None, attributes, crowd)


def verdict(asked: Mention, *things: ImageObject, source: str = "annotations") -> str:
    vocabulary = VOCABULARY if source == "annotations" else Vocabulary([], [], complete=True)
    picture = AnnotatedImage("p", things, source)  # type: ignore[arg-type]
    return check_mentions(QueryMentions("", (asked,)), picture, vocabulary)[0].verdict


@each_row(
    ("asked", "things", "expected"),
    [
        (word("object"), [thing("dog")], SATISFIED),
        (word("object"), [thing("poodle")], SATISFIED),
        (word("object"), [thing("cat")], VIOLATED),
        (word("object"), [thing("animal")], OPEN),
        (word("object", "frisbee", "frisbee"), [thing("cat")], OPEN),
        (word("count", "two"), [thing("dog"), thing("poodle")], SATISFIED),
        (word("count", "two"), [thing("dog")], VIOLATED),
        (word("count", "two"), [thing("dog", crowd=True)], OPEN),
        (word("count", "two"), [thing("dog"), thing("animal")], OPEN),
        (word("count", "thousands"), [thing("dog")], OPEN),
        (word("colour", "brown"), [thing("dog", "white"), thing("dog", "dark brown")], SATISFIED),
        (word("colour", "brown"), [thing("dog", "white"), thing("dog", "black")], VIOLATED),
        (word("colour", "brown"), [thing("dog", "white"), thing("dog")], OPEN),
        (word("colour", "brown"), [thing("cat", "brown")], VIOLATED),
        (word("size", "large"), [thing("dog", "huge")], SATISFIED),
        (word("action", "run"), [thing("dog", "running")], SATISFIED),
        (word("action", "run"), [thing("dog", "sitting")], OPEN),
        (
            word("relation", "to left of", target="man"),
            [thing("dog", at=(0, 0)), thing("man", at=(50, 5))],
            SATISFIED,
        ),
        (
            word("relation", "to left of", target="man"),
            [thing("dog", at=(60, 0)), thing("man", at=(5, 5))],
            VIOLATED,
        ),
        (word("relation", "to left of", target="man"), [thing("dog", at=(0, 90)), thing("man", at=(5, 5))], OPEN),
        (word("relation", "under", target="man"), [thing("dog", at=(0, 0)), thing("man", at=(5, 50))], VIOLATED),
        (word("relation", "in", target="man"), [thing("dog", at=(0, 0)), thing("man", at=(5, 50))], OPEN),
        (word("relation", "to left of", target="man"), [thing("dog"), thing("man")], OPEN),
        (word("relation", "to left of", target="man"), [thing("dog")], VIOLATED),
        (word("relation", "with", target="man"), [thing("dog"), thing("man")], OPEN),
    ],
)
def test_verdicts(asked: Mention, things: list[ImageObject], expected: str) -> None:
    assert verdict(asked, *things) == expected


def test_captions_mention_anything_but_rarely_count() -> None:
    assert verdict(word("object", "frisbee", "frisbee"), thing("dog"), source="captions") == VIOLATED
    assert verdict(word("object", "picture", "picture"), thing("dog"), source="captions") == OPEN
    assert verdict(word("count", "two"), thing("dog"), source="captions") == OPEN
    assert verdict(word("count", "two"), thing("dog"), thing("dog"), source="captions") == SATISFIED


# What somebody looked for

COCO = ("person", "sandwich", "carrot", "car", "bus", "toilet", "stop sign", "sports ball", "couch", "airplane", "skis")


def looked_for() -> Vocabulary:
    objects = plain_objects([{"name": name} for name in COCO], [{"synset": "zebra.n.01"}])
    return Vocabulary.of(objects)


@pytest.mark.parametrize("name", ["person", "people", "sofa", "plane", "ski", "car", "zebra", "sandwich"])
def test_a_name_and_its_synonyms_were_looked_for(name: str) -> None:
    assert looked_for().has(name)


@each_row("name", ["food", "vehicle", "fruit", "animal", "equipment", "stool", "street sign", "ball", "grass", "part"])
def test_nobody_looked_for_all_of_a_wide_word(name: str) -> None:
    """Only some kinds of food are annotated; a toilet is a stool by a rare sense; a stop sign is one street sign."""
    assert not looked_for().has(name)


def test_a_wide_word_is_neither_lacking_nor_miscounted() -> None:
    vocabulary = Vocabulary(["car.n.01", "truck.n.01", "dog.n.01"], {"car", "truck", "dog"})
    vehicle = word("object", "vehicle", "vehicle")
    count = word("count", "two", "vehicle")

    def verdicts(*things: ImageObject) -> list[str]:
        checks = check_mentions(QueryMentions("", (vehicle, count)), AnnotatedImage("p", things), vocabulary)
        return [check.verdict for check in checks]

    assert verdicts(thing("dog")) == [OPEN, OPEN]
    assert verdicts(thing("car")) == [SATISFIED, OPEN], "another vehicle may stand beside it"
    assert verdicts(thing("car"), thing("truck")) == [SATISFIED, SATISFIED]


def test_a_teddy_bear_leaves_open_whether_there_is_a_bear() -> None:
    vocabulary = Vocabulary(["bear.n.01", "teddy.n.01"], {"bear", "teddy bear"})
    query = QueryMentions("", (word("object", "bear", "bear"),))

    def verdict_of(name: str, synset: str) -> str:
        return check_mentions(query, AnnotatedImage("p", (ImageObject(name, synset),)), vocabulary)[0].verdict

    assert verdict_of("teddy bear", "teddy.n.01") == OPEN
    assert verdict_of("cat", "cat.n.01") == VIOLATED


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Large four sided clock hangs on the corner.", []),
        ("A two story building near a car.", []),
        ("Three zebra and four giraffe.", ["three", "four"]),
        ("Two large dogs on a bed.", ["two"]),
        ("Two black sheep in a field.", ["two"]),
    ],
)
def test_a_number_of_sides_is_no_number_of_clocks(text: str, counts: list[str]) -> None:
    assert [mention.value for mention in read(text).of("count")] == counts


# Ways through WordNet


@pytest.mark.parametrize(
    ("first", "second"),
    [("tree.n.01", "grass.n.01"), ("hill.n.01", "grassland.n.01"), ("dog.n.01", "cat.n.01"), ("dog.n.01", "dog.n.01")],
)
def test_the_path_is_as_long_as_the_similarity_says(first: str, second: str) -> None:
    path, top = shortest_path(first, second)
    assert (path[0], path[-1]) == (first, second)
    assert 1 / len(path) == pytest.approx(load_wordnet().path_similarity(first, second))
    assert top in path
    assert top in hypernyms_of(first) & hypernyms_of(second)
    net = load_wordnet()
    for lower, upper in pairwise(path):
        up = {net.name(int(step)) for step in net.hypernyms(lower)}
        down = {net.name(int(step)) for step in net.hypernyms(upper)}
        assert upper in up or lower in down, "each step is one of WordNet's"


def test_a_noun_and_a_verb_are_not_connected() -> None:
    assert shortest_path("dog.n.01", "run.v.01") == ((), None)
