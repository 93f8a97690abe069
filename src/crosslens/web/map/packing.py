"""Points and colours as bytes, which a browser reads without parsing: a JSON header and one array.

The layout, little-endian: the length of the header (uint32), the header (UTF-8, filled up with spaces to a multiple of
four bytes), the array. Of points the array is x of every point and then y of every point (float32); of colours one byte
per point.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from crosslens.core import json_form
from crosslens.web.map.colours import Colouring
from crosslens.web.map.stored import EmbeddingMap


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
