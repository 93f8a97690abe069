"""The drawing language: shapes in a box of 100 × 100 units, in tones of one colour."""

from __future__ import annotations

import math

from crosslens.synth import geometry
from crosslens.synth.canvas import FINE, Surface
from crosslens.synth.colours import RGB, tone
from crosslens.synth.fonts import fitting_font, latin_font
from crosslens.synth.geometry import Point, Points

Tone = str | RGB
"""A tone of the thing's colour (``deep`` … ``pale``), the name of a fixed ink, or a colour of its own."""


class Pen:
    """Draws on a surface; ``unit`` pixels are one unit, the drawing's origin lies at ``origin``."""

    def __init__(
        self,
        surface: Surface,
        unit: float,
        origin: Point = (0.0, 0.0),
        *,
        colour: RGB = (0, 0, 0),
        pose: str = "",
        text: str = "",
        variant: int = 0,
        mirrored: bool = False,
        tilt: float = 0.0,
    ) -> None:
        self.surface, self.unit, self.origin = surface, unit, origin
        self.colour, self.pose, self.text, self.variant = colour, pose, text, variant
        self._mirrored, self._tilt = mirrored, tilt
        cos, sin = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
        side = -1 if mirrored else 1
        # x and y of a point on the sheet, as weights of its x and y in the drawing, turned about the middle.
        self._across = unit * side * cos, -unit * sin, origin[0] + unit * (50 - 50 * side * cos + 50 * sin)
        self._down = unit * side * sin, unit * cos, origin[1] + unit * (50 - 50 * side * sin - 50 * cos)

    def turned(self, angle: float) -> Pen:
        """The same pen on a sheet turned by ``angle`` degrees clockwise about the drawing's middle."""
        return Pen(
            self.surface,
            self.unit,
            self.origin,
            colour=self.colour,
            pose=self.pose,
            text=self.text,
            variant=self.variant,
            mirrored=self._mirrored,
            tilt=self._tilt + (-angle if self._mirrored else angle),
        )

    def rgb(self, name: Tone) -> RGB:
        """The colour behind a tone."""
        return tone(self.colour, name) if isinstance(name, str) else name

    def place(self, point: Point) -> Point:
        """Where a point of the drawing lies on the surface."""
        (ax, ay, a), (bx, by, b) = self._across, self._down
        return ax * point[0] + ay * point[1] + a, bx * point[0] + by * point[1] + b

    def polygon(self, points: Points, fill: Tone = "main") -> None:
        """A filled polygon."""
        (ax, ay, a), (bx, by, b) = self._across, self._down
        self.surface.fill([(ax * x + ay * y + a, bx * x + by * y + b) for x, y in points], self.rgb(fill))

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
        height = (y1 - y0) * self.unit / len(lines)
        font = fitting_font(lines, (x1 - x0) * self.unit * FINE, height * FINE)
        for row, line in enumerate(lines):
            x, y = self.place(((x0 + x1) / 2, y0 + (row + 0.5) * (y1 - y0) / len(lines)))
            self.surface.write(x, y, line, font, self.rgb(fill), weight * self.unit)

    def type(self, x: float, y: float, text: str, size: float, fill: Tone = "ink", pitch: float = 0.62) -> None:
        """Lines of text as a typewriter sets them: every character in a cell of the same width."""
        font = latin_font(max(6, round(size * self.unit * FINE)))
        for row, line in enumerate(text.split("\n")):
            for column, character in enumerate(line):
                at = self.place((x + (column + 0.5) * size * pitch, y + (row + 0.5) * size * 1.25))
                if character != " ":
                    self.surface.write(*at, character, font, self.rgb(fill))
