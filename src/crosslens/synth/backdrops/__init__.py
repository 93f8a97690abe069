"""Backdrops: places, skies and surfaces, drawn by code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.core import random_stream

# Importing a module registers its backdrops.
from crosslens.synth.backdrops import places, plain  # noqa: F401
from crosslens.synth.backdrops.backdrop import BACKDROPS, Backdrop, Brush
from crosslens.synth.drawing.canvas import Surface

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["BACKDROPS", "Backdrop", "backdrops_of", "paint"]


def backdrops_of(*groups: str) -> tuple[Backdrop, ...]:
    """All backdrops of these groups (``place``, ``sky``, ``surface``)."""
    return tuple(backdrop for backdrop in BACKDROPS.values() if backdrop.group in groups)


def paint(name: str, size: int, variant: int) -> Image.Image:
    """The backdrop as a square picture; another variant has other clouds, houses, planks."""
    surface = Surface(size, size, (255, 255, 255))
    BACKDROPS[name].draw(Brush(surface, size, random_stream(variant, "backdrop", name)))
    return surface.reduced()
