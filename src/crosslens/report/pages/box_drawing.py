"""A picture with the boxes of its objects drawn on it, as SVG that needs no other file."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from crosslens.core import CrosslensError
from crosslens.data import read_image_bytes
from crosslens.encode import decode_image
from crosslens.explanations import AnnotatedImage, ImageObject

PALETTE = (
    "#0b6e99", "#b3541e", "#2e7d32", "#8e24aa", "#c2185b", "#5d4037", "#00796b", "#1a4fa0", "#8a5a00", "#455a64",
    "#ad1457", "#33691e",
)  # fmt: skip
"""Dark enough for white letters on them."""
_LARGEST = 640
_QUALITY = 82
_PLAIN_SIZE = (400.0, 300.0)
_MOST_LABELS = 14
_LETTER = 0.56  # of a letter's height: how wide it is


@dataclass(frozen=True)
class EmbeddedImage:
    """A picture file, made small, as an address that holds it; with its size in pixels before that."""

    address: str
    width: float
    height: float


def embed_image(file: str | Path | None) -> EmbeddedImage | None:
    """The picture in a file; None where there is no such file, it is none, or Pillow is missing."""
    if file is None:
        return None
    try:
        picture = decode_image(read_image_bytes(file))
    except (CrosslensError, OSError):
        return None
    width, height = picture.size
    picture.thumbnail((_LARGEST, _LARGEST))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=_QUALITY)
    address = "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode("ascii")
    return EmbeddedImage(address, float(width), float(height))


def concept_colours(synsets: Mapping[str, object] | list[str]) -> dict[str, str]:
    """A colour for every concept, the same in both pictures."""
    return {synset: PALETTE[index % len(PALETTE)] for index, synset in enumerate(synsets)}


def draw_boxes(
    picture: AnnotatedImage,
    colour_of: Mapping[str, str],
    numbers: Mapping[int, int],
    drawn: EmbeddedImage | None,
    title: str,
) -> str:
    """The picture (or an empty frame of its proportions) with a box around every object that has one.

    ``numbers`` maps an object's index to the number that it shares with its match; boxes without are dashed.
    """
    width, height = _size(picture, drawn)
    boxed = [(index, obj) for index, obj in enumerate(picture.objects) if obj.box is not None]
    shown = (
        f'<image href="{drawn.address}" width="{width:g}" height="{height:g}" preserveAspectRatio="none"/>'
        if drawn
        else ""
    )
    every = len(boxed) <= _MOST_LABELS
    order = sorted(boxed, key=lambda indexed: -(indexed[1].area or 0.0))
    first = {obj.name: index for index, obj in reversed(boxed)}
    parts = [_box(obj, _colour(obj, colour_of), numbers.get(index)) for index, obj in order]
    parts += [  # above all boxes
        _label(obj, _colour(obj, colour_of), numbers.get(index), (width, height))
        for index, obj in order
        if every or first[obj.name] == index
    ]
    empty = "" if boxed else _empty(width, height, picture)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">\n'
        f'<rect class="frame" width="{width:g}" height="{height:g}"/>{shown}\n' + "\n".join(parts) + empty + "\n</svg>"
    )


def _size(picture: AnnotatedImage, drawn: EmbeddedImage | None) -> tuple[float, float]:
    """As the dataset has it, as the file has it, or large enough for every box."""
    if picture.width and picture.height:
        return picture.width, picture.height
    if drawn is not None:
        return drawn.width, drawn.height
    boxes = [obj.box for obj in picture.objects if obj.box is not None]
    if not boxes:
        return _PLAIN_SIZE
    return max(1.0, *(box[0] + box[2] for box in boxes)), max(1.0, *(box[1] + box[3] for box in boxes))


def _colour(obj: ImageObject, colour_of: Mapping[str, str]) -> str:
    return colour_of.get(obj.synset or "", "#444444")


def _box(obj: ImageObject, colour: str, number: int | None) -> str:
    assert obj.box is not None
    x, y, wide, high = obj.box
    dash = "" if number is not None else ' stroke-dasharray="5 4"'
    about = " ".join((*obj.attributes, obj.name)) + (" (a crowd)" if obj.crowd else "")
    whole = f"{about}, number {number}" if number is not None else about
    rectangle = f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" stroke="{colour}"{dash}/>'
    return f"<g><title>{escape(whole)}</title>{rectangle}</g>"


def _label(obj: ImageObject, colour: str, number: int | None, size: tuple[float, float]) -> str:
    """On the upper edge of the box, inside the picture."""
    assert obj.box is not None
    text = f"{number} {obj.name}" if number is not None else obj.name
    letter = max(size) / 30
    long = letter * _LETTER * len(text) + letter * 0.5
    x = max(0.0, min(obj.box[0], size[0] - long))
    y = max(0.0, min(obj.box[1] - letter * 1.25, size[1] - letter * 1.25))
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="{letter * 1.25:.1f}" fill="{colour}"/>'
        f'<text x="{x + letter * 0.25:.1f}" y="{y + letter * 0.95:.1f}" font-size="{letter:.1f}">{escape(text)}</text>'
    )


def _empty(width: float, height: float, picture: AnnotatedImage) -> str:
    text = "no boxes" if picture.objects else "no objects"
    return (
        f'\n<text class="empty" x="{width / 2:g}" y="{height / 2:g}" font-size="{max(width, height) / 20:.1f}">'
        f"{text}</text>"
    )
