"""A scene: a picture that has not been drawn yet, and everything there is to know about it.

Objects are drawn first, then placed by the pixels they cover, so that boxes are exact.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosslens.core import CrosslensError
from crosslens.synth.backdrops import BACKDROPS, paint
from crosslens.synth.captions import SceneCaption, part_of_picture
from crosslens.synth.drawing import Look, Pen, Surface, shade
from crosslens.synth.kinds import kind_named

if TYPE_CHECKING:
    from PIL import Image


SIZES = {"small": 0.2, "medium": 0.32, "large": 0.5}
"""Size word → the longer side of an object, as a part of the picture's."""
_USUAL = 0.3
_STILL = ("panel", "landmark", "figure", "building", "plant")
"""Categories that are never tilted; what a panel shows is never mirrored."""
_MARGIN = 0.36
"""How far a drawing may reach beyond its box of 100 units, on each side: panels, raised arms, kites."""
_GAP = 3
_TRIES, _SHRINKS, _SHRINK = 40, 14, 0.9


class Box(NamedTuple):
    """A rectangle in pixels: left, top, width, height."""

    x: int
    y: int
    w: int
    h: int

    @property
    def right(self) -> int:
        """The first column past the box."""
        return self.x + self.w

    @property
    def bottom(self) -> int:
        """The first row past the box."""
        return self.y + self.h

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.w / 2, self.y + self.h / 2

    def overlaps(self, other: Box, gap: int = 0) -> bool:
        """Whether the two share a pixel, or come closer than ``gap``."""
        across = self.x < other.right + gap and other.x < self.right + gap
        return across and self.y < other.bottom + gap and other.y < self.bottom + gap


@dataclass(frozen=True)
class Zone:
    """Where an object may go, in fractions of the picture.

    Its box lies between ``left`` and ``right``, and between ``top`` and ``bottom``; if it is ``standing``, only its
    lower edge must be between ``top`` and ``bottom``.
    """

    left: float = 0.02
    top: float = 0.02
    right: float = 0.98
    bottom: float = 0.98
    standing: bool = False


@dataclass(frozen=True)
class Part:
    """One object to draw. ``size`` is a size word; empty is the kind's usual size beside others.

    ``inside`` is the number of an earlier part inside which it goes.
    """

    kind: str
    colour: str
    size: str = ""
    pose: str = ""
    text: str = ""
    zone: Zone | None = None
    inside: int | None = None


@dataclass(frozen=True)
class Plan:
    """A backdrop and the objects on it; ``scale`` shrinks or grows all objects of usual size."""

    backdrop: str
    parts: tuple[Part, ...]
    scale: float = 1.0


@dataclass(frozen=True)
class Slot:
    """A look and where it may go: a zone, or ``inside`` an earlier one (by its number)."""

    look: Look
    zone: Zone = Zone()
    inside: int | None = None


@dataclass(frozen=True)
class Placed:
    """A look and the box of the pixels it covers."""

    look: Look
    box: Box


def slots(plan: Plan, size: int, random: np.random.Generator) -> tuple[Slot, ...]:
    """The parts of a plan with their looks; the same number of random draws for every part."""
    # On the floor where there is one, anywhere where there is none.
    floor = BACKDROPS[plan.backdrop].floor
    usual = Zone(top=floor / 100 + 0.03, bottom=0.97, standing=True) if floor else Zone(0.03, 0.03, 0.97, 0.97)
    parts = []
    for part in plan.parts:
        kind, zone = kind_named(part.kind), part.zone or usual
        rgb = shade(part.colour, random)
        mirrored, tilt = random.random() < 0.5, random.uniform(-9, 9)
        wobble, variant = random.uniform(0.92, 1.05), int(random.integers(1 << 30))
        fraction = SIZES[part.size] if part.size else _USUAL * kind.size * plan.scale * wobble
        look = Look(
            part.kind,
            rgb,
            round(fraction * size),
            pose=part.pose or (kind.poses[0] if kind.poses else ""),
            mirrored=mirrored and kind.category not in ("panel", "landmark", "figure"),
            tilt=0 if zone.standing or kind.category in _STILL else round(tilt),
            text=part.text,
            variant=variant if kind.category == "panel" else 0,
        )
        parts.append(Slot(look, zone, part.inside))
    return tuple(parts)


@lru_cache(maxsize=256)
def sprite(look: Look) -> Image.Image:
    """The drawing on a transparent sheet, no larger than what is drawn."""
    margin = round(look.length * _MARGIN)
    side = look.length + 2 * margin
    surface = Surface(side, side)
    kind_named(look.kind).drawing.draw(Pen(surface, look.length / 100, (margin, margin), look))
    return surface.outlined(look.rgb)


def arrange(slots: Sequence[Slot], size: int, random: np.random.Generator) -> tuple[Placed, ...]:
    """Place every slot without overlap; where there is no room everything is drawn a little smaller."""
    scale = 1.0
    for _ in range(_SHRINKS):
        placed: list[Placed] = []
        for slot in slots:
            look = replace(slot.look, length=max(16, round(slot.look.length * scale)))
            box = _find_box(slot, look, placed, size, random)
            if box is None:
                break
            placed.append(Placed(look, box))
        else:
            return tuple(placed)
        scale *= _SHRINK
    raise CrosslensError(f"cannot place {len(slots)} objects without overlap", fix="report this bug with the seed")


def _find_box(slot: Slot, look: Look, placed: Sequence[Placed], size: int, random: np.random.Generator) -> Box | None:
    width, height = sprite(look).size
    if slot.inside is not None:
        x, y = placed[slot.inside].box.middle
        return Box(round(x - width / 2), round(y - height / 2), width, height)
    zone = slot.zone
    low_x, high_x = zone.left * size, zone.right * size - width
    low_y, high_y = zone.top * size - (height if zone.standing else 0), zone.bottom * size - height
    low_y = max(low_y, 1)
    if high_x < low_x or high_y < low_y:
        return None
    for _ in range(_TRIES):
        x, y = random.uniform(low_x, high_x), random.uniform(low_y, high_y)
        box = Box(round(x), round(y), width, height)
        if not any(box.overlaps(earlier.box, _GAP) for earlier in placed):
            return box
    return None


SIZE = 224
"""Pictures are squares of this many pixels."""
IMAGE_DIGITS = 7
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
        x, y = (round(middle / SIZE, 3) for middle in self.box.middle)
        return part_of_picture(x, y)

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

    @property
    def file(self) -> str:
        """Where its picture is in the folder of a set."""
        return f"images/{self.number:0{IMAGE_DIGITS}d}.png"

    def render(self) -> Image.Image:
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


def relations_between(boxes: Sequence[Box], planned: Mapping[tuple[int, int], str]) -> tuple[Relation, ...]:
    """One relation for every pair that has a clear one; ``planned`` are the relations of the plan."""
    relations = [Relation(first, predicate, second) for (first, second), predicate in planned.items()]
    for first, second in combinations(range(len(boxes)), 2):
        if (first, second) not in planned and (second, first) not in planned:
            predicate = relation(boxes[first], boxes[second])
            if predicate is not None:
                relations.append(Relation(first, predicate, second))
    return tuple(relations)


def relation(box: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> str | None:
    """Left of, right of, above, below or inside, seen from the first; None where it is none of them clearly.

    Boxes are left, top, width, height, in any unit.
    """
    (left, top, width, height), (other_left, other_top, other_width, other_height) = box, other
    across = min(left + width, other_left + other_width) - max(left, other_left)
    down = min(top + height, other_top + other_height) - max(top, other_top)
    if across >= width - 1e-9 and down >= height - 1e-9:
        return "inside"
    if across <= 0 and down >= _SHARED * min(height, other_height):
        return "left of" if left < other_left else "right of"
    if down <= 0 and across >= _SHARED * min(width, other_width):
        return "above" if top < other_top else "below"
    return None
