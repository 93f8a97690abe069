"""One thing, drawn: what it looks like as a value, and its picture cut to the pixels drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from crosslens.synth.canvas import Surface, outlined
from crosslens.synth.colours import RGB
from crosslens.synth.kinds import kind_named
from crosslens.synth.pen import Pen

if TYPE_CHECKING:
    from PIL import Image

_ROOM = 0.36
"""How far a drawing may reach beyond its box of 100 units, on each side: panels, raised arms, kites."""


@dataclass(frozen=True)
class Look:
    """All that decides a drawing's pixels; ``length`` is how many pixels 100 units take."""

    kind: str
    rgb: RGB
    length: int
    pose: str = ""
    mirrored: bool = False
    tilt: int = 0
    text: str = ""
    variant: int = 0


@lru_cache(maxsize=256)
def sprite(look: Look) -> Image.Image:
    """The drawing on a transparent sheet, no larger than what is drawn."""
    room = round(look.length * _ROOM)
    side = look.length + 2 * room
    surface = Surface(side, side)
    pen = Pen(
        surface,
        look.length / 100,
        (room, room),
        colour=look.rgb,
        pose=look.pose,
        text=look.text,
        variant=look.variant,
        mirrored=look.mirrored,
        tilt=look.tilt,
    )
    kind_named(look.kind).drawing.draw(pen)
    return outlined(surface.drawn(), look.rgb)
