"""Which noun an adjective describes, and what kind of thing that noun names."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from crosslens.language import is_phrase, load_wordnet, word_set
from crosslens.perturbations.caption import Caption, Token

TABLES = tomllib.loads(Path(__file__).with_name("nouns.toml").read_text(encoding="utf-8"))
"""Nouns as captions use them, read by hand."""

MODIFIERS = frozenset({"amod", "compound", "nmod"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_PREDICATES = frozenset({"acomp", "oprd", "attr", "ccomp"})
_JOINERS = frozenset("-/'’")
_FIXED_VERBS = frozenset({"fall"})
"""Verbs that make one expression with their adjective: *fall asleep*."""
_LITERAL_PHRASES = word_set(TABLES["literal_phrases"])
_BRANDS = word_set("Frisbee Frisbees Popsicle Jeep SUV TV Ferrari Harley Xbox Mohawk Ducati Honda Corvette")
"""Capitalised words for things."""
_KINDS = {kind: word_set(nouns) for kind, nouns in TABLES["kinds"].items()}
_NOT_MEANT = dict.fromkeys(TABLES["not_persons"].split(), frozenset({"person"})) | dict.fromkeys(
    TABLES["not_animals"].split(), frozenset({"person", "animal"})
)


def described_noun(caption: Caption, position: int) -> int | None:
    """The position of the noun that the word at ``position`` describes; None where it does something else.

    It describes the noun it precedes (*a red car*), or the subject of the verb it follows (*the car is red*).
    Parts of names, of fixed phrases (*hot dog*) and of words joined by a hyphen describe nothing by themselves.
    """
    tokens = caption.tokens
    token = tokens[position]
    name = token.text[:1].isupper() and (position > 0 or token.pos == "PROPN")
    half = position > 0 and tokens[position - 1].text.lower() in ("half", "middle")
    if name or half or is_joined(caption, position):
        return None
    first = position
    while (head := tokens[first].head) < first and tokens[first].arc == "conj" and tokens[head].pos in ("ADJ", "NOUN"):
        first = head
    described = tokens[first]
    if described.arc in MODIFIERS:
        noun = described.head
        apart = noun < position or _another_begins(tokens[position + 1 : noun])
        return None if apart or not _is_common_noun(caption, noun) or in_phrase(caption, position) else noun
    if described.arc in _PREDICATES and tokens[described.head].lemma not in _FIXED_VERBS:
        subjects = (at for at, other in enumerate(tokens) if other.head == described.head and other.arc in _SUBJECTS)
        return next(subjects, None)
    return None


def _another_begins(between: tuple[Token, ...]) -> bool:
    """Whether a second noun phrase begins there: *an orange and two apples*, *a black and a white dog*."""
    return any(left.pos == "CCONJ" and right.pos in ("DET", "NUM") for left, right in pairwise(between))


def _is_common_noun(caption: Caption, noun: int) -> bool:
    """A common noun, or a brand used as one: *a red Frisbee*, not *old London*."""
    token = caption.tokens[noun]
    return token.pos == "NOUN" or (token.pos == "PROPN" and (token.text.islower() or token.text in _BRANDS))


def is_joined(caption: Caption, position: int) -> bool:
    """Whether a hyphen or a slash ties the word to another."""
    token = caption.tokens[position]
    beside = caption.text[: token.start][-1:], caption.text[token.end :][:1]
    return any(character.isalnum() or character in _JOINERS for character in beside if character)


def in_phrase(caption: Caption, position: int) -> bool:
    """Whether the word and the next one name something of their own: *brown bear*, *orange juice*."""
    tokens = caption.tokens
    if position + 1 >= len(tokens) or tokens[position + 1].pos not in ("NOUN", "PROPN"):
        return False
    word, following = tokens[position].text.lower(), tokens[position + 1]
    literal = {f"{word}_{following.lemma}", f"{word}_{following.text.lower()}"} & _LITERAL_PHRASES
    return not literal and is_phrase(f"{word} {following.text.lower()}")


@lru_cache(maxsize=1 << 14)
def noun_kinds(noun: str) -> frozenset[str]:
    """The kinds of things that a noun names as captions use it, mostly in its first sense.

    Persons and animals are ``being`` as well.
    """
    kinds = {kind for kind, nouns in _KINDS.items() if noun in nouns}
    if not kinds:
        refused = _NOT_MEANT.get(noun, frozenset())
        by_sense = (_kinds_of_sense(int(sense)) for sense in load_wordnet().synsets(noun, "n"))
        kinds = set(next((of_sense for of_sense in by_sense if not of_sense & refused), ()))
    if kinds & {"person", "animal"}:
        kinds.add("being")
    return frozenset(kinds)


def _kinds_of_sense(sense: int) -> frozenset[str]:
    above = {sense, *load_wordnet().hypernym_closure(sense).tolist()}
    return frozenset(kind for kind, roots in _root_ids().items() if roots & above)


@lru_cache(maxsize=1)
def _root_ids() -> dict[str, frozenset[int]]:
    return {kind: frozenset(map(load_wordnet().synset, names.split())) for kind, names in TABLES["roots"].items()}
