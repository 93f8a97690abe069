"""One picture of an explanation: its objects as annotated, its captions, its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.explain.concepts.naming import plain_name
from crosslens.explain.concepts.objects import ImageObjects, Source
from crosslens.explain.words.kinship import is_kind_of, plain_word
from crosslens.explain.words.query_words import meaning, senses

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Thing:
    """One object; ``crowd`` where its box is drawn around many of them."""

    name: str
    synset: str | None
    box: Box | None = None
    area: float | None = None
    attributes: tuple[str, ...] = ()
    crowd: bool = False

    def is_a(self, name: str) -> bool:
        """Whether it is what a name calls: by its own name, by a synonym, or as a kind of what the name means."""
        if self.name == name:
            return True
        usual = meaning(name)
        return self.synset is not None and (
            self.synset in senses(name) or (usual is not None and is_kind_of(self.synset, usual))
        )

    def may_be_a(self, name: str) -> bool:
        """Whether it is annotated as something wider: a person may be a man."""
        usual = meaning(name)
        return usual is not None and self.synset is not None and is_kind_of(usual, self.synset)

    def as_dict(self) -> dict[str, Any]:
        found = {"name": self.name, "synset": self.synset, "box": self.box, "area": self.area}
        return {**found, "attributes": self.attributes, "crowd": self.crowd}


@dataclass(frozen=True)
class Picture:
    """An image with what is known of it; ``source`` says where its things come from."""

    image: str
    things: tuple[Thing, ...]
    source: Source = "annotations"
    captions: tuple[str, ...] = ()
    width: float | None = None
    height: float | None = None
    file: str | None = None

    def of(self, name: str) -> tuple[Thing, ...]:
        """The things that a name calls."""
        return tuple(thing for thing in self.things if thing.is_a(name))

    def may_have(self, name: str) -> bool:
        """Whether something in it is annotated so widely that the name may call it."""
        return any(thing.may_be_a(name) and not thing.is_a(name) for thing in self.things)

    def as_dict(self) -> dict[str, Any]:
        about = {"image": self.image, "file": self.file, "width": self.width, "height": self.height}
        return {**about, "captions": self.captions, "objects": [thing.as_dict() for thing in self.things]}


def picture_of(dataset: Dataset, objects: ImageObjects, image: str) -> Picture:
    """The picture with this id; its things in the order of the annotation."""
    row = int(objects.rows([image])[0])
    own = dataset.images.row(dataset.image_ids.index(image), named=True)
    crowds = _crowds(dataset, image) if objects.source == "annotations" else []
    things = tuple(
        Thing(
            called(objects.names[at], objects.synset(at)),
            objects.synset(at),
            _box(objects, at),
            _number(objects.areas[at]),
            objects.attributes[at],
            bool(crowds[place]) if place < len(crowds) else False,
        )
        for place, at in enumerate(objects.inside(row))
    )
    captions = dataset.captions.filter(pl.col("image") == image)["text"]
    return Picture(
        image, things, objects.source, tuple(captions), _number(own.get("width")), _number(own.get("height")),
        own.get("file"),
    )  # fmt: skip


def _crowds(dataset: Dataset, image: str) -> list[bool]:
    """Per object of an image whether it is a crowd; empty where nobody says so."""
    if dataset.objects is None or "iscrowd" not in dataset.objects.columns:
        return []
    own = dataset.objects.filter(pl.col("image") == image)["iscrowd"]
    return [bool(one) for one in own.fill_null(0).cast(pl.Int64)]


def called(name: str, synset: str | None) -> str:
    """An object without a name of its own is called as its synset is."""
    return plain_word(synset) if synset is not None and name in ("", plain_name(synset)) else name


def _box(objects: ImageObjects, thing: int) -> Box | None:
    box = objects.boxes[thing]
    return None if np.isnan(box).any() else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(float(value)) else float(value)
