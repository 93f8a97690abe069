"""Verbs that the tagger takes for nouns are verbs again, and nouns stay nouns."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from crosslens.explanations.mentions import mentioned_concepts
from crosslens.language import Parse, parse_texts, positioned_graph, restore_verbs
from crosslens.language.verbs import verb_form
from tests.extras import skip_without

ROOT = Path(__file__).resolve().parents[2]
HAND_MADE = Parse(
    words=("A", "boy", "in", "a", "blue", "shirt", "runs"),
    lemmas=("a", "boy", "in", "a", "blue", "shirt", "run"),
    pos=("DET", "NOUN", "ADP", "DET", "ADJ", "NOUN", "NOUN"),
    tags=("DT", "NN", "IN", "DT", "JJ", "NN", "NNS"),
    arcs=("det", "ROOT", "prep", "det", "amod", "compound", "pobj"),
    heads=(1, 1, 1, 6, 6, 6, 2),
)
"""What a pipeline made of *a boy in a blue shirt runs*; no parser is needed to read it."""


def test_the_colour_is_the_shirts_and_the_boy_runs() -> None:
    before, after = positioned_graph(HAND_MADE), positioned_graph(restore_verbs(HAND_MADE))
    assert before.objects == {1: "boy", 6: "run"}
    assert after.objects == {1: "boy", 5: "shirt"}
    assert set(after.attributes) == {(1, "run"), (5, "blue")}
    assert after.relations == ((1, "in", 5),)


def test_a_noun_of_the_same_form_stays_one() -> None:
    words = ("A", "boy", "in", "two", "blue", "shirt", "sleeves")
    parse = replace(HAND_MADE, words=words, lemmas=(*HAND_MADE.lemmas[:6], "sleeve"))
    assert restore_verbs(parse) is parse


def test_what_words_are_as_verbs() -> None:
    runs, watches = verb_form("runs"), verb_form("watches")
    assert runs is not None
    assert watches is not None
    assert (runs.lemma, runs.tag, runs.is_object) == ("run", "VBZ", False)
    assert runs.as_verb > 5 * (runs.as_noun or 0)
    assert (watches.lemma, watches.is_object) == ("watch", True)
    for word in (
        "dogs",
        "shirt",
        "pants",
        "up",
        "camera",
    ):  # living, far more often a noun, a pair, a particle, no verb
        assert verb_form(word) is None, word


CAPTIONS = {
    # caption: the objects that it asks for, its colours as ``colour>noun``
    "A boy in a blue shirt runs .": ("boy shirt", "blue>shirt"),
    "A woolly dog chases a Doberman on a beach .": ("dog doberman beach", ""),
    "A woman with sunglasses watches , smiling .": ("woman sunglass", ""),
    "A young girl wearing blue smiles .": ("girl", ""),
    "Two women in black embrace at an outdoor event .": ("woman event", ""),
    "An elephant wearing a red and blue scarf walks along the road .": ("elephant scarf road", "blue>scarf red>scarf"),
    "A man holds up a blue cloth and smiles .": ("man cloth", "blue>cloth"),
    "A man rock climbing .": ("man", ""),
    "Man in a sweater pointing at the camera .": ("man sweater camera", ""),
    "A person in red pants skis down a mountain .": ("person pant mountain", "red>pant"),
    "The bee hovers above the flower .": ("bee flower", ""),
    # Nouns that may be verbs.
    "A man with a big smile wears a watch and a tie .": ("man smile watch tie", ""),
    "A cat sits in a bathroom sink .": ("cat sink", ""),
    "A boy takes a walk with two drinks and three paddles .": ("boy walk drink paddle", ""),
    "A girl wipes her face with her tears .": ("girl face tear", ""),
    "A few balls lie beside a red train .": ("ball train", "red>train"),
    "The children take a crack at rock climbing .": ("child crack rock climbing", ""),
}


@pytest.mark.parametrize("caption", CAPTIONS)
def test_what_a_caption_asks_for(caption: str) -> None:
    skip_without("language", "spacy")
    (query,) = mentioned_concepts([caption])
    objects, colours = CAPTIONS[caption]
    assert " ".join(word.noun for word in query.of("object")) == objects
    assert " ".join(sorted(f"{word.value}>{word.noun}" for word in query.of("colour"))) == colours
    assert all(caption[word.start : word.end] == word.text for word in query)


WORDS = ("a", "the", "two", "dog", "dogs", "man", "blue", "runs", "walk", "smiles", "riding", "rock", "and", "in", ",")


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_sentence_keeps_its_words_and_stays_a_tree(words: list[str]) -> None:
    skip_without("language", "spacy")
    (parse,) = parse_texts([" ".join(words)], cache=False)
    restored = restore_verbs(parse)
    assert restored.words == parse.words
    for token in range(len(restored)):
        path = [token]
        while restored.heads[path[-1]] != path[-1]:
            path.append(restored.heads[path[-1]])
            assert len(path) <= len(restored), "a circle"
    assert restore_verbs(restored).pos == restored.pos


def test_the_page_has_the_rates_that_were_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skip_without("language", "spacy")
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    import pages
    import verbs_as_nouns

    data = pages.real_data()
    if not (data / "flickr8k" / "Flickr8k.token.txt").exists():
        pytest.skip("set CROSSLENS_DATA to the folder that holds flickr8k")
    monkeypatch.setattr(sys, "argv", ["verbs_as_nouns.py"])
    assert verbs_as_nouns.main() == 0, capsys.readouterr().out
    tagged, restored = verbs_as_nouns.tallies(verbs_as_nouns.captions_of(data)["second"])
    assert 3 * len(restored.pairs["verbs"]) <= len(tagged.pairs["verbs"])
    assert len(tagged.pairs["nouns"] - restored.pairs["nouns"]) <= 2
