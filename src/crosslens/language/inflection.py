"""English words inflected: plurals, the forms of verbs, degrees of adjectives.

Everyday irregular words are in a table, ``irregular.toml``; WordNet's list of irregular forms says which verbs and
adjectives double their last letter, and how the rarer ones go. A name of several words changes in the one that carries
it: *sets of stairs*, *lets go of*.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from crosslens.language.wordnet import load_wordnet
from crosslens.language.words import word_set

_LEADING = re.compile(r"[^\w]+")
_SILENT_H = re.compile(r"hour|honest|hono(?:u?r|rar)|heir|hors d")
_LIKE_YOU = re.compile(
    r"uni(?!n|m|d|ron|ss)|unid(?:ir|im)|unanim|us(?:e|a|u|i)|ut[aeio]|ur[aeio]|uku|ubiq|ugand|ukrain|uvul|eu|ewe"
)
_LIKE_WON = re.compile(r"ones?(?![a-z])|one(?:sie|time|ness|self)|once|ouija|oaxac")
_ONE_LETTER = re.compile(r"[A-Za-z](?![A-Za-z0-9])")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9]+(?=s?(?![A-Za-z]))")
_VOWELS = "aeiouáàâäãåæéèêëíìîïóòôöõøœúùûü"
_VOWEL_LETTERS = "AEFHILMNORSX"
"""Letters whose names begin with a vowel: an *X-ray*, an *SUV*."""
_VOWEL_NUMBERS = re.compile(r"8|11(?!\d)|18(?!\d)")
_SPELLED_OUT = word_set("""AED AI ATM ATV AV EMT EU FBI HIV IBM IPA IT IV LA LED MBA MIT MRI NBA PA RAF RBI SOS SUV TA
    UAV UFC UFO UK UN US USA USB VIP""")
"""Letters that have a vowel among them and are still said one by one."""


def takes_an(word: str) -> bool:
    """Whether a word is said with ``an`` before it: *hour*, *SUV*, *8-wheeler*; not *unicycle*, *one-way*, *ewe*."""
    word = _LEADING.sub("", word, count=1) if not word[:1].isalnum() else word
    if word[:1].isdigit():
        return _VOWEL_NUMBERS.match(word) is not None
    # A lone letter (*U-turn*, *x-ray*), or capitals that nobody says as a word; *A RED DOG* is only loud.
    capitals = _CAPITALS.match(word)
    spelled = capitals and (capitals.group() in _SPELLED_OUT or set("AEIOUY").isdisjoint(capitals.group()))
    if spelled or (not capitals and _ONE_LETTER.match(word)):
        return word[0].upper() in _VOWEL_LETTERS
    lower = word.lower()
    vowel = lower[:1] in tuple(_VOWELS) and not _LIKE_YOU.match(lower) and not _LIKE_WON.match(lower)
    return vowel or _SILENT_H.match(lower) is not None


_TABLES = tomllib.loads(Path(__file__).with_name("irregular.toml").read_text(encoding="utf-8"))
_PLURAL_PAIRS = _TABLES["plurals"].split()
PLURALS: dict[str, str] = dict(zip(_PLURAL_PAIRS[::2], _PLURAL_PAIRS[1::2], strict=True))
SAME_IN_PLURAL = word_set(_TABLES["same_in_plural"])
ALWAYS_PLURAL = word_set(_TABLES["always_plural"])
_VERB_ROWS = (row.split() for row in re.split(r"[|\n]", _TABLES["verbs"]) if row)
PAST_FORMS: dict[str, tuple[str, str]] = {verb: (past, participle) for verb, past, participle in _VERB_ROWS}
PREFIXES = ("over", "under", "out", "with", "fore", "mis", "un", "re", "up", "in", "inter", "be")
"""Before an irregular verb they keep its forms: *overtook*, *rebuilt*, *withdrew*; checked against WordNet's list."""

_HISS = ("s", "x", "z", "ch", "sh")
_Y_AFTER_CONSONANT = re.compile(r"[^aeiou]y\Z")
_BEHIND_HEAD = re.compile(
    r"(?<=\w)(?: (?:of|with|on|in|to|for|at|from|by|and)\b|-(?:in|of|at|to|de|up|on|by|off)\b(?!.* ))"
)
"""What follows the noun that carries a name: *sets of stairs*, *brothers-in-law*; not in *grown-up fellows*."""
_SYLLABLE = re.compile(r"[aeiouy]+")
_ONE_SYLLABLE_DOUBLING = re.compile(r"(?:qu|[^aeiou])*[aeiouy][bdfgklmnprtvz]")
_VOWEL_AND_CONSONANT = re.compile(r".*[^aeiou][aeiou][bdfgklmnprtvz]")
_STRESSED_L = word_set(
    "annul appal compel control dispel enrol excel expel extol fulfil impel instil patrol propel rebel repel"
)
_MEN = re.compile(r"(?:man|woman)\Z")
_NOT_MEN = word_set("human german roman shaman talisman caiman ottoman caftan norman cayman brahman mussulman")
_COMPOUND_TAILS = ("child", "tooth", "goose", "foot", "knife", "wife", "shelf", "leaf", "wolf", "loaf", "half")
"""Ends of compound words that keep their irregular plural: *grandchildren*, *bookshelves*."""
_SINGULARS = {plural: singular for singular, plural in PLURALS.items()}
_PLURAL_ENDINGS = (("s", ""), ("ies", "y"), ("es", ""), ("ves", "f"), ("ves", "fe"), ("zzes", "z"), ("ses", "sis"))


# Nouns


@lru_cache(maxsize=1 << 14)
def pluralise(noun: str) -> str:
    """The plural of a noun, or of a phrase, whose noun before *of*, *with*, *in* …, or last word, changes."""
    return _with_head(noun, _plural)


@lru_cache(maxsize=1 << 14)
def singularise(noun: str) -> str:
    """The singular of a plural noun or phrase; a word that has none, or is none, stays as it is."""
    return _with_head(noun, _singular)


@lru_cache(maxsize=1 << 14)
def is_plural(noun: str) -> bool:
    """Whether a noun or phrase is a plural: it has another form as singular, or has none (*scissors*)."""
    head = _split_head(noun.lower())[0].rpartition(" ")[2]
    return head in ALWAYS_PLURAL or (head not in SAME_IN_PLURAL and _singular(head) != head)


def _with_head(noun: str, change: Callable[[str], str]) -> str:
    head, rest = _split_head(noun)
    front, space, word = head.rpartition(" ")
    return front + space + change(word) + rest


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
    # Of WordNet's list only what is irregular in English spelling, -oes and -zzes: no Latin.
    listed = (form for form in _irregular("n").get(lower, ()) if form in (lower + "es", lower + lower[-1:] + "es"))
    return next(listed, None) or (word + "es" if lower.endswith(_HISS) else _with_s(word))


def _with_s(word: str) -> str:
    return word[:-1] + "ies" if _Y_AFTER_CONSONANT.search(word.lower()) else word + "s"


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in ALWAYS_PLURAL or lower in SAME_IN_PLURAL:
        return word
    if lower in _SINGULARS:
        return _SINGULARS[lower]
    forms = [lower[:-2] + "an"] if lower.endswith("men") else []  # what a plural may come from, by its ending
    endings = (pair for pair in _PLURAL_ENDINGS if lower.endswith(pair[0]) and len(lower) > len(pair[0]) + 1)
    forms += [lower.removesuffix(ending) + new for ending, new in endings]
    tails = (tail for tail in _COMPOUND_TAILS if lower.endswith(PLURALS[tail]))
    forms += [lower.removesuffix(PLURALS[tail]) + tail for tail in tails]
    singulars = [form for form in forms if _plural(form) == lower]
    listed = [form for form in singulars if _is_listed(form)]
    if listed:
        return listed[0]
    is_singular = _is_listed(lower) or lower.endswith(("ss", "us", "is"))
    return word if is_singular or not singulars else singulars[0]


def _is_listed(noun: str) -> bool:
    """Whether WordNet lists this very form as a noun, and not as the plural of another."""
    return load_wordnet().morphy(noun, "n") == noun


# Verbs


def _third_person(verb: str) -> str:
    special = {"be": "is", "have": "has"}.get(verb)
    return special or (verb + "es" if verb.endswith((*_HISS, "o")) else _with_s(verb))


@lru_cache(maxsize=1 << 13)
def _gerund(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    keeps_e = verb.endswith(("ee", "oe", "ye")) or len(verb) <= 2 or verb in ("singe", "tinge")
    return verb[:-1] + "ing" if verb.endswith("e") and not keeps_e else _doubled(verb, "ing") + "ing"


@lru_cache(maxsize=1 << 13)
def _past_forms(verb: str) -> tuple[str, str]:
    """The past and its participle."""
    if verb in PAST_FORMS:
        return PAST_FORMS[verb]
    for prefix in PREFIXES:
        simple = PAST_FORMS.get(verb.removeprefix(prefix)) if verb.startswith(prefix) else None
        if simple is not None and prefix + simple[0] in (verb, *_irregular("v").get(verb, ())):
            return prefix + simple[0], prefix + simple[1]
    if verb.endswith("e"):
        regular = verb + "d"
    elif _Y_AFTER_CONSONANT.search(verb):
        regular = verb[:-1] + "ied"
    else:
        regular = _doubled(verb, "ed") + "ed"
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


@lru_cache(maxsize=1 << 12)
def _compared(adjective: str, degree: int) -> str:
    """The comparative (degree 0) or superlative (1)."""
    if adjective in _TABLES["compared"]:
        return str(_TABLES["compared"][adjective][degree])
    ending, word = (("er", "more"), ("est", "most"))[degree]
    # Short words take *-er* and *-est*: one syllable, or two with a light ending; no participles, no compounds.
    syllables = len(_SYLLABLE.findall(adjective if adjective.endswith("le") else adjective.removesuffix("e")))
    short = syllables <= 1 or (syllables == 2 and adjective.endswith(("y", "le", "ow")))
    participle = adjective.endswith(("ed", "ing")) and len(adjective) > 4
    if not short or participle or not adjective.isalpha():
        return f"{word} {adjective}"
    if adjective.endswith("e"):
        return adjective + ending[1:]
    if _Y_AFTER_CONSONANT.search(adjective):
        return adjective[:-1] + "i" + ending
    if _ONE_SYLLABLE_DOUBLING.fullmatch(adjective):
        return adjective + adjective[-1] + ending
    return adjective + ending


# Any word

_FORMS: dict[str, Callable[[str], str]] = {
    "NNS": pluralise,
    "NNPS": pluralise,
    "JJR": partial(_compared, degree=0),
    "JJS": partial(_compared, degree=1),
}
_VERB_FORMS: dict[str, Callable[[str], str]] = {
    "VBZ": _third_person,
    "VBG": _gerund,
    "VBD": lambda verb: _past_forms(verb)[0],
    "VBN": lambda verb: _past_forms(verb)[1],
}


def inflected(lemma: str, tag: str) -> str:
    """The lemma in the form that a Penn Treebank tag names; the lemma itself for any other tag."""
    if tag in _VERB_FORMS:
        verb, space, rest = lemma.partition(" ")
        return _VERB_FORMS[tag](verb) + space + rest
    return _FORMS[tag](lemma) if tag in _FORMS else lemma


@lru_cache(maxsize=4)
def _irregular(part: str) -> dict[str, tuple[str, ...]]:
    return load_wordnet().irregular_forms(part)
