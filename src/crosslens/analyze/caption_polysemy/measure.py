"""Polysemy curves (IMP, Figure 3): how similar an image's neighbours are, and how far their captions are from it.

For each image and each size R: the mean cosine to its R nearest other images, and the mean angle arccos(cos), in
radians, between the image and all captions of those R images. A dataset in which images stay similar while the captions
of similar images are far away is polysemous: one picture, many captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.near_duplicates import unit_vectors
from crosslens.analyze.neighbours import nearest_items
from crosslens.core import Cell, Figure, InputError, Lines, Presented, Row, Section, Series, Table, Text, UsageError
from crosslens.engine import Progress, shown_progress, stage
from crosslens.metrics import format_count
from crosslens.similarity import Cider, WordVectors, in_parallel, references_of, thread_count
from crosslens.statistics import Bootstrap, Estimate
from crosslens.storage import Array, as_blocks, frozen, json_form
from crosslens.values import Dataset, Embeddings, Ids, align_embeddings, joined_vectors

NEIGHBOURHOOD_SIZES = (1, 5, 10, 25, 50, 100)
"""The neighbourhood sizes R of the paper's Figure 3."""
IMAGE_SIMILARITY, CAPTION_DISTANCE = "image_similarity", "caption_distance"
_CURVES = {
    IMAGE_SIMILARITY: ("Image similarity (cosine)", "Image similarity: mean cosine to the R nearest images"),
    CAPTION_DISTANCE: (
        "Caption distance (radians)",
        "Caption distance: mean angle (radians) to the captions of these R images",
    ),
}
_READING = (
    "A dataset is polysemous where the first table stays high while the second one is high or rises with R: images "
    "remain similar, and the captions of similar images are far away."
)
_MOST_ROWS = 12
"""Sizes up to which the tables have all of them."""
_QUERIES = 4_096
"""Images at a time."""


class CaptionGroups(NamedTuple):
    """The captions of each image: ``rows[start[image] : start[image + 1]]``."""

    start: Array
    rows: Array

    @staticmethod
    def of(caption_image: Array, images: int) -> CaptionGroups:
        """From the image of each caption."""
        counts = np.bincount(caption_image, minlength=images)
        return CaptionGroups(np.concatenate([[0], np.cumsum(counts)]), np.argsort(caption_image, kind="stable"))

    def spread(self, images: Array) -> tuple[Array, Array]:
        """All captions of these images in a row: for each its position in ``images``, and its own row."""
        counts = np.diff(self.start)[images]
        owner = np.repeat(np.arange(len(images)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, self.rows[self.start[images][owner] + within]


def caption_distances(
    images: Array,
    captions: Array,
    groups: CaptionGroups,
    neighbours: Array,
    sizes: Sequence[int],
    progress: Progress,
) -> Array:
    """The mean angle between an image and all captions of its R nearest images, for each R: images × sizes.

    NaN where none of the R images has a caption.
    """
    from crosslens.analyze.kernels import mean_angles, row_lengths  # compiled code: slow to import

    # As compiled code reads them: of 16 bits in 32, and row after row.
    dtype = captions.dtype if captions.dtype in (np.float32, np.float64) else np.result_type(captions, np.float32)
    captions = np.ascontiguousarray(joined_vectors(as_blocks(captions), dtype))
    lengths = np.empty(len(captions))
    in_parallel(lambda a, b: row_lengths(captions[a:b], lengths[a:b]), len(captions), thread_count(None))
    last, means = np.asarray(sizes) - 1, np.empty((len(images), len(sizes)))
    with stage(progress, "captions of neighbours", len(images)):
        for first in range(0, len(images), _QUERIES):
            rows = slice(first, min(first + _QUERIES, len(images)))
            queries, near, out = images[rows].astype(np.float64), neighbours[rows], means[rows]

            def work(a: int, b: int, queries: Array = queries, near: Array = near, out: Array = out) -> None:
                mean_angles(queries[a:b], captions, lengths, groups.start, groups.rows, near[a:b], last, out[a:b])

            in_parallel(work, len(queries), thread_count(None))
            progress.advance(len(queries))
    return means


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
        return f"Polysemy: {self.name}"

    def sections(self) -> Iterator[Section]:
        return curve_sections([self])

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per R: both means over images with their intervals, and how many images the second is over."""
        columns: dict[str, Any] = {"R": list(self.sizes)}
        for name, estimates in self.estimates.items():
            for column, end in ((name, "mean"), (f"{name}_low", "low"), (f"{name}_high", "high")):
                columns[column] = [getattr(estimate, end) for estimate in estimates]
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
        return {
            "name": self.name,
            "images": len(self.image_ids),
            "level": self.level,
            "recall": self.recall,
            "curves": [
                {
                    "R": size,
                    **{name: json_form(estimates[at]) for name, estimates in self.estimates.items()},
                    "images": int((~np.isnan(self.caption_distance[:, at])).sum()),
                }
                for at, size in enumerate(self.sizes)
            ],
        }

    def __repr__(self) -> str:
        ends = f"R from {self.sizes[0]} to {self.sizes[-1]}"
        return f"Polysemy({self.name!r}, {len(self.image_ids):,} images, {ends})"


def curve_sections(results: Sequence[Polysemy]) -> Iterator[Section]:
    """A chart and a table per curve: R across or down, a line or column per dataset; and how to read them."""
    sizes, level = results[0].sizes, f"{100 * results[0].level:g}%"
    listed_sizes = {*NEIGHBOURHOOD_SIZES, sizes[0], sizes[-1]} if len(sizes) > _MOST_ROWS else set(sizes)
    bounded = any(isfinite(mean.low) for result in results for mean in result.estimates[IMAGE_SIMILARITY])
    charts, tables = [], []
    for name, (short, title) in _CURVES.items():
        columns = [tuple(map(interval_figure, result.estimates[name])) for result in results]
        charts.append(
            Lines(
                title=short, about=f"bands: {level} intervals over images" if bounded else "",
                across=tuple(map(float, sizes)), axis="R, nearest images",
                series=tuple(Series(result.name, column) for result, column in zip(results, columns, strict=True)),
            )
        )  # fmt: skip
        rows: list[tuple[Cell, ...]] = [
            (str(size), *(column[at] for column in columns)) for at, size in enumerate(sizes) if size in listed_sizes
        ]
        header = ("R", *(result.name for result in results))
        tables.append(Table(header, tuple(rows), "r" + "l" * len(results), title=title))
    facts = ", ".join(f"{result.name}: {format_count(len(result.image_ids), 'image')}" for result in results) + "."
    if gaps := [result.name for result in results if np.isnan(result.caption_distance).any()]:
        facts += f" Images whose R neighbours have no caption are not in the second table ({', '.join(gaps)})."
    facts += f" In brackets: {level} intervals from resampling images." if bounded else ""
    recalls = [
        f"{result.name}: approximate neighbours, recall@{result.sizes[-1]} {100 * result.recall:.1f} % (measured)."
        for result in results
        if result.recall is not None
    ]
    yield Section("", (Row(tuple(charts)), *tables, Text.of(_READING, facts, *recalls)))


def interval_figure(estimate: Estimate) -> Figure:
    """``0.634 [0.629, 0.640]``."""
    return Figure(estimate.mean, estimate.low, estimate.high, digits=3)


def polysemy(
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
    """The polysemy curves of a dataset; rows of the table are in ascending order of R.

    An image without captions is a neighbour like any other, and adds no caption.

    Args:
        dataset: Images and their captions.
        images: The images' vectors of a joint encoder, as an array in the dataset's order or as :class:`Embeddings`.
        captions: The captions' vectors of the same encoder.
        sizes: The numbers R of neighbours.
        visual: The images' vectors of a separate visual encoder, which then decides which images are near and how
            similar they are (the paper's DINOv2); without it ``images`` does.
        seed: Seed of the intervals, which resample images.
        resamples: Resamples for the intervals.
        level: Confidence level of the intervals.
        approximate: Search neighbours with faiss; ``recall`` of the result says how many of the true ones that finds.
        progress: Told how much is done.
    """
    progress = shown_progress(progress)
    ascending = check_sizes(sizes, dataset)
    of_images, of_captions, looks = joint_vectors(dataset, images, captions, visual)
    neighbours = nearest_items(
        looks, looks, ascending[-1], without=np.arange(len(looks)), progress=progress, approximate=approximate
    )
    groups = CaptionGroups.of(dataset.caption_image, len(dataset.image_ids))
    similarity, total, column = np.empty((len(looks), len(ascending))), np.zeros(len(looks)), 0
    # Column by column: the whole of the running sums would take as much room again as the neighbours.
    for position, size in enumerate(ascending):
        while column < size:
            total += neighbours.cosines[:, column]
            column += 1
        similarity[:, position] = total / size
    distance = caption_distances(of_images, of_captions, groups, neighbours.items, ascending, progress)
    # By the order of the ids: the order of the images must not change what is drawn.
    draws = Bootstrap(np.argsort(np.argsort(dataset.image_ids)), resamples, seed)
    estimates = draws.estimate_columns(np.hstack([similarity, distance]), level=level)
    return Polysemy(
        dataset.name,
        dataset.image_ids,
        ascending,
        frozen(similarity),
        frozen(distance),
        {IMAGE_SIMILARITY: tuple(estimates[: len(ascending)]), CAPTION_DISTANCE: tuple(estimates[len(ascending) :])},
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
    of_images = single_vectors(images, dataset.image_ids, "image")
    of_captions = single_vectors(captions, dataset.caption_ids, "caption")
    if of_images.shape[1] != of_captions.shape[1]:
        problem = f"images of {of_images.shape[1]} dimensions and captions of {of_captions.shape[1]}"
        fix = "encode both with one model; pass vectors of a visual encoder as visual"
        raise InputError(problem, expected="vectors of a joint space", fix=fix)
    return of_images, of_captions, of_images if visual is None else single_vectors(visual, dataset.image_ids, "image")


def single_vectors(vectors: Any, ids: Ids, noun: str) -> Array:
    """One vector for each of ``ids``, in their order."""
    aligned = align_embeddings(vectors, ids, noun)
    if aligned.kind != "single":
        raise UsageError(f"{aligned.kind} embeddings of {noun}s", fix=f"pass one vector per {noun}, such as the mean")
    return aligned.vectors


_NUMBERS_AT_ONCE = 4_000_000
_PAIRS_AT_ONCE = 4_096


class PairValues(NamedTuple):
    """One number per pair, and the row of the image that the pair belongs to; NaN: the pair has none."""

    values: Array
    images: Array

    def means(self, images: int) -> Array:
        """The mean of each image; NaN where it has no pair with a value."""
        present = ~np.isnan(self.values)
        counts = np.bincount(self.images[present], minlength=images)
        sums = np.bincount(self.images[present], self.values[present], images)
        return np.asarray(np.divide(sums, counts, out=np.full(images, np.nan), where=counts > 0))


@dataclass(frozen=True, eq=False)
class CaptionDiversity:
    """What every pair gave, by quantity; means over images with intervals, each image the mean of its pairs."""

    name: str
    image_ids: Ids
    pairs: Mapping[str, PairValues]
    estimates: Mapping[str, Estimate]
    level: float

    @cached_property
    def per_image(self) -> pl.DataFrame:
        """One row per image: the mean of each quantity over its pairs; null where it has none."""
        columns = {
            name: pl.Series(pairs.means(len(self.image_ids)), nan_to_null=True) for name, pairs in self.pairs.items()
        }
        return pl.DataFrame({"image": pl.Series(self.image_ids, dtype=pl.String), **columns})

    def as_dict(self) -> dict[str, Any]:
        return {
            name: {**json_form(self.estimates[name]), "pairs": int((~np.isnan(pairs.values)).sum())}
            for name, pairs in self.pairs.items()
        }


def measure_caption_diversity(
    dataset: Dataset,
    *,
    images: Any | None,
    captions: Any,
    sentences: Any | None = None,
    words: WordVectors | None = None,
    cider: bool = True,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    progress: Progress | None = None,
) -> CaptionDiversity:
    """Compare every two captions of an image, and every caption with its image (IMP, Figures 5 and 23).

    - ``co_caption_cosine``: the cosine of their vectors in the joint space
    - ``co_caption_sentence``: the cosine of their vectors under a text encoder
    - ``co_caption_words``: F of greedy word matching, as in BERTScore: P is the mean, over the words of one caption, of
      the largest cosine with a word of the other; R the same from the other side; F = 2PR / (P + R). Words are vectors
      of the text encoder in their sentence; there is no idf and no rescaling
    - ``co_caption_cider``: CIDEr-D of one caption with the other as its only reference, the mean of both directions;
      n-grams are weighed by the dataset's images
    - ``pair_cosine``: the cosine of an image and each of its captions in the joint space

    Low values between co-captions mean diverse captions.

    ``images`` and ``captions`` are vectors of a joint space, ``sentences`` the captions' vectors of a text encoder, and
    ``words`` gives a vector for each word of a text; without one of the two its quantity is left out, as CIDEr is with
    ``cider=False``, and ``pair_cosine`` without ``images``: of images that are made of their captions it would compare
    a caption with itself. An image with a single caption has no co-captions and counts for ``pair_cosine`` alone.
    """
    progress = shown_progress(progress)
    caption_vectors = single_vectors(captions, dataset.caption_ids, "caption")
    owner, first, second = co_caption_pairs(dataset)
    compared: dict[str, PairValues] = {
        "co_caption_cosine": PairValues(cosines_between(caption_vectors, first, caption_vectors, second), owner)
    }
    if sentences is not None:
        vectors = single_vectors(sentences, dataset.caption_ids, "caption")
        compared["co_caption_sentence"] = PairValues(cosines_between(vectors, first, vectors, second), owner)
    if words is not None:
        values = np.empty(len(first))
        with stage(progress, "matching words", len(first)):
            for part in _parts(len(first), _PAIRS_AT_ONCE):  # word vectors take far more room than the captions'
                rows = np.unique(np.concatenate([first[part], second[part]])).tolist()
                encoded = words([dataset.texts[row] for row in rows], None)
                vectors_of = {row: unit_vectors(vectors) for row, (_, vectors) in zip(rows, encoded, strict=True)}
                pairs = zip(first[part].tolist(), second[part].tolist(), strict=True)
                values[part] = [match_words(vectors_of[left], vectors_of[right]) for left, right in pairs]
                progress.advance(part.stop - part.start)
        compared["co_caption_words"] = PairValues(values, owner)
    if cider:
        values = np.zeros(0)
        if len(first):
            prepared = Cider(df=references_of(dataset)).prepare([[text] for text in dataset.texts], dataset.texts)
            sums = prepared.pairs(first, second).astype(np.float64) + prepared.pairs(second, first)
            values = np.asarray(sums / 2)
        compared["co_caption_cider"] = PairValues(values, owner)
    if images is not None:
        image_vectors, owners = joint_vectors(dataset, images, captions)[0], dataset.caption_image
        compared["pair_cosine"] = PairValues(
            cosines_between(image_vectors, owners, caption_vectors, np.arange(len(caption_vectors))), owners
        )
    means = np.stack([pairs.means(len(dataset.image_ids)) for pairs in compared.values()], axis=1)
    draws = Bootstrap(np.argsort(np.argsort(dataset.image_ids)), resamples, seed)
    estimates = dict(zip(compared, draws.estimate_columns(means, level=level), strict=True))
    return CaptionDiversity(dataset.name, dataset.image_ids, compared, estimates, level)


def co_caption_pairs(dataset: Dataset) -> tuple[Array, Array, Array]:
    """Every two captions of an image, once: the row of the image, and those of the two captions, image after image."""
    captions = pl.DataFrame({"image": dataset.caption_image, "first": np.arange(len(dataset.caption_image))})
    pairs = captions.join(captions.rename({"first": "second"}), on="image").filter(pl.col("first") < pl.col("second"))
    owner, first, second = pairs.sort("image", "first", "second").to_numpy().T
    return owner, first, second


def match_words(left: Array, right: Array) -> float:
    """F of greedy matching between the word vectors of two captions; NaN where one of them has no word."""
    if not len(left) or not len(right):
        return float("nan")
    cosines = left @ right.T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0


def cosines_between(left: Array, left_rows: Array, right: Array, right_rows: Array) -> Array:
    """The cosines of single pairs of rows, in float64; a vector of zeros has the cosine 0 with everything.

    Each is the same number however many others are computed beside it.
    """
    cosines = np.empty(len(left_rows))
    for part in _parts(len(cosines), max(1, _NUMBERS_AT_ONCE // left.shape[1])):
        first, second = left[left_rows[part]].astype(np.float64), right[right_rows[part]].astype(np.float64)
        lengths = np.sqrt(np.einsum("pd,pd->p", first, first) * np.einsum("pd,pd->p", second, second))
        products = np.einsum("pd,pd->p", first, second)
        np.divide(products, lengths, out=cosines[part], where=lengths > 0)
        cosines[part][lengths == 0] = 0.0
    return np.clip(cosines, -1.0, 1.0)


def _parts(size: int, most: int) -> Iterator[slice]:
    return (slice(start, min(start + most, size)) for start in range(0, size, most))
