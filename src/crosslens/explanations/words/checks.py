"""Whether an image has what a query mentions, mention by mention: satisfied, violated, or open where it is unknown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.explanations.concepts.comparison import relation
from crosslens.explanations.concepts.lexicon import (
    ATTRIBUTE_FAMILIES,
    Array,
    attribute_values,
    is_object_word,
    is_visible,
    meaning,
    plain_name,
)
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.explanations.words.images import AnnotatedImage, ImageObject, object_name
from crosslens.explanations.words.mentions import Mention, QueryMentions
from crosslens.language import is_plural, load_wordnet

SATISFIED, VIOLATED, OPEN = "satisfied", "violated", "open"

_SIDES = {
    "left of": "left", "to left of": "left", "on left of": "left", "at left of": "left", "on left side of": "left",
    "to left side of": "left", "right of": "right", "to right of": "right", "on right of": "right",
    "at right of": "right", "on right side of": "right", "to right side of": "right", "above": "above", "over": "above",
    "below": "below", "under": "below", "beneath": "below", "underneath": "below", "inside": "inside", "in": "inside",
    "within": "inside",
}  # fmt: skip
"""The relations of boxes that prepositions state."""


@dataclass(frozen=True)
class MentionCheck:
    """One mention of a query, checked against an image.

    ``why`` is the reason in plain words; ``observed`` what the image has instead: names or colours; ``number`` how many
    objects.
    """

    word: Mention
    verdict: str
    why: str
    observed: tuple[str, ...] = ()
    number: int | None = None

    @property
    def side(self) -> str | None:
        """Of a relation, the relation of boxes that it states."""
        return _SIDES.get(self.word.value) if self.word.kind == "relation" else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"verdict": self.verdict, "why": self.why, "found": self.observed, "number": self.number}


@dataclass(frozen=True)
class Vocabulary:
    """What was annotated anywhere: an object that was never annotated in any image may be present all the same."""

    synsets: Collection[str]
    names: Collection[str]
    complete: bool = False

    @staticmethod
    def of(objects: ImageObjects) -> Vocabulary:
        """Of all images. Captions may mention anything."""
        names = {object_name(name, objects.synset(index)) for index, name in enumerate(objects.names)}
        singular = {load_wordnet().morphy(name, "n") or name for name in names}
        return Vocabulary(objects.synsets, names | singular, complete=objects.source == "captions")

    def has(self, name: str) -> bool:
        """Whether every such object was annotated: under that name, or under another word for what it means.

        Who annotates sandwiches and carrots has not looked for all food, nor who annotates stop signs for all street
        signs, which is the nearest that WordNet has; and *stool*, a rare word for a toilet, asks for a seat.
        """
        if self.complete or name in self.names:
            return True
        synset = meaning(name)
        return synset is not None and synset in self.synsets and any(word in self.names for word in _lemmas(synset))


def check_mentions(query: QueryMentions, image: AnnotatedImage, vocabulary: Vocabulary) -> tuple[MentionCheck, ...]:
    """Every mention of a query, checked against an image."""
    return tuple(check_mention(word, image, vocabulary) for word in query)


def check_mention(word: Mention, image: AnnotatedImage, vocabulary: Vocabulary) -> MentionCheck:
    """One mention, checked against an image."""
    presence = _check_presence(word, image, vocabulary)
    if word.kind == "object" or presence.verdict != SATISFIED:
        return presence
    objects = image.of(word.noun)
    if word.kind == "count":
        return _check_count(word, objects, image, vocabulary)
    if word.kind in ATTRIBUTE_FAMILIES:
        return _check_attribute(word, objects, image)
    if word.kind == "relation":
        return _check_relation(word, objects, image, vocabulary)
    annotated = any(_same_word(word.value, attribute) for item in objects for attribute in item.attributes)
    return MentionCheck(word, SATISFIED, "annotated so") if annotated else MentionCheck(word, OPEN, "not annotated")


def _check_presence(word: Mention, image: AnnotatedImage, vocabulary: Vocabulary) -> MentionCheck:
    """Whether the object that a mention is about is there."""
    from_captions = image.source == "captions"
    how = "mentioned" if from_captions else "annotated"
    if from_captions and not is_object_word(word.noun):
        return MentionCheck(word, OPEN, "no known object")
    if objects := image.of(word.noun):
        names = tuple(sorted({item.name for item in objects}))
        why = f"{how}: {', '.join(names)}"
        return MentionCheck(word, SATISFIED, why, names, None if from_captions else _countable_number(objects))
    if image.may_have(word.noun):
        wider = sorted({item.name for item in image.objects if item.may_be_a(word.noun)})
        return MentionCheck(word, OPEN, f"only {', '.join(wider)} is {how}")
    if from_captions and not is_visible(word.noun):
        return MentionCheck(word, OPEN, "nothing that can be seen")
    if compounds := sorted({item.name for item in image.objects if item.name.endswith(f" {word.noun}")}):
        return MentionCheck(word, OPEN, f"only {', '.join(compounds)} is {how}")
    if from_captions and image.says(word.noun):
        return MentionCheck(word, OPEN, "mentioned inside another name")
    if not vocabulary.has(word.noun):
        return MentionCheck(word, OPEN, "never annotated as such")
    why = f"no caption mentions {word.noun}" if from_captions else f"no {word.noun} there"
    return MentionCheck(word, VIOLATED, why, (), 0)


def _countable_number(objects: Sequence[ImageObject]) -> int | None:
    """How many they are; None where one of them stands for several."""
    return None if any(item.crowd or is_plural(item.name) for item in objects) else len(objects)


def _check_count(
    word: Mention, objects: Sequence[ImageObject], image: AnnotatedImage, vocabulary: Vocabulary
) -> MentionCheck:
    required, number = word.number, _countable_number(objects)
    if image.source == "captions":
        stated = required == len(objects) and len(objects) > 1
        return (
            MentionCheck(word, SATISFIED, "mentioned") if stated else MentionCheck(word, OPEN, "captions rarely count")
        )
    if required is None or number is None or image.may_have(word.noun):
        return MentionCheck(word, OPEN, "they cannot be counted")
    if number != required and not vocabulary.has(word.noun):
        return MentionCheck(word, OPEN, f"{number} of those kinds that are annotated", (), number)
    return MentionCheck(word, SATISFIED if number == required else VIOLATED, f"{number} there", (), number)


def _check_attribute(word: Mention, objects: Sequence[ImageObject], image: AnnotatedImage) -> MentionCheck:
    """A colour, size or material: violated only where every such object has another value.

    What captions have near the noun without describing it decides nothing, neither for nor against.
    """
    family = ATTRIBUTE_FAMILIES.index(word.kind)
    loose = frozenset[str]().union(*(attribute_values(item.loose)[family] for item in objects))
    values = [attribute_values(item.attributes)[family] - attribute_values(item.loose)[family] for item in objects]
    observed = tuple(sorted(frozenset[str]().union(*values)))
    listed = ", ".join(observed)
    if word.value in observed:
        return MentionCheck(word, SATISFIED, f"{word.noun}: {listed}", observed)
    if not all(values) or word.value in loose or image.may_have(word.noun):
        return MentionCheck(word, OPEN, f"partly {listed}" if observed else f"the {word.kind} is not annotated")
    return MentionCheck(word, VIOLATED, f"{word.noun}: {listed}", observed, len(objects))


def _check_relation(
    word: Mention, objects: Sequence[ImageObject], image: AnnotatedImage, vocabulary: Vocabulary
) -> MentionCheck:
    side = _SIDES.get(word.value)
    if side is None:
        return MentionCheck(word, OPEN, "boxes do not decide it")
    other = Mention("object", word.text, word.start, word.end, word.other, word.other_synset, word.other)
    presence = _check_presence(other, image, vocabulary)
    if presence.verdict != SATISFIED:
        return replace(presence, word=word)
    pairs = [(item, partner) for item in objects for partner in image.of(word.other) if item is not partner]
    boxes = [(np.array(item.box), np.array(partner.box)) for item, partner in pairs if item.box and partner.box]
    if not pairs or len(boxes) < len(pairs):
        return MentionCheck(word, OPEN, "no boxes")
    relations = tuple(sorted({relation(*pair) for pair in boxes}))
    why = f"by their boxes: {', '.join(relations)}"
    if side in relations:
        return MentionCheck(word, SATISFIED, why, relations)
    opposed = side != "inside" and not any(_is_on_side(*pair, side) for pair in boxes)
    unsure = image.may_have(word.noun) or image.may_have(word.other)
    return MentionCheck(word, VIOLATED if opposed and not unsure else OPEN, why, relations)


def _is_on_side(box: Array, other: Array, side: str) -> bool:
    """Whether the centre of a box lies on that side of the other's centre at all, however little."""
    across = 2 * (box[0] - other[0]) + box[2] - other[2]
    down = 2 * (box[1] - other[1]) + box[3] - other[3]
    return bool({"left": across < 0, "right": across > 0, "above": down < 0, "below": down > 0}[side])


@lru_cache(maxsize=1 << 12)
def _lemmas(synset: str) -> frozenset[str]:
    """Every word that WordNet lists for a synset."""
    return frozenset(plain_name(word) for word in load_wordnet().lemmas(synset))


def _same_word(required: str, annotated: str) -> bool:
    """*Running* satisfies *run*."""
    lower = annotated.lower()
    return required == lower or required in (load_wordnet().morphy(lower, "v"), load_wordnet().morphy(lower, "a"))
