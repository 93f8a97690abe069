"""The drawing language: shapes in a box of 100 × 100 units, in tones of one colour."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from crosslens.synth.drawing import geometry
from crosslens.synth.drawing.canvas import FINE, Surface
from crosslens.synth.drawing.colours import RGB, tone
from crosslens.synth.drawing.geometry import Point, Points
from crosslens.synth.drawing.lettering import fitting_size, typeset

Tone = str | RGB
"""A tone of the object's colour (``deep`` … ``pale``), the name of a fixed ink, or a colour of its own."""
_MONO = 0.52
"""Width of a typewriter's cell as a part of the size: its letters are half as wide as that, and stand apart."""


@dataclass(frozen=True)
class Look:
    """All that decides a drawing's pixels; ``length`` is how many pixels 100 units take."""

    kind: str
    rgb: RGB
    length: int
    pose: str = ""
    mirrored: bool = False
    tilt: float = 0
    text: str = ""
    variant: int = 0


_PLAIN = Look("", (0, 0, 0), 100)


class Pen:
    """Draws on a surface; ``unit`` pixels are one unit, the drawing's origin lies at ``origin``."""

    def __init__(self, surface: Surface, unit: float, origin: Point = (0.0, 0.0), look: Look = _PLAIN) -> None:
        self.surface, self.unit, self.origin, self.look = surface, unit, origin, look
        self.colour, self.pose, self.text, self.variant = look.rgb, look.pose, look.text, look.variant
        cos, sin = math.cos(math.radians(look.tilt)), math.sin(math.radians(look.tilt))
        side = -1 if look.mirrored else 1
        # x and y of a point on the sheet, as weights of its x and y in the drawing, turned about the middle.
        self._across = unit * side * cos, -unit * sin, origin[0] + unit * (50 - 50 * side * cos + 50 * sin)
        self._down = unit * side * sin, unit * cos, origin[1] + unit * (50 - 50 * side * sin - 50 * cos)

    def turned(self, angle: float) -> Pen:
        """The same pen on a sheet turned by ``angle`` degrees clockwise about the drawing's middle."""
        tilt = self.look.tilt + (-angle if self.look.mirrored else angle)
        return Pen(self.surface, self.unit, self.origin, replace(self.look, tilt=tilt))

    def rgb(self, name: Tone) -> RGB:
        """The colour behind a tone."""
        return tone(self.colour, name) if isinstance(name, str) else name

    def polygon(self, points: Points, fill: Tone = "main") -> None:
        """A filled polygon."""
        (ax, ay, a), (bx, by, b) = self._across, self._down
        fine = [((ax * x + ay * y + a) * FINE, (bx * x + by * y + b) * FINE) for x, y in points]
        self.surface.fill(fine, self.rgb(fill))

    def blob(self, points: Points, fill: Tone = "main") -> None:
        """A filled smooth outline through the points."""
        self.polygon(geometry.smooth(points, closed=True), fill)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Tone = "main", turn: float = 0.0) -> None:
        """A filled ellipse."""
        self.polygon(geometry.ellipse(x, y, rx, ry, turn), fill)

    def disc(self, x: float, y: float, radius: float, fill: Tone = "main") -> None:
        """A filled circle."""
        self.oval(x, y, radius, radius, fill)

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: Tone = "main", radius: float = 0.0) -> None:
        """A filled rectangle, its corners round if a radius is given."""
        self.polygon(geometry.rounded_box(x0, y0, x1, y1, radius), fill)

    def sector(self, x: float, y: float, rx: float, ry: float, start: float, end: float, fill: Tone = "main") -> None:
        """A filled piece of an ellipse, closed by a straight line: 180 to 360 is its upper half."""
        self.polygon(geometry.arc(x, y, rx, ry, start, end), fill)

    def line(self, points: Points, width: float = 3.0, fill: Tone = "ink") -> None:
        """A stroke with round ends and joints."""
        for part in geometry.thick(points, width):
            self.polygon(part, fill)

    def curve(self, points: Points, width: float = 3.0, fill: Tone = "ink") -> None:
        """A smooth stroke through the points."""
        self.line(geometry.smooth(points, closed=False), width, fill)

    def arc(
        self, x: float, y: float, rx: float, ry: float, start: float, end: float, width: float = 3.0, fill: Tone = "ink"
    ) -> None:
        """A stroke along an ellipse."""
        self.line(geometry.arc(x, y, rx, ry, start, end), width, fill)

    def ring(self, x: float, y: float, radius: float, width: float, fill: Tone = "main") -> None:
        """A circle's line."""
        self.arc(x, y, radius, radius, 0, 360, width, fill)

    def eye(self, x: float, y: float, radius: float = 2.4) -> None:
        """An eye that shows on light and dark faces alike."""
        self.disc(x, y, radius, "snow")
        self.disc(x, y, radius * 0.62, "ink")

    def write(
        self, x0: float, y0: float, x1: float, y1: float, text: str, fill: Tone = "ink", weight: float = 0
    ) -> None:
        """Lines of text, as large as the box allows, centred in it; never mirrored or tilted."""
        lines = text.split("\n")
        height = (y1 - y0) / len(lines)
        size = fitting_size(lines, (x1 - x0) * self.unit * FINE, height * self.unit * FINE)
        # The strokes of Chinese characters are close together: thicker ones would run into each other.
        added = min(round(weight * self.unit * FINE), 9 if text.isascii() else 1)
        for row, line in enumerate(lines):
            self._set(((x0 + x1) / 2, y0 + (row + 0.5) * height), line, size, "sans", fill, added)

    def type(self, x: float, y: float, text: str, size: float, fill: Tone = "ink", pitch: float = 0.62) -> None:
        """Lines of text as a typewriter sets them: every character in a cell of the same width."""
        em = max(6, round(size * self.unit * FINE * pitch / _MONO))
        for row, line in enumerate(text.split("\n")):
            for column, character in enumerate(line):
                middle = x + (column + 0.5) * size * pitch, y + (row + 0.5) * size * 1.25
                self._set(middle, character, em, "mono", fill)

    def _set(self, middle: Point, line: str, size: int, face: str, fill: Tone, weight: int = 0) -> None:
        (ax, ay, a), (bx, by, b) = self._across, self._down
        x, y = ax * middle[0] + ay * middle[1] + a, bx * middle[0] + by * middle[1] + b
        for left, top, mask in typeset(line, size, face, weight):
            self.surface.stamp(round(x * FINE) + left, round(y * FINE) + top, mask, self.rgb(fill))
