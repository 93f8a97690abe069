"""One image of an explanation: its objects as annotated, its captions, its size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Dataset
from crosslens.explanations.concepts.lexicon import is_hyponym, meaning, plain_name, senses, synset_word
from crosslens.explanations.concepts.objects import ImageObjects, Source, in_image_order
from crosslens.language import pluralise

_NO_LETTER = re.compile(r"\W+")
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ImageObject:
    """One object; ``crowd`` where its box is drawn around many of them, ``loose`` words near it in captions that need
    not describe it."""

    name: str
    synset: str | None
    box: Box | None = None
    area: float | None = None
    attributes: tuple[str, ...] = ()
    crowd: bool = False
    loose: tuple[str, ...] = ()

    def is_a(self, name: str) -> bool:
        """Whether a noun names it: by its own name, by a synonym, or by a hypernym."""
        if self.name == name:
            return True
        synset = meaning(name)
        return self.synset is not None and (
            self.synset in senses(name) or (synset is not None and is_hyponym(self.synset, synset))
        )

    def may_be_a(self, name: str) -> bool:
        """Whether it is annotated by a hypernym: a person may be a man."""
        synset = meaning(name)
        return synset is not None and self.synset is not None and is_hyponym(synset, self.synset)


@dataclass(frozen=True)
class AnnotatedImage:
    """An image with what is known of it; ``source`` says where its objects come from."""

    image: str
    objects: tuple[ImageObject, ...]
    source: Source = "annotations"
    captions: tuple[str, ...] = ()
    width: float | None = None
    height: float | None = None
    file: str | None = None

    def of(self, name: str) -> tuple[ImageObject, ...]:
        """The objects that a noun names."""
        return tuple(item for item in self.objects if item.is_a(name))

    def may_have(self, name: str) -> bool:
        """Whether an object is annotated so generally that the noun may name it."""
        return any(item.may_be_a(name) and not item.is_a(name) for item in self.objects)

    def says(self, name: str) -> bool:
        """Whether a caption has the word, if only inside another name: a *bathroom stall* is in a bathroom."""
        forms = {name, pluralise(name)}
        return any(f" {form} " in f" {_NO_LETTER.sub(' ', text.lower())} " for text in self.captions for form in forms)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        about = {"image": self.image, "file": self.file, "width": self.width, "height": self.height}
        objects = [{name: value for name, value in vars(item).items() if name != "loose"} for item in self.objects]
        return {**about, "captions": self.captions, "objects": objects}


def annotated_image(dataset: Dataset, objects: ImageObjects, image: str, crowds: Any = None) -> AnnotatedImage:
    """The image with this id; its objects in the order of the annotation, each with a readable name.

    Its captions are the texts that say what is in it: those of the corpus, if there is one.
    """
    row = int(objects.rows([image])[0])
    columns = dataset.images.row(dataset.image_ids.index(image), named=True)
    captions = dataset.described.captions.filter(pl.col("image") == image)["text"]
    items = tuple(
        image_object(objects, index, object_name(objects.names[index], objects.synset(index)), crowds)
        for index in objects.inside(row)
    )
    width, height = finite(columns.get("width")), finite(columns.get("height"))
    return AnnotatedImage(image, items, objects.source, tuple(captions), width, height, columns.get("file"))


def annotated_images(objects: ImageObjects, images: Sequence[str], crowds: Any = None) -> Mapping[str, AnnotatedImage]:
    """Many images at once, without their captions and sizes; objects keep their annotated names."""
    return {
        image: AnnotatedImage(
            image,
            tuple(image_object(objects, index, objects.names[index], crowds) for index in objects.inside(int(row))),
            objects.source,
        )
        for image, row in zip(images, objects.rows(images), strict=True)
    }


def image_object(objects: ImageObjects, index: int, name: str, crowds: Any) -> ImageObject:
    """One object out of the arrays."""
    x, y, width, height = (float(value) for value in objects.boxes[index])
    box = None if np.isnan([x, y, width, height]).any() else (x, y, width, height)
    crowd = crowds is not None and bool(crowds[index])
    loose = objects.loose[index] if objects.loose else ()
    area, attributes = finite(objects.areas[index]), objects.attributes[index]
    return ImageObject(name, objects.synset(index), box, area, attributes, crowd, loose)


def crowd_flags(dataset: Dataset, objects: ImageObjects) -> Any:
    """Per object whether it is a crowd; None where the annotation does not state it."""
    if objects.source == "captions" or dataset.objects is None or "iscrowd" not in dataset.objects.columns:
        return None
    return in_image_order(dataset)["iscrowd"].fill_null(0).cast(pl.Int64).to_numpy() != 0


def object_name(name: str, synset: str | None) -> str:
    """The name of an object; the word of its synset where it has none of its own."""
    return synset_word(synset) if synset is not None and name in ("", plain_name(synset)) else name


def finite(value: Any) -> float | None:
    """The value, or None for NaN and infinity."""
    return None if value is None or not np.isfinite(float(value)) else float(value)
