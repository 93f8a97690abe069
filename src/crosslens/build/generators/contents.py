"""What a picture holds, ordered for telling: things of one name together, and the place apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from crosslens.build.generators.annotations import PLACE
from crosslens.build.generators.generator import Annotation
from crosslens.build.generators.vocabulary import Noun, coloured, noun, plural
from crosslens.synth.grammar import a, number_word

MOST_COUNTED = 12
"""Beyond a dozen nobody counts, and annotators give up too."""
_WRITTEN = 24

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Group:
    """All things of one name in a picture."""

    members: tuple[Annotation, ...]

    @cached_property
    def noun(self) -> Noun:
        """Its words."""
        return noun(self.name, self.members[0].category)

    @property
    def name(self) -> str:
        """What the annotations call it."""
        return self.members[0].name

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """The colours among its members; empty where one of them has none."""
        found = [one.colour for one in self.members if one.colour]
        return tuple(dict.fromkeys(found)) if len(found) == len(self.members) else ()

    def count(self, colour: str | None = None) -> int | None:
        """How many there are, or are of one colour; None where nobody knows exactly."""
        chosen = [one for one in self.members if colour is None or one.colour == colour]
        counts = [one.count for one in chosen]
        total = sum(one for one in counts if one is not None)
        return total if None not in counts and total <= MOST_COUNTED else None

    @property
    def single(self) -> Annotation | None:
        """Its only member, if there is one only."""
        return self.members[0] if self.count() == 1 and len(self.members) == 1 else None

    @cached_property
    def area(self) -> float:
        """How much of the picture it takes up."""
        return sum(one.box[2] * one.box[3] for one in self.members if one.box is not None)

    @property
    def action(self) -> str | None:
        """What all of them are doing."""
        found = {one.action for one in self.members}
        return found.pop() if len(found) == 1 else None

    @property
    def text(self) -> str | None:
        """What is written on it, if a sentence can quote it."""
        text = self.single.text if self.single else None
        quotable = text is not None and text.isascii() and text.isprintable() and 0 < len(text) <= _WRITTEN
        return text if quotable and '"' not in str(text) else None

    def told(self, *, colour: bool = True, number: bool = True) -> str:
        """``a red car``, ``three dogs``, ``many people``, ``the Eiffel Tower``."""
        words, many = self.noun, self.count()
        if words.unique:
            return f"the {words.plain}" if words.definite else words.plain
        phrase = words.plain
        if colour and len(self.colours) == 1:
            phrase = coloured(phrase, self.name, self.members[0].category, self.colours[0])
        if many == 1:
            return a(phrase)
        several = plural(phrase)
        if many is None:
            return f"a crowd of {several}" if self.name == "person" else f"many {several}"
        return f"{number_word(many)} {several}" if number else f"some {several}"


@dataclass(frozen=True)
class Contents:
    """The groups of a picture, largest first, and where it is set."""

    groups: tuple[Group, ...]
    place: str | None = None

    @staticmethod
    def of(annotations: Iterable[Annotation]) -> Contents:
        """Gather annotations."""
        found: dict[str, list[Annotation]] = {}
        place = None
        for one in annotations:
            if one.category == PLACE:
                place = one.name
            elif one.count is None or one.count > 0:
                found.setdefault(one.name, []).append(one)
        groups = [Group(tuple(members)) for members in found.values()]
        return Contents(tuple(sorted(groups, key=lambda group: (-round(group.area, 9), group.name))), place)

    def __getitem__(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)


def whereabouts(box: Box) -> str:
    """In which part of the picture a box lies."""
    across, down = box[0] + box[2] / 2, box[1] + box[3] / 2
    side = "left" if across < 0.375 else "right" if across > 0.625 else ""
    height = "upper" if down < 0.375 else "lower" if down > 0.625 else ""
    if side and height:
        return f"in the {height} {side} part of the picture"
    if side:
        return f"on the {side} side of the picture"
    return f"in the {height} part of the picture" if height else "in the middle of the picture"


def relation(one: Box, other: Box) -> str | None:
    """Left, right, above, below or inside, seen from the first; None where it is none of them clearly."""
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    if across >= one[2] - 1e-9 and down >= one[3] - 1e-9:
        return "inside"
    if across <= 0 and down >= 0.3 * min(one[3], other[3]):
        return "left" if one[0] < other[0] else "right"
    if down <= 0 and across >= 0.3 * min(one[2], other[2]):
        return "above" if one[1] < other[1] else "below"
    return None
