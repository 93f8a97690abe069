"""A parse: the words of a text, what they are, and which of them hang on which; and repairs of what parsers get wrong.

Errors on captions are corrected where the parse itself reveals them. The lemmatizer takes a verb's ending off and stops
at the first verb it knows: *riding* becomes *rid*. But a short verb that ends in one consonant doubles it before *-ing*
and *-ed* (*ridding*), and takes *-s*, not *-es*, unless it ends in a hiss or in *o*. Where a form breaks these rules,
the verb ends in *e*. It also leaves some plurals as they are, such as *geese*: WordNet's list of irregular forms has
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from crosslens.language.wordnet import load_wordnet
from crosslens.language.words import (
    ALWAYS_PAIRS,
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    FEMALE,
    FIXED_PHRASES,
    HE,
    IT,
    KINDS,
    MALE,
    RELATIVE,
    SHE,
    SIDES,
    THEY,
    number_word,
)

PARSE_COLUMNS = {
    **dict.fromkeys(("words", "lemmas", "pos", "tags", "arcs"), pl.List(pl.String)),
    **dict.fromkeys(("heads", "chunk_starts", "chunk_ends"), pl.List(pl.Int32)),
}
MODIFIER_ARCS = frozenset({"det", "amod", "nummod", "compound", "nmod", "poss"})
_NOUN_ARCS = frozenset({"pobj", "dobj", "attr"})
_DOUBLES = re.compile(r"(?:qu|[^aeiou])*[aeiou][^aeiouwxy]")
_TAKES_ES = ("s", "x", "z", "ch", "sh", "o")


@dataclass(frozen=True)
class Parse:
    """One text. All but the noun chunks have one entry per token."""

    words: Sequence[str]  # as written
    lemmas: Sequence[str]  # in lower case
    pos: Sequence[str]  # universal parts of speech: NOUN, VERB, …
    tags: Sequence[str]  # Penn Treebank tags: NNS, VBG, …
    arcs: Sequence[str]  # the name of the arc to the head: nsubj, amod, …; ROOT where there is no head
    heads: Sequence[int]  # the position of the head; a root is its own
    chunk_starts: Sequence[int] = ()  # where the noun chunks begin
    chunk_ends: Sequence[int] = ()  # one past where they end

    def __len__(self) -> int:
        return len(self.words)

    @property
    def noun_chunks(self) -> tuple[str, ...]:
        """The noun chunks as texts, their words joined by spaces."""
        spans = zip(self.chunk_starts, self.chunk_ends, strict=True)
        return tuple(" ".join(self.words[start:end]) for start, end in spans)


@dataclass(frozen=True, eq=False)
class Parses:
    """The parses of many texts, as one Arrow table with a row per text and the columns of ``PARSE_COLUMNS``."""

    table: pl.DataFrame
    pipeline: str

    def __len__(self) -> int:
        return self.table.height

    def __getitem__(self, position: int) -> Parse:
        return Parse(*self.table.row(position))

    def __iter__(self) -> Iterator[Parse]:
        for row in self.table.iter_rows():
            yield Parse(*row)

    def __repr__(self) -> str:
        return f"Parses({len(self)} texts, {self.pipeline})"


@lru_cache(maxsize=1 << 16)
def is_phrase(words: str) -> bool:
    """Whether WordNet lists these words as one noun."""
    return bool(load_wordnet().synsets(words, "n").size)


def repaired(parse: Parse) -> Parse:
    """The parse, with compound nouns that were split joined, and nouns that were attached to a verb detached."""
    for token in range(len(parse) - 1):
        if parse.pos[token] != "NOUN" or parse.pos[token + 1] not in ("ADJ", "VERB"):
            continue
        is_split = parse.heads[token + 1] == token and is_phrase(f"{parse.words[token]} {parse.words[token + 1]}")
        is_attached = parse.heads[token] == token + 1 and parse.arcs[token] in ("compound", "nmod")
        if is_split:
            parse = _join(parse, token)
        elif is_attached and parse.pos[token + 1] == "VERB":
            parse = _detach(parse, token)
    return parse


def _join(parse: Parse, first: int) -> Parse:
    """*a fire hydrant*, the second word parsed as an adjective or a verb: it becomes a noun."""
    second = first + 1
    pos, tags, arcs = list(parse.pos), list(parse.tags), list(parse.arcs)
    pos[second], tags[second] = "NOUN", "NN"
    arcs[first], arcs[second] = "compound", parse.arcs[first]
    heads = [second if head == first else head for head in parse.heads]
    heads[second] = second if parse.heads[first] == first else parse.heads[first]
    return replace(parse, pos=pos, tags=tags, arcs=arcs, heads=heads)


def _detach(parse: Parse, noun: int) -> Parse:
    """A verb cannot be modified by a noun: *a bicycle leans* has a subject, *on the pavement waiting* a location."""
    verb = noun + 1
    arcs, heads = list(parse.arcs), list(parse.heads)
    for token in range(noun):  # modifiers before the noun belong to it
        if heads[token] == verb and arcs[token] in MODIFIER_ARCS:
            heads[token] = noun
    if arcs[verb] in _NOUN_ARCS:
        arcs[noun], heads[noun] = arcs[verb], heads[verb]
        arcs[verb], heads[verb] = "acl", noun
    elif arcs[verb] not in MODIFIER_ARCS:
        arcs[noun] = "nsubj"
    return replace(parse, arcs=arcs, heads=heads)


@lru_cache(maxsize=1 << 16)
def repaired_lemma(word: str, lemma: str, tag: str) -> str:
    """The lemma in lower case, given the word, the pipeline's lemma, and the Penn Treebank tag."""
    word, lemma = word.lower(), lemma.lower()
    if tag in ("NN", "NNS") and word == lemma:
        return load_wordnet().morphy(word, "n") or lemma
    if not tag.startswith("VB"):
        return lemma
    undoubled = word in (lemma + "ing", lemma + "ed") and _DOUBLES.fullmatch(lemma)
    misjoined = word == lemma + "es" and not lemma.endswith(_TAKES_ES)
    return lemma + "e" if undoubled or misjoined else lemma


_PREPOSITIONS = frozenset({"prep", "agent", "dative"})
_BEFORE_NOUN = frozenset({"compound", "nmod"})


class Grammar:
    """Questions about one parse. Positions are those of its tokens."""

    def __init__(self, parse: Parse) -> None:
        parse = self.parse = repaired(parse)
        self.children: list[list[int]] = [[] for _ in parse.words]
        for token, head in enumerate(parse.heads):
            if token != head:
                self.children[head].append(token)
        self.absorbed: set[int] = set()
        """Nouns that are no objects: they are part of another's name, a quantity, or part of a preposition."""
        self.quantity_of: dict[int, int] = {}
        self.side_of: dict[int, int] = {}
        """A noun that is part of a preposition → the *of* behind it: *on top of*."""
        self.names: dict[int, str] = {}
        nouns = [token for token in range(len(parse)) if self.is_noun(token)]
        for token in range(len(parse)):
            if parse.words[token].lower() != "of" or parse.arcs[token] != "prep":
                continue
            if not (wholes := self.below(token, "pobj")):
                continue
            first = parse.heads[token]
            lemma = parse.lemmas[first]
            quantity = lemma in CO_CAPTION_QUANTITIES or lemma in COUNTED_AS or lemma in KINDS
            # *a group of people*, *two of the sheep*: the first word is absorbed, and refers to the second.
            if (self.is_noun(first) and quantity) or parse.pos[first] in ("NUM", "DET", "PRON"):
                self.quantity_of[first] = wholes[-1]
                self.absorbed.add(first)
            if parse.words[first].lower() in SIDES and parse.arcs[first] == "pobj":
                self.side_of[first] = token
                self.absorbed.add(first)
        for token in nouns:
            if parse.arcs[token] not in _BEFORE_NOUN:
                self._name(token)

    def below(self, token: int, *arcs: str) -> list[int]:
        """The children of a token by one of these arcs."""
        return [child for child in self.children[token] if self.parse.arcs[child] in arcs]

    def is_noun(self, token: int) -> bool:
        """Nouns and names, and pronouns such as *someone*."""
        pos, tag = self.parse.pos[token], self.parse.tags[token]
        return pos in ("NOUN", "PROPN") or (pos == "PRON" and tag == "NN")

    def objects(self) -> list[int]:
        """The tokens that are objects, from left to right."""
        return [token for token in self.names if token not in self.absorbed]

    def listed(self, token: int) -> list[int]:
        """A token and what is joined to it by *and*, *or* or a comma, if it is of the same kind."""
        tokens = [token]
        for other in self.below(token, "conj"):
            noun = self.is_noun(other)
            alike = noun or self.parse.pos[other] == "PRON" if self.is_noun(token) or token in self.names else not noun
            if alike:
                tokens += self.listed(other)
        return tokens

    def referents(self, token: int) -> list[int]:
        """The objects that a token and those listed beside it refer to."""
        referents = map(self.referent, self.listed(token))
        return [referent for referent in dict.fromkeys(referents) if referent is not None]

    def referent(self, token: int) -> int | None:
        """The object that a token refers to: itself, what it is a quantity of, or the noun of a pronoun."""
        if token in self.quantity_of:
            return self.referent(self.quantity_of[token])
        if token in self.names and token not in self.absorbed:
            return token
        if self.parse.pos[token] == "PRON" or self.parse.tags[token] in ("WDT", "WP", "WP$"):
            return self._antecedent(token)
        return None

    def prepositions(self, token: int) -> Iterator[tuple[str, list[int]]]:
        """Each preposition on a token, as one string, with the objects behind it."""
        for child in self.children[token]:
            if self.parse.arcs[child] == "dative" and (self.is_noun(child) or self.parse.pos[child] == "PRON"):
                yield "to", self.referents(child)  # gives the goat an apple
            elif self.parse.arcs[child] in _PREPOSITIONS:
                yield from self._behind(child, self.parse.words[child].lower())
            elif self.parse.arcs[child] == "advmod" and self.below(child, "prep"):  # next to, close to
                for inner in self.below(child, "prep"):
                    yield from self._behind(inner, self._both(child, inner))

    def _behind(self, preposition: int, name: str) -> Iterator[tuple[str, list[int]]]:
        for noun in self.below(preposition, "pobj"):
            if noun in self.side_of:
                inner = self.side_of[noun]
                yield from self._behind(inner, f"{name} {self._both(noun, inner)}")
            else:
                yield name, self.referents(noun)
        for inner in self.below(preposition, "prep"):  # out of, up against
            yield from self._behind(inner, f"{name} {self.parse.words[inner].lower()}")
        for other in self.below(preposition, "conj"):  # over and under
            yield from self._behind(other, self.parse.words[other].lower())

    def _both(self, first: int, second: int) -> str:
        return f"{self.parse.words[first]} {self.parse.words[second]}".lower()

    def quantity(self, token: int) -> str | None:
        """What a quantity says of its object: *two* for a couple, *group* for a group, nothing for a kind."""
        lemma = self.parse.lemmas[token]
        if not self.is_noun(token):
            return self.numeral(token) if self.parse.pos[token] == "NUM" else None
        if lemma == "pair" and self.parse.words[self.quantity_of[token]].lower() in ALWAYS_PAIRS:
            return None
        return None if lemma in KINDS else COUNTED_AS.get(lemma, lemma)

    def _name(self, token: int) -> None:
        """A noun's name: with the nouns before it where WordNet lists them as one word, else alone."""
        lemma, arcs, heads = self.parse.lemmas[token], self.parse.arcs, self.parse.heads
        # The unbroken run of modifying nouns right before it, or the adjective of a fixed phrase.
        before: list[int] = []
        at = token - 1
        while at >= 0 and arcs[at] in _BEFORE_NOUN:
            head = at
            while arcs[head] in _BEFORE_NOUN and head != token:
                head = heads[head]
            if head != token:
                break
            before.insert(0, at)
            at -= 1
        adjective = not before and at >= 0 and heads[at] == token and arcs[at] == "amod"
        if adjective and self._both(at, token) in FIXED_PHRASES:
            before = [at]
        for start in range(len(before)):
            front = before[start:]
            words = " ".join(self.parse.words[word].lower() for word in front)
            names = all(self.parse.pos[word] == "PROPN" for word in (*front, token))
            if names or is_phrase(f"{words} {lemma}") or f"{words} {lemma}" in FIXED_PHRASES:
                self.names[token] = f"{words} {lemma}"
                self.absorbed.update(front)
                break
        else:
            self.names[token] = lemma
        self.absorbed.update(filter(self.is_noun, before))

    def _antecedent(self, token: int) -> int | None:
        """The noun that a pronoun refers to: of a relative clause, the noun it depends on; else an earlier one.

        A person's pronoun takes the first noun that fits in number and sex, as captions begin with their subject; *it*
        takes the nearest.
        """
        word = self.parse.words[token].lower()
        verb = token
        while word in RELATIVE and self.parse.heads[verb] != verb:
            if self.parse.arcs[verb] == "relcl":  # the verb of the relative clause that the word is in
                return self.referent(self.parse.heads[verb])
            verb = self.parse.heads[verb]
        before = [noun for noun in self.objects() if noun < token]
        single = [noun for noun in before if self.parse.tags[noun] not in ("NNS", "NNPS")]
        if word in THEY:
            return next((noun for noun in before if noun not in single or self.below(noun, "conj")), None)
        if word in IT:
            return next((noun for noun in reversed(single) if self.parse.lemmas[noun] not in MALE | FEMALE), None)
        if word in HE | SHE:
            suited, others = (MALE, FEMALE) if word in HE else (FEMALE, MALE)
            fitting = [noun for noun in single if self.parse.lemmas[noun] not in others]
            return next((noun for noun in fitting if self.parse.lemmas[noun] in suited), next(iter(fitting), None))
        return None

    def numeral(self, token: int) -> str:
        """A numeral with the words that belong to it."""
        parts = [*self.below(token, "compound", "quantmod"), token]
        return " ".join(number_word(self.parse.words[part]) for part in sorted(parts))

    def subjects(self, verb: int) -> list[int]:
        """The subjects of a verb; without one of its own, those of the verb it depends on."""
        subjects = self.below(verb, "nsubj", "nsubjpass")
        if subjects:
            return [noun for subject in subjects for noun in self.referents(subject)]
        arc, head = self.parse.arcs[verb], self.parse.heads[verb]
        if arc in ("acl", "relcl"):
            return self.referents(head)
        if arc == "pcomp":
            head = self.parse.heads[head]
        if arc in ("conj", "xcomp", "advcl", "pcomp", "dep", "ccomp") and head != verb:
            if self.is_verb(head):
                return self.subjects(head)
            referent = self.referent(head)
            return [] if referent is None else [referent]
        return []

    def is_verb(self, token: int) -> bool:
        """Main verbs, and *be* where it is one."""
        pos, arc = self.parse.pos[token], self.parse.arcs[token]
        return pos in ("VERB", "AUX") and arc not in ("aux", "auxpass", "amod", "compound", "case", "mark", "prep")
