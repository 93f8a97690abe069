"""Pictures in image files that nobody vouches for: their size is checked before a pixel is decoded."""

from __future__ import annotations

import ctypes
import io
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from crosslens.core import ASPECT_RATIO, IMAGE_PIXELS, PIXELS_IN_FLIGHT, CrosslensError, InputError, MissingExtraError

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "PPM", "TIFF", "JPEG2000", "AVIF")
"""Of others, Pillow decodes icons before their size can be checked, and hands EPS to another program."""
_TILE_SIDES = (322, 323)
_LARGE = 4_000_000
"""Pixels of a picture whose memory is worth giving back to the system."""


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
        Image.init()
        picture: Any = Image.open(io.BytesIO(content), formats=[name for name in _FORMATS if name in Image.OPEN])
        check_picture_size(*picture.size)
        if picture.format == "TIFF":  # decoded a tile at a time, which may be larger than the picture
            IMAGE_PIXELS.check(math.prod(picture.tag_v2.get(side, 1) for side in _TILE_SIDES), "a tile of the image")
        yield picture
    except CrosslensError:
        raise
    except Image.DecompressionBombError as error:
        raise IMAGE_PIXELS.error("the image has too many pixels") from error
    except Exception as error:  # decoders fail on damaged files in every way
        problem = "empty file" if not content else str(error).replace(repr(content), "").split(" <_io")[0]
        expected = "a picture: " + ", ".join(_FORMATS)
        raise InputError(f"not a readable image: {problem or type(error).__name__}", expected=expected) from error


def check_picture_size(width: float, height: float) -> None:
    """Raise for more pixels than the limit, and for a strip that models would scale to billions of pixels."""
    if width * height > IMAGE_PIXELS.value:
        raise IMAGE_PIXELS.error(f"an image of {width:,} × {height:,} pixels")
    if max(width, height) > ASPECT_RATIO.value * min(width, height):
        raise ASPECT_RATIO.error(f"an image of {width:,} × {height:,} pixels")


class PixelBudget:
    """How many pixels decoded pictures may have together while they wait for their use.

    Pictures are let in in order, and a single one always: so the next to be used is never among those that wait.
    """

    def __init__(self) -> None:
        self._used, self._turn, self._turns, self._closed = 0, 0, count(), False
        self._changed = threading.Condition()

    @contextmanager
    def decoded(self, picture: Any) -> Iterator[Any]:
        """The picture as RGB, once there is room for its pixels; those who ask are let in as they came."""
        pixels = picture.width * picture.height
        self.take(next(self._turns), pixels)
        decoded = picture
        try:
            picture.load()
            if picture.mode != "RGB":
                decoded = picture.convert("RGB")
                picture.close()
            yield decoded
        finally:
            decoded.close()
            self.give_back(pixels)
            if pixels > _LARGE:
                _return_memory()

    def take(self, turn: int, pixels: int) -> None:
        """Wait until all before ``turn`` (counted from 0) have taken theirs, and there is room for ``pixels`` more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (turn == self._turn and self._has_room(pixels)))
            self._used += pixels
            self._turn += 1
            self._changed.notify_all()

    def give_back(self, pixels: int) -> None:
        """Make room: the picture is in use."""
        with self._changed:
            self._used -= pixels
            self._changed.notify_all()

    def close(self) -> None:
        """Let everybody in: nothing is used any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self, pixels: int) -> bool:
        return not self._used or self._used + pixels <= PIXELS_IN_FLIGHT.value


def _return_memory() -> None:
    """Give memory that is free back to the system: Pillow's blocks are of a size that glibc keeps."""
    with suppress(OSError, AttributeError):  # other systems give it back by themselves
        ctypes.CDLL(None).malloc_trim(0)
