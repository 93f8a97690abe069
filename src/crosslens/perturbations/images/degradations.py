"""Worse pictures: light and colour, noise, and lost detail.

Lengths are in thousandths of the shorter side, so that a severity means the same for a thumbnail and for a photo of
4,000 pixels: encoders reduce both to one size. For the same reason a grain of noise is a 256th of the shorter side (at
least a pixel): noise of single pixels would vanish from a large picture on the way.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.perturbations.images.picture import Pixels, from_picture, pillow, to_picture
from crosslens.perturbations.images.registry import image_perturbation

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue look (Rec. 601)."""
_ACROSS = 256
_QUANTILES = 4096
_MOST_COPIES = 65
"""Of a shaken picture; more are not told apart, and take their time with large pictures."""

Array = np.ndarray[Any, Any]
FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@image_perturbation("brightness", (0.2, 0.35, 0.5, 0.65, 0.8), "way to white or to black")
def brightness(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Lighter or darker, a matter of chance: every pixel goes part of the way to white, or to black."""
    target = 255.0 if draws.random() < 0.5 else 0.0
    return _towards(pixels, np.float32(target), amount)


@image_perturbation("contrast", (0.3, 0.5, 0.65, 0.78, 0.88), "way to the picture's mean")
def contrast(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Flatter: every pixel goes part of the way to the mean brightness of the picture."""
    return _towards(pixels, _grey(pixels).mean(), amount)


@image_perturbation("grayscale", (0.3, 0.5, 0.7, 0.85, 1.0), "share of the colour taken away")
def grayscale(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Paler, at severity 5 without any colour; brightness stays as it is."""
    return pixels if pixels.shape[2] == 1 else _towards(pixels, _grey(pixels), amount)


def _grey(pixels: Pixels) -> FloatArray:
    weights = _LUMA if pixels.shape[2] == 3 else np.ones(1, np.float32)
    return (pixels @ weights)[..., None]


def _towards(pixels: Pixels, target: FloatArray | np.float32, amount: float) -> Pixels:
    return as_pixels(pixels + (target - pixels) * np.float32(amount))


def as_pixels(values: Array) -> Pixels:
    """Rounded, and cut off at black and white."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@image_perturbation("noise", (0.06, 0.1, 0.16, 0.24, 0.35), "standard deviation, of the range from black to white")
def noise(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Gaussian noise on every channel; all severities have one pattern, only stronger."""
    rows, columns = _grains(pixels)
    pattern = draws.standard_normal((rows[-1] + 1, columns[-1] + 1, pixels.shape[2]), np.float32)
    return as_pixels(pixels + _enlarged(pattern * np.float32(255 * amount), rows, columns))


@image_perturbation("shot_noise", (150, 60, 25, 12, 6), "light quanta of a white pixel")
def shot_noise(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """The noise of few light quanta (Poisson): strong where it is bright; all severities have one pattern."""
    rows, columns = _grains(pixels)
    chances = draws.integers(_QUANTILES, size=(rows[-1] + 1, columns[-1] + 1, pixels.shape[2]), dtype=np.uint16)
    changed: Pixels = _poisson_table(amount)[pixels, _enlarged(chances, rows, columns)]
    return changed


def _grains(pixels: Pixels) -> tuple[Array, Array]:
    """For every row and every column of pixels, the row and column of its grain."""
    height, width = pixels.shape[:2]
    size = max(1.0, min(height, width) / _ACROSS)
    return (np.arange(height) / size).astype(np.int64), (np.arange(width) / size).astype(np.int64)


def _enlarged(pattern: Array, rows: Array, columns: Array) -> Array:
    return pattern if pattern.shape[:2] == (len(rows), len(columns)) else pattern[rows][:, columns]


@lru_cache(maxsize=8)
def _poisson_table(white: float) -> Pixels:
    """Brightness × quantile → brightness, when a white pixel catches ``white`` quanta on average."""
    counts = np.arange(int(white + 8 * white**0.5) + 8)
    chances = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    table = np.zeros((256, _QUANTILES), np.uint8)
    for level in range(1, 256):
        mean = white * level / 255
        below = np.cumsum(np.exp(counts * np.log(mean) - mean - log_factorial))
        caught = np.searchsorted(below, chances).clip(max=len(counts) - 1)
        table[level] = as_pixels((255 / white * caught).astype(np.float32))
    return table


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
