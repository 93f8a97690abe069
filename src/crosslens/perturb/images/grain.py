"""Noise, as weak light gives it.

Encoders reduce a picture to a few hundred pixels, and noise of single pixels would vanish from a large picture on the
way. So a grain is a 256th of the shorter side (at least a pixel): a severity is equally strong at every size.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from crosslens.perturb.images.colours import as_pixels
from crosslens.perturb.images.perturbation import Pixels, image_perturbation

_ACROSS = 256
_QUANTILES = 4096


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


def _grains(pixels: Pixels) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    """For every row and every column of pixels, the row and column of its grain."""
    height, width = pixels.shape[:2]
    size = max(1.0, min(height, width) / _ACROSS)
    return (np.arange(height) / size).astype(np.int64), (np.arange(width) / size).astype(np.int64)


def _enlarged(
    pattern: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
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
