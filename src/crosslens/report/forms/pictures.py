"""Picture files, made small and put into a page: each once, the most important first, as large as the size allows."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError
from crosslens.data import read_image_bytes
from crosslens.encode import decode_image

_QUALITY = 82
_SIDES = (320, 256, 200, 160, 128, 96)
"""How large thumbnails are at most, in pixels: the first at which all of them fit into the budget."""
_MARK = re.compile(r"<!--picture (\d+) (\w+)-->")
_SYMBOL, _USE = 160, 40
"""Bytes around a picture, and around each of its frames, at most."""


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
    small.save(content, "JPEG", quality=_QUALITY)
    address = "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode("ascii")
    return EmbeddedImage(address, float(size[0]), float(size[1]))


class SharedPictures:
    """Pictures of a page that has each of them once: asked for part by part, chosen when all are known.

    A picture that is asked for leaves a mark in the text, which no caption can contain: captions are escaped.
    """

    def __init__(self, files: Mapping[str, Mapping[str, str]]) -> None:
        self._files = files
        self._importance: dict[tuple[str, str], float] = {}
        self.shown = 0

    @property
    def wanted(self) -> int:
        return len(self._importance)

    def photo(self, dataset: str, image: str, alternative: str, importance: float = 0.0) -> str:
        """The picture alone, in the shape that it has. Nothing where there is none."""
        number = self._number(dataset, image, importance)
        if number is None:
            return ""
        shape = f'<!--picture {number} shape--> role="img" aria-label="{escape(alternative)}"'
        return f"<svg {shape}><!--picture {number} alone--></svg>"

    def below(self, dataset: str, image: str, importance: float = 0.0) -> str:
        """The picture inside a drawing that has its size: what boxes are drawn on. Nothing where there is none."""
        number = self._number(dataset, image, importance)
        return "" if number is None else f"<!--picture {number} below-->"

    def _number(self, dataset: str, image: str, importance: float) -> int | None:
        if image not in self._files.get(dataset, {}):
            return None
        key = dataset, image
        self._importance[key] = max(importance, self._importance.get(key, importance))
        return list(self._importance).index(key)

    def fill(self, page: str, budget: int) -> tuple[str, str]:
        """The page with its pictures in place, and the pictures themselves: at most ``budget`` bytes of them."""
        numbered = sorted(enumerate(self._importance.items()), key=lambda entry: -entry[1][1])
        files = {str(number): self._files[dataset][image] for number, ((dataset, image), _) in numbered}
        around = _SYMBOL * len(files) + _USE * len(_MARK.findall(page))
        drawn = embed_thumbnails(files, max(0, budget - around), keep_all=False)
        self.shown = len(drawn)

        def place(mark: re.Match[str]) -> str:
            picture = drawn.get(mark[1])
            if mark[2] == "shape":
                return 'class="missing"' if picture is None else f'viewBox="0 0 {picture.width:g} {picture.height:g}"'
            if picture is not None:
                return f'<use href="#p{mark[1]}" width="100%" height="100%"/>'
            if mark[2] == "below":
                return '<rect class="frame" width="100%" height="100%"/>'
            return '<text x="50%" y="50%" text-anchor="middle">no picture</text>'

        symbols = "".join(
            f'<symbol id="p{number}" viewBox="0 0 {picture.width:g} {picture.height:g}">'
            f'<image href="{picture.address}" width="{picture.width:g}" height="{picture.height:g}"/></symbol>\n'
            for number, picture in drawn.items()
        )
        return _MARK.sub(place, page), f'<svg class="store" aria-hidden="true">\n{symbols}</svg>' if symbols else ""
