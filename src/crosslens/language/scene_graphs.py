"""Scene graphs: the objects, attributes and relations that a caption mentions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from crosslens.language.parse import Grammar, Parse
from crosslens.language.wordnet import load_wordnet
from crosslens.language.words import COLOURS, LIGHT_VERBS, SIZES


@dataclass(frozen=True)
class SceneGraph:
    """Objects, attributes ``(object, attribute)`` and relations ``(object, relation, object)``, each once.

    All words are lemmas in lower case; a name of several words has spaces in it.
    """

    objects: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    relations: tuple[tuple[str, str, str], ...] = ()

    def tuples(self) -> tuple[tuple[str, ...], ...]:
        """The graph as SPICE counts it: tuples of one, two and three words."""
        return (*((name,) for name in self.objects), *self.attributes, *self.relations)

    def __str__(self) -> str:
        return " ".join(f"({', '.join(words)})" for words in self.tuples())


class PositionedGraph(NamedTuple):
    """A scene graph over the positions of tokens in ``parse``.

    ``objects`` maps each token that is an object to its name; the others name an object by its token. ``loose`` are
    words that may describe an object or only stand before it: those of another word before it (*a long haired girl*),
    and those that the parser may have attached to the wrong noun.
    """

    parse: Parse
    objects: dict[int, str]
    attributes: tuple[tuple[int, str], ...]
    relations: tuple[tuple[int, str, int], ...]
    loose: frozenset[tuple[int, str]] = frozenset()


def positioned_graph(parse: Parse) -> PositionedGraph:
    """The scene graph of one parsed caption, with the positions of its words."""
    reading = _Reading(parse)
    reading.graph()
    names = {token: reading.names[token] for token in sorted(reading.objects())}
    attributes, relations = dict.fromkeys(sorted(reading.attributes)), dict.fromkeys(sorted(reading.relations))
    loose = set(reading.loose)
    for noun in names:  # colours and sizes before it, wherever the parser attached them: *brown and white dog*
        for token in range(noun - 1, -1, -1):
            word = reading.parse.words[token].lower()
            if word in COLOURS or word in SIZES:
                loose.add((noun, word))
            elif reading.parse.pos[token] not in _BEFORE_NOUN or token in names:
                break
    loose -= set(attributes) - reading.loose
    return PositionedGraph(reading.parse, names, tuple(attributes), tuple(relations), frozenset(loose))


def scene_graph(parse: Parse) -> SceneGraph:
    """The scene graph of one parsed caption."""
    return _Reading(parse).graph()


_BEFORE_NOUN = frozenset(("ADJ", "ADV", "CCONJ", "NOUN", "NUM", "PROPN", "PUNCT"))


class _Reading(Grammar):
    """Goes through a parse once, collecting tuples over token positions."""

    def __init__(self, parse: Parse) -> None:
        super().__init__(parse)
        self.attributes: list[tuple[int, str]] = []
        self.relations: list[tuple[int, str, int]] = []
        self.loose: set[tuple[int, str]] = set()

    def graph(self) -> SceneGraph:
        for token in range(len(self.parse)):
            if self.is_noun(token) or token in self.quantity_of:
                self._noun(token)
            elif self.is_verb(token):
                self._verb(token)
        names = self.names
        objects = dict.fromkeys(names[token] for token in sorted(self.objects()))
        attributes = dict.fromkeys((names[token], word) for token, word in sorted(self.attributes))
        relations = dict.fromkeys(
            (names[subject], name, names[target]) for subject, name, target in sorted(self.relations)
        )
        return SceneGraph(tuple(objects), tuple(attributes), tuple(relations))

    def _noun(self, token: int) -> None:
        """Modifiers, possessors and prepositions of a noun."""
        referent = self.referent(token)
        if referent is None:
            return
        quantity = token in self.quantity_of
        if quantity and (word := self.quantity(token)):
            self.attributes += [(noun, word) for noun in self.referents(self.quantity_of[token])]
        name_words = self.names.get(token, "").split(" ")[:-1]
        for child in () if quantity else self.children[token]:
            arc = self.parse.arcs[child]
            if arc == "amod" and child not in self.absorbed:
                for adjective in self.listed(child):
                    self._describe([token], adjective)
            elif arc == "nummod":
                self.attributes.append((token, self.numeral(child)))
            elif arc in ("compound", "nmod") and self.parse.words[child].lower() not in name_words:
                self._describe([token], child)
        for owner in self.below(token, "poss"):
            self._relate(self.referents(owner), "have", [referent])
        for name, others in self.prepositions(token):
            if not (quantity and name == "of"):
                self._relate([referent], name, others)

    def _describe(self, nouns: list[int], word: int) -> None:
        """An adjective, participle or noun as an attribute; *full of food* relates as well."""
        described = [(noun, self._attribute(word)) for noun in nouns]
        self.attributes += described
        objects = self.objects()
        after = next((text.lower() for text in self.parse.words[word + 1 :] if text != "-"), "")
        of_another = after.endswith("ed") and after not in COLOURS  # a long haired girl
        self.loose.update(
            pair for pair in described if of_another or any(word < between < pair[0] for between in objects)
        )
        for other in self.below(word, "amod"):  # a bright orange jacket
            self._describe(nouns, other)
            if self.parse.pos[word] != "ADJ" or self.parse.words[word].lower().endswith("ed"):  # a long haired girl
                self.loose.update((noun, self._attribute(other)) for noun in nouns)
        for name, others in self.prepositions(word):
            self._relate(nouns, f"{self._attribute(word)} {name}", others)

    def _attribute(self, token: int) -> str:
        word, lemma = self.parse.words[token].lower(), self.parse.lemmas[token]
        if self.parse.pos[token] == "NUM":
            return self.numeral(token)
        if token >= 2 and self.parse.words[token - 1] == "-" and self.parse.heads[token - 2] == token:
            return f"{self.parse.words[token - 2].lower()}-{word}"  # long-sleeved
        # Not every participle has a verb behind it: nothing is ever "wooded" by somebody who woods.
        return lemma if self.parse.pos[token] != "VERB" or _is_verb_lemma(lemma) else word

    def _verb(self, verb: int) -> None:
        if self.parse.lemmas[verb] == "be":
            # *The dog is big*, *the dog is a poodle*, *the dog is on the bed*, *there is a dog on the bed*.
            attributes = self.below(verb, "attr")
            nouns = [noun for child in attributes for noun in self.referents(child)]
            subjects = nouns if self.below(verb, "expl") else self.subjects(verb)
            complements = (*self.below(verb, "acomp", "oprd"), *attributes)
            for word in (word for child in complements for word in self.listed(child)):
                if self.parse.pos[word] in ("ADJ", "NUM", "VERB"):
                    self._describe(subjects, word)
            described = [subject for subject in subjects if subject not in nouns]
            self.attributes += [(subject, self.names[noun]) for subject in described for noun in nouns]
            for name, others in self.prepositions(verb):
                self._relate(subjects, name, others)
            return
        subjects = self.subjects(verb)
        inner = [subject for clause in self.below(verb, "ccomp") for subject in self.below(clause, "nsubj")]
        # Of *watches a calf drink*, the calf.
        objects = [noun for child in (*self.below(verb, "dobj"), *inner) for noun in self.referents(child)]
        described = [child for child in self.below(verb, "acomp", "oprd") if self.parse.pos[child] == "ADJ"]
        arc, tags = self.parse.arcs[verb], self.parse.tags
        passive = bool(self.below(verb, "nsubjpass", "auxpass"))
        if not passive and tags[verb] == "VBN" and not self.below(verb, "aux", "nsubj"):
            passive = arc != "conj" or tags[self.parse.heads[verb]] == "VBN"
        gap = False
        if arc == "relcl" and (of_clause := self.below(verb, "nsubj")):
            # *the ball the boy kicks*: a clause with a subject of its own, whose object is the noun it hangs on.
            relative = any(tags[subject] in ("WP", "WDT") for subject in of_clause)
            dangling = any(not self.children[child] for child in self.below(verb, "prep"))
            gap = not relative and not dangling
        agents = [agent for name, others in self.prepositions(verb) if name == "by" for agent in others]
        particles = (self.parse.words[child].lower() for child in self.below(verb, "prt"))
        name = " ".join((self.parse.lemmas[verb], *particles))
        if passive and agents:
            self._relate(agents, name, subjects)
        elif objects and not passive:
            self._relate(subjects, name, objects)
        elif gap:
            self._relate(subjects, name, self.referents(self.parse.heads[verb]))
        elif self.parse.lemmas[verb] not in LIGHT_VERBS and not self.below(verb, "acomp"):
            self.attributes += [(subject, name) for subject in subjects]
        for preposition, others in self.prepositions(verb):
            if not (passive and preposition == "by"):
                self._relate(subjects, preposition, others)
        for child in described:
            for adjective in self.listed(child):
                self._describe(objects or subjects, adjective)

    def _relate(self, subjects: Iterable[int], name: str, targets: Iterable[int]) -> None:
        pairs = itertools.product(subjects, targets)
        self.relations += [(subject, name, target) for subject, target in pairs if subject != target]


@lru_cache(maxsize=1 << 14)
def _is_verb_lemma(lemma: str) -> bool:
    return bool(load_wordnet().synsets(lemma, "v").size)
