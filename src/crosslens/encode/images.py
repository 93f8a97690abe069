"""Image files: their bytes, and the picture in them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from crosslens.core import PIXELS_IN_FLIGHT, InputError
from crosslens.data import read_image_bytes, readable_picture

T = TypeVar("T")
R = TypeVar("R")

_THREADS, _AHEAD = 4, 64


def decode_image(content: bytes) -> Any:
    """The picture in an image file's bytes, as RGB; whatever is wrong with it raises an ``InputError``."""
    with readable_picture(content) as picture:
        return picture.convert("RGB")


def pixels_of(content: bytes) -> int:
    """How many pixels the picture in an image file's bytes has, which are not decoded."""
    with readable_picture(content) as picture:
        width, height = picture.size
        return int(width * height)


def as_picture(image: Any) -> Any:
    """A picture from a picture, or from the path of one."""
    if not isinstance(image, str | Path):
        return image if getattr(image, "mode", "RGB") == "RGB" else image.convert("RGB")
    try:
        return decode_image(read_image_bytes(image))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=image, fix="check the path") from error
    except InputError as error:
        error.file = str(image)
        raise


def as_pictures(images: Sequence[Any]) -> list[Any]:
    """Pictures from pictures or paths; a path that occurs again is read once."""
    paths = dict.fromkeys(image for image in images if isinstance(image, str | Path))
    pictures = {str(path): as_picture(path) for path in paths}
    return [pictures[str(image)] if isinstance(image, str | Path) else as_picture(image) for image in images]


class PixelBudget:
    """How many pixels decoded pictures may have together while they wait for their use.

    Pictures are let in in order, and a single one always: so the next to be used is never among those that wait.
    """

    def __init__(self) -> None:
        self._most, self._used, self._turn, self._closed = PIXELS_IN_FLIGHT.value, 0, 0, False
        self._changed = threading.Condition()

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
        return not self._used or self._used + pixels <= self._most


def read_ahead(work: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """The results of ``work`` in order, worked out by a few threads a little ahead of their use."""
    with ThreadPoolExecutor(_THREADS) as pool:
        futures: deque[Future[R]] = deque()
        try:
            for item in items:
                futures.append(pool.submit(work, item))
                if len(futures) > _AHEAD:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()
