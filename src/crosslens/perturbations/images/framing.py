"""What is seen and where: a part cut out, a tilt, a patch in front.

Chance picks a point of the frame once per image; parts and patches of all severities are laid around it, each inside
the next. So a higher severity hides what a lower one hides, and more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.perturbations.images.picture import Pixels, from_picture, pillow, to_picture
from crosslens.perturbations.images.registry import image_perturbation

GREY = 128
Size = tuple[int, int]
"""Width, height."""


@dataclass(frozen=True)
class Move:
    """Where a point goes: (x, y) → (a·x + b·y + c, d·x + e·y + f), in pixels."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def corners(self, boxes: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Left, top, right, bottom around the moved corners of boxes given as x, y, width, height."""
        x, y, w, h = np.asarray(boxes, np.float64).T
        across, down = np.stack([x, x + w, x, x + w]), np.stack([y, y, y + h, y + h])
        right = self.a * across + self.b * down + self.c
        low = self.d * across + self.e * down + self.f
        return np.stack([right.min(0), low.min(0), right.max(0), low.max(0)], axis=1)


def kept_part(size: Size, amount: float, draws: np.random.Generator) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of the part that a crop keeps."""
    (width, height), (across, down) = size, draws.random(2)
    side = math.sqrt(amount)
    wide, high = max(1.0, width * side), max(1.0, height * side)
    left, top = across * (width - wide), down * (height - high)
    return left, top, min(width, left + wide), min(height, top + high)  # sums may round up beyond the frame


def crop_move(size: Size, amount: float, draws: np.random.Generator) -> Move:
    """The kept part fills the frame."""
    left, top, right, bottom = kept_part(size, amount, draws)
    wider, higher = size[0] / (right - left), size[1] / (bottom - top)
    return Move(wider, 0.0, -left * wider, 0.0, higher, -top * higher)


@image_perturbation("crop", (0.8, 0.62, 0.46, 0.32, 0.2), "share of the area that is kept", alpha=True, move=crop_move)
def crop(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A part cut out at random and enlarged to the size of the picture; a higher severity keeps a part of that part."""
    picture = to_picture(pixels)
    part = kept_part(picture.size, amount, draws)
    return from_picture(picture.resize(picture.size, pillow().Image.Resampling.BICUBIC, box=part))


def rotate_move(size: Size, amount: float, draws: np.random.Generator) -> Move:
    """A turn around the middle."""
    angle = math.radians(_turn(amount, draws))
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = size[0] / 2, size[1] / 2
    return Move(cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y)


@image_perturbation("rotate", (5, 10, 18, 28, 40), "degrees", alpha=True, move=rotate_move)
def rotate(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A tilt to the left or to the right, a matter of chance; the corners that come into view are grey."""
    picture = to_picture(pixels)
    colour = fill if pixels.shape[2] == 1 else (fill,) * pixels.shape[2]
    return from_picture(picture.rotate(_turn(amount, draws), pillow().Image.Resampling.BICUBIC, fillcolor=colour))


def patch(size: Size, amount: float, draws: np.random.Generator) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what an occlusion covers."""
    (width, height), (across, down) = size, draws.random(2)
    longer = math.sqrt(math.exp(draws.uniform(-0.3, 0.3)))
    side = math.sqrt(amount)
    wide, high = min(width, width * side * longer), min(height, height * side / longer)
    left, top = across * (width - wide), down * (height - high)
    return math.floor(left), math.floor(top), math.ceil(left + wide), math.ceil(top + high)


@image_perturbation("occlusion", (0.04, 0.1, 0.19, 0.31, 0.46), "share of the area that is covered", alpha=True)
def occlusion(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A grey patch at a random place; that of a higher severity covers that of a lower one."""
    left, top, right, bottom = patch((pixels.shape[1], pixels.shape[0]), amount, draws)
    covered = pixels.copy()
    covered[top:bottom, left:right] = fill
    return covered


def _turn(amount: float, draws: np.random.Generator) -> float:
    return amount if draws.random() < 0.5 else -amount
