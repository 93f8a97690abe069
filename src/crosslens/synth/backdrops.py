"""Backdrops: drawn places, skies and surfaces, the words for them, and where objects can stand in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.storage import random_stream
from crosslens.synth.drawing import RGB, Draw, Pen, Surface, read_drawings

if TYPE_CHECKING:
    from PIL import Image


class Brush(Pen):
    """A pen for a whole picture of 100 × 100 units, with a random stream of its own for details."""

    def __init__(self, surface: Surface, size: int, random: np.random.Generator) -> None:
        super().__init__(surface, size / 100)
        self.random = random
        self.names |= {name: getattr(self, name) for name in ("between", "below", "pick", "chance")}

    def between(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))

    def below(self, count: int) -> int:
        return int(self.random.integers(count))

    def pick(self, *options: Any) -> Any:
        return options[self.below(len(options))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def sky(self, bottom: float, above: RGB, below: RGB) -> None:
        """A gradient from the upper edge down to ``bottom``."""
        self.surface.gradient(0, bottom * self.unit, (above, below))

    def ground(self, top: float, above: RGB, below: RGB) -> None:
        """A gradient from ``top`` down to the lower edge."""
        self.surface.gradient(top * self.unit, 100 * self.unit, (above, below))

    def cloudlet(self, x: float, y: float, size: float, fill: RGB) -> None:
        for dx, dy, r in ((-1.0, 0.1, 0.6), (0.0, -0.2, 0.8), (0.9, 0.05, 0.65)):
            self.oval(x + dx * size, y + dy * size, r * size, r * size * 0.7, fill)


@dataclass(frozen=True)
class Backdrop:
    """A place. ``at``, ``also`` and ``riddle`` end a sentence: on a beach, by the seaside, where waves come to rest.

    ``floor`` is the height, in units from the top, below which objects stand; 0 where they float.
    """

    name: str
    group: str
    at: str
    also: str
    riddle: str
    floor: float
    draw: Draw


BACKDROPS: dict[str, Backdrop] = {}
"""Every backdrop by its name."""
for _heading, _draw in read_drawings("backdrops.txt").items():
    _name, _at, _also, _riddle, _group, *_floor = _heading.split(" | ")
    BACKDROPS[_name] = Backdrop(_name, _group, _at, _also, _riddle, float(*_floor), _draw)


def backdrops_of(*groups: str) -> tuple[Backdrop, ...]:
    """All backdrops of these groups (``place``, ``sky``, ``surface``)."""
    return tuple(backdrop for backdrop in BACKDROPS.values() if backdrop.group in groups)


def paint(name: str, size: int, variant: int) -> Image.Image:
    """The backdrop as a square picture; another variant has other clouds, houses, planks."""
    surface = Surface(size, size, (255, 255, 255))
    BACKDROPS[name].draw(Brush(surface, size, random_stream(variant, "backdrop", name)))
    return surface.reduced()
