"""SugarCrepe with real photos: a linear image model on top of two small sentence encoders, and captions' lengths alone.

    make reproduce-sugar-crepe     # the data: CROSSLENS_DATA, or ../shared/data beside the repository

The image side is a ridge regression, in closed form, from an ImageNet network's global feature to the mean vector of a
photo's captions, fitted on Flickr8k; it is applied to COCO's photos. The cases are those whose photo has a feature.
Vectors are kept in crosslens' cache: a second call takes seconds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import crosslens as cl
from crosslens.analyze import (
    HardNegativesResult,
    accuracy,
    category_label,
    compare_hard_negatives,
    load_hard_negatives,
    score_hard_negatives,
)
from crosslens.cli.console import progress_bar
from crosslens.core.rendering import Grid, percent
from crosslens.encode import Cache, Encoder, encode_texts
from flickr8k import encoders
from pages import real_data

Array = np.ndarray[Any, Any]

PENALTY = 3000.0
FEATURES = "efficientnet_lite0_global.npy"


@dataclass(frozen=True)
class Ridge:
    """Features to caption vectors: standardise, multiply; captions are compared without their mean."""

    centre: Array
    spread: Array
    weights: Array
    caption_mean: Array

    @staticmethod
    def fit(features: Array, targets: Array) -> Ridge:
        centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
        inputs = (features - centre) / spread
        mean = targets.mean(axis=0)
        square = inputs.T @ inputs + PENALTY * np.eye(inputs.shape[1])
        return Ridge(centre, spread, np.linalg.solve(square, inputs.T @ (targets - mean)), mean)

    def images(self, features: Array) -> Array:
        return ((features - self.centre) / self.spread) @ self.weights

    def captions(self, vectors: Array) -> Array:
        return vectors - self.caption_mean


def features_of(folder: Path) -> tuple[list[str], Array]:
    """The photos of a folder and their features, row by row."""
    names = (folder / "names.txt").read_text(encoding="utf-8").split()
    return names, np.load(folder / FEATURES).astype(np.float64)


def fitted(data: Path, encoder: Encoder, cache: Cache) -> Ridge:
    """The regression on every Flickr8k photo that has a feature."""
    names, features = features_of(data / "flickr8k" / "features")
    dataset = cl.load_dataset("flickr", captions=data / "flickr8k" / "Flickr8k.token.txt").select(names)
    vectors = encode_texts(encoder, dataset.texts, cache=cache, progress=progress_bar()).rows.astype(np.float64)
    sums = np.zeros((len(names), vectors.shape[1]))
    np.add.at(sums, dataset.caption_image, vectors)
    counts = np.bincount(dataset.caption_image, minlength=len(names))
    return Ridge.fit(features, sums / counts[:, None])


def results(data: Path) -> list[HardNegativesResult]:
    """Both encoders, the first one with photos that do not belong to the captions, and lengths, on the same cases."""
    whole = load_hard_negatives(data / "sugar_crepe")
    names, features = features_of(data / "coco_val2017")
    pictured = set(names)
    photos = np.array(whole.dataset.image_ids)[whole.pairs.unique("case", maintain_order=True)["image"].to_numpy()]
    cases = whole.select(np.isin(photos, names))
    shown = len(set(photos) & pictured)
    print(f"{len(cases):,} of {len(whole):,} cases have one of the {len(names):,} photos: {shown:,} photos\n")
    found = []
    for name, encoder in encoders().items():
        cache = Cache()
        ridge = fitted(data, encoder, cache)
        texts = encode_texts(encoder, cases.dataset.texts, cache=cache, progress=progress_bar()).rows.astype(np.float64)
        images = cl.Embeddings.of(ridge.images(features), names)
        captions = cl.Embeddings.of(ridge.captions(texts), cases.dataset.caption_ids)
        found.append(score_hard_negatives(cases, images=images, captions=captions, name=name))
        if len(found) == 1:  # what the captions alone give the same model away
            other = cl.Embeddings.of(np.roll(ridge.images(features), 1, axis=0), names)
            wrong_photo = score_hard_negatives(cases, images=other, captions=captions, name="L6, another photo")
    return [*found, wrong_photo, score_hard_negatives(cases, blind="shorter")]


def table(found: list[HardNegativesResult]) -> str:
    """Accuracies side by side, with their intervals; of lengths also how often they are equal."""
    rows = []
    for place, one in enumerate(found[0].figures):
        cells = [category_label(one), f"{one.cases:,}"]
        cells += [str(accuracy(result.figures[place])) for result in found]
        rows.append((*cells, percent(found[-1].figures[place].tied)))
    return Grid(("", "cases", *(one.model for one in found), "tied"), tuple(rows), "lr" + "l" * len(found) + "r").text()


def main() -> int:
    """Print the tables."""
    data = real_data("sugar_crepe", "coco_val2017", "flickr8k")
    found = results(data)
    print(table(found))
    print("\n" + compare_hard_negatives(found[0], found[1]).text(100))
    return 0


if __name__ == "__main__":
    sys.exit(main())
