"""Synonyms that a reader takes for what the word meant.

WordNet lists a word's senses by how often they are used, so the first one is the best guess without reading the
picture; but a synonym of that sense is no help where it is known for another meaning (*lid* for a hat) or to nobody
(*rima oris*). A synonym is therefore sensible where

- it shares the word's first sense (or the one that captions mean, for the words of a reviewed table), and that sense
  makes up at least half of the word's counted uses;
- that sense is its own first sense, too;
- it was met at least once in WordNet's tagged texts, or stands in a reviewed table;
- it is not a spelling of the word, nor a name, nor a process (*fencing* for a fence), nor the word made narrower
  (*gun barrel* for a barrel); and
- for nouns, the sense is of something that can be seen, and the word is a noun more often than anything else.
"""

from __future__ import annotations

from functools import lru_cache

from crosslens.language.inflection import is_plural, pluralise
from crosslens.language.wordnet import wordnet
from crosslens.perturb.synonym_tables import COMMON, EVERYDAY, LEFT_ALONE, NEVER, SENSES, UNFIT

_DOMINANT = 0.5
"""The share of a word's counted uses that its sense must have."""


_SELDOM = 5
"""Counted uses up to which a word may be called rare."""


@lru_cache(maxsize=1 << 14)
def sensible_synonyms(word: str, part: str) -> tuple[str, ...]:
    """The synonyms of a base form as noun (``n``) or adjective (``a``), the usual first; with spaces, not ``_``."""
    found = [one for one in same_sense(word, part) if is_everyday(one, part)]
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def rarest_synonyms(word: str, part: str) -> tuple[str, ...]:
    """Of the synonyms of the right sense, those counted least often: seldom, and less often than the word."""
    found = {one: word_uses(one, part) for one in same_sense(word, part) if one not in COMMON[part]}
    least = min(found.values(), default=_SELDOM)
    if least > _SELDOM or least >= max(word_uses(word, part), 1):
        return ()
    return tuple(one for one, uses in found.items() if uses == least)


@lru_cache(maxsize=1 << 14)
def loose_synonyms(word: str, part: str | None) -> tuple[str, ...]:
    """All synonyms of all senses, of one part of speech or of any, as nltk's ``synsets`` gives them."""
    found = (spelled_out(one) for one in wordnet().synonyms(word, part))
    return tuple(one for one in dict.fromkeys(found) if not _same_spelling(one, word))


@lru_cache(maxsize=1 << 14)
def same_sense(word: str, part: str) -> tuple[str, ...]:
    """The other words of the sense that is meant, known first of all for that sense; none where the sense is
    unsure."""
    synset = meant_sense(word, part)
    if synset is None:
        return ()
    reviewed = EVERYDAY[part] if word in SENSES[part] else frozenset()
    words = wordnet()
    lemmas = zip(map(spelled_out, words.lemmas(synset)), words.sense_numbers(synset), strict=True)
    fit = (one for one, number in lemmas if (number == 1 or one in reviewed) and one.islower())
    return tuple(one for one in fit if one not in NEVER[part] and _differs(one, word, part))


@lru_cache(maxsize=1 << 14)
def meant_sense(word: str, part: str) -> int | None:
    """The synset that a caption means by a word: the reviewed one, or the first where it is the usual one."""
    words = wordnet()
    if word in LEFT_ALONE[part]:
        return None
    if word in SENSES[part]:
        return words.synset(SENSES[part][word])
    senses = [int(one) for one in words.synsets(word, part) if _number_in(int(one), word)]
    if not senses or _number_in(senses[0], word) != 1:
        return None
    uses = [_uses_in(one, word) for one in senses]
    usual = uses[0] >= _DOMINANT * sum(uses) and (part == "a" or (_is_visible(senses[0]) and is_noun_first(word)))
    return senses[0] if usual else None


def _is_visible(synset: int) -> bool:
    """Whether a noun's sense is of a thing, a being, a place or a stuff."""
    return wordnet().synset("physical_entity.n.01") in wordnet().hypernym_closure(synset)


@lru_cache(maxsize=1 << 14)
def is_noun_first(word: str) -> bool:
    """Whether a word is counted as a noun at least as often as anything else: taggers err where it is not."""
    if not wordnet().synsets(word, "n").size:
        return False
    uses = word_uses(word, "n")
    return uses >= max(word_uses(word, part) for part in "var") and (uses >= _SURE or not _is_gerund(word))


@lru_cache(maxsize=1 << 14)
def is_often_verb(word: str, share: float = 0.5) -> bool:
    """Whether the uses of a word as a verb are at least this share of those as a noun."""
    return word_uses(word, "v") >= max(share * word_uses(word, "n"), 1)


_SURE = 8
"""Uses from which on a word in *-ing* is taken for a noun, as *building* is."""


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and wordnet().morphy(word, "v") is not None


def is_everyday(word: str, part: str) -> bool:
    """Whether readers know a word: it occurs in WordNet's tagged texts, or a table says so."""
    return word in EVERYDAY[part] or (word_uses(word, part) > 0 and word not in UNFIT[part])


@lru_cache(maxsize=1 << 15)
def word_uses(word: str, parts: str) -> int:
    """How often a word was counted in WordNet's tagged texts, in all senses of these parts of speech together."""
    return sum(_uses_in(int(one), word) for part in parts for one in wordnet().synsets(word, part))


def spelled_out(lemma: str) -> str:
    """A lemma as it is written in a sentence."""
    return lemma.replace("_", " ")


def _uses_in(synset: int, word: str) -> int:
    return next((uses for lemma, uses in _members(synset, wordnet().uses(synset)) if lemma == word), 0)


def _number_in(synset: int, word: str) -> int:
    """Which of the word's senses a synset is; 0 where the word, as it is written, is not in it."""
    return next((number for lemma, number in _members(synset, wordnet().sense_numbers(synset)) if lemma == word), 0)


def _members(synset: int, values: list[int]) -> zip[tuple[str, int]]:
    return zip((spelled_out(lemma).lower() for lemma in wordnet().lemmas(synset)), values, strict=True)


def _differs(synonym: str, word: str, part: str) -> bool:
    """Not the word in another spelling, nor a process, nor a compound that narrows the word (*dark-brown*)."""
    if (
        _same_spelling(synonym, word)
        or synonym == pluralise(word)
        or (synonym.endswith("ing") and not word.endswith("ing"))
    ):
        return False
    if part == "n" and is_plural(synonym) != is_plural(word) and word not in SENSES[part]:
        return False
    return synonym in EVERYDAY[part] or word not in synonym.replace("-", " ").split()


def _same_spelling(one: str, other: str) -> bool:
    plain = [word.lower().replace(" ", "").replace("-", "").replace("_", "") for word in (one, other)]
    return plain[0] == plain[1]
