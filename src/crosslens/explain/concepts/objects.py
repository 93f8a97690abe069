"""What stands in each of many pictures, as arrays: the concepts, boxes and attributes of their objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.ids import Ids, frozen, positions
from crosslens.core.progress import Progress
from crosslens.explain.concepts.naming import canonical_synset, plain_name, synset_of_name

Array = np.ndarray[Any, Any]
Source = Literal["annotations", "captions"]
AREAS = ("share", "pixels")


@dataclass(frozen=True, eq=False)
class ImageObjects:
    """The objects of a set of images, one image after the other; those of image i are ``offsets[i]:offsets[i + 1]``.

    ``concepts``    per object the row of its synset in ``synsets``; −1 where it has none
    ``synsets``     the distinct synsets, sorted by name
    ``names``       per object, in lower case
    ``boxes``       n × 4: x, y, width, height in pixels; NaN without
    ``areas``       the box's share of the picture (or its pixels); NaN without a box or the picture's size
    ``attributes``  per object, as annotated
    ``source``      what the objects come from: ``"annotations"``, or ``"captions"`` where nobody annotated any
    ``ids``         per object its id in the dataset; empty where it has none
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

    @property
    def images(self) -> int:
        return len(self.image_ids)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<ImageObjects: {len(self):,} objects of {self.images:,} images, from {self.source}>"

    def rows(self, image_ids: Iterable[str]) -> Array:
        """The rows of images, by their ids."""
        return positions(list(image_ids), self.image_ids, "image")

    def inside(self, image: int) -> range:
        """The objects of one image, by its row."""
        return range(int(self.offsets[image]), int(self.offsets[image + 1]))

    def synset(self, thing: int) -> str | None:
        """The synset of one object."""
        concept = int(self.concepts[thing])
        return self.synsets[concept] if concept >= 0 else None

    @cached_property
    def keys(self) -> Array:
        """Per object a number that equals another's exactly where both mean the same: by synset, else by name."""
        nameless = self.concepts < 0
        keys = self.concepts.astype(np.int64)
        if nameless.any():
            others = np.array(self.names, dtype=object)[nameless].astype(str)
            keys[nameless] = len(self.synsets) + np.unique(others, return_inverse=True)[1]
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
    ) -> ImageObjects:
        """From one entry per object, the objects of each image together; ``counts`` says how many each has."""
        distinct = tuple(sorted({one for one in synsets if one is not None}))
        row = {one: number for number, one in enumerate(distinct)}
        return ImageObjects(
            image_ids,
            frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
            frozen(np.array([-1 if one is None else row[one] for one in synsets], dtype=np.int32)),
            distinct,
            tuple(names),
            frozen(np.asarray(boxes, dtype=np.float64).reshape(-1, 4)),
            frozen(np.asarray(areas, dtype=np.float64)),
            tuple(attributes),
            source,
            tuple(ids),
        )


def objects_of(dataset: Dataset, *, areas: str = "share", progress: Progress | None = None) -> ImageObjects:
    """The annotated objects of a dataset, or where it has none the things that its captions mention."""
    if dataset.objects is not None and dataset.objects.height:
        return image_objects(dataset, areas=areas)
    return caption_objects(dataset, progress=progress)


def image_objects(dataset: Dataset, *, areas: str = "share") -> ImageObjects:
    """The annotated objects of a dataset: COCO's instances, Visual Genome's objects, scenes.

    An object's synset is the given one, else what its name means (``synset_of_name``).
    ``areas``: ``"share"`` of the picture, or ``"pixels"``. COCO's crowds count as one object without a size: their box
    is drawn around many.
    """
    if areas not in AREAS:
        raise UsageError(f"areas {areas!r}", fix=f"use one of: {', '.join(AREAS)}")
    if dataset.objects is None or not dataset.objects.height:
        raise InputError(
            f"the dataset {dataset.name!r} has no objects",
            expected="annotated objects, such as COCO's instances file",
            fix="give the annotations when reading it, or use caption_objects(dataset): what its captions mention",
        )
    order = pl.DataFrame({"image": dataset.image_ids, "at": range(len(dataset.image_ids))})
    table = dataset.objects.join(order, on="image", how="left", maintain_order="left").sort("at", maintain_order=True)
    counts = np.bincount(table["at"].to_numpy(), minlength=len(dataset.image_ids))
    synsets = [_synset(*row) for row in table.select("synset", "name", "object", "image").iter_rows()]
    names = [plain_name(name or synset or "") for name, synset in zip(table["name"], synsets, strict=True)]
    return ImageObjects.of(
        dataset.image_ids,
        counts,
        names,
        synsets,
        table.select(pl.col("x", "y", "w", "h").fill_null(float("nan"))).to_numpy(),
        _areas(dataset, table, areas),
        [tuple(words or ()) for words in table["attributes"].to_list()],
        ids=[one or "" for one in table["object"]],
    )


def caption_objects(dataset: Dataset, *, progress: Progress | None = None) -> ImageObjects:
    """The things that an image's captions mention: no boxes, counts only where a caption states them."""
    from crosslens.explain.concepts.caption_things import things_of

    found = things_of(dataset, progress)
    things = [one for image in found for one in image]
    nowhere = np.full((len(things), 4), np.nan)
    return ImageObjects.of(
        dataset.image_ids,
        [len(image) for image in found],
        [one.name for one in things],
        [one.synset for one in things],
        nowhere,
        nowhere[:, 0],
        [one.attributes for one in things],
        source="captions",
    )


def _synset(given: str | None, name: str | None, thing: str | None, image: str) -> str | None:
    if given is None or not given.strip():
        return synset_of_name(name) if name else None
    try:
        return canonical_synset(given)
    except InputError as error:
        raise InputError(
            f"object {thing!r} of image {image!r}: {error.problem}",
            expected="a synset of WordNet 3.0, such as 'dog.n.01'",
            fix=error.fix or "correct the synset, or leave it empty: the name then says what it is",
        ) from None


def _areas(dataset: Dataset, table: pl.DataFrame, areas: str) -> Array:
    size = (table["w"] * table["h"]).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if "iscrowd" in table.columns:
        size = np.where(table["iscrowd"].fill_null(0).cast(pl.Int64).to_numpy() != 0, np.nan, size)
    if areas == "pixels":
        return size
    if not {"width", "height"} <= set(dataset.images.columns):
        return np.full(table.height, np.nan)
    pixels = dataset.images.select(
        (pl.col("width").cast(pl.Float64) * pl.col("height").cast(pl.Float64)).fill_null(float("nan")).alias("pixels")
    )["pixels"].to_numpy()
    share: Array = size / np.where(pixels > 0, pixels, np.nan)[table["at"].to_numpy()]
    return share
