"""What a query asks for, word by word: things, how many, of which colour, size and material, and how they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from crosslens.core.progress import Progress
from crosslens.explain.concepts.attributes import FAMILIES, described
from crosslens.explain.concepts.naming import synset_of_name
from crosslens.explain.words.kinship import is_kind_of, kinds_above
from crosslens.language.inflection import is_plural, pluralise
from crosslens.language.parse import Parse
from crosslens.language.parsing import parse_texts
from crosslens.language.scene_graph import PlacedGraph, placed_graph
from crosslens.language.scene_words import COUNTED_AS, NUMBERS, SIDES, is_number, number_word
from crosslens.language.wordnet import wordnet

KINDS = ("object", "count", *FAMILIES, "action", "detail", "relation")
PERSON = "person.n.01"
"""Annotators call every human a person: it is what a query's *man* or *girl* is annotated as."""
PHYSICAL = "physical_entity.n.01"
_OF_PICTURES = frozenset(
    {
        *("air", "area", "background", "corner", "distance", "foreground", "image", "part", "photo", "photograph"),
        *("picture", "scene", "shot", "snapshot", "something", "stuff", "thing", "view"),
        *SIDES,
    }
)
_NOBODY = frozenset({"anybody", "anyone", "everybody", "everyone", "nobody", "somebody", "someone", "whoever"})
"""Words that stand for a person without asking for one: *someone put a cup on the table*."""


@dataclass(frozen=True)
class Word:
    """Something that a query asks for; ``kind`` is one of ``KINDS``.

    ``text``    as written, from ``start`` to ``end`` in the query
    ``thing``   the name of the thing that it is about, a lemma; ``synset`` what that name means
    ``value``   what is asked of it: a colour, a number, an action, a relation; the thing's name for an object
    ``other``   of a relation, the thing at its other end, and ``other_synset`` what it means
    """

    kind: str
    text: str
    start: int
    end: int
    thing: str
    synset: str | None
    value: str
    other: str = ""
    other_synset: str | None = None

    @property
    def number(self) -> int | None:
        """Of a count, how many."""
        if self.kind != "count":
            return None
        return NUMBERS.index(self.value) if self.value in NUMBERS else _digits(self.value)

    def as_dict(self) -> dict[str, Any]:
        parts = ("kind", "text", "start", "end", "thing", "synset", "value")
        found = {part: getattr(self, part) for part in parts}
        return {**found, "other": self.other, "other_synset": self.other_synset} if self.kind == "relation" else found


@dataclass(frozen=True)
class QueryWords:
    """The words of one query."""

    text: str
    words: tuple[Word, ...] = field(default=())

    def __iter__(self) -> Iterator[Word]:
        return iter(self.words)

    def of(self, kind: str) -> tuple[Word, ...]:
        """The words of one kind."""
        return tuple(word for word in self.words if word.kind == kind)

    @property
    def synsets(self) -> frozenset[str]:
        """What the things are that the query names."""
        return frozenset(word.synset for word in self.of("object") if word.synset is not None)

    def mentioned(self, synsets: Iterable[str]) -> frozenset[str]:
        """Those of some annotated synsets that the query speaks of: by a synonym, or by the name of their kind.

        *Dog* speaks of poodles too; *man* and *girl* speak of what is annotated as a person.
        """
        return frozenset(one for one in synsets if any(_speaks_of(word.thing, one) for word in self.of("object")))


def mentioned_concepts(texts: Sequence[str], *, progress: Progress | None = None) -> list[QueryWords]:
    """The words of each text; equal texts are read once. Needs the extra ``language``."""
    distinct = list(dict.fromkeys(texts))
    parses = parse_texts(distinct, progress=progress)
    read = {text: QueryWords(text, _words(text, parse)) for text, parse in zip(distinct, parses, strict=True)}
    return [read[text] for text in texts]


def meaning(name: str) -> str | None:
    """The synset that a query's word means; WordNet's *people* is a folk, a caption's are persons."""
    return PERSON if name == "people" else synset_of_name(name)


def is_tangible(name: str) -> bool:
    """Whether a caption that says this speaks of something in the picture: not of the picture, nor of its left side."""
    usual = meaning(name)
    return name not in _OF_PICTURES and usual is not None and is_kind_of(usual, PHYSICAL)


@lru_cache(maxsize=1 << 14)
def senses(name: str) -> frozenset[str]:
    """Everything that a name can mean as a noun, first senses and rare ones."""
    net = wordnet()
    found = {net.name(int(one)) for one in net.synsets(name, "n")}
    usual = meaning(name)
    return frozenset(found | {usual} if usual else found)


@lru_cache(maxsize=1 << 16)
def _speaks_of(name: str, synset: str) -> bool:
    usual = meaning(name)
    if synset in senses(name) or (usual is not None and is_kind_of(synset, usual)):
        return True
    return synset == PERSON and usual is not None and PERSON in kinds_above(usual)


def _words(text: str, parse: Parse) -> tuple[Word, ...]:
    graph = placed_graph(parse)
    graph = graph._replace(objects={token: name for token, name in graph.objects.items() if name not in _NOBODY})
    spans = _Spans(text, graph)
    found = [Word("object", *spans.name(token), name, meaning(name), name) for token, name in graph.objects.items()]
    for token, attribute in graph.attributes:
        if (name := graph.objects.get(token)) is None:
            continue
        place = spans.attribute(token, attribute)
        if is_number(attribute) and spans.belongs_between(place.span, token):
            continue
        found += [
            Word(kind, *place.span, name, meaning(name), value) for kind, value in _meanings(attribute, place.verb)
        ]
    for token, relation, other in graph.relations:
        if (name := graph.objects.get(token)) is None or (far := graph.objects.get(other)) is None:
            continue
        at = spans.relation(token, relation, other)
        found.append(Word("relation", *at, name, meaning(name), relation, far, meaning(far)))
    return tuple(sorted(found, key=lambda word: (word.start, word.end, KINDS.index(word.kind), word.value)))


def _meanings(attribute: str, verb: bool) -> list[tuple[str, str]]:
    """What an attribute asks for: *two*, *grey*, *running*; *dark brown* is brown."""
    if is_number(attribute):
        return [("count", attribute)]
    known = [
        (family, value)
        for family, values in zip(FAMILIES, described((attribute,)), strict=True)
        for value in sorted(values)
    ]
    return known or [("action" if verb else "detail", attribute)]


def _digits(text: str) -> int | None:
    return int(text.replace(",", "")) if text.replace(",", "").isdecimal() else None


Span = tuple[str, int, int]


@dataclass(frozen=True)
class _Place:
    span: Span
    verb: bool


class _Spans:
    """Where tokens stand in the text that they were read from."""

    def __init__(self, text: str, graph: PlacedGraph) -> None:
        self.text, self.graph, self.parse = text, graph, graph.parse
        self.starts: list[int] = []
        place = 0
        for word in self.parse.words:
            found = text.find(word, place)
            self.starts.append(place if found < 0 else found)
            place = place if found < 0 else found + len(word)

    def span(self, first: int, last: int) -> Span:
        start, end = self.starts[first], self.starts[last] + len(self.parse.words[last])
        return self.text[start:end], start, end

    def name(self, token: int) -> Span:
        """All words of a name: *fire truck*."""
        front = self.graph.objects[token].split(" ")[:-1]
        first = token - len(front)
        same = first >= 0 and [self.parse.words[one].lower() for one in range(first, token)] == front
        return self.span(first if same else token, token)

    def attribute(self, noun: int, attribute: str) -> _Place:
        """The nearest words that say it; the noun itself where none does."""
        last = attribute.replace("-", " ").split(" ")[-1]
        saying = [token for token in range(len(self.parse)) if self._says(token, last)]
        if not saying:
            return _Place(self.span(noun, noun), verb=False)
        token = min(saying, key=lambda one: (abs(one - noun), one))
        return _Place(self.span(token, token), verb=self.parse.pos[token] == "VERB")

    def belongs_between(self, number: Span, noun: int) -> bool:
        """Whether a number is of a word before the noun: a *four sided clock*, a *two story house* are one each."""
        name, start, _ = self.name(noun)
        plural = is_plural(name.lower()) or pluralise(name.lower()) == name.lower()
        between = self.text[number[2] : start].strip(" -")
        return bool(between) and not plural and number[0].lower() not in ("one", "1")

    def relation(self, one: int, name: str, other: int) -> Span:
        """The words of a relation: the last of them nearest before the far thing, the first nearest before that."""
        words = name.split(" ")
        before = range(other - 1, -1, -1) if one < other else range(len(self.parse) - 1, -1, -1)
        last = next((token for token in before if self._says(token, words[-1])), None)
        if last is None:
            return self.span(one, one)
        first = next((token for token in range(last, -1, -1) if self._says(token, words[0])), last)
        return self.span(first, last)

    def _says(self, token: int, word: str) -> bool:
        written = self.parse.words[token].lower()
        return word in (
            written,
            self.parse.lemmas[token],
            number_word(written),
            COUNTED_AS.get(self.parse.lemmas[token]),
        )
