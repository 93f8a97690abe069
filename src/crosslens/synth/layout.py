"""Where things go: drawn first, then placed by the pixels they really cover, so that boxes are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosslens.core.errors import CrosslensError
from crosslens.synth.sprites import Look, sprite

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
        return (
            self.x < other.right + gap
            and other.x < self.right + gap
            and self.y < other.bottom + gap
            and other.y < self.bottom + gap
        )

    def holds(self, other: Box) -> bool:
        """Whether the other lies wholly inside."""
        return self.x <= other.x and self.y <= other.y and other.right <= self.right and other.bottom <= self.bottom


@dataclass(frozen=True)
class Zone:
    """Where a thing may go, in fractions of the picture.

    Its box lies between ``left`` and ``right``, and between ``top`` and ``bottom``; if it is ``standing``, only its
    lower edge must be between ``top`` and ``bottom``.
    """

    left: float = 0.02
    top: float = 0.02
    right: float = 0.98
    bottom: float = 0.98
    standing: bool = False


@dataclass(frozen=True)
class Slot:
    """A look and where it may go: a zone, or ``on`` top of or ``inside`` an earlier one (by its number)."""

    look: Look
    zone: Zone = Zone()
    on: int | None = None
    inside: int | None = None


@dataclass(frozen=True)
class Placed:
    """A look and the box of the pixels it covers."""

    look: Look
    box: Box


def arrange(slots: Sequence[Slot], size: int, random: np.random.Generator) -> tuple[Placed, ...]:
    """Place every slot without overlap; where there is no room everything is drawn a little smaller."""
    scale = 1.0
    for _ in range(_SHRINKS):
        placed: list[Placed] = []
        for slot in slots:
            look = replace(slot.look, length=max(16, round(slot.look.length * scale)))
            box = _find(slot, look, placed, size, random)
            if box is None:
                break
            placed.append(Placed(look, box))
        else:
            return tuple(placed)
        scale *= _SHRINK
    raise CrosslensError(f"no room for {len(slots)} things", fix="report this with the seed: it is a bug")


def _find(slot: Slot, look: Look, placed: Sequence[Placed], size: int, random: np.random.Generator) -> Box | None:
    drawn = sprite(look)
    if slot.inside is not None:
        x, y = placed[slot.inside].box.middle
        return Box(round(x - drawn.width / 2), round(y - drawn.height / 2), drawn.width, drawn.height)
    if slot.on is not None:
        below = placed[slot.on].box
        spare = max(0, below.w - drawn.width)
        x = below.x + spare / 2 + float(random.uniform(-0.3, 0.3)) * spare
        box = Box(round(x), below.y - drawn.height, drawn.width, drawn.height)
        others = [one for number, one in enumerate(placed) if number != slot.on]
        return box if box.y >= 1 and not any(box.overlaps(one.box, _GAP) for one in others) else None
    zone = slot.zone
    low_x, high_x = zone.left * size, zone.right * size - drawn.width
    low_y, high_y = zone.top * size - (drawn.height if zone.standing else 0), zone.bottom * size - drawn.height
    low_y = max(low_y, 1)
    if high_x < low_x or high_y < low_y:
        return None
    for _ in range(_TRIES):
        x, y = random.uniform(low_x, high_x), random.uniform(low_y, high_y)
        box = Box(round(x), round(y), drawn.width, drawn.height)
        if not any(box.overlaps(one.box, _GAP) for one in placed):
            return box
    return None
