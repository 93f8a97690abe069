"""Slips of the parser that captions invite, mended where the tree itself gives them away."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from crosslens.language.parse import Parse
from crosslens.language.wordnet import wordnet

_OF_NOUNS = frozenset({"det", "amod", "nummod", "compound", "nmod", "poss"})
_PLACES_OF_NOUNS = frozenset({"pobj", "dobj", "attr"})


@lru_cache(maxsize=1 << 16)
def is_phrase(words: str) -> bool:
    """Whether WordNet lists these words as one noun."""
    return bool(wordnet().synsets(words, "n").size)


def mended(parse: Parse) -> Parse:
    """The parse, with nouns torn in two put together, and nouns swallowed by a verb set free."""
    for token in range(len(parse) - 1):
        if parse.pos[token] != "NOUN" or parse.pos[token + 1] not in ("ADJ", "VERB"):
            continue
        torn = parse.heads[token + 1] == token and is_phrase(f"{parse.words[token]} {parse.words[token + 1]}")
        swallowed = parse.heads[token] == token + 1 and parse.arcs[token] in ("compound", "nmod")
        if torn:
            parse = _put_together(parse, token)
        elif swallowed and parse.pos[token + 1] == "VERB":
            parse = _set_free(parse, token)
    return parse


def _put_together(parse: Parse, first: int) -> Parse:
    """*a fire hydrant*, the second word read as an adjective or a verb: it becomes the noun that it is."""
    second = first + 1
    pos, tags, arcs = list(parse.pos), list(parse.tags), list(parse.arcs)
    pos[second], tags[second] = "NOUN", "NN"
    arcs[first], arcs[second] = "compound", parse.arcs[first]
    heads = [second if head == first else head for head in parse.heads]
    heads[second] = second if parse.heads[first] == first else parse.heads[first]
    return replace(parse, pos=pos, tags=tags, arcs=arcs, heads=heads)


def _set_free(parse: Parse, noun: int) -> Parse:
    """A verb cannot be modified by a noun: *a bicycle leans* has a subject, *on the pavement waiting* a place."""
    verb = noun + 1
    arcs, heads = list(parse.arcs), list(parse.heads)
    for token in range(noun):  # what stood before the noun belongs to it
        if heads[token] == verb and arcs[token] in _OF_NOUNS:
            heads[token] = noun
    if arcs[verb] in _PLACES_OF_NOUNS:
        arcs[noun], heads[noun] = arcs[verb], heads[verb]
        arcs[verb], heads[verb] = "acl", noun
    elif arcs[verb] not in _OF_NOUNS:
        arcs[noun] = "nsubj"
    return replace(parse, arcs=arcs, heads=heads)
