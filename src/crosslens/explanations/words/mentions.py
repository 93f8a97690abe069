"""What a query mentions, word by word: objects, their number, colour, size, material, actions and relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crosslens.core import Progress
from crosslens.explanations.concepts.lexicon import (
    ATTRIBUTE_FAMILIES,
    PERSON,
    attribute_values,
    hypernyms_of,
    is_hyponym,
    meaning,
    senses,
    word_set,
)
from crosslens.language import (
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    NUMBERS,
    Parse,
    PositionedGraph,
    is_number,
    is_plural,
    number_word,
    parse_texts,
    pluralise,
    positioned_graph,
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
        """For JSON."""
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
    by_text = {text: QueryMentions(text, _mentions(text, parse)) for text, parse in zip(distinct, parses, strict=True)}
    return [by_text[text] for text in texts]


@lru_cache(maxsize=1 << 16)
def _names_synset(name: str, synset: str) -> bool:
    usual = meaning(name)
    if synset in senses(name) or (usual is not None and is_hyponym(synset, usual)):
        return True
    return synset == PERSON and usual is not None and PERSON in hypernyms_of(usual)


def _mentions(text: str, parse: Parse) -> tuple[Mention, ...]:
    graph = positioned_graph(parse)
    nouns = {token: noun for token, noun in graph.objects.items() if noun not in _INDEFINITE_PRONOUNS}
    spans = _TokenSpans(text, graph._replace(objects=nouns))
    mentions = [Mention("object", *spans.name(token), noun, meaning(noun), noun) for token, noun in nouns.items()]
    for token, attribute in graph.attributes:
        if (noun := nouns.get(token)) is None or (token, attribute) in graph.loose:
            continue
        span, is_verb = spans.attribute(token, attribute)
        if is_number(attribute) and spans.belongs_between(span, token):
            continue
        mentions += [
            Mention(kind, *span, noun, meaning(noun), value) for kind, value in _classify_attribute(attribute, is_verb)
        ]
    for token, relation, other_token in graph.relations:
        if (noun := nouns.get(token)) is None or (other := nouns.get(other_token)) is None:
            continue
        span = spans.relation(token, relation, other_token)
        mentions.append(Mention("relation", *span, noun, meaning(noun), relation, other, meaning(other)))
    return tuple(sorted(mentions, key=lambda word: (word.start, word.end, KINDS.index(word.kind), word.value)))


def _classify_attribute(attribute: str, is_verb: bool) -> list[tuple[str, str]]:
    """What kind of requirement an attribute is: *two*, *grey*, *running*; *dark brown* is brown."""
    if is_number(attribute):
        return [("count", attribute)]
    known = [
        (family, value)
        for family, values in zip(ATTRIBUTE_FAMILIES, attribute_values((attribute,)), strict=True)
        for value in sorted(values)
    ]
    return known or [("action" if is_verb else "detail", attribute)]


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

    def belongs_between(self, number: Span, noun: int) -> bool:
        """Whether a number belongs to a word before the noun: a *four sided clock* is a single clock."""
        name, start, _ = self.name(noun)
        plural = is_plural(name.lower()) or pluralise(name.lower()) == name.lower()
        between = self.text[number[2] : start].strip(" -")
        return bool(between) and not plural and number[0].lower() not in ("one", "1")

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
        written, lemma = self.parse.words[token].lower(), self.parse.lemmas[token]
        return word in (written, lemma, number_word(written), COUNTED_AS.get(lemma))


LIGHT_VERBS = word_set("appear be contain feature get go have include like look make prepare see seem show take use")
"""Verbs that are too unspecific to be absent from an image."""
VAGUE_ATTRIBUTES = CO_CAPTION_QUANTITIES | word_set("different few many more other own same several various")
"""Attributes that no image can contradict."""
PARTICLES = word_set("back close down front in near off on out round side top up")
"""Prepositions and particles that WordNet lists as verbs too."""
NON_SPATIAL_PREPOSITIONS = word_set("of with for like as have by without")
"""The first words of relations that do not state a position."""
