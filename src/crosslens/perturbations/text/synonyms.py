"""Words replaced by others that mean the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from crosslens.language import COLOURS, inflected, is_phrase, is_plural, load_wordnet, pluralise, word_set
from crosslens.perturbations.caption import Caption, Draws, Edit, Edits, Token, replaced
from crosslens.perturbations.perturbing import CannotApply, check_count, perturbation

_TABLES = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
SENSES: Mapping[str, Mapping[str, str]] = _TABLES.pop("senses")
LEFT_ALONE, EVERYDAY, UNFIT, NEVER, COMMON = (
    {part: frozenset(" ".join(phrase.split()) for phrase in words.split(",")) for part, words in _TABLES[name].items()}
    for name in ("left_alone", "everyday", "unfit", "never", "common")
)
"""Reviewed words by part of speech, ``n`` or ``a``: ``synonyms.toml`` says what each list is for."""

_DOMINANT = 0.5
"""The share of a word's counted uses that its sense must have."""
_SELDOM = 5
"""Counted uses up to which a word may be called rare."""
_SURE = 8
"""Uses from which on a word in *-ing* is taken for a noun, as *building* is."""


@lru_cache(maxsize=1 << 14)
def sensible_synonyms(word: str, part: str) -> tuple[str, ...]:
    """The synonyms of a base form as noun (``n``) or adjective (``a``), the usual first; with spaces, not ``_``."""
    return tuple(synonym for synonym in same_sense(word, part) if is_everyday(synonym, part))


@lru_cache(maxsize=1 << 14)
def rarest_synonyms(word: str, part: str) -> tuple[str, ...]:
    """Of the synonyms of the right sense, those counted least often: seldom, and less often than the word."""
    counts = {synonym: word_uses(synonym, part) for synonym in same_sense(word, part) if synonym not in COMMON[part]}
    least = min(counts.values(), default=_SELDOM)
    if least > _SELDOM or least >= max(word_uses(word, part), 1):
        return ()
    return tuple(synonym for synonym, uses in counts.items() if uses == least)


@lru_cache(maxsize=1 << 14)
def loose_synonyms(word: str, part: str | None) -> tuple[str, ...]:
    """All synonyms of all senses, of one part of speech or of any, as nltk's ``synsets`` gives them."""
    synonyms = (spelled_out(lemma) for lemma in load_wordnet().synonyms(word, part))
    return tuple(synonym for synonym in dict.fromkeys(synonyms) if not _same_spelling(synonym, word))


@lru_cache(maxsize=1 << 14)
def first_other_lemma(word: str) -> str | None:
    """The first lemma of a word's synsets, of any sense and part of speech, that is spelled differently."""
    wordnet = load_wordnet()
    lemmas = (lemma for synset in wordnet.synsets(word) for lemma in wordnet.lemmas(int(synset)))
    return next((spelled_out(lemma) for lemma in lemmas if lemma.lower() != word.lower()), None)


@lru_cache(maxsize=1 << 14)
def same_sense(word: str, part: str) -> tuple[str, ...]:
    """The other words of the sense that is meant, known first of all for it; none where the sense is unsure."""
    synset = meant_sense(word, part)
    if synset is None:
        return ()
    reviewed = EVERYDAY[part] if word in SENSES[part] else frozenset()
    words = load_wordnet()
    lemmas = zip(map(spelled_out, words.lemmas(synset)), words.sense_numbers(synset), strict=True)
    fit = (lemma for lemma, number in lemmas if (number == 1 or lemma in reviewed) and lemma.islower())
    synonyms = []
    for lemma in (lemma for lemma in fit if lemma not in NEVER[part]):
        # Not the word in another spelling, nor a process, nor a compound that narrows the word (*dark-brown*).
        process = lemma.endswith("ing") and not word.endswith("ing")
        if process or lemma == pluralise(word) or _same_spelling(lemma, word):
            continue
        if part == "n" and is_plural(lemma) != is_plural(word) and word not in SENSES[part]:
            continue
        if lemma in EVERYDAY[part] or word not in lemma.replace("-", " ").split():
            synonyms.append(lemma)
    return tuple(synonyms)


@lru_cache(maxsize=1 << 14)
def meant_sense(word: str, part: str) -> int | None:
    """The synset that a caption means by a word: the reviewed one, or the first where it is the usual one."""
    words = load_wordnet()
    if word in LEFT_ALONE[part]:
        return None
    if word in SENSES[part]:
        return words.synset(SENSES[part][word])
    senses = [(synset, *_membership(synset, word)) for synset in words.synsets(word, part).tolist()]
    listed = [sense for sense in senses if sense[1]]
    if not listed or listed[0][1] != 1:
        return None
    first, _, uses = listed[0]
    usual = uses >= _DOMINANT * sum(sense[2] for sense in listed)
    # of something that can be seen
    seen = part != "n" or (words.is_a(first, "physical_entity.n.01") and is_noun_first(word))
    return first if usual and seen else None


@lru_cache(maxsize=1 << 14)
def is_noun_first(word: str) -> bool:
    """Whether a word is counted as a noun at least as often as anything else: taggers err where it is not."""
    if not load_wordnet().synsets(word, "n").size:
        return False
    uses = word_uses(word, "n")
    sure = uses >= _SURE or not word.endswith("ing") or load_wordnet().morphy(word, "v") is None
    return sure and uses >= max(word_uses(word, part) for part in "var")


@lru_cache(maxsize=1 << 14)
def is_often_verb(word: str, share: float = 0.5) -> bool:
    """Whether the uses of a word as a verb are at least this share of those as a noun."""
    return word_uses(word, "v") >= max(share * word_uses(word, "n"), 1)


def is_everyday(word: str, part: str) -> bool:
    """Whether readers know a word: it occurs in WordNet's tagged texts, or a table says so."""
    return word in EVERYDAY[part] or (word_uses(word, part) > 0 and word not in UNFIT[part])


@lru_cache(maxsize=1 << 15)
def word_uses(word: str, parts: str) -> int:
    """How often a word was counted in WordNet's tagged texts, in all senses of these parts of speech together."""
    synsets = (synset for part in parts for synset in load_wordnet().synsets(word, part).tolist())
    return sum(_membership(synset, word)[1] for synset in synsets)


def spelled_out(lemma: str) -> str:
    """A lemma as it is written in a sentence."""
    return lemma.replace("_", " ")


def _membership(synset: int, word: str) -> tuple[int, int]:
    """Which of the word's senses a synset is, and its counted uses; zeros where the word, as written, is not in it."""
    net = load_wordnet()
    members = zip(net.lemmas(synset), net.sense_numbers(synset), net.uses(synset), strict=True)
    return next(((number, uses) for lemma, number, uses in members if spelled_out(lemma).lower() == word), (0, 0))


def _same_spelling(word: str, other: str) -> bool:
    plain, other_plain = (re.sub("[ _-]", "", spelling.lower()) for spelling in (word, other))
    return plain == other_plain


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
        elif (
            # No modifier of another noun, no part of a word with a hyphen, no capital inside a sentence.
            token.tag in ("NN", "NNS")
            and token.arc not in ("compound", "nmod", "npadvmod")
            and token.text.isalpha()
            and not _joined(caption, position)
            and (position == 0 or not token.text[:1].isupper())
        ):
            units.append(ReplaceableUnit(position, position, token.lemma, token.tag))
    return units


def adjective_units(caption: Caption) -> list[ReplaceableUnit]:
    """Adjectives that are part of no compound and have no complement behind them (*full of*, *next to*)."""
    units = []
    inside = compounds(caption.tokens)
    for position, token in enumerate(caption.tokens):
        if token.pos != "ADJ" or not token.tag.startswith("JJ") or position in inside or not token.text.isalpha():
            continue
        behind = caption.token(position + 1)
        alone = behind.tag not in ("IN", "TO") and behind.text != "-" and not _joined(caption, position)
        if alone or not behind.text:
            units.append(ReplaceableUnit(position, position, token.lemma, token.tag))
    return units


def compounds(tokens: tuple[Token, ...]) -> dict[int, int]:
    """For every token inside a compound that WordNet lists as one noun, where that compound begins."""
    inside: dict[int, int] = {}
    firsts = [at for at, token in enumerate(tokens[:-1]) if token.pos in _IN_FRONT and token.lemma not in _LOOSE]
    # Nouns before adjectives: of "a red fire hydrant", the fire hydrant is the compound, not the "red fire".
    for first in sorted(firsts, key=lambda at: tokens[at].pos not in ("NOUN", "PROPN")):
        for last in (first + 2, first + 1):
            if last >= len(tokens) or tokens[last].pos not in _NOMINAL:
                continue
            # The words before the last hang on it (hot dogs), or it was torn off from them (hydrant behind fire).
            head, before = tokens[last], tokens[first:last]
            whole = head.pos != "ADJ" and all(
                token.arc in _BEFORE_NOUN and first < token.head <= last for token in before
            )
            torn = head.head == first == last - 1 and before[0].pos == "NOUN"
            span = range(first, last + 1)
            if (whole or torn) and is_phrase(_compound_name(tokens, first, last)) and inside.keys().isdisjoint(span):
                inside.update(dict.fromkeys(span, first))
                break
    return inside


def _compound_name(tokens: tuple[Token, ...], first: int, last: int) -> str:
    return " ".join([*(token.text.lower() for token in tokens[first:last]), tokens[last].lemma])


def _joined(caption: Caption, position: int) -> bool:
    """Whether a word touches a hyphen or another word: *t-shirt*, *cannot*."""
    before, token, behind = (caption.token(position + step) for step in (-1, 0, 1))
    return (before.end == token.start and before.text[-1:] not in "\"'(“‘[") or (
        behind.start == token.end and (behind.text[:1].isalpha() or behind.text[:1] in "-/'’")
    )


@perturbation(
    "synonym_noun", phrase="synonyms of nouns", level="word", tags=True, order=5, brit=True, keeps_meaning=True
)
def synonym_noun(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace nouns by synonyms of the sense that captions mean.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    return _substituted(caption, "n", draws, k, any_pos, first)


@perturbation(
    "synonym_adj", phrase="synonyms of adjectives", level="word", tags=True, order=6, brit=True, keeps_meaning=True
)
def synonym_adj(caption: Caption, draws: Draws, *, k: int = 1, any_pos: bool = False, first: bool = False) -> Edits:
    """Replace adjectives by synonyms of the sense that captions mean.

    k: how many words are replaced
    any_pos: take a synonym of any sense and any part of speech
    first: take the first synonym instead of one drawn
    """
    return _substituted(caption, "a", draws, k, any_pos, first)


@perturbation(
    "synonym_noun[released]", phrase="synonyms of first nouns", level="word", tags=True, order=21, keeps_meaning=True
)
def released_noun(caption: Caption, draws: Draws, *, k: int = 1) -> Edits:
    """Replace the first noun that has a synonym, as the code released with the BRIT paper does.

    The word is looked up as it is inflected; the new one is the first lemma of its synsets, of any part of speech, that
    is spelled differently, as WordNet writes it: *dogs* becomes *dog*. Nothing is drawn, and no article or ending fits.

    k: how many words are replaced
    """
    return _released(caption, "noun", "NN", k)


@perturbation(
    "synonym_adj[released]",
    phrase="synonyms of first adjectives",
    level="word",
    tags=True,
    order=22,
    keeps_meaning=True,
)
def released_adjective(caption: Caption, draws: Draws, *, k: int = 1) -> Edits:
    """Replace the first adjective that has a synonym, as the code released with the BRIT paper does.

    The words are those of ``synonym_noun[released]``, of adjectives.

    k: how many words are replaced
    """
    return _released(caption, "adjective", "JJ", k)


@perturbation("rare_synonym", phrase="rare synonyms", level="beyond", tags=True, order=20, keeps_meaning=True)
def rare_synonym(caption: Caption, draws: Draws) -> Edits:
    """Replace one noun or adjective by its rarest synonym of the same sense."""
    offers = sorted(offer for part in "na" for offer in _offers(caption, _UNITS[part](caption), part, rarest_synonyms))
    if not offers:
        raise CannotApply("no word with a rarer synonym")
    unit, words = draws.choice(offers)
    return replaced(caption, unit.first, draws.choice(words), unit.last)


_UNITS = {"n": noun_units, "a": adjective_units}


def _substituted(caption: Caption, part: str, draws: Draws, k: int, any_pos: bool, first: bool) -> Edits:
    kind = {"n": "noun", "a": "adjective"}[part]
    check_count(k)
    units = _UNITS[part](caption)
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
    check_count(k)
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


def _offers(
    caption: Caption, units: Sequence[ReplaceableUnit], part: str, synonyms: Synonyms
) -> list[tuple[ReplaceableUnit, tuple[str, ...]]]:
    """Every unit that has synonyms, with them, in the form that the unit has in the caption."""
    offers = []
    for unit in units:
        old = caption.text[caption.tokens[unit.first].start : caption.tokens[unit.last].end].lower()
        lemmas = synonyms(unit.lemma, part)
        if unit.tag in ("JJR", "JJS"):
            lemmas = [lemma for lemma in lemmas if lemma not in ("little", "many", "much")]  # they are not compared
        forms = (lemma if unit.tag == "NNS" and is_plural(lemma) else inflected(lemma, unit.tag) for lemma in lemmas)
        words = tuple(form for form in forms if form.lower() != old)
        if words:
            offers.append((unit, words))
    return offers
