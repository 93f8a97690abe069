"""What is known to be in a picture, from the tables of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from crosslens.build.generators.generator import Annotation
from crosslens.core.dataset import Dataset
from crosslens.core.errors import UnknownNameError

PLACE = "place"
"""The category of what is all around: the backdrop of a drawn scene."""
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "grey")
_SPELT = {"gray": "grey", "violet": "purple", "golden": "gold"}


class Annotations:
    """The annotations of every image of a dataset, read once: ``Annotations(dataset)[image_id]``."""

    def __init__(self, dataset: Dataset) -> None:
        self._images = {row["image"]: row for row in dataset.images.iter_rows(named=True)}
        self._objects: dict[str, list[dict[str, Any]]] = {}
        if dataset.objects is not None:
            for row in dataset.objects.filter(pl.col("name").is_not_null()).iter_rows(named=True):
                self._objects.setdefault(row["image"], []).append(row)

    def __getitem__(self, image: str) -> tuple[Annotation, ...]:
        """One annotation per object, in the order of the table, and one of the place where it is known."""
        if image not in self._images:
            raise UnknownNameError("image", image, self._images)
        about = self._images[image]
        found = [_annotation(row, about) for row in self._objects.get(image, ())]
        backdrop = about.get("backdrop")
        if isinstance(backdrop, str) and backdrop:
            found.append(Annotation(backdrop, category=PLACE))
        return tuple(found)


def annotations_of(dataset: Dataset, image: str) -> tuple[Annotation, ...]:
    """The annotations of one image; for many images make one :class:`Annotations` and ask it."""
    return Annotations(dataset)[image]


def _annotation(row: Mapping[str, Any], about: Mapping[str, Any]) -> Annotation:
    words = [str(word).strip().lower() for word in row.get("attributes") or ()]
    colours = [_SPELT.get(word, word) for word in words if _SPELT.get(word, word) in COLOURS]
    colour = row.get("colour")
    if colour is None and len(colours) == 1 and row.get("category") != "landmark":
        colour = colours[0]
    return Annotation(
        name=row["name"].strip(),
        count=None if row.get("iscrowd") else 1,
        colour=colour,
        attributes=tuple(word for word in words if _SPELT.get(word, word) not in COLOURS),
        box=_parts(row, about),
        category=row.get("category"),
        text=row.get("text"),
        action=row.get("pose"),
    )


def _parts(row: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    width, height = about.get("width"), about.get("height")
    if row["x"] is None or not width or not height:
        return None
    return row["x"] / width, row["y"] / height, row["w"] / width, row["h"] / height
