"""A perceptual hash: pictures that look the same differ in few bits, however they were saved.

Of each colour channel, made 32×32, the 8×8 lowest frequencies of the cosine transform; a bit says whether one is above
their median. Colours count: two drawings that differ in a colour alone are two pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.fft import dctn

from crosslens.core.errors import InputError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.encode.pictures import as_picture, read_ahead

Array = np.ndarray[Any, Any]

BITS = 192
_SIDE, _LOW = 32, 8


def picture_hash(picture: Any) -> Array:
    """The 192 bits of a picture, 64 for each of red, green and blue."""
    from PIL import Image

    small = np.asarray(picture.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64)
    waves = dctn(small, axes=(0, 1), norm="ortho")[:_LOW, :_LOW].reshape(_LOW * _LOW, 3)
    # The first is the mean brightness: it says nothing about what is where.
    bits: Array = (waves > np.median(waves[1:], axis=0) + 1e-6).T.reshape(-1)
    return bits


def hash_files(files: Sequence[str], progress: Progress | None = None) -> Array:
    """n×192 bits; an unreadable file raises with its name."""
    progress = progress or Silent()
    rows = np.zeros((len(files), BITS), bool)

    def one(file: str) -> Array:
        try:
            return picture_hash(as_picture(file))
        except InputError as error:
            error.fix = error.fix or "repair or remove the file, or pass --skip-bad to leave such images out"
            raise

    with stage(progress, "hashing pictures", len(files)):
        for row, bits in enumerate(read_ahead(one, files)):
            rows[row] = bits
            progress.advance()
    return rows
