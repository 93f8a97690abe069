"""Backdrops: places, skies and surfaces, drawn by code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.core.seeds import stream

# Importing a module enrols its backdrops.
from crosslens.synth.backdrops import places, skies, surfaces  # noqa: F401
from crosslens.synth.backdrops.backdrop import BACKDROPS, Backdrop, Brush
from crosslens.synth.canvas import Surface

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["BACKDROPS", "Backdrop", "backdrops_of", "paint"]


def backdrops_of(*groups: str) -> tuple[Backdrop, ...]:
    """All backdrops of these groups (``place``, ``sky``, ``surface``)."""
    return tuple(one for one in BACKDROPS.values() if one.group in groups)


def paint(name: str, size: int, variant: int) -> Image.Image:
    """The backdrop as a square picture; another variant has other clouds, houses, planks."""
    surface = Surface(size, size, (255, 255, 255))
    BACKDROPS[name].draw(Brush(surface, size, stream(variant, "backdrop", name)))
    return surface.reduced()
