"""The objects of many images as arrays: their concepts, boxes and attributes, annotated or mentioned by captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.engine import Progress
from crosslens.explanations.lexicon import (
    canonical_synset,
    is_hyponym,
    meaning,
    plain_name,
    senses,
    synset_of_name,
    synset_word,
)
from crosslens.language import NUMBERS, is_number, parse_texts, pluralise, positioned_graph, restore_verbs
from crosslens.storage import Array, frozen
from crosslens.values import Dataset, Ids, positions

Source = Literal["annotations", "captions"]
AREAS = ("share", "pixels")


@dataclass(frozen=True, eq=False)
class ImageObjects:
    """The objects of a set of images, image after image; those of image i are ``offsets[i]:offsets[i + 1]``.

    ``concepts``    per object the row of its synset in ``synsets``; −1 where it has none
    ``synsets``     the distinct synsets, sorted by name
    ``names``       per object, in lower case
    ``boxes``       n × 4: x, y, width, height in pixels; NaN without
    ``areas``       the box's share of the image (or its pixels); NaN without a box or the image's size
    ``attributes``  per object, as annotated
    ``source``      what the objects come from: ``"annotations"``, or ``"captions"`` where none are annotated
    ``ids``         per object its id in the dataset; empty where it has none
    ``loose``       per object words that captions have near it and that need not describe it; empty for annotations
    """

    image_ids: Ids
    offsets: Array
    concepts: Array
    synsets: tuple[str, ...]
    names: tuple[str, ...]
    boxes: Array
    areas: Array
    attributes: tuple[tuple[str, ...], ...]
    source: Source = "annotations"
    ids: tuple[str, ...] = ()
    loose: tuple[tuple[str, ...], ...] = ()

    @property
    def images(self) -> int:
        return len(self.image_ids)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<ImageObjects: {len(self):,} objects of {self.images:,} images, from {self.source}>"

    def rows(self, image_ids: Iterable[str]) -> Array:
        return positions(list(image_ids), self.image_ids, "image")

    def inside(self, image: int) -> range:
        return range(int(self.offsets[image]), int(self.offsets[image + 1]))

    def synset(self, index: int) -> str | None:
        concept = int(self.concepts[index])
        return self.synsets[concept] if concept >= 0 else None

    def names_of_synsets(self) -> dict[str, str]:
        """What annotators call a synset most often: *fire hydrant*, which WordNet calls a fireplug.

        Synsets that share a name are left out, as it would not tell them apart; so are the words of captions.
        """
        if self.source == "captions":
            return {}
        counts = Counter(zip(self.concepts.tolist(), self.names, strict=True))
        names: dict[str, str] = {}
        for (concept, name), _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            if concept >= 0 and name:
                names.setdefault(self.synsets[concept], name)
        several = Counter(names.values())
        return {synset: name for synset, name in names.items() if several[name] == 1}

    @cached_property
    def keys(self) -> Array:
        """Per object a number that equals another's exactly where both mean the same: by synset, else by name."""
        without = self.concepts < 0
        keys = self.concepts.astype(np.int64)
        if without.any():
            names = np.array(self.names, dtype=object)[without].astype(str)
            keys[without] = len(self.synsets) + np.unique(names, return_inverse=True)[1]
        return frozen(keys)

    @staticmethod
    def of(
        image_ids: Ids,
        counts: Sequence[int] | Array,
        names: Sequence[str],
        synsets: Sequence[str | None],
        boxes: Array,
        areas: Array,
        attributes: Sequence[tuple[str, ...]],
        *,
        source: Source = "annotations",
        ids: Sequence[str] = (),
        loose: Sequence[tuple[str, ...]] = (),
    ) -> ImageObjects:
        """From one entry per object, the objects of each image together; ``counts`` says how many each has."""
        distinct = tuple(sorted({synset for synset in synsets if synset is not None}))
        row = {synset: number for number, synset in enumerate(distinct)}
        return ImageObjects(
            image_ids,
            frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
            frozen(np.array([-1 if synset is None else row[synset] for synset in synsets], dtype=np.int32)),
            distinct,
            tuple(names),
            frozen(np.asarray(boxes, dtype=np.float64).reshape(-1, 4)),
            frozen(np.asarray(areas, dtype=np.float64)),
            tuple(attributes),
            source,
            tuple(ids),
            tuple(loose),
        )


def objects_of(dataset: Dataset, *, areas: str = "share", progress: Progress | None = None) -> ImageObjects:
    """The annotated objects of a dataset, or where it has none the objects that its captions (its corpus) mention."""
    if dataset.objects is not None and dataset.objects.height:
        return image_objects(dataset, areas=areas)
    return caption_objects(dataset.described, progress=progress)


def image_objects(dataset: Dataset, *, areas: str = "share") -> ImageObjects:
    """The annotated objects of a dataset: COCO's instances, Visual Genome's objects, scenes.

    An object's synset is the annotated one, else what its name means (``synset_of_name``).
    ``areas``: ``"share"`` of the image, or ``"pixels"``. COCO's crowds count as one object without a size: their box
    is drawn around many.
    """
    if areas not in AREAS:
        raise UsageError(f"areas {areas!r}", fix=f"use one of: {', '.join(AREAS)}", option="areas")
    if dataset.objects is None or not dataset.objects.height:
        raise InputError(
            f"the dataset {dataset.name!r} has no objects",
            expected="annotated objects, such as COCO's instances file",
            fix="pass the annotations to its reader, or use caption_objects(dataset): what its captions mention",
        )
    table = in_image_order(dataset)
    rows = table["row"].to_numpy()
    sizes = (table["w"] * table["h"]).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if "iscrowd" in table.columns:
        sizes = np.where(table["iscrowd"].fill_null(0).cast(pl.Int64).to_numpy() != 0, np.nan, sizes)
    if areas == "share":
        pixels = np.full(len(dataset.image_ids), np.nan)
        if {"width", "height"} <= set(dataset.images.columns):
            width, height = (dataset.images[name].cast(pl.Float64) for name in ("width", "height"))
            pixels = (width * height).fill_null(float("nan")).to_numpy()
        sizes = sizes / np.where(pixels > 0, pixels, np.nan)[rows]
    synsets: list[str | None] = []
    for annotated, name, object_id, image in table.select("synset", "name", "object", "image").iter_rows():
        if annotated is None or not annotated.strip():
            synsets.append(synset_of_name(name) if name else None)
            continue
        try:
            synsets.append(canonical_synset(annotated))
        except InputError as error:
            raise InputError(
                f"object {object_id!r} of image {image!r}: {error.problem}",
                expected="a synset of WordNet 3.0, such as 'dog.n.01'",
                fix=error.fix or "correct the synset, or leave it empty: the name is then used",
            ) from None
    return ImageObjects.of(
        dataset.image_ids,
        np.bincount(rows, minlength=len(dataset.image_ids)),
        [plain_name(name or synset or "") for name, synset in zip(table["name"], synsets, strict=True)],
        synsets,
        table.select(pl.col("x", "y", "w", "h").fill_null(float("nan"))).to_numpy(),
        sizes,
        [tuple(words or ()) for words in table["attributes"].to_list()],
        ids=[object_id or "" for object_id in table["object"]],
    )


def in_image_order(dataset: Dataset) -> pl.DataFrame:
    """The table of annotated objects, image after image, with the ``row`` of each one's image."""
    assert dataset.objects is not None
    rows = pl.DataFrame({"image": dataset.image_ids, "row": range(len(dataset.image_ids))})
    return dataset.objects.join(rows, on="image", how="left", maintain_order="left").sort("row", maintain_order=True)


@dataclass
class CaptionObject:
    """An object that captions of an image mention: the largest number stated, and all attributes.

    ``stated`` are the attributes that modify its noun in a caption; ``loose`` words need not.
    """

    name: str
    count: int = 1
    attributes: dict[str, None] = field(default_factory=dict)
    stated: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)


def caption_objects(dataset: Dataset, *, progress: Progress | None = None) -> ImageObjects:
    """The objects that an image's captions mention: no boxes, counts only where a caption states them."""
    by_image: list[dict[str, CaptionObject]] = [{} for _ in dataset.image_ids]
    parses = parse_texts(dataset.texts, progress=progress)
    for image, parse in zip(dataset.caption_image.tolist(), parses, strict=True):
        graph = positioned_graph(restore_verbs(parse))
        # Captions of one image mention the same objects: *bike* and *bicycle* are one, of one synset.
        by_token = {
            token: by_image[image].setdefault(synset_of_name(name) or name, CaptionObject(name))
            for token, name in graph.objects.items()
        }
        for token, word in graph.attributes:
            if (mentioned := by_token.get(token)) is None:
                continue
            if is_number(word):
                mentioned.count = max(mentioned.count, NUMBERS.index(word) if word in NUMBERS else 1)
            else:
                mentioned.attributes[word] = None
                mentioned.stated.update({word} if (token, word) not in graph.loose else ())
        for token, word in graph.loose:
            by_token[token].loose.add(word)
    objects = [item for items in by_image for item in items.values() for _ in range(item.count)]
    no_boxes = np.full((len(objects), 4), np.nan)
    return ImageObjects.of(
        dataset.image_ids,
        [sum(item.count for item in items.values()) for items in by_image],
        [item.name for item in objects],
        [synset_of_name(item.name) for item in objects],
        no_boxes,
        no_boxes[:, 0],
        [tuple(item.attributes) for item in objects],
        source="captions",
        loose=[tuple(sorted(item.loose - item.stated)) for item in objects],
    )


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
        content = {"image": self.image, "file": self.file, "width": self.width, "height": self.height}
        objects = [{name: value for name, value in vars(item).items() if name != "loose"} for item in self.objects]
        return {**content, "captions": self.captions, "objects": objects}


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
