"""The pictures of a report: each in the file once, the most instructive first, as large as the size allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from crosslens.report.pages.pictures import EmbeddedImage, embed_thumbnails

_MARK = re.compile(r"<!--picture (\d+) (\w+)-->")
_SYMBOL, _USE = 160, 40
"""Bytes around a picture, and around each of its frames, at most."""


@dataclass
class _Request:
    file: str
    importance: float


class PictureDesk:
    """Sections ask for pictures; when all are known, those that fit are put into the page.

    A picture that is asked for leaves a mark in the text, which no caption can contain: captions are escaped.
    """

    def __init__(self, files: Mapping[str, Mapping[str, str]]) -> None:
        self._files = files
        self._number: dict[tuple[str, str], int] = {}
        self._requests: list[_Request] = []
        self.shown = 0

    def photo(self, dataset: str, image: str, alternative: str, importance: float = 0.0) -> str:
        """The picture alone, in the shape that it has. Nothing where there is none."""
        number = self._request(dataset, image, importance)
        if number is None:
            return ""
        shape = f'<!--picture {number} shape--> role="img" aria-label="{escape(alternative)}"'
        return f"<svg {shape}><!--picture {number} alone--></svg>"

    def below(self, dataset: str, image: str, importance: float = 0.0) -> str:
        """The picture inside a drawing that has its size: what boxes are drawn on. Nothing where there is none."""
        number = self._request(dataset, image, importance)
        return "" if number is None else f"<!--picture {number} below-->"

    def _request(self, dataset: str, image: str | None, importance: float) -> int | None:
        file = self._files.get(dataset, {}).get(image) if image is not None else None
        if image is None or file is None:
            return None
        number = self._number.setdefault((dataset, image), len(self._requests))
        if number == len(self._requests):
            self._requests.append(_Request(file, importance))
        self._requests[number].importance = max(importance, self._requests[number].importance)
        return number

    def fill(self, page: str, budget: int) -> tuple[str, str]:
        """The page with its pictures in place, and the pictures themselves: at most ``budget`` bytes of them."""
        order = sorted(range(len(self._requests)), key=lambda number: -self._requests[number].importance)
        files = {str(number): self._requests[number].file for number in order}
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

        return _MARK.sub(place, page), _definitions(drawn)

    @property
    def wanted(self) -> int:
        """How many pictures were asked for."""
        return len(self._requests)


def _definitions(drawn: Mapping[str, EmbeddedImage]) -> str:
    """The pictures themselves, invisible; frames refer to them."""
    symbols = [
        f'<symbol id="p{number}" viewBox="0 0 {picture.width:g} {picture.height:g}">'
        f'<image href="{picture.address}" width="{picture.width:g}" height="{picture.height:g}"/></symbol>'
        for number, picture in drawn.items()
    ]
    return '<svg class="store" aria-hidden="true">\n' + "\n".join(symbols) + "\n</svg>" if symbols else ""
