"""What a query mentions, word by word: objects, their number, colour, size, material, actions and relations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.engine import Progress
from crosslens.explanations.concepts import relation
from crosslens.explanations.lexicon import (
    ATTRIBUTE_FAMILIES,
    PERSON,
    TABLES,
    attribute_values,
    hypernyms_of,
    is_hyponym,
    is_object_word,
    is_visible,
    meaning,
    plain_name,
    senses,
    word_set,
)
from crosslens.explanations.objects import AnnotatedImage, ImageObject, ImageObjects, object_name
from crosslens.language import (
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    NUMBERS,
    Parse,
    PositionedGraph,
    is_number,
    is_plural,
    load_wordnet,
    number_word,
    parse_texts,
    pluralise,
    positioned_graph,
    restore_verbs,
)

KINDS = ("object", "count", *ATTRIBUTE_FAMILIES, "action", "detail", "relation")
_INDEFINITE_PRONOUNS = word_set("anybody anyone everybody everyone nobody somebody someone whoever")
"""Pronouns that do not require a person in the image: *someone put a cup on the table*."""


@dataclass(frozen=True)
class Mention:
    """Something that a query mentions; ``kind`` is one of ``KINDS``.

    ``text``    as written, from ``start`` to ``end`` in the query
    ``noun``    the lemma of the object that it is about; ``synset`` what that noun means
    ``value``   what is required of it: a colour, a number, an action, a relation; the noun itself for an object
    ``other``   of a relation, the noun at its other end, and ``other_synset`` what that means
    """

    kind: str
    text: str
    start: int
    end: int
    noun: str
    synset: str | None
    value: str
    other: str = ""
    other_synset: str | None = None

    @property
    def number(self) -> int | None:
        """Of a count, how many."""
        if self.kind != "count":
            return None
        digits = self.value.replace(",", "")
        return NUMBERS.index(self.value) if self.value in NUMBERS else int(digits) if digits.isdecimal() else None

    def as_dict(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("kind", "text", "start", "end")}
        parts |= {"thing": self.noun, "synset": self.synset, "value": self.value}
        return {**parts, "other": self.other, "other_synset": self.other_synset} if self.kind == "relation" else parts


@dataclass(frozen=True)
class QueryMentions:
    """The mentions of one query."""

    text: str
    words: tuple[Mention, ...] = ()

    def __iter__(self) -> Iterator[Mention]:
        return iter(self.words)

    def of(self, kind: str) -> tuple[Mention, ...]:
        """The mentions of one kind."""
        return tuple(word for word in self.words if word.kind == kind)

    def mentioned(self, synsets: Iterable[str]) -> frozenset[str]:
        """Those of some annotated synsets that the query names: by a synonym, or by a hypernym.

        *Dog* names poodles too; *man* and *girl* name what is annotated as a person.
        """
        nouns = [mention.noun for mention in self.of("object")]
        return frozenset(synset for synset in synsets if any(_names_synset(noun, synset) for noun in nouns))


def mentioned_concepts(texts: Sequence[str], *, progress: Progress | None = None) -> list[QueryMentions]:
    """The mentions of each text; equal texts are parsed once. Needs the extra ``language``."""
    distinct = list(dict.fromkeys(texts))
    parses = parse_texts(distinct, progress=progress)
    pairs = zip(distinct, parses, strict=True)
    by_text = {text: mentions_of(text, restore_verbs(parse)) for text, parse in pairs}
    return [by_text[text] for text in texts]


@lru_cache(maxsize=1 << 16)
def _names_synset(name: str, synset: str) -> bool:
    usual = meaning(name)
    if synset in senses(name) or (usual is not None and is_hyponym(synset, usual)):
        return True
    return synset == PERSON and usual is not None and PERSON in hypernyms_of(usual)


def mentions_of(text: str, parse: Parse) -> QueryMentions:
    """The mentions of one parsed text."""
    graph = positioned_graph(parse)
    nouns = {token: noun for token, noun in graph.objects.items() if noun not in _INDEFINITE_PRONOUNS}
    spans = _TokenSpans(text, graph._replace(objects=nouns))
    mentions = [Mention("object", *spans.name(token), noun, meaning(noun), noun) for token, noun in nouns.items()]
    for token, attribute in graph.attributes:
        if (noun := nouns.get(token)) is None or (token, attribute) in graph.loose:
            continue
        span, is_verb = spans.attribute(token, attribute)
        if is_number(attribute):
            name, start, _ = spans.name(token)
            plural = is_plural(name.lower()) or pluralise(name.lower()) == name.lower()
            if text[span[2] : start].strip(" -") and not plural and span[0].lower() not in ("one", "1"):
                continue  # it belongs to a word before the noun: a *four sided clock* is a single clock
            kinds = [("count", attribute)]
        else:
            families = zip(ATTRIBUTE_FAMILIES, attribute_values((attribute,)), strict=True)
            kinds = [(family, value) for family, values in families for value in sorted(values)]  # *dark brown*: brown
            kinds = kinds or [("action" if is_verb else "detail", attribute)]
        mentions += [Mention(kind, *span, noun, meaning(noun), value) for kind, value in kinds]
    for token, phrase, other_token in graph.relations:
        if (noun := nouns.get(token)) is None or (other := nouns.get(other_token)) is None:
            continue
        span = spans.relation(token, phrase, other_token)
        mentions.append(Mention("relation", *span, noun, meaning(noun), phrase, other, meaning(other)))
    mentions.sort(key=lambda word: (word.start, word.end, KINDS.index(word.kind), word.value))
    return QueryMentions(text, tuple(mentions))


Span = tuple[str, int, int]
"""A piece of a text, its start and its end."""


class _TokenSpans:
    """The spans of tokens in the text that they were parsed from."""

    def __init__(self, text: str, graph: PositionedGraph) -> None:
        self.text, self.graph, self.parse = text, graph, graph.parse
        self.starts: list[int] = []
        end = 0
        for word in self.parse.words:
            start = text.find(word, end)
            self.starts.append(end if start < 0 else start)
            end = end if start < 0 else start + len(word)

    def span(self, first: int, last: int) -> Span:
        start, end = self.starts[first], self.starts[last] + len(self.parse.words[last])
        return self.text[start:end], start, end

    def name(self, token: int) -> Span:
        """All words of a name: *fire truck*."""
        modifiers = self.graph.objects[token].split(" ")[:-1]
        first = token - len(modifiers)
        matches = first >= 0 and [word.lower() for word in self.parse.words[first:token]] == modifiers
        return self.span(first if matches else token, token)

    def attribute(self, noun: int, attribute: str) -> tuple[Span, bool]:
        """The nearest token that states it, and whether that is a verb; the noun itself where none does."""
        last = attribute.replace("-", " ").split(" ")[-1]
        tokens = [token for token in range(len(self.parse)) if self._is_word(token, last)]
        if not tokens:
            return self.span(noun, noun), False
        nearest = min(tokens, key=lambda token: (abs(token - noun), token))
        return self.span(nearest, nearest), self.parse.pos[nearest] == "VERB"

    def relation(self, noun: int, name: str, other: int) -> Span:
        """The words of a relation: the last of them nearest before the other noun, the first nearest before that."""
        words = name.split(" ")
        before = range(other - 1, -1, -1) if noun < other else range(len(self.parse) - 1, -1, -1)
        last = next((token for token in before if self._is_word(token, words[-1])), None)
        if last is None:
            return self.span(noun, noun)
        first = next((token for token in range(last, -1, -1) if self._is_word(token, words[0])), last)
        return self.span(first, last)

    def _is_word(self, token: int, word: str) -> bool:
        text, lemma = self.parse.words[token].lower(), self.parse.lemmas[token]
        return word in (text, lemma, number_word(text), COUNTED_AS.get(lemma))


LIGHT_VERBS = word_set("appear be contain feature get go have include like look make prepare see seem show take use")
"""Verbs that are too unspecific to be absent from an image."""
VAGUE_ATTRIBUTES = CO_CAPTION_QUANTITIES | word_set("different few many more other own same several various")
"""Attributes that no image can contradict."""
PARTICLES = word_set("back close down front in near off on out round side top up")
"""Prepositions and particles that WordNet lists as verbs too."""
NON_SPATIAL_PREPOSITIONS = word_set("of with for like as have by without")
"""The first words of relations that do not state a position."""


SATISFIED, VIOLATED, OPEN = "satisfied", "violated", "open"

_SIDES = {phrase: side for side, phrases in TABLES["sides"].items() for phrase in phrases.split(", ")}
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
    """One mention, checked against an image.

    A colour, size or material is violated only where every such object has another value; what captions have near the
    noun without describing it decides nothing, neither for nor against.
    """
    presence = _check_presence(word, image, vocabulary)
    if word.kind == "object" or presence.verdict != SATISFIED:
        return presence
    objects = image.of(word.noun)
    if word.kind == "count":
        required, number = word.number, _countable_number(objects)
        if image.source == "captions":
            if required == len(objects) > 1:
                return MentionCheck(word, SATISFIED, "mentioned")
            return MentionCheck(word, OPEN, "captions rarely count")
        if required is None or number is None or image.may_have(word.noun):
            return MentionCheck(word, OPEN, "they cannot be counted")
        if number != required and not vocabulary.has(word.noun):
            return MentionCheck(word, OPEN, f"{number} of those kinds that are annotated", (), number)
        return MentionCheck(word, SATISFIED if number == required else VIOLATED, f"{number} there", (), number)
    if word.kind in ATTRIBUTE_FAMILIES:
        family = ATTRIBUTE_FAMILIES.index(word.kind)
        loose = [attribute_values(item.loose)[family] for item in objects]
        values = [attribute_values(item.attributes)[family] - near for item, near in zip(objects, loose, strict=True)]
        observed = tuple(sorted(frozenset[str]().union(*values)))
        words = ", ".join(observed)
        if word.value in observed:
            return MentionCheck(word, SATISFIED, f"{word.noun}: {words}", observed)
        if not all(values) or any(word.value in near for near in loose) or image.may_have(word.noun):
            return MentionCheck(word, OPEN, f"partly {words}" if observed else f"the {word.kind} is not annotated")
        return MentionCheck(word, VIOLATED, f"{word.noun}: {words}", observed, len(objects))
    if word.kind == "relation":
        return _check_relation(word, objects, image, vocabulary)
    wordnet = load_wordnet()
    for attribute in (attribute.lower() for item in objects for attribute in item.attributes):
        if word.value in (attribute, wordnet.morphy(attribute, "v"), wordnet.morphy(attribute, "a")):
            return MentionCheck(word, SATISFIED, "annotated so")  # *running* satisfies *run*
    return MentionCheck(word, OPEN, "not annotated")


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


def _check_relation(
    word: Mention, objects: Sequence[ImageObject], image: AnnotatedImage, vocabulary: Vocabulary
) -> MentionCheck:
    side = _SIDES.get(word.value)
    if side is None:
        return MentionCheck(word, OPEN, "boxes do not decide it")
    target = Mention("object", word.text, word.start, word.end, word.other, word.other_synset, word.other)
    presence = _check_presence(target, image, vocabulary)
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
    # Opposed where no centre lies on that side of the other's centre at all, however little.
    axis, sign = {"left": (0, 1), "right": (0, -1), "above": (1, 1), "below": (1, -1), "inside": (0, 0)}[side]
    offsets = (2 * (box[axis] - other[axis]) + box[axis + 2] - other[axis + 2] for box, other in boxes)
    opposed = side != "inside" and not any(sign * offset < 0 for offset in offsets)
    unsure = image.may_have(word.noun) or image.may_have(word.other)
    return MentionCheck(word, VIOLATED if opposed and not unsure else OPEN, why, relations)


@lru_cache(maxsize=1 << 12)
def _lemmas(synset: str) -> frozenset[str]:
    return frozenset(plain_name(word) for word in load_wordnet().lemmas(synset))
