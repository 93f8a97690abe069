"""The words for objects: names, synonyms, narrower words, and the hypernym they fall under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import UnknownNameError
from crosslens.synth import BACKDROPS, COLOUR_WORDS, KINDS, Kind, a, coloured, number_word, part_of_picture, pluralise
from crosslens.values import Dataset

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

    @property
    def definite(self) -> bool:
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
            names, other, narrow = (part.strip() for part in line.split("|"))
            name, _, plain = (part.strip() for part in names.partition(":"))
            words = [tuple(part.split(", ")) if part else () for part in (other, narrow)]
            nouns[name] = Noun(name, plain or name, words[0], words[1], None, wider if wider != name else None)
    return nouns


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


PLACE = "place"
"""The category of what is all around: the backdrop of a drawn scene."""
_COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "grey")
_SPELT = {"gray": "grey", "violet": "purple"}
_MOST_COUNTED = 12  # beyond a dozen nobody counts, and annotators give up too
_LONGEST_QUOTE = 24

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ObjectAnnotation:
    """An object that is known to be in an image.

    ``count``      how many; None for a crowd that nobody counted
    ``colour``     its colour, where there is one
    ``attributes`` what else can be said of it in a word each (its colour is not among them)
    ``box``        left, top, width, height as parts of the picture's sides, from 0 to 1; None where it is not known
    ``category``   the kind of thing it is (``vehicle``), where the data says so; ``place`` for what is all around
    ``text``       what is written on it
    ``action``     what it is doing (``running``)
    """

    name: str
    count: int | None = 1
    colour: str | None = None
    attributes: tuple[str, ...] = ()
    box: Box | None = None
    category: str | None = None
    text: str | None = None
    action: str | None = None


class Annotations:
    """The annotations of every image of a dataset, read once: ``Annotations(dataset)[image_id]``."""

    def __init__(self, dataset: Dataset) -> None:
        self._images = {row["image"]: row for row in dataset.images.iter_rows(named=True)}
        self._objects: dict[str, list[dict[str, Any]]] = {}
        if dataset.objects is not None:
            for row in dataset.objects.filter(pl.col("name").is_not_null()).iter_rows(named=True):
                self._objects.setdefault(row["image"], []).append(row)

    def __getitem__(self, image: str) -> tuple[ObjectAnnotation, ...]:
        """One annotation per object, in the order of the table, and one of the setting where it is known."""
        if image not in self._images:
            raise UnknownNameError("image", image, self._images)
        image_row = self._images[image]
        annotations = [_annotation(row, image_row) for row in self._objects.get(image, ())]
        backdrop = image_row.get("backdrop")
        if isinstance(backdrop, str) and backdrop:
            annotations.append(ObjectAnnotation(backdrop, category=PLACE))
        return tuple(annotations)


def _annotation(row: Mapping[str, Any], image_row: Mapping[str, Any]) -> ObjectAnnotation:
    words = [str(word).strip().lower() for word in row.get("attributes") or ()]
    colours = [spelt for word in words if (spelt := _SPELT.get(word, word)) in _COLOURS]
    colour = row.get("colour")
    if colour is None and len(colours) == 1 and row.get("category") != "landmark":
        colour = colours[0]
    width, height = image_row.get("width"), image_row.get("height")
    box: Box | None = None
    if row["x"] is not None and width and height:
        box = row["x"] / width, row["y"] / height, row["w"] / width, row["h"] / height
    return ObjectAnnotation(
        name=row["name"].strip(),
        count=None if row.get("iscrowd") else 1,
        colour=colour,
        attributes=tuple(word for word in words if _SPELT.get(word, word) not in _COLOURS),
        box=box,
        category=row.get("category"),
        text=row.get("text"),
        action=row.get("pose"),
    )


@dataclass(frozen=True)
class ObjectGroup:
    """All objects of one name in an image."""

    members: tuple[ObjectAnnotation, ...]

    @cached_property
    def noun(self) -> Noun:
        return noun(self.name, self.members[0].category)

    @property
    def name(self) -> str:
        return self.members[0].name

    @property
    def kind(self) -> Kind | None:
        """What is drawn under this name, if it is a drawing."""
        kind = KINDS.get(self.name)
        return kind if kind and kind.category == self.members[0].category else None

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """The colours among its members; empty where one of them has none."""
        colours = [member.colour for member in self.members if member.colour]
        return tuple(dict.fromkeys(colours)) if len(colours) == len(self.members) else ()

    def count(self, colour: str | None = None) -> int | None:
        """How many there are, or are of one colour; None where the number is not known."""
        counts = [member.count for member in self.members if colour is None or member.colour == colour]
        total = sum(count for count in counts if count is not None)
        return total if None not in counts and total <= _MOST_COUNTED else None

    @property
    def single(self) -> ObjectAnnotation | None:
        return self.members[0] if self.count() == 1 and len(self.members) == 1 else None

    @cached_property
    def area(self) -> float:
        return sum(member.box[2] * member.box[3] for member in self.members if member.box is not None)

    @property
    def attributes(self) -> set[tuple[str, ...]]:
        """What is said of its members, once for all that are alike."""
        return {member.attributes for member in self.members}

    @property
    def position(self) -> str:
        """In which part of the image its only member lies, with a space before it; empty for several."""
        if not self.single or not self.single.box:
            return ""
        left, top, width, height = self.single.box
        return f" {part_of_picture(left + width / 2, top + height / 2)}"

    @property
    def action(self) -> str | None:
        actions = {member.action for member in self.members}
        return actions.pop() if len(actions) == 1 else None

    @property
    def text(self) -> str | None:
        """What is written on it, if a sentence can quote it."""
        text = self.single.text if self.single else None
        quotable = text is not None and text.isascii() and text.isprintable() and 0 < len(text) <= _LONGEST_QUOTE
        return text if quotable and '"' not in str(text) else None

    def phrase(self, *, colour: bool = True) -> str:
        """``a red car``, ``three dogs``, ``many people``, ``the Eiffel Tower``."""
        words, many = self.noun, self.count()
        if words.unique:
            return f"the {words.plain}" if words.definite else words.plain
        phrase = words.plain
        if colour and len(self.colours) == 1:
            phrase = coloured(phrase, self.kind, self.colours[0])
        if many == 1:
            return a(phrase)
        several = plural(phrase)
        if many is None:
            return f"a crowd of {several}" if self.name == "person" else f"many {several}"
        return f"{number_word(many)} {several}"


@dataclass(frozen=True)
class ImageContents:
    """The objects of an image in groups, largest first, and its setting (``beach``)."""

    groups: tuple[ObjectGroup, ...]
    setting: str | None = None

    @staticmethod
    def of(annotations: Iterable[ObjectAnnotation]) -> ImageContents:
        members_of: dict[str, list[ObjectAnnotation]] = {}
        setting = None
        for annotation in annotations:
            if annotation.category == PLACE:
                setting = annotation.name
            elif annotation.count is None or annotation.count > 0:
                members_of.setdefault(annotation.name, []).append(annotation)
        groups = [ObjectGroup(tuple(members)) for members in members_of.values()]
        return ImageContents(tuple(sorted(groups, key=lambda group: (-round(group.area, 9), group.name))), setting)

    @cached_property
    def by_name(self) -> dict[str, ObjectGroup]:
        return {group.name: group for group in self.groups}

    @property
    def setting_phrase(self) -> str:
        """`` on a beach``, with the space before it; empty where the setting is not known."""
        backdrop = BACKDROPS.get(self.setting or "")
        return f" {backdrop.at}" if backdrop else ""


def counterparts(source: ImageContents, target: ImageContents, turn: int = 0) -> dict[str, ObjectGroup]:
    """For each name in the source its counterpart: the same name, else the most similar object that has no namesake."""
    pairs = {name: target.by_name[name] for name in source.by_name if name in target.by_name}
    free = [group for group in target.groups if group.name not in pairs]
    for group in source.groups:
        alike = [candidate for candidate in free if candidate.noun.unique == group.noun.unique]
        if group.name not in pairs and alike:

            def unlike(other: ObjectGroup, group: ObjectGroup = group) -> tuple[bool, int, float, str]:
                counts = abs((group.count() or 99) - (other.count() or 99))
                area = round(abs(group.area - other.area), 9)
                return group.noun.wider != other.noun.wider, counts, area, other.name

            best = sorted(alike, key=unlike)[turn % len(alike)]
            pairs[group.name] = best
            free.remove(best)
    return pairs
