"""Scene graphs: captions checked by hand, hand-made parses for single rules, and what holds for any parse."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from crosslens.language import COLOURS, SIZES, Parse, SceneGraph, is_number, number_word, parse_texts, scene_graph
from crosslens.language.parse import repaired
from tests.language.golden_graphs import GRAPHS
from tests.language.pipelines import needs_the_small_pipeline


def tuples(written: str) -> set[tuple[str, ...]]:
    return {tuple(entry.split(", ")) for entry in re.findall(r"\(([^)]*)\)", written)}


@pytest.fixture(scope="module")
def graphs() -> dict[str, SceneGraph]:
    parses = parse_texts(list(GRAPHS), cache=False, threads=1)
    return {caption: scene_graph(parse) for caption, parse in zip(GRAPHS, parses, strict=True)}


@needs_the_small_pipeline
@pytest.mark.parametrize("caption", list(GRAPHS))
def test_graphs_checked_by_hand(caption: str, graphs: dict[str, SceneGraph]) -> None:
    assert set(graphs[caption].tuples()) == tuples(GRAPHS[caption])


def test_at_least_sixty_captions_are_checked() -> None:
    assert len(GRAPHS) >= 60


def parsed(*rows: str) -> Parse:
    """A parse written down: ``word lemma POS TAG arc head`` per token."""
    columns = list(zip(*(row.split() for row in rows), strict=True))
    return Parse(*columns[:5], heads=[int(head) for head in columns[5]])


def test_a_graph_as_text_and_as_tuples() -> None:
    graph = SceneGraph(("dog", "bed"), (("dog", "big"),), (("dog", "on", "bed"),))
    assert graph.tuples() == (("dog",), ("bed",), ("dog", "big"), ("dog", "on", "bed"))
    assert str(graph) == "(dog) (bed) (dog, big) (dog, on, bed)"


def test_nothing_said_is_nothing_there() -> None:
    assert scene_graph(Parse((), (), (), (), (), ())) == SceneGraph()


def test_a_passive_without_an_agent_describes() -> None:
    parse = parsed("gates gate NOUN NNS nsubjpass 2", "are be AUX VBP auxpass 2", "locked lock VERB VBN ROOT 2")
    assert scene_graph(parse) == SceneGraph(("gate",), (("gate", "lock"),))


def test_a_passive_with_an_agent_is_turned_round() -> None:
    parse = parsed(
        "gates gate NOUN NNS nsubjpass 2", "are be AUX VBP auxpass 2", "locked lock VERB VBN ROOT 2",
        "by by ADP IN agent 2", "guards guard NOUN NNS pobj 3",
    )  # fmt: skip
    assert scene_graph(parse).relations == (("guard", "lock", "gate"),)


def test_lists_spread_over_subject_and_object() -> None:
    parse = parsed(
        "cats cat NOUN NNS nsubj 3", "and and CCONJ CC cc 0", "dogs dog NOUN NNS conj 0", "chase chase VERB VBP ROOT 3",
        "mice mouse NOUN NNS dobj 3", "and and CCONJ CC cc 4", "rats rat NOUN NNS conj 4",
    )  # fmt: skip
    assert set(scene_graph(parse).relations) == {(a, "chase", b) for a in ("cat", "dog") for b in ("mouse", "rat")}


def test_a_torn_phrase_is_put_together() -> None:
    parse = parsed(
        "fire fire NOUN NN ROOT 0", "hydrant hydrant ADJ JJ amod 0", "on on ADP IN prep 1", "grass grass NOUN NN pobj 2"
    )
    whole = repaired(parse)
    assert (whole.heads[0], whole.heads[1], whole.arcs[0], whole.arcs[1]) == (1, 1, "compound", "ROOT")
    assert scene_graph(parse) == SceneGraph(("fire hydrant", "grass"), (), (("fire hydrant", "on", "grass"),))


def test_two_words_that_are_no_noun_stay_apart() -> None:
    parse = parsed("cat cat NOUN NN ROOT 0", "asleep asleep ADJ JJ amod 0")
    assert repaired(parse) is parse
    assert scene_graph(parse) == SceneGraph(("cat",), (("cat", "asleep"),))


def test_a_noun_swallowed_by_a_verb_is_its_subject() -> None:
    parse = parsed(
        "old old ADJ JJ amod 2", "bicycle bicycle NOUN NN compound 2", "leans lean VERB VBZ ROOT 2",
        "on on ADP IN prep 2", "walls wall NOUN NNS pobj 3",
    )  # fmt: skip
    expected = SceneGraph(("bicycle", "wall"), (("bicycle", "lean"), ("bicycle", "old")), (("bicycle", "on", "wall"),))
    assert scene_graph(parse) == expected


def test_a_noun_swallowed_by_a_participle_keeps_its_place() -> None:
    parse = parsed(
        "cow cow NOUN NN ROOT 0",
        "on on ADP IN prep 0",
        "grass grass NOUN NN compound 3",
        "waiting wait VERB VBG pobj 1",
    )
    assert scene_graph(parse) == SceneGraph(("cow", "grass"), (("grass", "wait"),), (("cow", "on", "grass"),))


def test_a_compound_is_one_object_only_where_it_is_a_word() -> None:
    rows = ("{0} {0} NOUN NN compound 1", "{1} {1} NOUN NN ROOT 1")
    assert scene_graph(parsed(*(row.format("stuffed", "hat") for row in rows))) == SceneGraph(
        ("hat",), (("hat", "stuffed"),)
    )
    assert scene_graph(parsed(*(row.format("baseball", "bat") for row in rows))) == SceneGraph(("baseball bat",))


@pytest.mark.parametrize(
    ("word", "counts"),
    [("two", True), ("12", True), ("1,000", True), ("twenty five", True), ("red", False), ("", False)],
)
def test_numbers_are_told_from_other_attributes(word: str, counts: bool) -> None:
    assert is_number(word) is counts


def test_digits_become_words() -> None:
    assert [number_word(digits) for digits in ("2", "Two", "20", "21", "½")] == ["two", "two", "twenty", "21", "½"]


def test_kinds_of_attributes_do_not_overlap() -> None:
    assert not COLOURS & SIZES
    assert not any(is_number(word) for word in COLOURS | SIZES)


ARCS = ("nsubj", "nsubjpass", "dobj", "prep", "pobj", "amod", "compound", "conj", "relcl", "acl", "poss", "nummod",
        "advmod", "agent", "attr", "acomp", "xcomp", "ccomp", "prt", "dative", "expl", "nmod", "det")  # fmt: skip
KINDS = (("dog", "NOUN", "NN"), ("group", "NOUN", "NN"), ("top", "NOUN", "NN"), ("run", "VERB", "VBG"),
         ("red", "ADJ", "JJ"), ("of", "ADP", "IN"), ("on", "ADP", "IN"), ("his", "PRON", "PRP$"),
         ("that", "PRON", "WDT"), ("two", "NUM", "CD"),
         ("be", "AUX", "VBZ"), ("see", "VERB", "VBN"), ("they", "PRON", "PRP"), ("fire", "NOUN", "NN"),
         ("hydrant", "ADJ", "JJ"), ("it", "PRON", "PRP"))  # fmt: skip


@st.composite
def trees(draw: st.DrawFn) -> Parse:
    """Any tree over a few tokens, grammatical or not: parsers do err."""
    size = draw(st.integers(1, 9))
    tokens = [draw(st.sampled_from(KINDS)) for _ in range(size)]
    order = draw(st.permutations(range(size)))
    heads = list(range(size))
    for place, token in enumerate(order[1:], start=1):
        heads[token] = order[draw(st.integers(0, place - 1))]
    arcs = ["ROOT" if heads[token] == token else draw(st.sampled_from(ARCS)) for token in range(size)]
    words, pos, tags = zip(*tokens, strict=True)
    return Parse(words, words, pos, tags, arcs, heads)


@given(trees())
def test_any_parse_gives_a_whole_graph(parse: Parse) -> None:
    graph = scene_graph(parse)
    everything = graph.tuples()
    assert len(set(everything)) == len(everything)
    assert all(word and word == word.lower() for entry in everything for word in entry)
    assert {concept for concept, _ in graph.attributes} <= set(graph.objects)
    assert {word for subject, _, object_ in graph.relations for word in (subject, object_)} <= set(graph.objects)
