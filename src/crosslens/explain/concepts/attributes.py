"""What annotators say an object is like: its colour, its size, its material, each in one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.language.scene_words import COLOURS, SIZES

Array = np.ndarray[Any, Any]

FAMILIES = ("colour", "size", "material")

_SAME_COLOUR = {"gray": "grey", "blonde": "blond", "golden": "gold"}

_SAME_SIZE = {
    "large": "big colossal enormous giant gigantic grand great huge immense large massive oversized vast",
    "small": "compact little mini miniature minuscule petite small tiny",
    "tall": "high tall towering",
    "short": "low short",
    "wide": "broad wide",
    "narrow": "narrow slim",
}

_MATERIALS = {
    "wood": "wood wooden timber oak pine bamboo",
    "metal": "metal metallic steel iron aluminum aluminium chrome tin brass",
    "stone": "stone rock rocky granite marble cobblestone slate",
    "brick": "brick bricks",
    "concrete": "concrete cement paved asphalt",
    "glass": "glass glassy",
    "plastic": "plastic vinyl",
    "rubber": "rubber",
    "leather": "leather",
    "fabric": "fabric cloth cotton denim linen wool woolen woollen silk velvet fleece knit knitted",
    "paper": "paper cardboard",
    "ceramic": "ceramic porcelain china clay terracotta tile tiled",
    "wicker": "wicker straw rattan",
    "fur": "fur furry fluffy feathered",
}


def _spellings() -> dict[str, tuple[int, str]]:
    """Every word → its family and how it is written here."""
    found = {word: (0, _SAME_COLOUR.get(word, word)) for word in COLOURS}
    found |= {word: (1, word) for word in SIZES}
    found |= {word: (1, size) for size, words in _SAME_SIZE.items() for word in words.split()}
    found |= {word: (2, material) for material, words in _MATERIALS.items() for word in words.split()}
    return found


_WORDS = _spellings()
_VALUES = tuple(tuple(sorted({value for at, value in _WORDS.values() if at == family})) for family in range(3))
"""Per family; no family has more than the 64 that fit into the bits of one number."""


@lru_cache(maxsize=1 << 16)
def described(attributes: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The colours, sizes and materials among an object's attributes; *dark brown* is brown."""
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for attribute in attributes:
        for word in re.findall(r"[^\W\d_]+", attribute.lower()):
            if word in _WORDS:
                family, value = _WORDS[word]
                found[family].add(value)
    return frozenset(found[0]), frozenset(found[1]), frozenset(found[2])


def attribute_bits(attributes: Sequence[tuple[str, ...]]) -> Array:
    """Per object and family its values as the bits of one number: n × 3, uint64."""
    number: dict[tuple[str, ...], int] = {}
    rows = [number.setdefault(some, len(number)) for some in attributes]
    distinct = [[_bits(family, values) for family, values in enumerate(described(some))] for some in number]
    return np.array(distinct, dtype=np.uint64).reshape(-1, len(FAMILIES))[rows]


def _bits(family: int, values: Iterable[str]) -> int:
    return sum(1 << _VALUES[family].index(value) for value in values)


def overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """What two sets of values share, of all that they name: 1 for the same, 0 for nothing in common."""
    left, right = set(one), set(other)
    return len(left & right) / len(left | right)
