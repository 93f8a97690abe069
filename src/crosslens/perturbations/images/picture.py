"""Between Pillow's pictures and arrays: colours and transparency apart, what belongs to the file kept."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from crosslens.core import InputError, MissingExtraError
from crosslens.data import readable_picture

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
"""Height × width × channels; one channel for grey pictures, three for coloured ones."""

_MODES = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}
_KEPT = ("exif", "icc_profile")
"""Pixels are changed as they are stored, so the note which way up they are shown stays true."""
_COMPRESSION = 3
"""Files are a few percent larger than at the default of 6, and written in half the time."""


def pillow() -> Any:
    """Pillow; raises with the install command where it is missing."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFilter
        import PIL.ImageFont
        import PIL.ImageOps
    except ImportError as error:
        raise MissingExtraError("changing images", "pillow", "scenes") from error
    return PIL


def opened(content: bytes) -> Any:
    """The picture in a file's bytes, as it is stored; whatever is wrong with it raises an ``InputError``."""
    pillow()
    with readable_picture(content) as picture:
        picture.load()
        return picture


def png(picture: Any) -> bytes:
    """The bytes of a file that loses nothing; the same picture gives the same bytes."""
    content = io.BytesIO()
    picture.save(content, "PNG", compress_level=_COMPRESSION, **_kept_info(picture))
    return content.getvalue()


def to_picture(pixels: Pixels) -> Any:
    """A Pillow picture of one or three channels (or two or four, the last being transparency)."""
    return pillow().Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def from_picture(picture: Any) -> Pixels:
    """Height × width × channels."""
    pixels = np.asarray(picture)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def split(picture: Any) -> tuple[Pixels, Pixels | None]:
    """The colours of a Pillow picture or an array, and its transparency if it has one."""
    if isinstance(picture, np.ndarray):
        pixels = _checked(picture)
    elif not isinstance(picture, pillow().Image.Image):
        raise InputError(f"{picture!r:.60} is not a picture", expected="a Pillow picture or a uint8 array")
    else:
        mode = _MODES.get(picture.mode, "RGB")
        if "transparency" in picture.info and picture.mode in ("P", "L", "RGB"):
            mode = "LA" if picture.mode == "L" else "RGBA"
        pixels = from_picture(picture if picture.mode == mode else picture.convert(mode))
    if not pixels.size:
        raise InputError("the picture has no pixels", expected="at least one pixel")
    return (pixels[..., :-1], pixels[..., -1:]) if pixels.shape[2] in (2, 4) else (pixels, None)


def join(colours: Pixels, alpha: Pixels | None, like: Any) -> Any:
    """A picture of the kind of ``like``."""
    pixels = colours if alpha is None else np.concatenate([colours, alpha], axis=2)
    if isinstance(like, np.ndarray):
        return pixels.reshape(like.shape)
    joined = to_picture(pixels)
    joined.info.update(_kept_info(like))
    return joined


def _kept_info(picture: Any) -> dict[str, Any]:
    return {name: picture.info[name] for name in _KEPT if name in picture.info}


def _checked(array: np.ndarray[Any, Any]) -> Pixels:
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and not 1 <= array.shape[2] <= 4):
        raise InputError(
            f"an array of shape {array.shape} and type {array.dtype} is not a picture",
            expected="numbers of type uint8, height × width or height × width × 1 to 4 channels",
            fix="round colours to 0…255 and convert: array.astype(numpy.uint8)",
        )
    return array[..., None] if array.ndim == 2 else array
