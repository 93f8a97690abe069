"""Five captions for a picture, as different as those of five people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from crosslens.synth.grammar import a, number_word, pluralise, sentence
from crosslens.synth.kinds import Kind, kind_named
from crosslens.synth.kinds.catalogue import COLOURED

T = TypeVar("T")

DIFFICULTY = {
    "literal": "easy",
    "sparse": "medium",
    "detailed": "easy",
    "paraphrased": "medium",
    "figurative": "hard",
}
"""Style → how hard it is to recognise the picture in it: plain words are easy, leaving out or saying it otherwise is
medium, not naming it at all is hard."""
STYLES = tuple(DIFFICULTY)

COLOUR_WORDS: dict[str, tuple[str, str]] = {
    "red": ("scarlet", "the colour of ripe tomatoes"),
    "orange": ("tangerine", "the colour of pumpkins"),
    "yellow": ("canary", "the colour of lemons"),
    "green": ("emerald", "the colour of fresh grass"),
    "blue": ("azure", "the colour of a clear sky"),
    "purple": ("violet", "the colour of ripe plums"),
    "pink": ("fuchsia", "the colour of flamingos"),
    "brown": ("chestnut", "the colour of chocolate"),
    "black": ("ebony", "the colour of coal"),
    "white": ("ivory", "the colour of fresh milk"),
    "grey": ("slate", "the colour of rain clouds"),
}
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


@dataclass(frozen=True)
class CaptionStyles:
    """The five texts of one picture, before they are captions."""

    literal: str
    sparse: str
    detailed: str
    paraphrased: str
    figurative: str

    def captions(self) -> tuple[SceneCaption, ...]:
        """With capitals and full stops."""
        return tuple(SceneCaption(sentence(getattr(self, style)), style) for style in STYLES)


def pick(random: np.random.Generator, *options: T) -> T:
    """One of the options; always draws exactly one number, so that a changed fact does not change later picks."""
    return options[int(random.random() * len(options))]


def coloured(kind: Kind, colour: str, name: str | None = None) -> str:
    """``red car``, ``woman in red``, ``lamp with a red shade``; of another ``name`` if given."""
    name = kind.name if name is None else name
    pattern = COLOURED.get(kind.name, COLOURED.get(kind.category, "{colour} {name}"))
    text = pattern.format(name=name, colour=colour)
    return text.replace(f"a {colour}", a(colour)) if f"with a {colour}" in text or f"on a {colour}" in text else text


class Wording:
    """The phrases for one kind of object in one colour.

    ``plain`` is ``red car``, ``riddle`` ``petrol-thirsty commuter``, ``hue`` ``the colour of ripe tomatoes``.
    """

    def __init__(self, name: str, colour: str) -> None:
        self.kind = kind_named(name)
        self.plain, self.riddle = coloured(self.kind, colour), self.kind.riddle
        self._other_colour, self.hue = COLOUR_WORDS[colour]

    def other(self, random: np.random.Generator) -> str:
        """``scarlet automobile``."""
        return coloured(self.kind, self._other_colour, pick(random, *self.kind.also))


def many(number: int, noun: str) -> str:
    """``one red car``, ``three red cars``."""
    return f"one {noun}" if number == 1 else f"{number_word(number)} {pluralise(noun)}"
