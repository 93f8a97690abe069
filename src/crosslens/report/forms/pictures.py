"""Picture files, made small and put into a page: each once, the most important first, as large as the size allows."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError
from crosslens.data import read_image_bytes
from crosslens.encode import decode_image

_QUALITY = 80
_SIDES = (320, 256, 200, 160, 128, 96)
"""How large thumbnails are at most, in pixels: the first at which all of them fit into the budget."""


@dataclass(frozen=True)
class EmbeddedImage:
    """A picture file, made small, as an address that holds it; with its size in pixels before that."""

    address: str
    width: float
    height: float


def embed_image(file: str | Path) -> EmbeddedImage | None:
    """The picture in a file, its longer side at most 640 pixels.

    None where there is no such file, it is none, or Pillow is missing.
    """
    picture = _open(file)
    return None if picture is None else _embed(picture, 640, picture.size)


def embed_thumbnails(files: Mapping[str, str], budget: int, *, keep_all: bool = True) -> dict[str, EmbeddedImage]:
    """Thumbnails of the pictures that can be read, as large as ``budget`` bytes for all of them together allow.

    Where even the smallest size exceeds the budget, it is used for all of them, or without ``keep_all`` for the first
    ones that fit.
    """
    opened: dict[str, tuple[Any, tuple[int, int]]] = {}
    for image, file in files.items():
        picture = _open(file)
        if picture is not None:
            size = picture.size
            picture.thumbnail((_SIDES[0], _SIDES[0]))
            opened[image] = picture, size
    embedded: dict[str, EmbeddedImage] = {}
    for side in _SIDES:
        embedded = {image: _embed(picture, side, size) for image, (picture, size) in opened.items()}
        if sum(len(drawn.address) for drawn in embedded.values()) <= budget:
            return embedded
    if keep_all:
        return embedded
    kept: dict[str, EmbeddedImage] = {}
    for image, drawn in embedded.items():
        budget -= len(drawn.address)
        if budget < 0:
            break
        kept[image] = drawn
    return kept


def _open(file: str | Path) -> Any:
    try:
        return decode_image(read_image_bytes(file))
    except (CrosslensError, OSError):
        return None


def _embed(picture: Any, largest: int, size: tuple[int, int]) -> EmbeddedImage:
    small = picture.copy()
    small.thumbnail((largest, largest))
    content = io.BytesIO()
    small.save(content, "WEBP", quality=_QUALITY)
    address = "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode("ascii")
    return EmbeddedImage(address, float(size[0]), float(size[1]))


def shared_pictures(files: Mapping[str, bool], budget: int) -> tuple[dict[str, EmbeddedImage], str]:
    """Pictures of a page that has each of them once, by their files, and the markup that holds them.

    ``files`` say which are shown large: these come first. Of the others the first ones are kept where not all fit into
    ``budget`` bytes. Addresses are of places on the page.
    """
    embedded: dict[str, EmbeddedImage] = {}
    for large in (True, False):
        of_size = {file: file for file, is_large in files.items() if is_large == large}
        share = budget // 4 if large else budget - sum(len(picture.address) for picture in embedded.values())
        embedded |= embed_thumbnails(of_size, share, keep_all=False)
    symbols = "".join(
        f'<symbol id="p{number}" viewBox="0 0 {picture.width:g} {picture.height:g}">'
        f'<image href="{picture.address}" width="{picture.width:g}" height="{picture.height:g}"/></symbol>\n'
        for number, picture in enumerate(embedded.values())
    )
    placed = {
        file: EmbeddedImage(f"#p{number}", picture.width, picture.height)
        for number, (file, picture) in enumerate(embedded.items())
    }
    return placed, f'<svg class="store" aria-hidden="true">\n{symbols}</svg>' if symbols else ""
