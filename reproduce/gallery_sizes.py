"""Every figure of docs/results/gallery-sizes.md: how well an eighth of a gallery predicts the whole.

    python reproduce/gallery_sizes.py             # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/gallery_sizes.py --write     # put the tables into the page

The photos of a dataset are divided by lot into eight parts. Each part is evaluated as if it were all there is: its
photos, its captions, its ranks. From those ranks ``crosslens.metrics.LargerGalleries`` predicts the metrics of the
whole gallery, eight times as large, which are then computed exactly. Models: a ridge regression from features of photos
into a sentence encoder's space (as in ``polysemy.py``; both directions), and two sentence encoders, where one caption
of each photo searches among the means of the photo's other captions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslens.core.rendering import Grid, decimal
from crosslens.metrics import LargerGalleries, MetricSpec, SubGalleries, parse_metric
from crosslens.rank import rank_both, scorer_of
from crosslens.values import Embeddings, Ranking, Relevance
from pages import markdown, update_page
from panel import Array, unit
from polysemy import Placed, Spaces

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "gallery-sizes.md"
PARTS, SEED, RESAMPLES = 8, 17, 60
METRICS = [parse_metric(name).spec for name in ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")]


@dataclass(frozen=True, eq=False)
class World:
    """Vectors of images and captions, and the image of every caption."""

    name: str
    images: Array
    captions: Array
    owner: Array
    directions: tuple[str, ...]

    def rankings(self) -> dict[str, Ranking]:
        image_ids = tuple(f"i{row}" for row in range(len(self.images)))
        caption_ids = tuple(f"c{row}" for row in range(len(self.captions)))
        relevance = Relevance.from_indices(image_ids, caption_ids, self.owner, np.arange(len(self.captions)))
        vectors = Embeddings(image_ids, self.images), Embeddings(caption_ids, self.captions)
        return rank_both(scorer_of(*vectors), relevance)

    def part(self, rows: Array) -> World:
        """Some of the images, with their captions."""
        kept = np.isin(self.owner, rows)
        new = np.full(len(self.images), -1)
        new[rows] = np.arange(len(rows))
        return World(self.name, self.images[rows], self.captions[kept], new[self.owner[kept]], self.directions)


def worlds(placed: Placed) -> Iterator[World]:
    """The models of one dataset."""
    owner = placed.dataset.caption_image
    images, captions = (unit(part).astype(np.float32) for part in (placed.images, placed.captions))
    yield World(f"{placed.name}, ridge", images, captions, owner, ("t2i", "i2t"))
    first = np.unique(owner, return_index=True)[1]
    others = np.ones(len(owner), bool)
    others[first] = False
    for name, vectors in (("L6", placed.captions), ("L3", placed.sentences)):
        sums = np.zeros((len(first), vectors.shape[1]))
        np.add.at(sums, owner[others], vectors[others])
        yield World(f"{placed.name}, text {name}", unit(sums).astype(np.float32),
                    unit(vectors[first]).astype(np.float32), np.arange(len(first)), ("t2i",))  # fmt: skip


def true_figure(spec: MetricSpec, galleries: SubGalleries) -> float:
    """The figure of the whole gallery; MedR by looking at the ranks."""
    if spec.family != "MedR":
        return float(np.nanmean(galleries.values(spec, galleries.gallery)))
    positions = galleries.positions
    first = positions.earlier[positions.starts][positions.case_of] == 0
    return float(np.median(1 + positions.before[positions.starts][positions.case_of][first]))


def predictions(
    world: World, direction: str, truth: SubGalleries, parts: list[Ranking], owners: list[Array]
) -> list[tuple[str, ...]]:
    """A row per metric: the truth, the eight predictions, and how often their intervals contain it."""
    rows = []
    larger = [
        LargerGalleries(SubGalleries(ranking), owner, RESAMPLES, SEED)
        for ranking, owner in zip(parts, owners, strict=True)
    ]
    for spec in METRICS:
        figure = true_figure(spec, truth)
        own = [part.estimate(spec, truth.gallery) for part in larger]
        errors = np.array([estimate.mean - figure for estimate in own])
        covered = sum(estimate.low <= figure <= estimate.high for estimate in own)
        width = float(np.mean([estimate.high - estimate.low for estimate in own]))
        scale, digits = (1, 1) if spec.family == "MedR" else (100, 1)
        before = float(np.mean([true_figure(spec, part.galleries) for part in larger]))
        cells = [before, figure, figure + errors.mean(), errors.mean(), float(np.abs(errors).max()), width]
        rows.append((world.name, f"{direction}/{spec}",
                     *(decimal(scale * cell, digits, signed=number == 3) for number, cell in enumerate(cells)),
                     f"{covered} of {PARTS}"))  # fmt: skip
    return rows


def predicted() -> list[tuple[str, ...]]:
    """All worlds, directions and metrics."""
    rows: list[tuple[str, ...]] = []
    for placed in Spaces().ridge.values():
        for world in worlds(placed):
            lots = np.array_split(np.random.default_rng(SEED).permutation(len(world.images)), PARTS)
            parts = [world.part(np.sort(rows_of_part)) for rows_of_part in lots]
            ranked = [part.rankings() for part in parts]
            whole = world.rankings()
            for direction in world.directions:
                owners = [part.owner if direction == "t2i" else np.arange(len(part.images)) for part in parts]
                truth = SubGalleries(whole[direction])
                rows += predictions(world, direction, truth, [own[direction] for own in ranked], owners)
                print(f"{world.name} {direction}: {truth.gallery:,} items", flush=True)
    return rows


def table(rows: list[tuple[str, ...]]) -> str:
    """Every prediction."""
    header = ("model", "metric", "in an eighth", "in the whole", "predicted, mean of 8", "error, mean",
              "error, largest", "width of intervals", "intervals that hold it")  # fmt: skip
    return markdown(Grid(header, tuple(rows), "ll" + "r" * 7))


def coverage(rows: list[tuple[str, ...]]) -> str:
    """How often 95 % intervals hold the truth, and how far the mean prediction of shares is off, by direction."""
    lines = []
    for direction in ("t2i", "i2t"):
        own = [row for row in rows if row[1].startswith(direction)]
        held = sum(int(row[-1].split()[0]) for row in own)
        errors = [float(row[5]) for row in own if not row[1].endswith("MedR")]
        lines.append((direction, f"{held} of {PARTS * len(own)}", decimal(np.mean(errors), 1, signed=True),
                      decimal(np.mean(np.abs(errors)), 1), decimal(max(errors, key=abs), 1, signed=True)))  # fmt: skip
    header = ("direction", "intervals that hold the truth", "mean error", "mean of absolute errors", "largest error")
    return markdown(Grid(header, tuple(lines), "lrrrr"))


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    asked = parser.parse_args()
    rows = predicted()
    return update_page(PAGE, {"coverage": coverage(rows), "predictions": table(rows)}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
