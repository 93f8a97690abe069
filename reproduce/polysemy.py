"""Every figure of docs/results/polysemy.md: how diverse the captions of similar photos are, in Flickr8k and COCO.

    make reproduce-polysemy                     # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/polysemy.py --write        # put the tables into the page

The visual encoder is the stored EfficientNet features. The joint space is a sentence encoder's: a ridge regression from
features to mean caption vectors puts a photo there. It is fitted in five folds over both datasets together, so that no
photo is placed by a regression that saw its own captions, and both datasets are equally at home. A trained head
(``panel_heads.py``) gives a second joint space, for photos it was not trained on. Vectors are kept in crosslens' cache,
weights in ``runs/panel``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import crosslens as cl
from crosslens.analyze import CaptionDiversity, cluster_images, measure_caption_diversity
from crosslens.cli.console import progress_bar
from crosslens.core.rendering import Grid
from crosslens.encode.similarity import word_encoder
from pages import markdown, update_page
from panel import L3, L6, SEED, Array, Data, Part, sentence_encoder, trained, unit
from sugar_crepe import Ridge

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "polysemy.md"
SIZES = (1, 5, 10, 25, 50, 100)
FOLDS = 5
WORDS = {
    "co_caption_cosine": "joint space, cosine",
    "co_caption_sentence": "other sentence encoder, cosine",
    "co_caption_words": "word matching, F",
    "co_caption_cider": "CIDEr-D",
    "pair_cosine": "photo and its caption, cosine",
}


@dataclass(frozen=True, eq=False)
class Placed:
    """Photos and captions with their vectors: a joint space, what the photos look like, and a second text encoder."""

    name: str
    dataset: cl.Dataset
    images: Array
    captions: Array
    visual: Array
    sentences: Array | None = None

    def select(self, images: Sequence[str], name: str) -> Placed:
        """Some of the photos."""
        part = self.dataset.select(images)
        rows = rows_of(images, self.dataset.image_ids)
        captions = rows_of(part.caption_ids, self.dataset.caption_ids)
        sentences = None if self.sentences is None else self.sentences[captions]
        return Placed(name, part, self.images[rows], self.captions[captions], self.visual[rows], sentences)

    def angle(self, rows: Array) -> float:
        """The mean angle between captions and these photos, one for each caption."""
        cosines = (unit(self.images)[rows] * unit(self.captions)).sum(axis=1)
        return float(np.arccos(np.clip(cosines, -1, 1)).mean())

    @cached_property
    def curves(self) -> list[dict[str, float]]:
        """Both curves, a row per R."""
        found = cl.polysemy(
            self.dataset, images=self.images, captions=self.captions, visual=self.visual, sizes=SIZES,
            progress=progress_bar(),
        )  # fmt: skip
        return found.table.to_dicts()


def rows_of(ids: Sequence[str], known: Sequence[str]) -> list[int]:
    """Where each id is among those known."""
    row = {name: position for position, name in enumerate(known)}
    return [row[name] for name in ids]


class Spaces:
    """Both datasets in both joint spaces."""

    def __init__(self, data: Data | None = None) -> None:
        self.data = data or Data()
        splits = self.data.splits
        train, own = splits["coco"].fitted
        self.parts = {
            "Flickr8k": (train, splits["flickr8k"].calibration, splits["flickr8k"].test),
            "COCO": (own, splits["coco"].calibration, splits["coco"].test),
        }

    @cached_property
    def ridge(self) -> dict[str, Placed]:
        """Every photo of both datasets, each placed by a regression on other photos."""
        parts = [part for own in self.parts.values() for part in own]
        features = np.concatenate([part.features for part in parts])
        targets = np.concatenate([part.means(L6) for part in parts])
        fold = np.random.default_rng(SEED).permutation(len(features)) % FOLDS
        placed = np.empty_like(targets)
        for number in range(FOLDS):
            model = Ridge.fit(features[fold != number], targets[fold != number])
            placed[fold == number] = model.images(features[fold == number])
        centre = targets.mean(axis=0)
        starts = iter(np.split(placed, np.cumsum([len(part.features) for part in parts])[:-1]))
        return {name: joined(name, own, [next(starts) for _ in own], centre) for name, own in self.parts.items()}

    @cached_property
    def head(self) -> dict[str, Placed]:
        """The photos that the head was not trained on."""
        head, _ = trained(L6, self.data.splits["coco"].fitted)
        return {
            name: Placed(
                name, pooled(own[1:]), np.concatenate([head.images(part.features) for part in own[1:]]),
                np.concatenate([head.captions(part.dataset.texts, part.vectors(L6)) for part in own[1:]]),
                np.concatenate([part.features for part in own[1:]]),
            )
            for name, own in self.parts.items()
        }  # fmt: skip


def joined(name: str, parts: Sequence[Part], images: Sequence[Array], centre: Array) -> Placed:
    """The parts of one dataset together."""
    vectors, others = (np.concatenate([part.vectors(encoder) for part in parts]) for encoder in (L6, L3))
    visual = np.concatenate([part.features for part in parts])
    return Placed(name, pooled(parts), np.concatenate(images), vectors - centre, visual, others)


def pooled(parts: Sequence[Part]) -> cl.Dataset:
    """One dataset of the parts' images and captions, in their order."""
    import polars as pl

    images = pl.concat([part.dataset.images.select("image") for part in parts])
    captions = pl.concat([part.dataset.captions.select("caption", "image", "text") for part in parts])
    return cl.Dataset(parts[0].name.partition(" ")[0], images, captions)


def drawn(placed: Placed, count: int) -> Placed:
    """As many photos as another dataset has."""
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(placed.dataset.image_ids))[:count])
    return placed.select([placed.dataset.image_ids[row] for row in chosen], placed.name)


# Tables


def curve_table(sets: Sequence[Placed]) -> str:
    """Both curves of several datasets, R down."""
    header = ("R", *(f"{placed.name}, {what}" for what in ("photos' cosine", "angle to captions")
                     for placed in sets))  # fmt: skip
    rows = []
    for at, size in enumerate(SIZES):
        cells = [interval(placed.curves[at], column) for column in ("image_similarity", "caption_distance")
                 for placed in sets]  # fmt: skip
        rows.append((str(size), *cells))
    return markdown(Grid(header, tuple(rows), "r" * len(header)))


def interval(row: Mapping[str, float], column: str) -> str:
    """A figure with its interval."""
    return f"{row[column]:.3f} [{row[f'{column}_low']:.3f}, {row[f'{column}_high']:.3f}]"


def growth_table(sets: Sequence[Placed]) -> str:
    """The angle to a photo's own captions, to those of its neighbours, and to anybody's."""
    rows = []
    for placed in sets:
        owner = placed.dataset.caption_image
        own, anybody = placed.angle(owner), placed.angle(np.random.default_rng(SEED).permutation(owner))
        near = [placed.curves[at]["caption_distance"] for at in (0, -1)]
        shares = [f"{100 * (angle - own) / (anybody - own):.0f}" for angle in near]
        angles = [f"{angle:.3f}" for angle in (own, *near, anybody)]
        rows.append((placed.name, f"{len(placed.dataset.image_ids):,}", *angles, *shares))
    header = ("photos of", "number", "own captions", "of the nearest", "of the 100 nearest", "of any photo",
              "nearest, % of the way", "100 nearest, % of the way")  # fmt: skip
    return markdown(Grid(header, tuple(rows), "l" + "r" * 7))


def diversities(sets: Sequence[Placed], *, words: bool) -> dict[str, CaptionDiversity]:
    """How similar the captions of one photo are to each other, in several ways; ``words`` costs most."""
    return {
        placed.name: measure_caption_diversity(
            placed.dataset, images=placed.images, captions=placed.captions, sentences=placed.sentences,
            words=word_encoder(sentence_encoder(L6)) if words else None, progress=progress_bar(),
        )
        for placed in sets
    }  # fmt: skip


def diversity_table(sets: Sequence[Placed], *, words: bool) -> str:
    """The means with their intervals, datasets side by side."""
    found = diversities(sets, words=words)
    rows = []
    for name in WORDS:
        values = [result.estimates[name] for result in found.values() if name in result.estimates]
        if values:
            rows.append((WORDS[name], *(f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]" for value in values)))
    return markdown(Grid(("captions of one photo", *found), tuple(rows), "l" + "r" * len(found)))


def cluster_table(sets: Sequence[Placed]) -> str:
    """Clusters of photos: how many, how similar their photos are, how diverse their captions."""
    rows = []
    for placed in sets:
        found = cluster_images(
            placed.dataset, images=placed.images, captions=placed.captions, visual=placed.visual, seed=SEED,
            progress=progress_bar(),
        )  # fmt: skip
        sizes = np.array([cluster.size for cluster in found.clusters])
        values: list[Any] = [
            np.average([getattr(cluster, what) for cluster in found.clusters], weights=sizes)
            for what in ("image_similarity", "caption_diversity")
        ]
        outside = 100 * float((found.labels == 0).mean())
        most = found.clusters[0]
        rows.append((placed.name, str(len(sizes)), f"{outside:.0f}", f"{np.median(sizes):.0f}", f"{values[0]:.3f}",
                     f"{values[1]:.3f}", f"{most.image_similarity:.3f}, {most.caption_diversity:.3f}"))  # fmt: skip
    header = ("photos of", "clusters", "photos in none, %", "median size", "photos' cosine",
              "angle between captions", "most polysemous cluster: both")  # fmt: skip
    return markdown(Grid(header, tuple(rows), "l" + "r" * 6))


def equal_sets(spaces: Spaces) -> list[Placed]:
    """COCO's photos, and as many of Flickr8k's."""
    coco = spaces.ridge["COCO"]
    return [drawn(spaces.ridge["Flickr8k"], len(coco.dataset.image_ids)), coco]


def test_sets(spaces: Spaces) -> list[Placed]:
    """The thousand photos of each dataset that the panel is evaluated on."""
    return [spaces.ridge[name].select(own[2].dataset.image_ids, name) for name, own in spaces.parts.items()]


def tables() -> dict[str, str]:
    """Every block of the page."""
    spaces = Spaces()
    flickr, coco = equal_sets(spaces)
    every = replace(spaces.ridge["Flickr8k"], name="Flickr8k, all")
    return {
        "curves": curve_table([flickr, coco]),
        "growth": growth_table([flickr, every, coco]),
        "head": curve_table(list(spaces.head.values())),
        "diversity": diversity_table([flickr, coco], words=False),
        "words": diversity_table(test_sets(spaces), words=True),
        "clusters": cluster_table([flickr, coco]),
    }


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    return update_page(PAGE, tables(), write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
