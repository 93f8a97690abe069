"""Words replaced by others that mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosslens.core.errors import UsageError
from crosslens.language.inflection import inflected, is_plural
from crosslens.perturb.caption import Caption
from crosslens.perturb.draws import Draws
from crosslens.perturb.perturbation import CannotApply, Edits, perturbation
from crosslens.perturb.replaceable import Unit, adjective_units, noun_units
from crosslens.perturb.rewording import replaced
from crosslens.perturb.synonyms import loose_synonyms, rarest_synonyms, sensible_synonyms

Synonyms = Callable[[str, str], Sequence[str]]


@perturbation("synonym_noun", level="word", tags=True)
def synonym_noun(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace nouns by synonyms of the sense that captions mean.

    ``any_pos`` and ``first`` together give the looser choice of the BRIT paper.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    return _substituted(caption, noun_units(caption), "n", draws, k, any_pos=any_pos, first=first, noun="noun")


@perturbation("synonym_adj", level="word", tags=True)
def synonym_adj(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace adjectives by synonyms of the sense that captions mean.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    units = adjective_units(caption)
    return _substituted(caption, units, "a", draws, k, any_pos=any_pos, first=first, noun="adjective")


@perturbation("rare_synonym", level="beyond", tags=True)
def rare_synonym(caption: Caption, draws: Draws) -> Edits:
    """Replace one noun or adjective by its rarest synonym of the same sense."""
    nouns = _offers(caption, noun_units(caption), "n", rarest_synonyms)
    offers = sorted([*nouns, *_offers(caption, adjective_units(caption), "a", rarest_synonyms)])
    if not offers:
        raise CannotApply("no word with a rarer synonym")
    unit, words = draws.choice(offers)
    return replaced(caption, unit.first, draws.choice(words), unit.last)


def _substituted(
    caption: Caption, units: list[Unit], part: str, draws: Draws, k: int, *, any_pos: bool, first: bool, noun: str
) -> Edits:
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"k = {k!r}: how many words to replace", fix="use 1 or more")
    if not units:
        raise CannotApply(f"no {noun}")
    offers = _offers(caption, units, part, _any_synonyms if any_pos else sensible_synonyms)
    if not offers:
        raise CannotApply(f"no {noun} with a synonym")
    chosen = sorted(draws.shuffled(offers)[:k])
    edits: list[Edits] = []
    for unit, words in chosen:
        edits.append(replaced(caption, unit.first, words[0] if first else draws.choice(words), unit.last))
    return tuple(edit for some in edits for edit in some)


def _offers(
    caption: Caption, units: Sequence[Unit], part: str, synonyms: Synonyms
) -> list[tuple[Unit, tuple[str, ...]]]:
    """Every unit that has synonyms, with them, in the form that the unit has in the caption."""
    found = []
    for unit in units:
        listed = synonyms(unit.lemma, part)
        if listed:
            old = caption.text[caption.tokens[unit.first].start : caption.tokens[unit.last].end].lower()
            words = tuple(new for word in listed if (new := _in_form(word, unit.tag)) and new.lower() != old)
            if words:
                found.append((unit, words))
    return found


def _in_form(word: str, tag: str) -> str:
    """The synonym in the form of the word it replaces; empty where it has none: *little* is not compared."""
    if tag == "NNS" and is_plural(word):
        return word
    return "" if tag in ("JJR", "JJS") and word in ("little", "many", "much") else inflected(word, tag)


def _any_synonyms(word: str, part: str) -> Sequence[str]:
    return loose_synonyms(word, None)
