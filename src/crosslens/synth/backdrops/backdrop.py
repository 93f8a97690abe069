"""What a backdrop is: a drawn place, the words for it, and where objects can stand in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crosslens.synth.drawing.canvas import Surface
from crosslens.synth.drawing.colours import RGB
from crosslens.synth.drawing.pen import Pen

Draw = Callable[["Brush"], None]


class Brush(Pen):
    """A pen for a whole picture of 100 × 100 units, with a random stream of its own for details."""

    def __init__(self, surface: Surface, size: int, random: np.random.Generator) -> None:
        super().__init__(surface, size / 100)
        self.random = random

    def between(self, low: float, high: float) -> float:
        """A random number."""
        return float(self.random.uniform(low, high))

    def sky(self, bottom: float, above: RGB, below: RGB) -> None:
        """A gradient from the upper edge down to ``bottom``."""
        self.surface.gradient(0, bottom * self.unit, (above, below))

    def ground(self, top: float, above: RGB, below: RGB) -> None:
        """A gradient from ``top`` down to the lower edge."""
        self.surface.gradient(top * self.unit, 100 * self.unit, (above, below))

    def cloudlet(self, x: float, y: float, size: float, colour: RGB) -> None:
        """A far cloud."""
        for dx, dy, r in ((-1.0, 0.1, 0.6), (0.0, -0.2, 0.8), (0.9, 0.05, 0.65)):
            self.oval(x + dx * size, y + dy * size, r * size, r * size * 0.7, colour)


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


def backdrop(group: str, words: str, floor: float = 0.0) -> Callable[[Draw], Draw]:
    """Register a drawing as a backdrop; ``words`` are name | at | also | riddle."""
    name, at, also, riddle = words.split(" | ")

    def register(draw: Draw) -> Draw:
        assert name not in BACKDROPS, name
        BACKDROPS[name] = Backdrop(name, group, at, also, riddle, floor, draw)
        return draw

    return register
