"""How pictures are drawn: colours, outlines, letters, a pen that turns them into pixels, and drawings as data.

Every shape ends as a polygon, which Pillow fills. Letters come from outlines in the package: the same pixels wherever
they are drawn, whatever fonts a machine has. ``glyphs.json.gz`` is made by ``scripts/compile_glyphs.py``. It holds
``em``, the side of a letter's square, and for each face (``sans``, ``mono``) a mapping from character to
``[advance, contours]``. A contour is a closed polygon, ``[x, y, dx, dy, dx, dy, …]``, y upwards from the baseline;
inside is what an odd number of contours surrounds.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosslens.core import needs_extra
from crosslens.storage import Array

if TYPE_CHECKING:
    from PIL import Image

RGB = tuple[int, int, int]
Point = tuple[float, float]
Points = Sequence[Point]


def read_table(name: str) -> dict[str, list[str]]:
    """The rows below each heading of a table in this package: a row is indented, a line with # is a comment."""
    table: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in files("crosslens.synth").joinpath(name).read_text("utf-8").splitlines():
        if line.startswith(" "):
            rows.append(line.strip())
        elif line and not line.startswith("#"):
            rows = table[line] = []
    return table


def _rgb(text: str) -> RGB:
    red, green, blue = map(int, text.split(","))
    return red, green, blue


COLOURS, INKS = (
    {name: _rgb(values) for name, values in map(str.split, rows)} for rows in read_table("colours.txt").values()
)

_JITTER = 9
_TONES = {"deep": -0.55, "dark": -0.28, "main": 0.0, "light": 0.3, "pale": 0.6}


def tone(colour: RGB, name: str) -> RGB:
    """One of the five tones of a colour, from ``deep`` to ``pale``, or a fixed ink."""
    if name in INKS:
        return INKS[name]
    amount = _TONES[name]
    if amount < 0:
        red, green, blue = (round(part * (1 + amount)) for part in colour)
    else:
        red, green, blue = (round(part + (255 - part) * amount) for part in colour)
    return red, green, blue


def shade(name: str, random: np.random.Generator) -> RGB:
    """A colour of this name, never quite the same twice: a little lighter or darker, warmer or cooler."""
    red, green, blue = (
        int(np.clip(part + step, 0, 255))
        for part, step in zip(COLOURS[name], random.integers(-_JITTER, _JITTER + 1, 3), strict=True)
    )
    return red, green, blue


def brightness(colour: RGB) -> float:
    """How bright a colour looks, from 0 to 255."""
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


def ellipse(x: float, y: float, rx: float, ry: float, turn: float = 0.0, corners: int = 30) -> list[Point]:
    """An ellipse around (x, y), turned by ``turn`` degrees clockwise."""
    if not turn:
        return [(x + rx * across, y + ry * down) for across, down in _circle(corners)]
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return [
        (x + rx * across * cos - ry * down * sin, y + rx * across * sin + ry * down * cos)
        for across, down in _circle(corners)
    ]


@cache
def _circle(corners: int) -> tuple[Point, ...]:
    angles = (2 * math.pi * corner / corners for corner in range(corners))
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


def arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    """Points along an ellipse from ``start`` to ``end`` degrees, 0 to the right, clockwise as pictures have y down."""
    steps = max(6, round(abs(end - start) / 12))
    angles = (math.radians(start + (end - start) * step / steps) for step in range(steps + 1))
    return [(x + rx * math.cos(angle), y + ry * math.sin(angle)) for angle in angles]


def regular(x: float, y: float, radius: float, corners: int, first: float = -90) -> list[Point]:
    """A regular polygon, its first corner in the direction ``first``."""
    return [polar(x, y, radius, first + 360 * corner / corners) for corner in range(corners)]


def star(x: float, y: float, radius: float, points: int = 5, depth: float = 0.42) -> list[Point]:
    """A star with one point up; ``depth`` is how far its notches reach out."""
    return [
        polar(x, y, radius * (1 if half % 2 == 0 else depth), -90 + 180 * half / points) for half in range(2 * points)
    ]


def polar(x: float, y: float, radius: float, angle: float) -> Point:
    """The point at this distance and direction (degrees, clockwise from the right)."""
    return x + radius * math.cos(math.radians(angle)), y + radius * math.sin(math.radians(angle))


def smooth(points: Points, closed: bool, steps: int = 6) -> list[Point]:
    """A smooth curve through all the points (Catmull–Rom)."""
    count = len(points)
    curve: list[Point] = []
    for here in range(count if closed else count - 1):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (
            points[(here + shift) % count if closed else min(max(here + shift, 0), count - 1)]
            for shift in (-1, 0, 1, 2)
        )
        for step in range(steps):
            t = step / steps
            curve.append(
                (
                    bx + 0.5 * t * (cx - ax + t * (2 * ax - 5 * bx + 4 * cx - dx + t * (3 * (bx - cx) + dx - ax))),
                    by + 0.5 * t * (cy - ay + t * (2 * ay - 5 * by + 4 * cy - dy + t * (3 * (by - cy) + dy - ay))),
                )
            )
    return curve if closed else [*curve, points[-1]]


FINE = 3
"""Everything is drawn this many times larger and then reduced: smooth edges, the same on every machine."""
_OUTLINE = 2
_SOLID = [255 if value >= 128 else 0 for value in range(256)]
"""A pixel belongs to the object if it is more solid than not."""


def pillow() -> Any:
    """The drawing library, or how to install it."""
    with needs_extra("drawing scenes", "pillow", "scenes"):
        import PIL.Image
        import PIL.ImageChops
        import PIL.ImageDraw
        import PIL.ImageFilter
    return PIL


class Surface:
    """A transparent or filled sheet, drawn on at ``FINE`` times its size."""

    def __init__(self, width: int, height: int, fill: RGB | None = None) -> None:
        library = pillow()
        size = width * FINE, height * FINE
        self.image = library.Image.new("RGBA", size) if fill is None else library.Image.new("RGB", size, fill)
        self._draw = library.ImageDraw.Draw(self.image)

    def fill(self, points: Points, colour: RGB) -> None:
        """Fill a polygon given in pixels of the fine sheet."""
        self._draw.polygon(points, fill=colour)

    def stamp(self, x: int, y: int, mask: Image.Image, colour: RGB) -> None:
        """Colour what a mask covers; its upper left corner goes to (x, y) of the fine sheet."""
        self.image.paste((*colour, 255)[: len(self.image.mode)], (x, y), mask)

    def gradient(self, top: float, bottom: float, colours: tuple[RGB, RGB]) -> None:
        """Fill the band between two heights, from one colour at its top to another at its bottom."""
        start, end = round(top), round(bottom)
        if end <= start:
            return
        steps, pairs = max(1, end - start - 1), list(zip(*colours, strict=True))
        rows = bytes(round(a + (b - a) * (row / steps)) for row in range(end - start) for a, b in pairs)
        column = pillow().Image.frombytes("RGB", (1, end - start), rows).convert(self.image.mode)
        # Drawn once and stretched: a rectangle for every row takes ten times as long.
        band = column.resize((self.image.width, (end - start) * FINE), pillow().Image.Resampling.NEAREST)
        self.image.paste(band, (0, start * FINE))

    def reduced(self) -> Image.Image:
        """The sheet at its final size."""
        reduced: Image.Image = self.image.reduce(FINE)
        return reduced

    def outlined(self, colour: RGB) -> Image.Image:
        """What is drawn, at its final size, with a thin line around it that sets it off from any background."""
        library, bounds = pillow(), self.image.getbbox()
        assert bounds is not None, "nothing was drawn"
        # Only the part drawn on, with a margin: most of a sheet is empty, and reducing it is slow.
        box = [(edge // FINE + step) * FINE for edge, step in zip(bounds, (-2, -2, 3, 3), strict=True)]
        drawing = self.image.crop(box).reduce(FINE)
        line = tone(colour, "deep") if brightness(colour) > 70 else (176, 176, 180)
        sheet = library.Image.new("RGBA", drawing.size, (*line, 0))
        solid = drawing.getchannel("A").point(_SOLID)
        sheet.putalpha(solid.filter(library.ImageFilter.MaxFilter(2 * _OUTLINE - 1)))
        sheet.alpha_composite(drawing)
        # Half-transparent fringes would leave the question open which pixels belong to the object.
        cut: Image.Image = sheet.crop(sheet.getchannel("A").point(_SOLID).getbbox())
        return cut


COMPILED = Path(__file__).with_name("glyphs.json.gz")
_MIDDLE = 375
"""Height of a line's middle above the baseline, in thousandths of the size: that of capitals and of Chinese alike."""
_SAMPLES = 4
"""A pixel of a mask is the share of so many by so many samples inside the outline."""
_LARGEST, _SMALLEST = 400, 6


class Glyph(NamedTuple):
    """A character as a mask, and where its upper left corner is, seen from its origin on the baseline."""

    left: int
    top: int
    mask: Image.Image


@cache
def outlines() -> dict[str, Any]:
    """The content of the compiled file."""
    content: dict[str, Any] = json.loads(gzip.decompress(COMPILED.read_bytes()))
    return content


def advance(text: str, size: int, face: str = "sans") -> float:
    """How wide a line is."""
    glyphs = outlines()[face]
    return float(sum(glyphs[character][0] for character in text) * size / outlines()["em"])


def fitting_size(lines: Sequence[str], width: float, height: float) -> int:
    """The largest size in which every line is at most this wide and high."""
    size = int(min(max(height * 0.82, _SMALLEST), _LARGEST))
    widest = max(advance(line, size) for line in lines)
    return size if widest <= width else max(_SMALLEST, int(size * width / widest))


def typeset(text: str, size: int, face: str = "sans", weight: int = 0) -> Iterator[Glyph]:
    """The glyphs of a line, seen from the line's middle; ``weight`` pixels are added around each."""
    x, baseline = -advance(text, size, face) / 2, size * _MIDDLE // 1000
    for character in text:
        glyph = _glyph(character, size, face, weight)
        if glyph is not None:
            yield Glyph(round(x) + glyph.left, baseline + glyph.top, glyph.mask)
        x += advance(character, size, face)


@lru_cache(maxsize=8192)
def _glyph(character: str, size: int, face: str, weight: int) -> Glyph | None:
    """A character drawn, grown by ``weight`` pixels on each side; None where there is nothing to draw."""
    edges = _edges(character, face)
    if not edges.size:
        return None
    left, top, mask = _fill(edges, size, outlines()["em"])
    for _ in range(2 if weight else 0):  # first downwards, then, turned over, across
        padded = np.pad(mask, ((2 * weight, 2 * weight), (0, 0)))
        height = len(mask) + 2 * weight
        mask = np.maximum.reduce([padded[step : step + height] for step in range(2 * weight + 1)]).T
    return Glyph(left - weight, top - weight, pillow().Image.fromarray(np.ascontiguousarray(mask)))


@cache
def _edges(character: str, face: str) -> Array:
    """The edges of a character as rows of x0, y0, x1, y1 with y0 < y1, y downwards."""
    contours = [np.reshape(contour, (-1, 2)).cumsum(axis=0) * (1, -1) for contour in outlines()[face][character][1]]
    rows = [np.hstack([contour, np.roll(contour, -1, axis=0)]) for contour in contours]
    edges = np.concatenate([*rows, np.empty((0, 4), np.int64)])
    sloping = edges[edges[:, 1] != edges[:, 3]]
    downwards: Array = np.where((sloping[:, 1] < sloping[:, 3])[:, None], sloping, np.roll(sloping, 2, axis=1))
    return downwards


def _fill(edges: Array, size: int, em: int) -> tuple[int, int, Array]:
    """Left, top and mask of what has an odd number of edges to its left; in whole numbers, so alike on all machines."""
    x0, y0, x1, y1 = edges.T * (2 * _SAMPLES * size)
    # In this unit a pixel is as long as this, and sample k lies at (2 k + 1) em.
    pixel = 2 * _SAMPLES * em
    left, top = min(x0.min(), x1.min()) // pixel, y0.min() // pixel
    width, height = int(-(-max(x0.max(), x1.max()) // pixel) - left), int(-(-y1.max() // pixel) - top)
    first, last = -((em - y0) // (2 * em)), -((em - y1) // (2 * em))
    counts = last - first
    row = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first, counts)
    x, y, slope, rise = np.repeat(np.stack([x0, y0, x1 - x0, y1 - y0]), counts, axis=1)
    crossing = x + ((2 * row + 1) * em - y) * slope // rise
    column = -((em - crossing) // (2 * em)) - left * _SAMPLES
    stride = width * _SAMPLES + 1
    toggles = np.bincount((row - top * _SAMPLES) * stride + column, minlength=height * _SAMPLES * stride)
    inside = np.bitwise_xor.accumulate(toggles.astype(np.uint8).reshape(-1, stride), axis=1)[:, :-1] & 1
    across = np.add.reduce([inside[:, step::_SAMPLES] for step in range(_SAMPLES)], dtype=np.uint16)
    shares = np.add.reduce([across[step::_SAMPLES] for step in range(_SAMPLES)], dtype=np.uint16)
    return int(left), int(top), (shares * 255 // _SAMPLES**2).astype(np.uint8)


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
    """Draws shapes in a box of 100 × 100 units, in tones of one colour.

    ``unit`` pixels of the surface are one unit, and the drawing's origin lies at ``origin``.
    """

    def __init__(self, surface: Surface, unit: float, origin: Point = (0.0, 0.0), look: Look = _PLAIN) -> None:
        self.surface, self.unit, self.origin, self.look = surface, unit, origin, look
        self.colour, self.pose, self.text, self.variant = look.rgb, look.pose, look.text, look.variant
        cos, sin = math.cos(math.radians(look.tilt)), math.sin(math.radians(look.tilt))
        side = -1 if look.mirrored else 1
        # x and y of a point on the sheet, as weights of its x and y in the drawing, turned about the middle.
        self._across = unit * side * cos, -unit * sin, origin[0] + unit * (50 - 50 * side * cos + 50 * sin)
        self._down = unit * side * sin, unit * cos, origin[1] + unit * (50 - 50 * side * sin - 50 * cos)

    def turned(self, angle: float) -> Pen:
        """A pen like this one on a sheet turned by ``angle`` degrees clockwise about the drawing's middle."""
        tilt = self.look.tilt + (-angle if self.look.mirrored else angle)
        return Pen(self.surface, self.unit, self.origin, replace(self.look, tilt=tilt))

    def rgb(self, name: Tone) -> RGB:
        """The colour behind a tone; ``contrast`` shows on the drawing's own colour."""
        if name == "contrast":
            name = "ink" if brightness(self.colour) > 150 else "snow"
        return tone(self.colour, name) if isinstance(name, str) else name

    def polygon(self, points: Points, fill: Tone = "main") -> None:
        (ax, ay, a), (bx, by, b) = self._across, self._down
        fine = [((ax * x + ay * y + a) * FINE, (bx * x + by * y + b) * FINE) for x, y in points]
        self.surface.fill(fine, self.rgb(fill))

    def blob(self, points: Points, fill: Tone = "main") -> None:
        """A filled smooth outline through the points."""
        self.polygon(smooth(points, closed=True), fill)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Tone = "main", turn: float = 0.0) -> None:
        """A filled ellipse."""
        self.polygon(ellipse(x, y, rx, ry, turn), fill)

    def disc(self, x: float, y: float, radius: float, fill: Tone = "main") -> None:
        """A filled circle."""
        self.oval(x, y, radius, radius, fill)

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: Tone = "main", radius: float = 0.0) -> None:
        """A filled rectangle, its corners round if a radius is given."""
        r = min(radius, (x1 - x0) / 2, (y1 - y0) / 2)
        corners = ((x1 - r, y0 + r), (x1 - r, y1 - r), (x0 + r, y1 - r), (x0 + r, y0 + r))
        if radius <= 0:
            self.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], fill)
        else:
            quarters = (arc(x, y, r, r, 90 * turn - 90, 90 * turn) for turn, (x, y) in enumerate(corners))
            self.polygon([point for quarter in quarters for point in quarter], fill)

    def sector(self, x: float, y: float, rx: float, ry: float, start: float, end: float, fill: Tone = "main") -> None:
        """A filled piece of an ellipse, closed by a straight line: 180 to 360 is its upper half."""
        self.polygon(arc(x, y, rx, ry, start, end), fill)

    def line(self, points: Points, width: float = 3.0, fill: Tone = "ink") -> None:
        """A stroke with round ends and joints."""
        half = width / 2
        for x, y in points:
            self.polygon(ellipse(x, y, half, half, corners=12), fill)
        for (ax, ay), (bx, by) in pairwise(points):
            length = math.hypot(bx - ax, by - ay)
            if length > 0:
                x, y = -(by - ay) / length * half, (bx - ax) / length * half
                self.polygon([(ax + x, ay + y), (bx + x, by + y), (bx - x, by - y), (ax - x, ay - y)], fill)

    def curve(self, points: Points, width: float = 3.0, fill: Tone = "ink") -> None:
        """A smooth stroke through the points."""
        self.line(smooth(points, closed=False), width, fill)

    def arc(
        self, x: float, y: float, rx: float, ry: float, start: float, end: float, width: float = 3.0, fill: Tone = "ink"
    ) -> None:
        """A stroke along an ellipse."""
        self.line(arc(x, y, rx, ry, start, end), width, fill)

    def ring(self, x: float, y: float, radius: float, width: float, fill: Tone = "main") -> None:
        """A circle's line."""
        self.arc(x, y, radius, radius, 0, 360, width, fill)

    def eye(self, x: float, y: float, radius: float = 2.4) -> None:
        """An eye that shows on light and dark faces alike."""
        self.disc(x, y, radius, "snow")
        self.disc(x, y, radius * 0.62, "ink")

    def write(self, x0: float, y0: float, x1: float, y1: float, fill: Tone = "ink", weight: float = 0) -> None:
        """The lines of the text, as large as the box allows, centred in it; never mirrored or tilted."""
        lines = self.text.split("\n")
        height = (y1 - y0) / len(lines)
        size = fitting_size(lines, (x1 - x0) * self.unit * FINE, height * self.unit * FINE)
        # The strokes of Chinese characters are close together: thicker ones would run into each other.
        added = min(round(weight * self.unit * FINE), 9 if self.text.isascii() else 1)
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


Draw = Callable[[Pen], None]


@dataclass(frozen=True)
class Drawing:
    """How a kind of object is drawn, and the poses its drawing knows; the first is the usual one."""

    draw: Draw
    poses: tuple[str, ...] = ()


DRAWINGS: dict[str, Drawing] = {}
"""Every drawing by the name of its kind."""


def drawing(name: str, poses: tuple[str, ...] = ()) -> Callable[[Draw], Draw]:
    """Register a function as the drawing of a kind; its words are in the catalogue."""

    def register(draw: Draw) -> Draw:
        assert name not in DRAWINGS, name
        DRAWINGS[name] = Drawing(draw, poses)
        return draw

    return register


def points(text: str) -> list[Point]:
    """The points in ``44,80 42,98``."""
    numbers = _numbers(text)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.replace(",", " ").split()]


def read_drawings(name: str) -> dict[str, Draw]:
    """The drawings of a table: a name, then a row for each style of stroke.

    ``line 3 gold: 44,80 42,98 | 56,80 58,98`` calls the pen's ``line`` twice: of width 3, in gold, through two points
    each. The number is the radius of a box's corners, the turn of an oval, the weight of writing; a fill can be red,
    green and blue.
    """
    drawings: dict[str, Draw] = {}
    for kind, rows in read_table(name).items():
        strokes: list[tuple[str, Sequence[Any], dict[str, Any]]] = []
        for style, _, outlines in (row.partition(":") for row in rows):
            shape, *details = style.split()
            keywords: dict[str, Any] = {}
            for detail in details:
                if detail.isalpha() or "," in detail:
                    keywords["fill"] = detail if detail.isalpha() else _rgb(detail)
                else:
                    keywords[{"box": "radius", "oval": "turn", "write": "weight"}.get(shape, "width")] = float(detail)
            for outline in outlines.split("|"):
                pointed = shape in ("polygon", "blob", "line", "curve")
                strokes.append((shape, [points(outline)] if pointed else _numbers(outline), keywords))
        drawings[kind] = partial(_draw_strokes, strokes=strokes)
    return drawings


def _draw_strokes(pen: Pen, strokes: Sequence[tuple[str, Sequence[Any], dict[str, Any]]]) -> None:
    for shape, arguments, keywords in strokes:
        getattr(pen, shape)(*arguments, **keywords)
