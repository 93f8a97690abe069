"""English words inflected: plurals, the forms of verbs, degrees of adjectives.

Everyday irregular words are in a table; WordNet's list of irregular forms says which verbs and adjectives double
their last letter, and how the rarer ones go. A name of several words changes in the one that carries it: *sets of
stairs*, *lets go of*.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from crosslens.language.irregular import ALWAYS_PLURAL, COMPARED, PAST_FORMS, PLURALS, PREFIXES, SAME_IN_PLURAL
from crosslens.language.wordnet import load_wordnet


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HISS = ("s", "x", "z", "ch", "sh")
_Y_AFTER_CONSONANT = re.compile(r"[^aeiou]y\Z")
_BEHIND_HEAD = re.compile(
    r"(?<=\w)(?: (?:of|with|on|in|to|for|at|from|by|and)\b|-(?:in|of|at|to|de|up|on|by|off)\b(?!.* ))"
)
"""What follows the noun that carries a name: *sets of stairs*, *brothers-in-law*; not in *grown-up fellows*."""
_SYLLABLE = re.compile(r"[aeiouy]+")
_ONE_SYLLABLE_DOUBLING = re.compile(r"(?:qu|[^aeiou])*[aeiouy][bdfgklmnprtvz]")
_VOWEL_AND_CONSONANT = re.compile(r".*[^aeiou][aeiou][bdfgklmnprtvz]")
_STRESSED_L = _words(
    "annul appal compel control dispel enrol excel expel extol fulfil impel instil patrol propel rebel repel"
)
_MEN = re.compile(r"(?:man|woman)\Z")
_NOT_MEN = _words("human german roman shaman talisman caiman ottoman caftan norman cayman brahman mussulman")


# Nouns


@lru_cache(maxsize=1 << 14)
def pluralise(noun: str) -> str:
    """The plural of a noun, or of a phrase, whose first noun before *of*, *with*, *in* … or else last word
    changes."""
    head, rest = _split_head(noun)
    front, space, word = head.rpartition(" ")
    return front + space + _plural(word) + rest


@lru_cache(maxsize=1 << 14)
def singularise(noun: str) -> str:
    """The singular of a plural noun or phrase; a word that has none, or is none, stays as it is."""
    head, rest = _split_head(noun)
    front, space, word = head.rpartition(" ")
    return front + space + _singular(word) + rest


@lru_cache(maxsize=1 << 14)
def is_plural(noun: str) -> bool:
    """Whether a noun or phrase is a plural: it has another form as singular, or has none (*scissors*)."""
    head = _split_head(noun.lower())[0].rpartition(" ")[2]
    return head in ALWAYS_PLURAL or (head not in SAME_IN_PLURAL and _singular(head) != head)


def _split_head(noun: str) -> tuple[str, str]:
    if noun.lower() in PLURALS:
        return noun, ""
    behind = _BEHIND_HEAD.search(noun)
    return (noun[: behind.start()], noun[behind.start() :]) if behind else (noun, "")


def _plural(word: str) -> str:
    if len(word) > 1 and word.isupper():  # loud, or letters said one by one: TVs
        return _plural(word.lower()).upper() if len(word) > 3 or word.lower() in PLURALS else word + "s"
    lower = word.lower()
    if lower in PLURALS:
        return word[:1] + PLURALS[lower][1:] if word[:1] != lower[:1] else PLURALS[lower]
    if lower in SAME_IN_PLURAL or lower in ALWAYS_PLURAL or lower.endswith(("fish", "craft")):
        return word
    if _MEN.search(lower) and lower not in _NOT_MEN:
        return word[:-2] + "en"
    tail = next((end for end in _COMPOUND_TAILS if lower.endswith(end) and len(lower) > len(end) + 1), "")
    if tail:
        return word[: -len(tail)] + PLURALS[tail]
    if lower.endswith("sis") and len(lower) > 4:
        return word[:-2] + "es"
    if (listed := _listed_plural(lower)) is not None:
        return listed
    return word + "es" if lower.endswith(_HISS) else _with_s(word)


_COMPOUND_TAILS = ("child", "tooth", "goose", "foot", "knife", "wife", "shelf", "leaf", "wolf", "loaf", "half")
"""Ends of compound words that keep their irregular plural: *grandchildren*, *bookshelves*."""


def _listed_plural(word: str) -> str | None:
    """The plural that WordNet's list gives where only English spelling is irregular: *-oes*, *-zzes*; no Latin."""
    forms = _irregular("n").get(word, ())
    return next((form for form in forms if form in (word + "es", word + word[-1:] + "es")), None)


def _with_s(word: str) -> str:
    return word[:-1] + "ies" if _Y_AFTER_CONSONANT.search(word.lower()) else word + "s"


_SINGULARS = {plural: singular for singular, plural in PLURALS.items()}


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in ALWAYS_PLURAL or lower in SAME_IN_PLURAL:
        return word
    if lower in _SINGULARS:
        return _SINGULARS[lower]
    singulars = [form for form in _undone(lower) if _plural(form) == lower]
    listed = [form for form in singulars if _is_listed(form)]
    if listed:
        return listed[0]
    known = _is_listed(lower) or lower.endswith(("ss", "us", "is"))
    return word if known or not singulars else singulars[0]


def _is_listed(noun: str) -> bool:
    """Whether WordNet lists this very form as a noun, and not as the plural of another."""
    return load_wordnet().morphy(noun, "n") == noun


def _undone(word: str) -> list[str]:
    """What a plural may come from, by its ending."""
    forms = []
    if word.endswith("men"):
        forms.append(word[:-2] + "an")
    for ending, new in (
        ("s", ""),
        ("ies", "y"),
        ("es", ""),
        ("ves", "f"),
        ("ves", "fe"),
        ("zzes", "z"),
        ("ses", "sis"),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            forms.append(word[: -len(ending)] + new)
    tails = (tail for tail in _COMPOUND_TAILS if word.endswith(PLURALS[tail]))
    return forms + [word.removesuffix(PLURALS[tail]) + tail for tail in tails]


# Verbs


def third_person(verb: str) -> str:
    """*runs*, *carries*, *lets go of*."""
    word, rest = _first_word(verb)
    special = {"be": "is", "have": "has"}.get(word)
    if special is None:
        special = word + "es" if word.endswith((*_HISS, "o")) else _with_s(word)
    return special + rest


def gerund(verb: str) -> str:
    """*running*, *lying*, *riding*."""
    word, rest = _first_word(verb)
    return _gerund(word) + rest


def past(verb: str) -> str:
    """*ran*, *stopped*, *carried*."""
    word, rest = _first_word(verb)
    return _past_forms(word)[0] + rest


def participle(verb: str) -> str:
    """The participle of the past: *run*, *broken*, *stopped*."""
    word, rest = _first_word(verb)
    return _past_forms(word)[1] + rest


def _first_word(verb: str) -> tuple[str, str]:
    word, space, rest = verb.partition(" ")
    return word, space + rest


@lru_cache(maxsize=1 << 13)
def _gerund(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if (
        word.endswith("e")
        and not word.endswith(("ee", "oe", "ye"))
        and len(word) > 2
        and word not in ("singe", "tinge")
    ):
        return word[:-1] + "ing"
    return _doubled(word, "ing") + "ing"


@lru_cache(maxsize=1 << 13)
def _past_forms(word: str) -> tuple[str, str]:
    if word in PAST_FORMS:
        return PAST_FORMS[word]
    for prefix in PREFIXES:
        simple = PAST_FORMS.get(word.removeprefix(prefix)) if word.startswith(prefix) else None
        if simple is not None and prefix + simple[0] in (word, *_irregular("v").get(word, ())):
            return prefix + simple[0], prefix + simple[1]
    if word.endswith("e"):
        regular = word + "d"
    elif _Y_AFTER_CONSONANT.search(word):
        regular = word[:-1] + "ied"
    else:
        regular = _doubled(word, "ed") + "ed"
    return regular, regular


def _doubled(word: str, ending: str) -> str:
    """With its last letter twice where the last syllable is stressed and short: WordNet's list knows which those are.

    American spelling: an unstressed syllable is left alone, also before *l* (*traveling*).
    """
    if not word:
        return word
    if word.endswith("c") and word + "k" + ending in _irregular("v").get(word, ()):
        return word + "k"
    if _ONE_SYLLABLE_DOUBLING.fullmatch(word) and not word.endswith(("w", "x", "y")):
        return word + word[-1]
    listed = word + word[-1] + ending in _irregular("v").get(word, ())
    unstressed = word.endswith(("l", "s", "efit", "onet", "phen", "phon")) and len(_SYLLABLE.findall(word)) > 1
    if listed and (not unstressed or word in _STRESSED_L) and _VOWEL_AND_CONSONANT.fullmatch(word):
        return word + word[-1]
    return word


# Adjectives


def comparative(adjective: str) -> str:
    """*bigger*, *happier*, *more beautiful*."""
    return _compared(adjective, "er", "more", 0)


def superlative(adjective: str) -> str:
    """*biggest*, *happiest*, *most beautiful*."""
    return _compared(adjective, "est", "most", 1)


@lru_cache(maxsize=1 << 12)
def _compared(adjective: str, ending: str, word: str, degree: int) -> str:
    if adjective in COMPARED:
        return COMPARED[adjective][degree]
    if not _takes_ending(adjective):
        return f"{word} {adjective}"
    if adjective.endswith("e"):
        return adjective + ending[1:]
    if _Y_AFTER_CONSONANT.search(adjective):
        return adjective[:-1] + "i" + ending
    if _ONE_SYLLABLE_DOUBLING.fullmatch(adjective):
        return adjective + adjective[-1] + ending
    return adjective + ending


def _takes_ending(adjective: str) -> bool:
    """Short words take *-er* and *-est*: one syllable, or two with a light ending; no participles, no compounds."""
    if not adjective.isalpha() or (adjective.endswith(("ed", "ing")) and len(adjective) > 4):
        return False
    syllables = len(_SYLLABLE.findall(adjective.removesuffix("e") if not adjective.endswith("le") else adjective))
    return syllables <= 1 or (syllables == 2 and adjective.endswith(("y", "le", "ow")))


# Any word


def inflected(lemma: str, tag: str) -> str:
    """The lemma in the form that a Penn Treebank tag names; the lemma itself for any other tag."""
    form = _BY_TAG.get(tag)
    return lemma if form is None else form(lemma)


_BY_TAG: dict[str, Callable[[str], str]] = {
    "NNS": pluralise,
    "NNPS": pluralise,
    "VBZ": third_person,
    "VBG": gerund,
    "VBD": past,
    "VBN": participle,
    "JJR": comparative,
    "JJS": superlative,
}


@lru_cache(maxsize=4)
def _irregular(part: str) -> dict[str, tuple[str, ...]]:
    return load_wordnet().irregular_forms(part)
