"""Facts about two images: each object is reported once, under one name."""

from __future__ import annotations

from crosslens.explanations import AnnotatedImage, ImageObject
from crosslens.explanations.mentions import Mention, QueryMentions, Vocabulary, check_mentions
from crosslens.explanations.sentences import ObjectPhrase, image_facts, mention_facts


def test_what_was_asked_for_by_another_word_is_not_said_twice() -> None:
    """Where a *television* is lacking, that the right picture has a TV says nothing new."""
    right = AnnotatedImage("g", (ImageObject("tv", "television_receiver.n.01"), ImageObject("sink", "sink.n.01")))
    retrieved = AnnotatedImage("r", (ImageObject("oven", "oven.n.01"),))
    assert image_facts(right, retrieved)["only_right"] == (ObjectPhrase("sink"), ObjectPhrase("tv"))
    assert image_facts(right, retrieved, ["television"])["only_right"] == (ObjectPhrase("sink"),)


def test_two_words_for_the_same_thing_name_it_once() -> None:
    words = [Mention("object", name, at, at + 5, name, None, name) for at, name in enumerate(["sheet", "paper", "dog"])]
    picture = AnnotatedImage("r", (ImageObject("sheet of paper", "sheet.n.02"), ImageObject("dog", "dog.n.01")))
    checks = check_mentions(QueryMentions("", tuple(words)), picture, Vocabulary([], []))
    assert [check.verdict for check in checks] == ["satisfied"] * 3, "both words call it"
    assert mention_facts(QueryMentions("", tuple(words)), checks, checks)["fitting"] == (
        ObjectPhrase("sheet"),
        ObjectPhrase("dog"),
    )
