"""Points and colours as bytes, which a browser reads without parsing: a JSON header and one array.

The layout, little-endian: the length of the header (uint32), the header (UTF-8, filled up with spaces to a multiple of
four bytes), the array. Of points the array is x of every point and then y of every point (float32); of colours one byte
per point. Answers are compressed once, and not sent again to who has them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from crosslens.core import json_form
from crosslens.web.kept import Kept
from crosslens.web.map.colours import Colouring
from crosslens.web.map.stored import EmbeddingMap

_LEVEL = 1
"""Coordinates hardly become smaller with more effort."""
_KEPT = 8
_MEDIA = "application/octet-stream"


class _Packed(NamedTuple):
    tag: str
    plain: bytes
    compressed: bytes


class BinaryAnswers:
    """The last few answers, plain and compressed."""

    def __init__(self) -> None:
        self._kept: Kept[_Packed] = Kept(_KEPT)

    def answer(self, request: Request, key: tuple[str, ...], make: Callable[[], bytes]) -> Response:
        """The bytes of ``key``, as this browser takes them; 304 where it has them already."""
        packed = self._kept.get(key, lambda: _pack(make()))
        headers = {"ETag": packed.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if packed.tag in known:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed.compressed, media_type=_MEDIA, headers={**headers, "Content-Encoding": "gzip"})
        return Response(packed.plain, media_type=_MEDIA, headers=headers)


def _pack(content: bytes) -> _Packed:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _Packed(tag, content, gzip.compress(content, _LEVEL, mtime=0))


def pack(header: Mapping[str, Any], content: bytes) -> bytes:
    """A header and the bytes that it describes."""
    text = json.dumps(json_form(header), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + content


def pack_points(drawn: EmbeddingMap) -> bytes:
    """The points of a map: its images first."""
    header = {"points": len(drawn), "images": len(drawn.image_ids), "method": drawn.method}
    return pack(header, np.ascontiguousarray(drawn.points.T, "<f4").tobytes())


def pack_colouring(colouring: Colouring) -> bytes:
    """The colours of all points."""
    return pack(colouring.about(), np.ascontiguousarray(colouring.codes, np.uint8).tobytes())
