"""A scene: a picture that has not been drawn yet, and everything there is to know about it."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crosslens.synth.backdrops import paint
from crosslens.synth.captions import Caption
from crosslens.synth.kinds import kind_named
from crosslens.synth.layout import Box
from crosslens.synth.relations import Relation
from crosslens.synth.sprites import Look, sprite

if TYPE_CHECKING:
    from PIL import Image

SIZE = 224
"""Pictures are squares of this many pixels."""


@dataclass(frozen=True)
class Thing:
    """One thing in a scene; ``size`` is small, medium or large beside the picture."""

    name: str
    synset: str
    category: str
    colour: str
    size: str
    box: Box
    look: Look

    @property
    def attributes(self) -> tuple[str, ...]:
        """What can be said of it in one word each."""
        return (self.colour, self.size) if self.category != "landmark" else (self.size,)


@dataclass(frozen=True)
class Scene:
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
    objects: tuple[Thing, ...]
    relations: tuple[Relation, ...]
    captions: tuple[Caption, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many of each kind there are."""
        return dict(Counter(thing.name for thing in self.objects))

    def render(self) -> Image.Image:
        """Draw the picture."""
        image = paint(self.backdrop, SIZE, self.variant)
        for thing in self.objects:
            drawing = sprite(thing.look)
            image.paste(drawing, (thing.box.x, thing.box.y), drawing)
        return image

    def png(self) -> bytes:
        """The picture as a PNG file."""
        content = io.BytesIO()
        self.render().save(content, "PNG", compress_level=6)
        return content.getvalue()


def size_word(box: Box) -> str:
    """Small, medium or large, by the longer side."""
    part = max(box.w, box.h) / SIZE
    return "small" if part < 0.25 else "medium" if part < 0.4 else "large"


def thing(look: Look, colour: str, box: Box) -> Thing:
    """A placed drawing with its words."""
    kind = kind_named(look.kind)
    return Thing(kind.name, kind.synset, kind.category, colour, size_word(box), box, look)
