"""Light and colour: brightness, contrast, saturation."""

from __future__ import annotations

import numpy as np

from crosslens.perturb.images.perturbation import Pixels, image_perturbation

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue look (Rec. 601)."""


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


def _grey(pixels: Pixels) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    weights = _LUMA if pixels.shape[2] == 3 else np.ones(1, np.float32)
    return (pixels @ weights)[..., None]


def _towards(
    pixels: Pixels, target: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | np.float32, amount: float
) -> Pixels:
    return as_pixels(pixels + (target - pixels) * np.float32(amount))


def as_pixels(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Pixels:
    """Rounded, and cut off at black and white."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
