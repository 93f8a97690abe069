"""Image files: their bytes, and the picture in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from crosslens.core import InputError
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


def read_ahead(
    work: Callable[[T], R], items: Iterable[T], threads: int = _THREADS, most: int = _AHEAD
) -> Generator[R, None, None]:
    """The results of ``work`` in order, worked out by a few threads a little ahead of their use."""
    with ThreadPoolExecutor(threads) as pool:
        futures: deque[Future[R]] = deque()
        try:
            for item in items:
                futures.append(pool.submit(work, item))
                if len(futures) > most:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()
