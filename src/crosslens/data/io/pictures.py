"""Pictures in image files that nobody vouches for: their size is checked before a pixel is decoded."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crosslens.core import ASPECT_RATIO, IMAGE_PIXELS, CrosslensError, InputError, MissingExtraError

_RUNS_A_PROGRAM = ("EPS",)
"""Formats that Pillow hands to another program."""


@contextmanager
def readable_picture(content: bytes) -> Iterator[Any]:
    """The picture in an image file's bytes, not decoded yet.

    Whatever is wrong with it, here or when it is decoded inside the block, raises an ``InputError``.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("reading images", "pillow", "encoders") from error
    if Image.MAX_IMAGE_PIXELS is not None and IMAGE_PIXELS.value > Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = IMAGE_PIXELS.value  # Pillow's own limit warns, and refuses only twice as much
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # an error says it better
    try:
        picture = Image.open(io.BytesIO(content))
        if picture.format in _RUNS_A_PROGRAM:
            raise ValueError(f"{picture.format} is a program, not a picture")
        check_picture_size(*picture.size)
        yield picture
    except CrosslensError:
        raise
    except Image.DecompressionBombError as error:
        raise IMAGE_PIXELS.error("the image has too many pixels") from error
    except Exception as error:  # decoders fail on damaged files in every way
        problem = "empty file" if not content else str(error).replace(repr(content), "").split(" <_io")[0]
        expected = "a JPEG, PNG, WebP or other picture"
        raise InputError(f"not a readable image: {problem or type(error).__name__}", expected=expected) from error


def check_picture_size(width: float, height: float) -> None:
    """Raise for more pixels than the limit, and for a strip that models would scale to billions of pixels."""
    if width * height > IMAGE_PIXELS.value:
        raise IMAGE_PIXELS.error(f"an image of {width:,} × {height:,} pixels")
    if max(width, height) > ASPECT_RATIO.value * min(width, height):
        raise ASPECT_RATIO.error(f"an image of {width:,} × {height:,} pixels")
