"""What captions state, read from their words: colours, numbers, positions, sizes, actions, written words.

The words are in a table, ``facts.toml``. A reader takes a word only where it surely states the fact: not in *an
orange*, *the left hand*, *under water*, *two years*.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from crosslens.language.inflection import inflected, is_plural
from crosslens.language.parse import is_phrase
from crosslens.language.wordnet import load_wordnet
from crosslens.language.words import FEMALE, HE, MALE, NUMBERS, SHE, STOP_WORDS, TENS, number_word, word_set

_TABLE = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))


def _rows(text: str) -> Iterator[list[str]]:
    return (row.split() for row in re.split(r"[|\n]", text) if row.strip())


def _pairs(text: str) -> dict[str, str]:
    here, there = zip(*(pair.strip().split(" = ") for pair in text.split(",")), strict=True)
    return dict(zip(here + there, there + here, strict=True))


FACT_WORDS: Mapping[str, frozenset[str]] = {name: word_set(text) for name, text in _TABLE["lists"].items()}
"""Lists of words that say what other words state, by name."""
FUNCTION_WORDS = STOP_WORDS | FACT_WORDS["function"]
COLOUR_FAMILIES: Mapping[str, tuple[str, ...]] = {row[0]: tuple(row) for row in _rows(_TABLE["colours"]["families"])}
COLOUR_FAMILY = {word: family for family, words in COLOUR_FAMILIES.items() for word in words}
FAR_COLOURS = {row[0]: COLOUR_FAMILIES.keys() - set(row) for row in _rows(_TABLE["colours"]["near"])}
"""The families of colours that nobody confuses with a family."""
LARGE, SMALL = (tuple(_TABLE["sizes"][name].split()) for name in ("large", "small"))
SIZE_WORDS: Mapping[str, frozenset[str]] = {
    name: word_set(f"{_TABLE['sizes'][name]} {_TABLE['sizes'][f'also_{name}']}") for name in ("large", "small")
}
"""What says of anything in an image that it is large, or small."""
OPPOSITE_POSITIONS = _pairs(_TABLE["positions"]["opposite"]) | {
    "underneath": "on top of", "beneath": "on top of", "over": "under"
}  # fmt: skip
ACTION_FORMS: dict[str, tuple[str, ...]] = {}
"""Of each action the words that say that it is done: *-ing* and *-s* of its name first."""
ACTION_OF: dict[str, str] = {}
for _row in _rows(_TABLE["actions"]["verbs"]):
    _verbs, _, _others = " ".join(_row).partition(" - ")
    _forms = [inflected(verb, tag) for verb in _verbs.split() for tag in ("VBG", "VBZ")]
    ACTION_FORMS[_row[0]] = (*_forms, *_others.split())
    ACTION_OF |= dict.fromkeys((*ACTION_FORMS[_row[0]], *_verbs.split()), _row[0])
CONTRARY_ACTIONS = {row[0]: tuple(row[1:]) for row in _rows(_TABLE["actions"]["contrary"])}
_LISTED = {"MALE": MALE | HE, "FEMALE": FEMALE | SHE}
CONTRARY_SIDES = tuple(
    tuple(frozenset().union(*(_LISTED.get(word, {word}) for word in side.split())) for side in row.split("|"))
    for row in _TABLE["contrary"]["sides"].strip().splitlines()
)
"""What a caption may say of one side only."""
EXCLUSIVE = tuple(map(word_set, _TABLE["contrary"]["exclusive"].strip().splitlines()))

BETWEEN = "of two things (left, right, above or below)"
"""The sort of position of one thing to another that only order and direction tell."""
_SORTS = dict.fromkeys(("above", "below", "under", "underneath", "beneath", "over", "on top of"), BETWEEN)
_SORTS |= {"inside": "inside", "outside": "inside", "in front of": "in front", "behind": "in front"}
QUOTED = re.compile(r"[\"“”]\s*([^\"“”]+?)\s*[\"“”]")
_LONGEST_QUOTED = 40
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_MOST_NAMING = 4


class Words:
    """A caption in words and punctuation, in lower case, with their positions; beyond its ends are empty words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = tuple(match.span() for match in _WORD.finditer(text))
        self.lower = tuple(text[start:end].lower() for start, end in self.spans)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, position: int) -> str:
        return self.lower[position] if 0 <= position < len(self.lower) else ""

    def written(self, first: int, last: int) -> str:
        """The words from ``first`` to ``last``, with their capitals."""
        return self.text[self.spans[first][0] : self.spans[last][1]]

    def with_other(self, first: int, last: int, text: str) -> str:
        """The caption with another text for the words from ``first`` to ``last``."""
        return self.text[: self.spans[first][0]] + text + self.text[self.spans[last][1] :]


class Stated(NamedTuple):
    """The words ``first`` to ``last`` state a fact."""

    first: int
    last: int
    value: str
    sort: str = ""


# Numbers
_VALUES = {word: value for value, word in enumerate(NUMBERS)} | {
    word: 10 * value for value, word in enumerate(TENS[1:], 1)
}
_FACTORS = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6}
SMALL_NUMBERS = {word: number for number, word in enumerate(NUMBERS) if 2 <= number <= 12}
_MOST_BEFORE_NOUN = 3


def read_number(words: Sequence[str], at: int = 0) -> tuple[int, int] | None:
    """The number that begins at a position, in digits or words, and how many words it takes: *one hundred and six*."""
    if at < len(words) and words[at].isdecimal():
        return int(words[at]), 1
    thousands = rest = 0
    end = position = at
    while position < len(words):
        value, factor = _VALUES.get(words[position]), _FACTORS.get(words[position])
        if value is not None and (rest % 100 == 0 if value > 9 else rest % 10 == 0 and rest % 100 != 10):
            rest += value
        elif factor and (position > at or factor > 12):  # a dozen is counted by its article
            rest = (rest or 1) * factor
            thousands, rest = (thousands + rest, 0) if factor >= 1000 else (thousands, rest)
        elif words[position] != "and" or position == at or words[position - 1] not in _FACTORS:
            break
        end = position + 1 if words[position] != "and" else end
        position += 1
    return (thousands + rest, end - at) if end > at else None


def in_digits(words: Sequence[str]) -> list[str]:
    """Words with every number in digits, but *one*, which may stand for a thing."""
    words, position = list(words), 0
    digits: list[str] = []
    while position < len(words):
        value, length = read_number(words, position) or ("", 1)
        as_written = value == "" or words[position].isdecimal() or words[position : position + length] == ["one"]
        digits.append(words[position] if as_written else str(value))
        position += length
    return digits


def _counts(words: Words) -> Iterator[Stated]:
    return (
        Stated(at, at, number_word(word))
        for at, word in enumerate(words.lower)
        if number_word(word) in SMALL_NUMBERS and _counts_nouns(words, at)
    )


def _counts_nouns(words: Words, at: int) -> bool:
    """Whether the number at a position says how many of some thing there are."""
    before, earlier = words[at - 1], words[at - 2]
    share = (before == "of" and earlier in FACT_WORDS["part_of_several"]) or (
        before == "the" and earlier in ("of", "between")
    )
    listed = before in SMALL_NUMBERS or words[at + 1] in ("or", "and", "of")
    if share or listed or before in FACT_WORDS["uncounted_after"]:
        return False
    for position in range(at + 1, at + 2 + _MOST_BEFORE_NOUN):
        word = words[position]
        joined = "-" in word and position == at + 1
        if word in FACT_WORDS["measured"] | FUNCTION_WORDS or joined or not word.replace("-", "").isalpha():
            return False
        if word in ("men", "women", "children", "people"):
            return True
        if word.endswith("s") and word not in FACT_WORDS["no_plurals"] and is_plural(word):
            return words[position + 1] not in FACT_WORDS["measured"] | {"of"}
    return False


# Colours


def _colours(words: Words) -> Iterator[Stated]:
    for at, word in enumerate(words.lower):
        family = COLOUR_FAMILY.get(word)
        if family is not None and word in (family, "grey") and _is_colour(words, at):
            yield Stated(at, at, family)


def _is_plain_colour(word: str) -> bool:
    return word in COLOUR_FAMILIES or word == "grey"


def _is_colour(words: Words, at: int) -> bool:
    """Whether the word at a position says what colour a thing has."""
    word, before, after, two, three = (words[at + step] for step in (0, -1, 1, 2, 3))
    name = at > 0 and words.written(at, at)[:1].isupper() and not words.text.isupper()
    persons, pictures = FACT_WORDS["persons"], FACT_WORDS["pictures"]
    if name or after in persons | FACT_WORDS["not_coloured"] or {after, two} & pictures:
        return False
    if after == "and" and three in pictures | persons:
        return False
    if before == "and" and _is_plain_colour(words[at - 2]) and not after.isalpha():
        return False  # in black and white
    if word == "orange" and (after in FUNCTION_WORDS or not after.isalpha() or _is_plain_colour(after)):
        return False
    return not (after.isalpha() and after not in FUNCTION_WORDS and is_phrase(f"{word} {after}"))


# Positions


def _positions(words: Words) -> Iterator[Stated]:
    for at in range(len(words)):
        last = at + 2 if words.lower[at : at + 3] in (("on", "top", "of"), ("in", "front", "of")) else at
        place = " ".join(words.lower[at : last + 1])
        if place in OPPOSITE_POSITIONS and (_between if place in _SORTS else _in_picture)(words, at):
            of_thing = place in ("left", "right") and words[at + 1] == "of" and words[at - 2] != "on"
            yield Stated(at, last, place, BETWEEN if of_thing else _SORTS.get(place, "in the picture"))


def _in_picture(words: Words, at: int) -> bool:
    """Whether a word names a part of the picture or of a thing: *on the left side*, *in the lower right part*."""
    word, before, earlier, after, two = (words[at + step] for step in (0, -1, -2, 1, 2))
    side = after in FACT_WORDS["side"] or (after in ("left", "right", "hand") and two in FACT_WORDS["side"])
    if word in ("left", "right"):
        ends = after in FUNCTION_WORDS or not after.isalpha()
        there = before == "the" and earlier in ("on", "to", "at") and ends
        of_body = before in FACT_WORDS["possessive"] or after in FACT_WORDS["body"]
        return (side or there or (after == "of" and before != "the")) and not of_body
    if word in ("upper", "lower"):
        return side and "body" not in (after, two)
    if word in ("top", "bottom"):
        return before == "the" and earlier in ("at", "near", "in") and (side or after == "of")
    return before == "the" and earlier == "in"


def _between(words: Words, at: int) -> bool:
    """Whether a word says where one thing is to another, which is named behind it."""
    word, before, after = words[at], words[at - 1], words[at + 1]
    determined, nouns = after in FACT_WORDS["determiners"], {words[at + step] for step in range(1, 5)}
    if word in ("above", "below"):
        high = nouns & (FACT_WORDS["not_under"] | FACT_WORDS["body"] | FACT_WORDS["not_above"])
        return determined and before not in ("from", "the") and not high
    if word in ("under", "underneath", "beneath"):
        return determined and not nouns & FACT_WORDS["not_under"]
    if word == "over":
        noun = before not in FUNCTION_WORDS and not before.endswith("ing") and before.isalpha()
        moving = before in FACT_WORDS["over"] or (noun and at <= 3)
        return after in ("a", "an") and not nouns & FACT_WORDS["not_over"] and moving
    if word == "behind":
        return determined and before not in ("from", "left") and not nouns & FACT_WORDS["not_behind"]
    if word in ("inside", "outside"):
        bound = before in ("the", "an", "on", "from", "side", "-", "is") or nouns & {"out", "of"}
        return not bound and (determined or not after.isalpha())
    return True


# Sizes, actions and written words


def _sizes(words: Words) -> Iterator[Stated]:
    for at, word in enumerate(words.lower):
        if word not in _TABLE["sizes"]["replaced"].split():
            continue
        noun, second = words[at + 1], words[at + 2]
        plain = noun.isalpha() and noun not in FUNCTION_WORDS and noun not in (*LARGE, *SMALL)
        unsized = {noun, second} & (FACT_WORDS["not_sized"] | FACT_WORDS["persons"])
        if plain and not unsized and not is_phrase(f"{word} {noun}"):
            yield Stated(at, at, word)


def _actions(words: Words) -> Iterator[Stated]:
    for at, word in enumerate(words.lower):
        action, going = ACTION_OF.get(word, ""), word.endswith("ing")
        before, after = words[at - 1], words[at + 1]
        if action not in CONTRARY_ACTIONS or not word.endswith(("ing", "s")):
            continue
        noun = before in FACT_WORDS["not_acting"] | FACT_WORDS["not_acting_after"]
        if noun or after in FACT_WORDS["not_acting"] | {"-"}:
            continue
        if not going and (before in FUNCTION_WORDS or not before.isalpha() or after in ("of", "and", "")):
            continue
        # A kite that somebody flies, a dog that is walked, do not do it.
        if action not in FACT_WORDS["done_to_others"] or after not in ("a", "an", "the", "his", "her"):
            yield Stated(at, at, action)


def _written(words: Words) -> Iterator[Stated]:
    for match in QUOTED.finditer(words.text):
        start, end = match.span(1)
        inside = [at for at, span in enumerate(words.spans) if start <= span[0] and span[1] <= end]
        if inside and end - start <= _LONGEST_QUOTED:
            yield Stated(inside[0], inside[-1], words.written(inside[0], inside[-1]))


FACT_READERS: Mapping[str, Callable[[Words], Iterator[Stated]]] = {
    "colour": _colours, "count": _counts, "position": _positions, "action": _actions, "size": _sizes, "text": _written,
}  # fmt: skip
"""What finds where a caption surely states a fact, by its kind."""


# What a fact is stated of


@lru_cache(maxsize=1 << 14)
def is_noun(word: str) -> bool:
    """Whether WordNet has it as a noun."""
    return load_wordnet().morphy(word, "n") is not None


def may_name(word: str) -> bool:
    """Whether a word can be part of a thing's name: *sports car*, not *quickly* or *chasing*."""
    can_be_noun = word.replace("-", "").isalpha() and word not in FUNCTION_WORDS | FACT_WORDS["done_to"]
    return can_be_noun and (word in FACT_WORDS["in_ing"] or not word.endswith(("ing", "ly")))


def naming_words(words: Words | Sequence[str], at: int) -> tuple[str, ...]:
    """The words right behind a position that can name a thing."""
    end = at + 1
    while end <= at + _MOST_NAMING and end < len(words) and may_name(words[end]):
        end += 1
    return tuple(words[position] for position in range(at + 1, end))
