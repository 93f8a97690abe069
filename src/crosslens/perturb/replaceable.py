"""The words of a caption that a synonym may replace, fixed compounds as one word."""

from __future__ import annotations

from typing import NamedTuple

from crosslens.language.mending import is_phrase
from crosslens.language.scene_words import COLOURS
from crosslens.perturb.caption import Caption, Token


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Unit(NamedTuple):
    """A word, or a compound that stands for one thing: the tokens ``first`` to ``last``, its base form and its
    tag."""

    first: int
    last: int
    lemma: str
    tag: str


_BEFORE_NOUN = frozenset({"compound", "amod", "nmod"})
_IN_FRONT = frozenset({"NOUN", "PROPN", "ADJ", "VERB"})
_NOMINAL = frozenset({"NOUN", "PROPN", "ADJ"})
_NOUN_TAGS = frozenset({"NN", "NNS"})
_LOOSE = _words("young old little big small large tall")
"""WordNet lists some phrases that mean no more than their words: *young man*, *little girl*."""


def noun_units(caption: Caption) -> list[Unit]:
    """Nouns that head a phrase, from left to right; compounds that WordNet lists as one; no names."""
    tokens, found = caption.tokens, []
    inside = compounds(tokens)
    for position, token in enumerate(tokens):
        first = inside.get(position)
        if first is not None:
            if first != position and inside.get(position + 1) != first and tokens[first].lemma not in COLOURS:
                found.append(_compound(tokens, first, position))
        elif token.tag in _NOUN_TAGS and _stands_alone(tokens, position):
            found.append(Unit(position, position, token.lemma, token.tag))
    return found


def adjective_units(caption: Caption) -> list[Unit]:
    """Adjectives that are part of no compound and have no complement behind them (*full of*, *next to*)."""
    tokens, found = caption.tokens, []
    inside = compounds(tokens)
    for position, token in enumerate(tokens):
        if token.pos != "ADJ" or not token.tag.startswith("JJ") or position in inside or not token.text.isalpha():
            continue
        behind = tokens[position + 1] if position + 1 < len(tokens) else None
        if behind is None or (behind.tag not in ("IN", "TO") and behind.text != "-" and not _joined(tokens, position)):
            found.append(Unit(position, position, token.lemma, token.tag))
    return found


def compounds(tokens: tuple[Token, ...]) -> dict[int, int]:
    """For every token inside a compound that WordNet lists as one noun, where that compound begins."""
    inside: dict[int, int] = {}
    firsts = [place for place, token in enumerate(tokens[:-1]) if token.pos in _IN_FRONT]
    # Nouns before adjectives: of "a red fire hydrant", the fire hydrant is the compound, not the "red fire".
    for first in sorted(firsts, key=lambda place: tokens[place].pos not in ("NOUN", "PROPN")):
        for last in (first + 2, first + 1):
            if (
                last < len(tokens)
                and tokens[last].pos in _NOMINAL
                and _is_compound(tokens, first, last)
                and inside.keys().isdisjoint(range(first, last + 1))
            ):
                inside.update(dict.fromkeys(range(first, last + 1), first))
                break
    return inside


def _is_compound(tokens: tuple[Token, ...], first: int, last: int) -> bool:
    """The words before the last hang on it (*hot dogs*), or it was torn off from them (*hydrant* behind *fire*)."""
    head = tokens[last]
    if tokens[first].lemma in _LOOSE:
        return False
    before = tokens[first:last]
    whole = head.pos != "ADJ" and all(one.arc in _BEFORE_NOUN and first < one.head <= last for one in before)
    torn = head.head == first == last - 1 and before[0].pos == "NOUN"
    return (whole or torn) and is_phrase(_name(tokens, first, last))


def _name(tokens: tuple[Token, ...], first: int, last: int) -> str:
    return " ".join([*(token.text.lower() for token in tokens[first:last]), tokens[last].lemma])


def _compound(tokens: tuple[Token, ...], first: int, last: int) -> Unit:
    return Unit(first, last, _name(tokens, first, last), "NNS" if tokens[last].tag == "NNS" else "NN")


def _stands_alone(tokens: tuple[Token, ...], position: int) -> bool:
    """No modifier of another noun, no part of a word with a hyphen, no capital inside a sentence."""
    token = tokens[position]
    if token.arc in ("compound", "nmod", "npadvmod") or not token.text.isalpha() or _joined(tokens, position):
        return False
    return not token.text[:1].isupper() or position == 0


def _joined(tokens: tuple[Token, ...], position: int) -> bool:
    """Whether a word touches a hyphen or another word: *t-shirt*, *cannot*."""
    token = tokens[position]
    before = (
        position > 0 and tokens[position - 1].end == token.start and tokens[position - 1].text[-1:] not in "\"'(“‘["
    )
    behind = position + 1 < len(tokens) and tokens[position + 1].start == token.end
    return before or (behind and (tokens[position + 1].text[:1].isalpha() or tokens[position + 1].text[:1] in "-/'’"))
