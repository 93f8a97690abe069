"""Pictures that a browser sends: their format and size are checked at once, and decoded when their turn has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crosslens.core import InputError
from crosslens.data import readable_picture
from crosslens.web.pictures import IN_FLIGHT

MOST_BYTES = 12_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def check_upload(content: bytes) -> bytes:
    """The content of an upload, if it may be decoded: by its length, and by what its first bytes say of the picture."""
    if len(content) > MOST_BYTES:
        problem = f"the picture has {len(content):,} bytes"
        raise InputError(problem, expected=f"at most {MOST_BYTES:,}", fix="send a smaller one")
    with readable_picture(content) as picture:
        if picture.format not in FORMATS:
            problem = f"the picture is a {picture.format} file"
            raise InputError(problem, expected=", ".join(FORMATS), fix="save it as JPEG or PNG")
    return content


@contextmanager
def decoded_upload(content: bytes) -> Iterator[Any]:
    """The picture in an upload, as RGB, when there is room for it. Nothing of it is written to disk."""
    with readable_picture(check_upload(content)) as picture, IN_FLIGHT.decoded(picture) as decoded:
        yield decoded
