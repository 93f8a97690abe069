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

PARSE_COLUMNS = {
    **dict.fromkeys(("words", "lemmas", "pos", "tags", "arcs"), pl.List(pl.String)),
    **dict.fromkeys(("heads", "chunk_starts", "chunk_ends"), pl.List(pl.Int32)),
}
_MODIFIER_ARCS = frozenset({"det", "amod", "nummod", "compound", "nmod", "poss"})
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
        if heads[token] == verb and arcs[token] in _MODIFIER_ARCS:
            heads[token] = noun
    if arcs[verb] in _NOUN_ARCS:
        arcs[noun], heads[noun] = arcs[verb], heads[verb]
        arcs[verb], heads[verb] = "acl", noun
    elif arcs[verb] not in _MODIFIER_ARCS:
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
