"""Closed word lists: what counts, measures and points in scene graphs, what names nothing; and colours by name.

The names of colours are those of CSS4 and of XKCD's survey (where both have a name, CSS4's value), compiled by
``scripts/compile_colours.py``, which also says which of them a caption would use.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from math import dist
from pathlib import Path
from typing import Literal, get_args

from crosslens.core import UsageError


def word_set(text: str) -> frozenset[str]:
    """The words of a text between blanks."""
    return frozenset(text.split())


_TABLE = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_LISTS = {name: word_set(words) for name, words in _TABLE.items()}

NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
"""Digits are written as these words, so that "2 dogs" are two dogs."""

TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
LARGE_NUMBERS = word_set("dozen hundred thousand million").union(TENS)

COLOURS = _LISTS["colours"]

SIZES = _LISTS["sizes"]

COUNTED_AS = {"couple": "two", "pair": "two", "trio": "three", "quartet": "four", "dozen": "twelve"}
"""Nouns before *of* that are a number."""

ALWAYS_PAIRS = _LISTS["always_pairs"]
"""A pair of these is one thing."""

CO_CAPTION_QUANTITIES = _LISTS["co_caption_quantities"]
"""Nouns before *of* that only say how much of something there is; the thing is what follows."""

KINDS = word_set("kind piece sort style type version")
"""Nouns before *of* that say nothing about a picture."""

SIDES = word_set("back bottom center centre front inside left middle midst outside rear right side top")
"""Nouns between two prepositions that make one of them: *on top of*."""

FIXED_PHRASES = frozenset({"hot dog", "hot dogs"})
"""An adjective and a noun that name something else than that noun does."""

LIGHT_VERBS = word_set("appear attempt be become begin can continue do get have keep let prepare seem start try use")
"""Verbs that say nothing about who does them unless something follows."""

FEMALE = word_set("aunt bride daughter female girl grandmother lady mother sister waitress wife woman")
MALE = _LISTS["male"]
HE = word_set("he him his himself")
SHE = word_set("she her hers herself")
IT = word_set("it its itself")
THEY = word_set("they them their theirs themselves")
RELATIVE = word_set("who whom which that whose")


def number_word(text: str) -> str:
    """A numeral as the word that graphs use: ``2`` and ``Two`` are ``two``."""
    text = text.lower()
    return NUMBERS[int(text)] if text.isdecimal() and int(text) < len(NUMBERS) else text


def is_number(word: str) -> bool:
    """True for an attribute that counts its object."""
    parts = word.replace("-", " ").split()
    return bool(parts) and all(
        part in NUMBERS or part in LARGE_NUMBERS or part.replace(",", "").isdecimal() for part in parts
    )


STOP_WORDS = _LISTS["stop_words"]
"""Words that name nothing one could see."""


COMPILED = Path(__file__).with_name("colours.csv")

ColourValues = tuple[float, float, float]
ColourSpace = Literal["rgb", "lab"]
"""``rgb``: red, green and blue from 0 to 1. ``lab``: CIELAB under the light D65, where the distance is ΔE*ab (1976)."""

COLOUR_THRESHOLDS: dict[ColourSpace, float] = {"rgb": 0.5, "lab": 50.0}
"""From this distance on, two colours count as different ones: either sets apart 78 % of the pairs on offer."""

_WHITE = (0.95047, 1.0, 1.08883)
_LINEAR_TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)


@dataclass(frozen=True)
class Colour:
    """A named colour. ``use`` says what the name is before a noun: see ``scripts/compile_colours.py``."""

    name: str
    rgb: ColourValues
    use: Literal["adjective", "thing", "mix", ""]


@lru_cache(maxsize=1)
def named_colours() -> dict[str, Colour]:
    """Every named colour, by its name in lower case with spaces."""
    with COMPILED.open(encoding="utf-8", newline="") as file:
        return {row["name"]: Colour(row["name"], parse_rgb(row["rgb"]), row["use"]) for row in csv.DictReader(file)}  # type: ignore[arg-type]


def parse_rgb(value: str) -> ColourValues:
    """``#ff8000`` → (1.0, 0.50196…, 0.0)."""
    red, green, blue = (int(value[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue


@lru_cache(maxsize=4096)
def lab(rgb: ColourValues) -> ColourValues:
    """CIELAB of a colour of sRGB: lightness from 0 to 100, then green–red and blue–yellow."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in rgb]
    xyz = [sum(weight * value for weight, value in zip(row, linear, strict=True)) for row in _LINEAR_TO_XYZ]
    shares = (value / white for value, white in zip(xyz, _WHITE, strict=True))
    # The cube root, with a straight line near black.
    x, y, z = (
        float(share ** (1 / 3)) if share > (6 / 29) ** 3 else share * (29 / 6) ** 2 / 3 + 4 / 29 for share in shares
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colour_distance(first: ColourValues, second: ColourValues, space: ColourSpace = "rgb") -> float:
    """How far two colours (as RGB) are apart: Euclidean, in this colour space."""
    return dist(first, second) if space == "rgb" else dist(lab(first), lab(second))


def check_colour_space(space: str) -> ColourSpace:
    """The space by its name, or a UsageError."""
    for name in get_args(ColourSpace):
        if space == name:
            return name  # type: ignore[no-any-return]
    raise UsageError(f"unknown colour space {space!r}", fix=f"one of: {', '.join(get_args(ColourSpace))}")
