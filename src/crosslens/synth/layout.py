"""From a plan to boxes: objects are drawn first, then placed by the pixels they cover, so that boxes are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crosslens.core import CrosslensError
from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.drawing.canvas import Surface, outlined
from crosslens.synth.drawing.colours import shade
from crosslens.synth.drawing.pen import Look, Pen
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


@dataclass(frozen=True)
class Box:
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
        """The centre."""
        return self.x + self.w / 2, self.y + self.h / 2

    def overlaps(self, other: Box, gap: int = 0) -> bool:
        """Whether the two share a pixel, or come closer than ``gap``."""
        across = self.x < other.right + gap and other.x < self.right + gap
        return across and self.y < other.bottom + gap and other.y < self.bottom + gap

    def holds(self, other: Box) -> bool:
        """Whether the other lies wholly inside."""
        return self.x <= other.x and self.y <= other.y and other.right <= self.right and other.bottom <= self.bottom


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
    return tuple(_slot(part, plan, size, random) for part in plan.parts)


def _slot(part: Part, plan: Plan, size: int, random: np.random.Generator) -> Slot:
    kind = kind_named(part.kind)
    rgb = shade(part.colour, random)
    mirrored, tilt = random.random() < 0.5, random.uniform(-9, 9)
    wobble, variant = random.uniform(0.92, 1.05), int(random.integers(1 << 30))
    zone = part.zone or _default_zone(plan.backdrop)
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
    return Slot(look, zone, part.inside)


def _default_zone(backdrop: str) -> Zone:
    """On the floor where there is one, anywhere where there is none."""
    floor = BACKDROPS[backdrop].floor
    return Zone(top=floor / 100 + 0.03, bottom=0.97, standing=True) if floor else Zone(0.03, 0.03, 0.97, 0.97)


@lru_cache(maxsize=256)
def sprite(look: Look) -> Image.Image:
    """The drawing on a transparent sheet, no larger than what is drawn."""
    margin = round(look.length * _MARGIN)
    side = look.length + 2 * margin
    surface = Surface(side, side)
    kind_named(look.kind).drawing.draw(Pen(surface, look.length / 100, (margin, margin), look))
    return outlined(surface.drawn(), look.rgb)


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
