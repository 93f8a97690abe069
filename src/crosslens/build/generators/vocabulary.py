"""The words for objects: names, synonyms, narrower words, and the hypernym they fall under."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from crosslens.synth import COLOUR_WORDS, COLOURED, KINDS, pluralise

_TABLE = Path(__file__).with_name("nouns.txt")
_WIDER = {
    "animal": "animal", "person": "person", "vehicle": "vehicle", "food": "food item", "plant": "plant",
    "building": "structure", "thing": "object", "household": "household item", "figure": "shape", "panel": "board",
    "landmark": "landmark", "electronic": "electronic device", "kitchen": "kitchen item", "outdoor": "street fixture",
    "furniture": "piece of furniture", "sports": "piece of sports equipment", "accessory": "personal item",
    "appliance": "household appliance", "indoor": "household item",
}  # fmt: skip
"""What the data calls a category → how a sentence says it."""

_PLURALS = {
    "person": "people", "human being": "human beings", "human": "humans", "calf": "calves", "goose": "geese",
    "people": "people", "scissors": "scissors", "skis": "skis", "cattle": "cattle", "luggage": "luggage",
}  # fmt: skip
_NO_ARTICLE = ("Big Ben", "Stonehenge", "Christ the Redeemer", "Mount Fuji")

PLAIN, OTHER, RIDDLE, NARROW = "plain", "other", "riddle", "narrow"


@dataclass(frozen=True)
class Noun:
    """The words for an object, all in the singular.

    ``other`` mean the same, ``narrow`` mean one sort of it (an annotated person may be called a woman, but not every
    person is one), ``riddle`` says what it is without naming it, ``wider`` is the word it falls under.
    """

    name: str
    plain: str
    other: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    riddle: str | None = None
    wider: str | None = None
    unique: bool = False
    """A landmark, of which there is one in the world."""

    def forms(self) -> list[tuple[str, str]]:
        """Every word for it, with the register it belongs to."""
        forms = [(self.plain, PLAIN), (self.name, PLAIN), *((word, OTHER) for word in self.other)]
        forms += [(word, NARROW) for word in self.narrow]
        return forms + ([(self.riddle, RIDDLE)] if self.riddle else [])

    def word_for(self, register: str) -> str | None:
        """Its word of one register; a narrower word is not known to fit, so the plain one is used."""
        if register == RIDDLE:
            return self.riddle
        return self.other[0] if register == OTHER and self.other else self.plain

    @property
    def definite(self) -> bool:
        """Whether it takes ``the``."""
        return self.unique and self.plain not in _NO_ARTICLE


def plural(word: str) -> str:
    """The plural of an object's word."""
    return _PLURALS.get(word) or pluralise(word)


@lru_cache(maxsize=4096)
def noun(name: str, category: str | None = None) -> Noun:
    """The words for a name that annotations use; of an unknown one only its name."""
    common, kind = _common().get(name), KINDS.get(name)
    # A drawing has the category of its kind; a photo's "bat" or "mouse" must not take the words of the animal drawn.
    if kind is not None and (category == kind.category or (common is None and category is None)):
        unique = kind.category == "landmark"
        return Noun(name, name, kind.also, (), kind.riddle, _WIDER.get(kind.category), unique)
    if common is not None:
        return common
    return Noun(name, name, wider=_WIDER.get(category or ""))


@lru_cache(maxsize=1)
def _common() -> dict[str, Noun]:
    """The nouns of the table, by the names that common annotations use."""
    nouns, wider = {}, ""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            wider = line.strip("[]")
        elif not line.startswith("#"):
            named, other, narrow = (part.strip() for part in line.split("|"))
            name, _, plain = (part.strip() for part in named.partition(":"))
            words = [tuple(part.split(", ")) if part else () for part in (other, narrow)]
            nouns[name] = Noun(name, plain or name, words[0], words[1], None, wider if wider != name else None)
    return nouns


def coloured(phrase: str, name: str, category: str | None, colour: str) -> str:
    """``red car``, ``woman in red``, ``lamp with a red shade``: the colour where it belongs."""
    pattern = "{colour} {name}"
    if name in KINDS and category == KINDS[name].category:
        pattern = COLOURED.get(name, COLOURED.get(category, pattern))
    text = pattern.format(colour=colour, name=phrase)
    return text.replace(f" a {colour}", f" an {colour}") if colour[0] in "aeiou" else text


COLOUR_MEANINGS = {
    word: (colour, register)
    for colour, (other, riddle) in COLOUR_WORDS.items()
    for word, register in ((colour, PLAIN), (other, OTHER), (riddle, RIDDLE))
} | {"gray": ("grey", PLAIN)}
"""Every word for a colour → the colour and its register."""


def colour_word(colour: str, register: str) -> str | None:
    """A colour's word of one register."""
    if register == PLAIN or colour not in COLOUR_WORDS:
        return colour if register == PLAIN else None
    return COLOUR_WORDS[colour][0 if register == OTHER else 1]
