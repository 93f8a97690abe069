"""Parts of pictures, each under an address that stands where a file name would: ``2332870.jpg::box/10,20,300,200``.

A box is x, y, width and height in pixels. The part is cut out when it is read; nothing is written.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from crosslens.core.errors import MissingExtraError

_NUMBER = r"-?\d+(?:\.\d+)?"
_BOX = re.compile(rf"box/({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})")


def box_address(file: str, box: tuple[float, float, float, float]) -> str:
    """The address of a part of a picture."""
    return f"{file}::box/{','.join(f'{side:.10g}' for side in box)}"


def box_in(inner: str) -> tuple[float, float, float, float] | None:
    """The box that the second half of an address names; None where it names something else."""
    found = _BOX.fullmatch(inner)
    if found is None:
        return None
    x, y, width, height = map(float, found.groups())
    return x, y, width, height


def read_part(path: str | Path, box: tuple[float, float, float, float]) -> bytes:
    """A part of a picture as the bytes of a lossless picture file; what sticks out of the picture is black."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("cutting pictures", "pillow", "encoders") from error
    x, y, width, height = box
    try:
        with Image.open(path) as picture:
            part = picture.convert("RGB").crop((round(x), round(y), round(x + width), round(y + height)))
        found = io.BytesIO()
        part.save(found, "BMP")  # lossless, and far faster than PNG
    except (SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise OSError(f"{path}: {error}") from error
    return found.getvalue()
