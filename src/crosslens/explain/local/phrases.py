"""Names and numbers as English puts them into a sentence: *an apple*, *grass*, *two sheep*, *a cat and a leaf*."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Context
from math import isfinite

from crosslens.language.articles import takes_an
from crosslens.language.inflection import is_plural, pluralise
from crosslens.language.scene_words import NUMBERS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MASS = _words(
    """air asphalt bacon beer bread broccoli butter cardboard cement cheese chocolate clothing coffee concrete corn
    cutlery dirt equipment fabric fog food foliage fruit fur furniture graffiti grass gravel greenery hair hay ice
    jewelry juice land lettuce lighting luggage meat metal milk mud paint pavement pepperoni plastic rain rice sand
    scenery seaweed silverware smoke snow soil soup steam straw sunlight sushi tea text traffic trash vegetation water
    wheat wine wood writing"""
)
"""Nouns without an article or a plural."""
_CAPITALS = {"tv": "TV", "atm": "ATM", "suv": "SUV", "dvd": "DVD", "cd": "CD", "pc": "PC", "usb": "USB", "atv": "ATV"}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_DIGITS = 3


def spelled(name: str) -> str:
    """Names are kept in small letters; a few are written otherwise."""
    return " ".join(_CAPITALS.get(word, word) for word in name.split(" "))


def one(name: str) -> str:
    """A thing that is mentioned first: with its article, if it takes one."""
    name = spelled(name)
    if is_plural(name) or _is_mass(name):
        return name
    return f"{'an' if takes_an(name) else 'a'} {name}"


def many(name: str) -> str:
    """The plural; a name that is one stays."""
    name = spelled(name)
    return name if is_plural(name) or _is_mass(name) else pluralise(name)


def _is_mass(name: str) -> bool:
    """By the noun that carries it: bread is no mass as a *loaf of bread*."""
    return name.split(" of ")[0].split(" ")[-1] in _MASS


def counted(number: int, name: str) -> str:
    """*one dog*, *three dogs*, *42 dogs*; *no dog*."""
    if number == 0:
        return f"no {spelled(name)}"
    return f"{number_word(number)} {spelled(name) if number == 1 else many(name)}"


def number_word(number: int) -> str:
    """Small numbers as words."""
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def listed(parts: Sequence[str], joint: str = "and") -> str:
    """*a*, *a and b*, *a, b and c*."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"


def ordinal(place: int) -> str:
    """*second*, *13th*."""
    if place <= len(_ORDINALS):
        return _ORDINALS[place - 1]
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{ending}"


def rounded(value: float) -> str:
    """Three digits that count."""
    return f"{value:.{_DIGITS}g}" if abs(value) < 10**_DIGITS else f"{value:,.0f}"


def rounded_down(value: float) -> str:
    """Three digits that count, never more than the value: for what is said to be *at least* so much."""
    if not isfinite(value) or value <= 0:
        return "0"
    # In decimals: between the smallest floats no power of ten has a reciprocal.
    shown = Context(prec=_DIGITS, rounding=ROUND_DOWN).create_decimal_from_float(value)
    return f"{float(shown):.{_DIGITS}g}"
