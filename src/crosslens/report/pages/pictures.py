"""Picture files, made small and put into a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError
from crosslens.data import read_image_bytes
from crosslens.encode import decode_image

_LARGEST = 640
_QUALITY = 82
DARK = """
:root { color-scheme: light dark; --ink: #222; --soft: #595959; --paper: #fff; --line: #ccc; --frame: #f1f1f1;
        --right: #0b6e3d; --right-ink: #fff; --link: #1a4fa0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a8a8a8; --paper: #16181b; --line: #44484d; --frame: #26292d;
          --right: #5fd39a; --right-ink: #06210f; --link: #8fb8ff; }
}
"""
"""The colours of pages that follow the reader's light or dark setting, as names for their style sheets."""
_SIDES = (320, 256, 200, 160, 128, 96)
"""How large thumbnails are at most, in pixels: the first at which all of them fit into the budget."""


@dataclass(frozen=True)
class EmbeddedImage:
    """A picture file, made small, as an address that holds it; with its size in pixels before that."""

    address: str
    width: float
    height: float


def embed_image(file: str | Path | None, largest: int = _LARGEST) -> EmbeddedImage | None:
    """The picture in a file, its longer side at most ``largest`` pixels.

    None where there is no such file, it is none, or Pillow is missing.
    """
    picture = _open(file)
    return None if picture is None else _embed(picture, largest, picture.size)


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
    return embedded if keep_all else _leading(embedded, budget)


def _leading(embedded: Mapping[str, EmbeddedImage], budget: int) -> dict[str, EmbeddedImage]:
    """The first pictures that together take at most ``budget`` bytes."""
    kept: dict[str, EmbeddedImage] = {}
    for image, drawn in embedded.items():
        budget -= len(drawn.address)
        if budget < 0:
            break
        kept[image] = drawn
    return kept


class PicturePool:
    """The pictures of a page: each is in it once, however often it is shown."""

    def __init__(self, drawn: Mapping[str, EmbeddedImage]) -> None:
        self._drawn = drawn
        self._number = {image: number for number, image in enumerate(drawn)}

    def definitions(self) -> str:
        """The pictures themselves, invisible; lists refer to them."""
        symbols = [
            f'<symbol id="p{self._number[image]}" viewBox="0 0 {drawn.width:g} {drawn.height:g}">'
            f'<image href="{drawn.address}" width="{drawn.width:g}" height="{drawn.height:g}"/></symbol>'
            for image, drawn in self._drawn.items()
        ]
        return '<svg class="store" aria-hidden="true">\n' + "\n".join(symbols) + "\n</svg>" if symbols else ""

    def show(self, image: str | None, alternative: str) -> str:
        """The picture, or a frame that says it is missing."""
        if image is None or image not in self._drawn:
            return f'<div class="frame missing" role="img" aria-label="{escape(alternative)}">no picture</div>'
        drawn = self._drawn[image]
        box = f'viewBox="0 0 {drawn.width:g} {drawn.height:g}"'
        use = f'<use href="#p{self._number[image]}"/>'
        return f'<svg class="frame" {box} role="img" aria-label="{escape(alternative)}">{use}</svg>'


def _open(file: str | Path | None) -> Any:
    if file is None:
        return None
    try:
        return decode_image(read_image_bytes(file))
    except (CrosslensError, OSError):
        return None


def _embed(picture: Any, largest: int, size: tuple[int, int]) -> EmbeddedImage:
    small = picture.copy()
    small.thumbnail((largest, largest))
    content = io.BytesIO()
    small.save(content, "JPEG", quality=_QUALITY)
    address = "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode("ascii")
    return EmbeddedImage(address, float(size[0]), float(size[1]))
