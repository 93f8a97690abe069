"""How diverse the captions of one image are (IMP, Figures 5 and 23): every two of them compared, in several ways.

- ``co_caption_cosine``: the cosine of their vectors in the joint space
- ``co_caption_sentence``: the cosine of their vectors under a text encoder
- ``co_caption_words``: F of greedy word matching, as in BERTScore: P is the mean, over the words of one caption, of the
  largest cosine with a word of the other; R the same from the other side; F = 2PR / (P + R). It is the same from both
  sides. Words are vectors of the text encoder in their sentence; there is no idf and no rescaling
- ``co_caption_cider``: CIDEr-D of one caption with the other as its only reference, the mean of both directions;
  n-grams are weighed by the dataset's images
- ``pair_cosine``: the cosine of an image and each of its captions in the joint space

Low values between co-captions mean diverse captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.near_duplicates import unit_vectors
from crosslens.analyze.polysemy.measure import joint_vectors, single_vectors
from crosslens.analyze.polysemy.neighbourhoods import CaptionGroups, cosines_between
from crosslens.core import Dataset, Ids, Progress, SilentProgress, json_form, stage
from crosslens.similarity import Cider, WordVectors, references_of
from crosslens.statistics import Bootstrap, Estimate

Array = np.ndarray[Any, Any]

_NUMBERS_AT_ONCE = 4_000_000
_PAIRS_AT_ONCE = 4_096


class PairValues(NamedTuple):
    """One number per pair, and the row of the image that the pair belongs to; NaN: the pair has none."""

    values: Array
    images: Array

    def means(self, images: int) -> Array:
        """The mean of each image; NaN where it has no pair with a value."""
        counted = ~np.isnan(self.values)
        counts = np.bincount(self.images[counted], minlength=images)
        sums = np.bincount(self.images[counted], self.values[counted], images)
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
        """The JSON form."""
        return {
            name: {**json_form(asdict(self.estimates[name])), "pairs": int((~np.isnan(pairs.values)).sum())}
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
    """Compare every two captions of an image, and every caption with its image.

    ``images`` and ``captions`` are vectors of a joint space, ``sentences`` the captions' vectors of a text encoder, and
    ``words`` gives a vector for each word of a text; without one of the two its quantity is left out, as CIDEr is with
    ``cider=False``, and ``pair_cosine`` without ``images``: of images that are made of their captions it would compare
    a caption with itself. An image with a single caption has no co-captions and counts for ``pair_cosine`` alone.
    """
    progress = progress or SilentProgress()
    right = single_vectors(captions, dataset.caption_ids, "caption")
    owner, first, second = co_caption_pairs(dataset)
    compared: dict[str, PairValues] = {"co_caption_cosine": PairValues(_cosines(right, first, right, second), owner)}
    if sentences is not None:
        vectors = single_vectors(sentences, dataset.caption_ids, "caption")
        compared["co_caption_sentence"] = PairValues(_cosines(vectors, first, vectors, second), owner)
    if words is not None:
        compared["co_caption_words"] = PairValues(_matched(dataset.texts, first, second, words, progress), owner)
    if cider:
        compared["co_caption_cider"] = PairValues(_cider(dataset, first, second), owner)
    if images is not None:
        left, owners = joint_vectors(dataset, images, captions)[0], dataset.caption_image
        compared["pair_cosine"] = PairValues(_cosines(left, owners, right, np.arange(len(right))), owners)
    means = np.stack([pairs.means(len(dataset.image_ids)) for pairs in compared.values()], axis=1)
    draws = Bootstrap(np.argsort(np.argsort(dataset.image_ids)), resamples, seed)
    estimates = dict(zip(compared, draws.estimate_columns(means, level=level), strict=True))
    return CaptionDiversity(dataset.name, dataset.image_ids, compared, estimates, level)


def co_caption_pairs(dataset: Dataset) -> tuple[Array, Array, Array]:
    """Every two captions of an image, once: the row of the image, and those of the two captions, image after image."""
    groups = CaptionGroups.of(dataset.caption_image, len(dataset.image_ids))
    counts = groups.counts()
    parts = []
    for count in np.unique(counts[counts > 1]):
        images = np.flatnonzero(counts == count)
        left, right = np.triu_indices(count, 1)
        captions = groups.rows[groups.start[images][:, None] + np.arange(count)]
        parts.append((np.repeat(images, len(left)), captions[:, left].ravel(), captions[:, right].ravel()))
    if not parts:
        none = np.zeros(0, np.int64)
        return none, none, none
    owner, first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return owner[order], first[order], second[order]


def match_words(left: Array, right: Array) -> float:
    """F of greedy matching between the word vectors of two captions; NaN where one of them has no word."""
    if not len(left) or not len(right):
        return float("nan")
    cosines = left @ right.T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0


def _cosines(left: Array, left_rows: Array, right: Array, right_rows: Array) -> Array:
    values = np.empty(len(left_rows))
    for part in _parts(len(values), max(1, _NUMBERS_AT_ONCE // left.shape[1])):
        values[part] = cosines_between(left, left_rows[part], right, right_rows[part])
    return values


def _matched(texts: Sequence[str], first: Array, second: Array, words: WordVectors, progress: Progress) -> Array:
    values = np.empty(len(first))
    with stage(progress, "matching words", len(first)):
        for part in _parts(len(first), _PAIRS_AT_ONCE):  # word vectors take far more room than the captions'
            rows = np.unique(np.concatenate([first[part], second[part]]))
            encoded = words([texts[row] for row in rows], None)
            vectors = {row: unit_vectors(own) for row, (_, own) in zip(rows.tolist(), encoded, strict=True)}
            pairs = zip(first[part].tolist(), second[part].tolist(), strict=True)
            values[part] = [match_words(vectors[left], vectors[right]) for left, right in pairs]
            progress.advance(part.stop - part.start)
    return values


def _cider(dataset: Dataset, first: Array, second: Array) -> Array:
    if not len(first):
        return np.zeros(0)
    prepared = Cider(df=references_of(dataset)).prepare([[text] for text in dataset.texts], dataset.texts)
    return np.asarray((prepared.pairs(first, second).astype(np.float64) + prepared.pairs(second, first)) / 2)


def _parts(size: int, most: int) -> Iterator[slice]:
    return (slice(start, min(start + most, size)) for start in range(0, size, most))
