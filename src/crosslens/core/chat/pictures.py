"""Pictures as a chat endpoint takes them: inside the address, as base64."""

from __future__ import annotations

import base64
from pathlib import Path

from crosslens.core.errors import InputError
from crosslens.core.input_files.limits import IMAGE_BYTES
from crosslens.core.input_files.regular import regular_bytes

MEDIA = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
"""Endings of files that can be sent as they are."""


def picture_url(content: bytes, media: str = "png") -> str:
    """The bytes of a picture as an address."""
    return f"data:image/{media};base64,{base64.b64encode(content).decode()}"


def picture_file_url(file: Path) -> str:
    """The picture in a file as an address; raises for a format that cannot be sent."""
    media = MEDIA.get(file.suffix.lower())
    if media is None:
        raise InputError(
            "not an image format that can be sent", file=file, expected=", ".join(MEDIA), fix="convert the image"
        )
    try:
        content = regular_bytes(file, IMAGE_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix="check the file") from None
    return picture_url(content, media)
