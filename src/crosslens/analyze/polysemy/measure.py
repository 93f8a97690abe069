"""Polysemy curves (IMP, Figure 3): how similar an image's neighbours are, and how far their captions are from it.

For each image and each size R: the mean cosine to its R nearest other images, and the mean angle arccos(cos), in
radians, between the image and all captions of those R images. A dataset in which images stay similar while the captions
of similar images are far away is polysemous: one picture, many captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.neighbours import nearest_items
from crosslens.analyze.polysemy.neighbourhoods import CaptionGroups, caption_distances, running_similarity
from crosslens.analyze.polysemy.sections import (
    CAPTION_DISTANCE,
    IMAGE_SIMILARITY,
    NEIGHBOURHOOD_SIZES,
    curve_sections,
)
from crosslens.core import (
    Dataset,
    Embeddings,
    Ids,
    InputError,
    Presented,
    Progress,
    Section,
    SilentProgress,
    UsageError,
    align_embeddings,
    frozen,
    json_form,
)
from crosslens.statistics import Bootstrap, Estimate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Polysemy(Presented):
    """The curves of one dataset; ``image_similarity`` and ``caption_distance`` are images × sizes.

    A caption distance is NaN where none of the R nearest images has a caption: that image does not count in the mean.
    """

    name: str
    image_ids: Ids
    sizes: tuple[int, ...]
    image_similarity: Array
    caption_distance: Array
    estimates: Mapping[str, tuple[Estimate, ...]]
    level: float
    recall: float | None = None
    """Of approximate neighbours, the share of the true ones among them, measured on a sample; None: exact."""

    @property
    def title(self) -> str:
        """The heading of a page that shows the curves."""
        return f"Polysemy: {self.name}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Both curves."""
        return curve_sections([self])

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per R: both means over images with their intervals, and how many images the second is over."""
        columns: dict[str, Any] = {"R": list(self.sizes)}
        for name, estimates in self.estimates.items():
            columns[name] = [estimate.mean for estimate in estimates]
            columns[f"{name}_low"] = [estimate.low for estimate in estimates]
            columns[f"{name}_high"] = [estimate.high for estimate in estimates]
        columns["images"] = (~np.isnan(self.caption_distance)).sum(axis=0)
        return pl.DataFrame(columns).fill_nan(None)

    @cached_property
    def per_image(self) -> pl.DataFrame:
        """One row per image: ``image``, and for each R ``image_similarity_R`` and ``caption_distance_R``."""
        values = {IMAGE_SIMILARITY: self.image_similarity, CAPTION_DISTANCE: self.caption_distance}
        columns = {
            f"{name}_{size}": pl.Series(array[:, at], nan_to_null=True)
            for name, array in values.items()
            for at, size in enumerate(self.sizes)
        }
        return pl.DataFrame({"image": pl.Series(self.image_ids, dtype=pl.String), **columns})

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "name": self.name,
            "images": len(self.image_ids),
            "level": self.level,
            "recall": self.recall,
            "curves": [
                {
                    "R": size,
                    **{name: json_form(asdict(estimates[at])) for name, estimates in self.estimates.items()},
                    "images": int((~np.isnan(self.caption_distance[:, at])).sum()),
                }
                for at, size in enumerate(self.sizes)
            ],
        }

    def __repr__(self) -> str:
        ends = f"R from {self.sizes[0]} to {self.sizes[-1]}"
        return f"Polysemy({self.name!r}, {len(self.image_ids):,} images, {ends})"


def measure_polysemy(
    dataset: Dataset,
    *,
    images: Embeddings | Any,
    captions: Embeddings | Any,
    sizes: Sequence[int] = NEIGHBOURHOOD_SIZES,
    visual: Embeddings | Any | None = None,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    approximate: bool = False,
    progress: Progress | None = None,
) -> Polysemy:
    """The polysemy curves of a dataset.

    ``images`` and ``captions`` are vectors of a joint encoder, as arrays in the dataset's order or as Embeddings.
    ``visual`` are the images' vectors of a separate visual encoder, which then decides which images are near and how
    similar they are (the paper's DINOv2); without it ``images`` does. Rows of the table are in ascending order of R.
    Neighbours are exact unless ``approximate`` searches them with faiss; ``recall`` of the result then says how many of
    the true ones that finds. An image without captions is a neighbour like any other, and adds no caption. ``seed``,
    ``resamples`` and ``level`` are those of the intervals, which resample images.
    """
    progress = progress or SilentProgress()
    chosen = check_sizes(sizes, dataset)
    left, right, looks = joint_vectors(dataset, images, captions, visual)
    neighbours = nearest_items(
        looks, looks, chosen[-1], without=np.arange(len(looks)), progress=progress, approximate=approximate
    )
    groups = CaptionGroups.of(dataset.caption_image, len(dataset.image_ids))
    similarity = running_similarity(neighbours.cosines, chosen)
    distance = caption_distances(left, right, groups, neighbours.items, chosen, progress)
    # By the order of the ids: the order of the images must not change what is drawn.
    draws = Bootstrap(np.argsort(np.argsort(dataset.image_ids)), resamples, seed)
    both = draws.estimate_columns(np.hstack([similarity, distance]), level=level)
    return Polysemy(
        dataset.name,
        dataset.image_ids,
        chosen,
        frozen(similarity),
        frozen(distance),
        {IMAGE_SIMILARITY: tuple(both[: len(chosen)]), CAPTION_DISTANCE: tuple(both[len(chosen) :])},
        level,
        neighbours.recall,
    )


def check_sizes(sizes: Sequence[int], dataset: Dataset) -> tuple[int, ...]:
    """The sizes in ascending order, each once; one that the dataset has too few images for raises."""
    most = len(dataset.image_ids) - 1
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, (Sequence, np.ndarray)) or not len(sizes):
        raise UsageError(f"sizes is {sizes!r:.60}", fix="pass a list of numbers, such as [1, 5, 10]", option="sizes")
    for size in sizes:
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise UsageError(f"R = {size!r:.60} is not a whole number of at least 1", fix="correct it", option="sizes")
    largest = int(max(sizes))
    if largest > most:
        fix = f"choose sizes from 1 to {most}" if most else "measure a dataset with at least 2 images"
        problem = f"R must be at most {most}, the number of other images in {dataset.name}; it is {largest}"
        raise UsageError(problem, fix=fix, option="sizes")
    return tuple(sorted({int(size) for size in sizes}))


def joint_vectors(dataset: Dataset, images: Any, captions: Any, visual: Any = None) -> tuple[Array, Array, Array]:
    """The vectors of images and captions in a joint space, and those that decide how similar images are."""
    if not dataset.caption_ids:
        raise InputError("the dataset has no captions", expected="at least one caption", fix="check its reader options")
    left = single_vectors(images, dataset.image_ids, "image")
    right = single_vectors(captions, dataset.caption_ids, "caption")
    if left.shape[1] != right.shape[1]:
        problem = f"images of {left.shape[1]} dimensions and captions of {right.shape[1]}"
        fix = "encode both with one model; pass vectors of a visual encoder as visual"
        raise InputError(problem, expected="vectors of a joint space", fix=fix)
    return left, right, left if visual is None else single_vectors(visual, dataset.image_ids, "image")


def single_vectors(vectors: Any, ids: Ids, what: str) -> Array:
    """One vector for each of ``ids``, in their order."""
    aligned = align_embeddings(vectors, ids, what)
    if aligned.kind != "single":
        raise UsageError(f"{aligned.kind} embeddings of {what}s", fix=f"pass one vector per {what}, such as the mean")
    return aligned.vectors
