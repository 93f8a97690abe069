"""The colours objects come in: a name that captions use, and the tones a drawing derives from it."""

from __future__ import annotations

import numpy as np

RGB = tuple[int, int, int]

COLOURS: dict[str, RGB] = {
    "red": (214, 38, 38),
    "orange": (245, 132, 26),
    "yellow": (250, 210, 40),
    "green": (52, 160, 70),
    "blue": (45, 100, 215),
    "purple": (130, 62, 175),
    "pink": (245, 130, 180),
    "brown": (128, 78, 42),
    "black": (40, 40, 44),
    "white": (246, 246, 244),
    "grey": (142, 146, 152),
}
"""The eleven basic colour terms; every pair of them is told apart at a glance."""

INKS: dict[str, RGB] = {
    "ink": (30, 30, 34),
    "snow": (250, 250, 250),
    "skin": (236, 188, 150),
    "tan": (222, 184, 135),
    "wood": (150, 104, 62),
    "bark": (108, 74, 44),
    "leaf": (70, 145, 60),
    "metal": (176, 182, 190),
    "steel": (110, 116, 126),
    "glass": (178, 216, 236),
    "tyre": (48, 48, 52),
    "gold": (232, 184, 60),
    "cream": (250, 238, 208),
    "rose": (240, 150, 160),
    "flame": (250, 150, 40),
    "sea": (60, 130, 190),
}
"""Fixed colours of parts that keep theirs whatever the object's own colour is: tyres, windows, leaves."""

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
