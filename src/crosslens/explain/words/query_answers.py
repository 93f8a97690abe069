"""Whether a picture has what a query asks for, word by word: satisfied, violated, or open where nobody can tell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.explain.concepts.attributes import FAMILIES, described
from crosslens.explain.concepts.naming import plain_name
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.concepts.spatial import relation
from crosslens.explain.words.pictures import Picture, Thing, called
from crosslens.explain.words.query_words import QueryWords, Word, is_tangible, meaning
from crosslens.language.inflection import is_plural
from crosslens.language.wordnet import wordnet

SATISFIED, VIOLATED, OPEN = "satisfied", "violated", "open"

_SIDES = {
    "left of": "left", "to left of": "left", "on left of": "left", "at left of": "left", "on left side of": "left",
    "to left side of": "left", "right of": "right", "to right of": "right", "on right of": "right",
    "at right of": "right", "on right side of": "right", "to right side of": "right", "above": "above", "over": "above",
    "below": "below", "under": "below", "beneath": "below", "underneath": "below", "inside": "inside", "in": "inside",
    "within": "inside",
}  # fmt: skip
"""What prepositions say about boxes."""


@dataclass(frozen=True)
class Answer:
    """One word of a query and what a picture says to it.

    ``why`` is a plain reason; ``found`` what the picture has in its place: colours, or the number of things.
    """

    word: Word
    verdict: str
    why: str
    found: tuple[str, ...] = ()
    number: int | None = None

    @property
    def side(self) -> str | None:
        """Of a relation, what it says about boxes."""
        return _SIDES.get(self.word.value) if self.word.kind == "relation" else None

    def as_dict(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "why": self.why, "found": self.found, "number": self.number}


@dataclass(frozen=True)
class Vocabulary:
    """What was annotated anywhere: that a thing is absent means nothing where nobody ever looked for it.

    ``names`` are those that annotators called things by, in the singular.
    """

    synsets: Collection[str]
    names: Collection[str]
    complete: bool = False

    @staticmethod
    def of(objects: ImageObjects) -> Vocabulary:
        """Of all images. Captions may speak of anything."""
        names = {called(objects.names[at], objects.synset(at)) for at in range(len(objects.names))}
        singular = {wordnet().morphy(name, "n") or name for name in names}
        return Vocabulary(objects.synsets, names | singular, complete=objects.source == "captions")

    def has(self, name: str) -> bool:
        """Whether somebody looked for every such thing: under that name, or under another word for what it means.

        Who annotates sandwiches and carrots has not looked for all food, nor who annotates stop signs for all street
        signs, which is the nearest that WordNet has; and *stool*, a rare word for a toilet, asks for a seat.
        """
        if self.complete or name in self.names:
            return True
        usual = meaning(name)
        return usual in self.synsets and usual is not None and any(word in self.names for word in _words_for(usual))


def answers(query: QueryWords, picture: Picture, vocabulary: Vocabulary) -> tuple[Answer, ...]:
    """What a picture says to each word of a query."""
    return tuple(answer(word, picture, vocabulary) for word in query)


def answer(word: Word, picture: Picture, vocabulary: Vocabulary) -> Answer:
    """What a picture says to one word."""
    there = presence(word, picture, vocabulary)
    if word.kind == "object" or there.verdict != SATISFIED:
        return there
    things = picture.of(word.thing)
    if word.kind == "count":
        return _count(word, things, picture, vocabulary)
    if word.kind in FAMILIES:
        return _family(word, things, picture)
    if word.kind == "relation":
        return _relation(word, things, picture, vocabulary)
    said = any(_same_word(word.value, attribute) for thing in things for attribute in thing.attributes)
    return Answer(word, SATISFIED, "annotated so") if said else Answer(word, OPEN, "not annotated")


def presence(word: Word, picture: Picture, vocabulary: Vocabulary) -> Answer:
    """Whether the thing that a word is about is there."""
    mentioned = picture.source == "captions"
    things = picture.of(word.thing)
    if things:
        names = tuple(sorted({thing.name for thing in things}))
        said = f"{'mentioned' if mentioned else 'annotated'}: {', '.join(names)}"
        return Answer(word, SATISFIED, said, names, None if mentioned else _number(things))
    if picture.may_have(word.thing):
        wider = sorted({thing.name for thing in picture.things if thing.may_be_a(word.thing)})
        return Answer(word, OPEN, f"only {', '.join(wider)} is {'mentioned' if mentioned else 'annotated'}")
    if mentioned and not is_tangible(word.thing):
        return Answer(word, OPEN, "nothing that can be seen")
    if namesakes := sorted({thing.name for thing in picture.things if thing.name.endswith(f" {word.thing}")}):
        return Answer(word, OPEN, f"only {', '.join(namesakes)} is {'mentioned' if mentioned else 'annotated'}")
    if not vocabulary.has(word.thing):
        return Answer(word, OPEN, "never annotated as such")
    return Answer(word, VIOLATED, f"no caption mentions {word.thing}" if mentioned else f"no {word.thing} there", (), 0)


def _number(things: tuple[Thing, ...]) -> int | None:
    """How many they are, where each stands for one."""
    return None if any(thing.crowd or is_plural(thing.name) for thing in things) else len(things)


def _count(word: Word, things: tuple[Thing, ...], picture: Picture, vocabulary: Vocabulary) -> Answer:
    asked, number = word.number, _number(things)
    if picture.source == "captions":
        same = asked == len(things) and len(things) > 1
        return Answer(word, SATISFIED, "mentioned") if same else Answer(word, OPEN, "captions rarely count")
    if asked is None or number is None or picture.may_have(word.thing):
        return Answer(word, OPEN, "they cannot be counted")
    if number != asked and not vocabulary.has(word.thing):
        return Answer(word, OPEN, f"{number} of those kinds that are annotated", (), number)
    return Answer(word, SATISFIED if number == asked else VIOLATED, f"{number} there", (), number)


def _family(word: Word, things: tuple[Thing, ...], picture: Picture) -> Answer:
    """A colour, size or material: violated only where every such thing has another one."""
    values = [described(thing.attributes)[FAMILIES.index(word.kind)] for thing in things]
    found = tuple(sorted({value for some in values for value in some}))
    if word.value in found:
        return Answer(word, SATISFIED, f"{word.thing}: {', '.join(found)}", found)
    if not all(values) or picture.may_have(word.thing):
        return Answer(word, OPEN, f"the {word.kind} is not annotated" if not found else f"partly {', '.join(found)}")
    return Answer(word, VIOLATED, f"{word.thing}: {', '.join(found)}", found, len(things))


def _relation(word: Word, things: tuple[Thing, ...], picture: Picture, vocabulary: Vocabulary) -> Answer:
    side = _SIDES.get(word.value)
    if side is None:
        return Answer(word, OPEN, "boxes do not tell")
    far = Word("object", word.text, word.start, word.end, word.other, word.other_synset, word.other)
    if (there := presence(far, picture, vocabulary)).verdict != SATISFIED:
        return Answer(word, there.verdict, there.why, there.found, there.number)
    pairs = [(one, other) for one in things for other in picture.of(word.other) if one is not other]
    if not pairs or any(one.box is None or other.box is None for one, other in pairs):
        return Answer(word, OPEN, "no boxes")
    stands = sorted({relation(np.array(one.box), np.array(other.box)) for one, other in pairs})
    if side in stands:
        return Answer(word, SATISFIED, f"by their boxes: {', '.join(stands)}", tuple(stands))
    opposed = side != "inside" and all(not _on_side(one, other, side) for one, other in pairs)
    unsure = picture.may_have(word.thing) or picture.may_have(word.other)
    verdict = VIOLATED if opposed and not unsure else OPEN
    return Answer(word, verdict, f"by their boxes: {', '.join(stands)}", tuple(stands))


def _on_side(one: Thing, other: Thing, side: str) -> bool:
    """Whether the middle of one box lies on that side of the other's at all, however little."""
    assert one.box is not None
    assert other.box is not None
    across = 2 * (one.box[0] - other.box[0]) + one.box[2] - other.box[2]
    down = 2 * (one.box[1] - other.box[1]) + one.box[3] - other.box[3]
    return {"left": across < 0, "right": across > 0, "above": down < 0, "below": down > 0}[side]


@lru_cache(maxsize=1 << 12)
def _words_for(synset: str) -> frozenset[str]:
    """Every word that WordNet lists for a synset."""
    return frozenset(plain_name(word) for word in wordnet().lemmas(synset))


def _same_word(asked: str, annotated: str) -> bool:
    """*Running* is what *run* asks for."""
    lower = annotated.lower()
    return asked == lower or asked in (wordnet().morphy(lower, "v"), wordnet().morphy(lower, "a"))
