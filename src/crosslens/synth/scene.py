"""A scene: a picture that has not been drawn yet, and everything there is to know about it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from crosslens.synth.backdrops import paint
from crosslens.synth.captions import SceneCaption
from crosslens.synth.drawing.pen import Look
from crosslens.synth.kinds import kind_named
from crosslens.synth.layout import Box, sprite

if TYPE_CHECKING:
    from PIL import Image

SIZE = 224
"""Pictures are squares of this many pixels."""
OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
_SHARED = 0.3
"""Two objects are beside each other if they share this part of the smaller one's height."""


@dataclass(frozen=True)
class SceneObject:
    """One object in a scene; ``size`` is small, medium or large beside the picture."""

    name: str
    synset: str
    category: str
    colour: str
    size: str
    box: Box
    look: Look

    @staticmethod
    def of(look: Look, colour: str, box: Box) -> SceneObject:
        """A placed drawing with its words."""
        kind = kind_named(look.kind)
        part = max(box.w, box.h) / SIZE
        size = "small" if part < 0.25 else "medium" if part < 0.4 else "large"
        return SceneObject(kind.name, kind.synset, kind.category, colour, size, box, look)

    @property
    def whereabouts(self) -> str:
        """In which part of the picture it lies."""
        x, y = (round(middle / SIZE * 1000) for middle in self.box.middle)
        across = "left" if x < 375 else "right" if x > 625 else ""
        down = "upper" if y < 375 else "lower" if y > 625 else ""
        if across and not down:
            return f"on the {across} side of the picture"
        part = " ".join(word for word in (down, across) if word)
        return f"in the {part} part of the picture" if part else "in the middle of the picture"

    @property
    def attributes(self) -> tuple[str, ...]:
        """Adjectives that are true of it."""
        return (self.colour, self.size) if self.category != "landmark" else (self.size,)


@dataclass(frozen=True)
class Relation:
    """``subject`` and ``object`` are numbers of objects in their scene."""

    subject: int
    predicate: str
    object: int


@dataclass(frozen=True)
class SyntheticScene:
    """One picture of a generated set.

    ``role``    original, twin (one fact changed) or similar (several, without captions)
    ``of``      the number of the original a twin or similar scene was made from
    ``changed`` the facts in which it differs from its original
    ``source``  what counts as the same source: pictures of one task on one kind of backdrop
    ``facts``   what the captions are about
    """

    number: int
    task: str
    role: str
    of: int | None
    changed: tuple[str, ...]
    source: str
    facts: Any
    backdrop: str
    variant: int
    objects: tuple[SceneObject, ...]
    relations: tuple[Relation, ...]
    captions: tuple[SceneCaption, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many of each kind there are."""
        return dict(Counter(item.name for item in self.objects))

    def render(self) -> Image.Image:
        """Draw the picture."""
        image = paint(self.backdrop, SIZE, self.variant)
        for item in self.objects:
            drawing = sprite(item.look)
            image.paste(drawing, (item.box.x, item.box.y), drawing)
        return image

    def png(self) -> bytes:
        """The picture as a PNG file; compressed lightly, as a smaller file takes longer than drawing what is in it."""
        content = io.BytesIO()
        self.render().save(content, "PNG", compress_level=1)
        return content.getvalue()


def relations_between(boxes: Sequence[Box], known: Mapping[tuple[int, int], str]) -> tuple[Relation, ...]:
    """One relation for every pair that has a clear one; ``known`` are relations that are planned."""
    relations = [Relation(first, predicate, second) for (first, second), predicate in known.items()]
    for first, second in combinations(range(len(boxes)), 2):
        if (first, second) not in known and (second, first) not in known:
            predicate = relation(boxes[first], boxes[second])
            if predicate is not None:
                relations.append(Relation(first, predicate, second))
    return tuple(relations)


def relation(box: Box, other: Box) -> str | None:
    """Left of, right of, above, below or inside, seen from the first; None where it is none of them clearly."""
    if other.holds(box):
        return "inside"
    across = min(box.right, other.right) - max(box.x, other.x)
    down = min(box.bottom, other.bottom) - max(box.y, other.y)
    if across <= 0 and down >= _SHARED * min(box.h, other.h):
        return "left of" if box.x < other.x else "right of"
    if down <= 0 and across >= _SHARED * min(box.w, other.w):
        return "above" if box.y < other.y else "below"
    return None
