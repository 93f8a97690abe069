"""Pictures that a browser sends: read into memory, their format and size checked before a pixel is decoded."""

from __future__ import annotations

from typing import Any

from crosslens.core import InputError
from crosslens.data import readable_picture

MOST_BYTES = 12_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def decode_upload(content: bytes) -> Any:
    """The picture in an upload, as RGB. Nothing of it is written to disk."""
    if len(content) > MOST_BYTES:
        problem = f"the picture has {len(content):,} bytes"
        raise InputError(problem, expected=f"at most {MOST_BYTES:,}", fix="send a smaller one")
    with readable_picture(content) as picture:
        if picture.format not in FORMATS:
            problem = f"the picture is a {picture.format} file"
            raise InputError(problem, expected=", ".join(FORMATS), fix="save it as JPEG or PNG")
        return picture.convert("RGB")
