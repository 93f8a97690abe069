"""Colours by name, and how far apart two of them are.

The names are those of CSS4 and of XKCD's survey (where both have a name, CSS4's value), compiled by
``scripts/compile_colours.py``, which also says which of them a caption would use.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from math import dist
from pathlib import Path
from typing import Literal, get_args

from crosslens.core import UsageError

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
    x, y, z = (_compressed(value / white) for value, white in zip(xyz, _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _compressed(value: float) -> float:
    """The cube root, with a straight line near black."""
    return float(value ** (1 / 3)) if value > (6 / 29) ** 3 else value * (29 / 6) ** 2 / 3 + 4 / 29


def colour_distance(first: ColourValues, second: ColourValues, space: ColourSpace = "rgb") -> float:
    """How far two colours (as RGB) are apart: Euclidean, in this colour space."""
    return dist(first, second) if space == "rgb" else dist(lab(first), lab(second))


def check_colour_space(space: str) -> ColourSpace:
    """The space by its name, or a UsageError."""
    for known in get_args(ColourSpace):
        if space == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"unknown colour space {space!r}", fix=f"one of: {', '.join(get_args(ColourSpace))}")
