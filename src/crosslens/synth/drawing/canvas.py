"""Where polygons become pixels, by Pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosslens.core import MissingExtraError
from crosslens.synth.drawing.colours import RGB, brightness, tone
from crosslens.synth.drawing.geometry import Points

if TYPE_CHECKING:
    from PIL import Image

FINE = 3
"""Everything is drawn this many times larger and then reduced: smooth edges, the same on every machine."""

_OUTLINE = 2
_SOLID = [255 if value >= 128 else 0 for value in range(256)]
"""A pixel belongs to the object if it is more solid than not."""


def pillow() -> Any:
    """The drawing library, or how to install it."""
    try:
        import PIL.Image
        import PIL.ImageChops
        import PIL.ImageDraw
        import PIL.ImageFilter
    except ImportError as error:
        raise MissingExtraError("drawing scenes", "pillow", "scenes") from error
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

    def drawn(self) -> Image.Image:
        """The part drawn on, at its final size, with a margin: most of a sheet is empty, and reducing it is slow."""
        drawn = self.image.getbbox()
        assert drawn is not None, "nothing was drawn"
        box = [(edge // FINE + step) * FINE for edge, step in zip(drawn, (-2, -2, 3, 3), strict=True)]
        part: Image.Image = self.image.crop(box).reduce(FINE)
        return part


def outlined(drawing: Image.Image, colour: RGB) -> Image.Image:
    """The drawing with a thin line around it that sets it off from any background, cut to what is drawn."""
    library = pillow()
    line = tone(colour, "deep") if brightness(colour) > 70 else (176, 176, 180)
    alpha = drawing.getchannel("A").point(_SOLID)
    around = alpha.filter(library.ImageFilter.MaxFilter(2 * _OUTLINE - 1))
    sheet = library.Image.new("RGBA", drawing.size, (*line, 0))
    sheet.putalpha(around)
    sheet.alpha_composite(drawing)
    # Half-transparent fringes would leave the question open which pixels belong to the object.
    cut: Image.Image = sheet.crop(drawn_box(sheet))
    return cut


def drawn_box(image: Image.Image) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of the pixels that are more solid than not."""
    box: tuple[int, int, int, int] | None = image.getchannel("A").point(_SOLID).getbbox()
    assert box is not None, "nothing was drawn"
    return box
