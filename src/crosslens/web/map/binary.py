"""Bytes for browsers: compressed once, and not sent again to who has them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from crosslens.web.kept import Kept

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
