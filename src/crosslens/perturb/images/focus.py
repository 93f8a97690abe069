"""Lost detail: out of focus, shaken, coarse, compressed.

Lengths are in thousandths of the shorter side, so that a severity means the same for a thumbnail and for a photo of
4,000 pixels: encoders reduce both to one size.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from crosslens.perturb.images.perturbation import Pixels, image_perturbation
from crosslens.perturb.images.planes import from_picture, pillow, to_picture

_MOST_COPIES = 65
"""Of a shaken picture; more are not told apart, and take their time with large pictures."""


@image_perturbation("blur", (4, 6, 10, 15, 22), "standard deviation in thousandths of the shorter side")
def blur(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Out of focus: a Gaussian blur."""
    return from_picture(to_picture(pixels).filter(pillow().ImageFilter.GaussianBlur(_length(pixels, amount))))


@image_perturbation("motion_blur", (16, 27, 47, 75, 110), "length in thousandths of the shorter side")
def motion_blur(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Shaken: the picture smeared along a line whose direction is a matter of chance."""
    angle = draws.uniform(0, np.pi)
    length = _length(pixels, amount)
    steps = np.linspace(-length / 2, length / 2, min(_MOST_COPIES, 2 * int(np.ceil(length)) + 1))
    points = np.rint(np.stack([steps * np.sin(angle), steps * np.cos(angle)], axis=1)).astype(int)
    offsets, weights = np.unique(points, axis=0, return_counts=True)
    reach = int(np.abs(offsets).max())
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    total = np.zeros(pixels.shape, np.uint32)
    for (down, right), weight in zip(offsets + reach, weights, strict=True):
        total += padded[down : down + height, right : right + width] * np.uint32(weight)
    count = int(weights.sum())
    return ((total + count // 2) // count).astype(np.uint8)


@image_perturbation("pixelate", (7, 11, 17, 26, 37), "side of a square in thousandths of the shorter side")
def pixelate(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Coarse: squares of one colour each."""
    picture, side = to_picture(pixels), max(1.0, _length(pixels, amount))
    size = tuple(max(1, round(length / side)) for length in picture.size)
    resampling = pillow().Image.Resampling
    return from_picture(picture.resize(size, resampling.BOX).resize(picture.size, resampling.NEAREST))


@image_perturbation("jpeg", (30, 18, 12, 8, 5), "JPEG quality, of 100")
def jpeg(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """What JPEG compression leaves of the picture, at its own size: a large picture loses less that an encoder sees."""
    content = io.BytesIO()
    to_picture(pixels).save(content, "JPEG", quality=int(amount))
    return from_picture(pillow().Image.open(content))


def _length(pixels: Pixels, thousandths: float) -> Any:
    return thousandths / 1000 * min(pixels.shape[:2])
