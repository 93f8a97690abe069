"""Letters from outlines in the package: the same pixels wherever they are drawn, whatever fonts a machine has.

``glyphs.json.gz`` is made by ``scripts/compile_glyphs.py``. It holds ``em``, the side of a letter's square,
and for each face (``sans``, ``mono``) a mapping from character to ``[advance, contours]``. A contour is a closed
polygon, ``[x, y, dx, dy, dx, dy, …]``, y upwards from the baseline; inside is what an odd number of contours surrounds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosslens.synth.drawing.canvas import pillow

if TYPE_CHECKING:
    from PIL import Image

Array = np.ndarray[Any, Any]

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
    """A character drawn; None where there is nothing to draw."""
    edges = _edges(character, face)
    if not edges.size:
        return None
    left, top, mask = _fill(edges, size, outlines()["em"])
    return Glyph(left - weight, top - weight, pillow().Image.fromarray(_bold(mask, weight)))


def _bold(mask: Array, weight: int) -> Array:
    """The mask grown by this many pixels on each side."""
    for _ in range(2 if weight else 0):  # first downwards, then, turned over, across
        padded = np.pad(mask, ((2 * weight, 2 * weight), (0, 0)))
        height = len(mask) + 2 * weight
        mask = np.maximum.reduce([padded[step : step + height] for step in range(2 * weight + 1)]).T
    return np.ascontiguousarray(mask)


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
