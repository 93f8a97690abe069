"""Five captions for a picture, as different as those of five people; and the English they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from string import Formatter
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from crosslens.language import NUMBERS, TENS, pluralise as plural_of, takes_an
from crosslens.synth.drawing import read_table
from crosslens.synth.kinds import COLOURED, Kind, kind_named

_SETTING_NAMES = {
    "open sea": "the open sea",
    "underwater": "the world under water",
    "outer space": "outer space",
    "mountains": "the mountains",
}


@lru_cache(maxsize=4096)
def a(noun: str) -> str:
    """The noun with ``a`` or ``an``, as its sound requires."""
    return f"{'an' if takes_an(noun) else 'a'} {noun}"


def pluralise(noun: str) -> str:
    """The plural of a noun or of a noun phrase; all versions of the scenes write *spacecrafts*."""
    return f"{noun}s" if noun.endswith("spacecraft") else plural_of(noun)


def number_word(number: int) -> str:
    """``seven`` for 7, ``minus forty-two`` for -42; from a thousand on in digits."""
    if number < 0:
        return f"minus {number_word(-number)}"
    if number < len(NUMBERS):
        return NUMBERS[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens] + (f"-{NUMBERS[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{NUMBERS[hundreds]} hundred" + (f" and {number_word(rest)}" if rest else "")
    return f"{number:,}"


def listing(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def setting_name(backdrop: str) -> str:
    """A backdrop with its article, if it takes one."""
    return _SETTING_NAMES.get(backdrop) or a(backdrop)


def part_of_picture(across: float, down: float) -> str:
    """In which part of the picture a point lies, given in parts of its sides."""
    side = "left" if across < 0.375 else "right" if across > 0.625 else ""
    level = "upper" if down < 0.375 else "lower" if down > 0.625 else ""
    if side and not level:
        return f"on the {side} side of the picture"
    part = " ".join(filter(None, (level, side)))
    return f"in the {part} part of the picture" if part else "in the middle of the picture"


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."


T = TypeVar("T")

DIFFICULTY = {"literal": "easy", "sparse": "medium", "detailed": "easy", "paraphrased": "medium", "figurative": "hard"}
"""Style → how hard it is to recognise the picture in it: plain words are easy, leaving out or saying it otherwise is
medium, not naming it at all is hard."""
STYLES = tuple(DIFFICULTY)

WORDS = {
    heading: [[cell.strip() for cell in row.split("|")] for row in rows]
    for heading, rows in read_table("tasks/words.txt").items()
}
COLOUR_WORDS = {colour: (other, hue) for colour, other, hue in WORDS["colours"]}
"""Colour → another word for it, and a way to say it without any."""


@dataclass(frozen=True)
class SceneCaption:
    """A sentence about a picture."""

    text: str
    style: str

    @property
    def difficulty(self) -> str:
        """Easy, medium or hard, by its style."""
        return DIFFICULTY[self.style]


def pick(random: np.random.Generator, *options: T) -> T:
    """One of the options; always draws exactly one number, so that a changed fact does not change later picks."""
    return options[int(random.random() * len(options))]


def coloured(phrase: str, kind: Kind | None, colour: str) -> str:
    """The word with the colour where it belongs: ``red car``, ``woman in red``, ``lamp with a red shade``."""
    pattern = "{colour} {name}"
    if kind is not None:
        pattern = COLOURED.get(kind.name, COLOURED.get(kind.category, pattern))
    return pattern.replace("a {colour}", a(colour)).format(name=phrase, colour=colour)


class Wording:
    """The phrases for one kind of object in one colour.

    ``plain``, which is also its text, is ``red car``, ``riddle`` ``petrol-thirsty commuter``, ``hue`` ``the colour of
    ripe tomatoes``.
    """

    def __init__(self, name: str, colour: str) -> None:
        self.kind = kind_named(name)
        self.plain, self.riddle = coloured(name, self.kind, colour), self.kind.riddle
        self._other_colour, self.hue = COLOUR_WORDS[colour]

    def __str__(self) -> str:
        return self.plain

    def other(self, random: np.random.Generator) -> str:
        """``scarlet automobile``."""
        return coloured(pick(random, *self.kind.also), self.kind, self._other_colour)


def many(number: int, noun: str) -> str:
    """``one red car``, ``three red cars``."""
    return f"one {noun}" if number == 1 else f"{number_word(number)} {pluralise(noun)}"


_FORMS: dict[str, Callable[[Any], str]] = {"": str, "a": lambda noun: a(str(noun)), "word": number_word}
Template = list[tuple[str, Callable[[Any], Any] | None, Callable[[Any], str]]]
"""Pieces of text; after each the value that follows it, and how that is written."""


_TEMPLATES: dict[str, dict[str, list[Template]]] = {}
"""Task → style → the ways to say it."""
for _task, _rows in read_table("tasks/captions.txt").items():
    _TEMPLATES[_task] = {style: [] for style in STYLES}
    for _style, _text in (row.split(maxsplit=1) for row in _rows):
        _TEMPLATES[_task][_style].append(
            [
                (before, attrgetter(name) if name else None, _FORMS[form or ""])
                for before, name, form, _ in Formatter().parse(_text)
            ]
        )


def write_captions(task: str, words: SimpleNamespace, random: np.random.Generator) -> tuple[SceneCaption, ...]:
    """One in each style. Every way to say it is filled in, whichever is picked: each draws its own words."""
    captions = []
    for style, templates in _TEMPLATES[task].items():
        texts = []
        for template in templates:
            text = ""
            for before, value_of, form in template:
                value = value_of(words) if value_of else ""
                text += before + form(value(random) if callable(value) else value)
            texts.append(text)
        captions.append(SceneCaption(sentence(pick(random, *texts) if len(texts) > 1 else texts[0]), style))
    return tuple(captions)
