"""Words replaced by others that mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crosslens.core import UsageError
from crosslens.language import COLOURS, inflected, is_phrase, is_plural, word_set
from crosslens.perturbations.caption import Caption, Edit, Edits, Token, replaced
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation
from crosslens.perturbations.text.synonym_lexicon import (
    first_other_lemma,
    loose_synonyms,
    rarest_synonyms,
    sensible_synonyms,
)


class ReplaceableUnit(NamedTuple):
    """A word, or a compound that means one object: the tokens ``first`` to ``last``, its base form and its tag."""

    first: int
    last: int
    lemma: str
    tag: str


Synonyms = Callable[[str, str], Sequence[str]]

_BEFORE_NOUN = frozenset({"compound", "amod", "nmod"})
_IN_FRONT = frozenset({"NOUN", "PROPN", "ADJ", "VERB"})
_NOMINAL = frozenset({"NOUN", "PROPN", "ADJ"})
_NOUN_TAGS = frozenset({"NN", "NNS"})
_LOOSE = word_set("young old little big small large tall")
"""WordNet lists some phrases that mean no more than their words: *young man*, *little girl*."""


def noun_units(caption: Caption) -> list[ReplaceableUnit]:
    """Nouns that head a phrase, from left to right; compounds that WordNet lists as one; no names."""
    tokens, units = caption.tokens, []
    inside = compounds(tokens)
    for position, token in enumerate(tokens):
        first = inside.get(position)
        if first is not None:
            if first != position and inside.get(position + 1) != first and tokens[first].lemma not in COLOURS:
                tag = "NNS" if token.tag == "NNS" else "NN"
                units.append(ReplaceableUnit(first, position, _compound_name(tokens, first, position), tag))
        elif token.tag in _NOUN_TAGS and _is_independent(tokens, position):
            units.append(ReplaceableUnit(position, position, token.lemma, token.tag))
    return units


def adjective_units(caption: Caption) -> list[ReplaceableUnit]:
    """Adjectives that are part of no compound and have no complement behind them (*full of*, *next to*)."""
    tokens, units = caption.tokens, []
    inside = compounds(tokens)
    for position, token in enumerate(tokens):
        if token.pos != "ADJ" or not token.tag.startswith("JJ") or position in inside or not token.text.isalpha():
            continue
        behind = tokens[position + 1] if position + 1 < len(tokens) else None
        if behind is None or (behind.tag not in ("IN", "TO") and behind.text != "-" and not _joined(tokens, position)):
            units.append(ReplaceableUnit(position, position, token.lemma, token.tag))
    return units


def compounds(tokens: tuple[Token, ...]) -> dict[int, int]:
    """For every token inside a compound that WordNet lists as one noun, where that compound begins."""
    inside: dict[int, int] = {}
    firsts = [at for at, token in enumerate(tokens[:-1]) if token.pos in _IN_FRONT]
    # Nouns before adjectives: of "a red fire hydrant", the fire hydrant is the compound, not the "red fire".
    for first in sorted(firsts, key=lambda at: tokens[at].pos not in ("NOUN", "PROPN")):
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
    whole = head.pos != "ADJ" and all(token.arc in _BEFORE_NOUN and first < token.head <= last for token in before)
    torn = head.head == first == last - 1 and before[0].pos == "NOUN"
    return (whole or torn) and is_phrase(_compound_name(tokens, first, last))


def _compound_name(tokens: tuple[Token, ...], first: int, last: int) -> str:
    return " ".join([*(token.text.lower() for token in tokens[first:last]), tokens[last].lemma])


def _is_independent(tokens: tuple[Token, ...], position: int) -> bool:
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


@perturbation("synonym_noun", level="word", tags=True, order=5, brit=True, keeps_meaning=True)
def synonym_noun(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace nouns by synonyms of the sense that captions mean.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    return _substituted(caption, noun_units(caption), "n", draws, k, any_pos, first)


@perturbation("synonym_adj", level="word", tags=True, order=6, brit=True, keeps_meaning=True)
def synonym_adj(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace adjectives by synonyms of the sense that captions mean.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    return _substituted(caption, adjective_units(caption), "a", draws, k, any_pos, first)


@perturbation("synonym_noun[released]", level="word", tags=True, order=21, keeps_meaning=True)
def released_noun(caption: Caption, draws: Draws, *, k: int = 1) -> Edits:
    """Replace the first noun that has a synonym, as the code released with the BRIT paper does.

    The word is looked up as it is inflected; the new one is the first lemma of its synsets, of any part of speech, that
    is spelled differently, as WordNet writes it: *dogs* becomes *dog*. Nothing is drawn, and no article or ending fits.

    k: how many words are replaced
    """
    return _released(caption, "noun", "NN", k)


@perturbation("synonym_adj[released]", level="word", tags=True, order=22, keeps_meaning=True)
def released_adjective(caption: Caption, draws: Draws, *, k: int = 1) -> Edits:
    """Replace the first adjective that has a synonym, as the code released with the BRIT paper does.

    The words are those of ``synonym_noun[released]``, of adjectives.

    k: how many words are replaced
    """
    return _released(caption, "adjective", "JJ", k)


@perturbation("rare_synonym", level="beyond", tags=True, order=20, keeps_meaning=True)
def rare_synonym(caption: Caption, draws: Draws) -> Edits:
    """Replace one noun or adjective by its rarest synonym of the same sense."""
    nouns = _offers(caption, noun_units(caption), "n", rarest_synonyms)
    offers = sorted([*nouns, *_offers(caption, adjective_units(caption), "a", rarest_synonyms)])
    if not offers:
        raise CannotApply("no word with a rarer synonym")
    unit, words = draws.choice(offers)
    return replaced(caption, unit.first, draws.choice(words), unit.last)


def _substituted(
    caption: Caption, units: list[ReplaceableUnit], part: str, draws: Draws, k: int, any_pos: bool, first: bool
) -> Edits:
    kind = {"n": "noun", "a": "adjective"}[part]
    _check_count(k)
    if not units:
        raise CannotApply(f"no {kind}")
    synonyms = (lambda word, _: loose_synonyms(word, None)) if any_pos else sensible_synonyms
    offers = _offers(caption, units, part, synonyms)
    if not offers:
        raise CannotApply(f"no {kind} with a synonym")
    return tuple(
        edit
        for unit, words in sorted(draws.shuffled(offers)[:k])
        for edit in replaced(caption, unit.first, words[0] if first else draws.choice(words), unit.last)
    )


def _released(caption: Caption, kind: str, tag: str, k: int) -> Edits:
    """The first ``k`` words of this tag that have another lemma, each replaced by it: no form, case or article fits."""
    _check_count(k)
    hyphenated = [word for word in caption.words if "-" in word.text]
    words: dict[int, str] = {}
    for token in (token for token in caption.tokens if token.tag.startswith(tag)):
        # A word with a hyphen is one word there, and several tokens here.
        whole = next((word for word in hyphenated if word.start <= token.start < word.end), token)
        words[whole.start] = whole.text
    if not words:
        raise CannotApply(f"no {kind}")
    offers = ((start, word, first_other_lemma(word)) for start, word in words.items())
    edits = [Edit(start, start + len(word), word, lemma) for start, word, lemma in offers if lemma is not None]
    if not edits:
        raise CannotApply(f"no {kind} with a synonym")
    return tuple(edits[:k])


def _check_count(k: int) -> None:
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"k = {k!r}", fix="k, the number of words to replace, must be a whole number of at least 1")


def _offers(
    caption: Caption, units: Sequence[ReplaceableUnit], part: str, synonyms: Synonyms
) -> list[tuple[ReplaceableUnit, tuple[str, ...]]]:
    """Every unit that has synonyms, with them, in the form that the unit has in the caption."""
    offers = []
    for unit in units:
        old = caption.text[caption.tokens[unit.first].start : caption.tokens[unit.last].end].lower()
        forms = (_in_form(word, unit.tag) for word in synonyms(unit.lemma, part))
        words = tuple(form for form in forms if form and form.lower() != old)
        if words:
            offers.append((unit, words))
    return offers


def _in_form(word: str, tag: str) -> str:
    """The synonym in the form of the word it replaces; empty where it has none: *little* is not compared."""
    if tag == "NNS" and is_plural(word):
        return word
    return "" if tag in ("JJR", "JJS") and word in ("little", "many", "much") else inflected(word, tag)
