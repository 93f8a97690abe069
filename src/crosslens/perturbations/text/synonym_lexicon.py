"""Synonyms that a reader takes for what the word meant.

WordNet lists a word's senses by how often they are used, so the first one is the best guess without reading the
picture; but a synonym of that sense is no help where it is known for another meaning (*lid* for a hat) or to nobody
(*rima oris*). A synonym is therefore sensible where

- it shares the word's first sense (or the one that captions mean, for the words of a reviewed table), and that sense
  makes up at least half of the word's counted uses;
- that sense is its own first sense, too;
- it was met at least once in WordNet's tagged texts, or is in a reviewed table;
- it is not a spelling of the word, nor a name, nor a process (*fencing* for a fence), nor the word made narrower
  (*gun barrel* for a barrel); and
- for nouns, the sense is of something that can be seen, and the word is a noun more often than anything else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from crosslens.language import is_plural, load_wordnet, pluralise


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(phrase.split()) for phrase in text.split(","))


_TABLES = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
SENSES: Mapping[str, Mapping[str, str]] = _TABLES.pop("senses")
LEFT_ALONE, EVERYDAY, UNFIT, NEVER, COMMON = (
    {part: _phrases(words) for part, words in _TABLES[name].items()}
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
    return tuple(lemma for lemma in fit if lemma not in NEVER[part] and _differs(lemma, word, part))


@lru_cache(maxsize=1 << 14)
def meant_sense(word: str, part: str) -> int | None:
    """The synset that a caption means by a word: the reviewed one, or the first where it is the usual one."""
    words = load_wordnet()
    if word in LEFT_ALONE[part]:
        return None
    if word in SENSES[part]:
        return words.synset(SENSES[part][word])
    senses = [int(synset) for synset in words.synsets(word, part) if _number_in(int(synset), word)]
    if not senses or _number_in(senses[0], word) != 1:
        return None
    uses = [_uses_in(synset, word) for synset in senses]
    usual = uses[0] >= _DOMINANT * sum(uses) and (part == "a" or (_is_visible(senses[0]) and is_noun_first(word)))
    return senses[0] if usual else None


def _is_visible(synset: int) -> bool:
    """Whether a noun's sense is of something physical."""
    return load_wordnet().synset("physical_entity.n.01") in load_wordnet().hypernym_closure(synset)


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
    return sum(_uses_in(int(synset), word) for part in parts for synset in load_wordnet().synsets(word, part))


def spelled_out(lemma: str) -> str:
    """A lemma as it is written in a sentence."""
    return lemma.replace("_", " ")


def _uses_in(synset: int, word: str) -> int:
    return _of_member(synset, word, load_wordnet().uses(synset))


def _number_in(synset: int, word: str) -> int:
    """Which of the word's senses a synset is; 0 where the word, as it is written, is not in it."""
    return _of_member(synset, word, load_wordnet().sense_numbers(synset))


def _of_member(synset: int, word: str, values: list[int]) -> int:
    """Of the values of a synset's lemmas that of a word; 0 where it is none of them."""
    members = zip((spelled_out(lemma).lower() for lemma in load_wordnet().lemmas(synset)), values, strict=True)
    return next((value for lemma, value in members if lemma == word), 0)


def _differs(synonym: str, word: str, part: str) -> bool:
    """Not the word in another spelling, nor a process, nor a compound that narrows the word (*dark-brown*)."""
    process = synonym.endswith("ing") and not word.endswith("ing")
    if process or synonym == pluralise(word) or _same_spelling(synonym, word):
        return False
    if part == "n" and is_plural(synonym) != is_plural(word) and word not in SENSES[part]:
        return False
    return synonym in EVERYDAY[part] or word not in synonym.replace("-", " ").split()


def _same_spelling(word: str, other: str) -> bool:
    plain, other_plain = (re.sub("[ _-]", "", spelling.lower()) for spelling in (word, other))
    return plain == other_plain
