"""The table of docs/explanation/intervals-and-tests.md: how often a 95 % interval contains the true figure.

    make reproduce-coverage                      # up to an hour on two cores
    python reproduce/interval_coverage.py --write         # put the tables into the page

Images are drawn from a population whose true figure is known: hits of one to nine captions an image, independent
or alike within an image (a beta distribution of hit rates, with the intraclass correlation named), and pairs of models
that agree on most queries. The exit status says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.statistics import Bootstrap, paired_permutation, sum_of_means
from pages import update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "intervals-and-tests.md"
Array = np.ndarray[Any, Any]

IMAGES = (20, 100, 1000, 5000)
SHARES = (0.5, 0.8, 0.95, 0.99, 0.998)
DISAGREEMENTS = ((0.3, 0.3), (0.2, 0.05), (0.05, 0.05), (0.02, 0.01), (0.01, 0.0), (0.002, 0.002))
FEW = 20
"""Below this many misses expected (images with one, where they are alike) no interval can be exact: a share of so few
has too few possible values, and the next larger set of them covers more than 97 %."""


@dataclass(frozen=True)
class Captions:
    """How many captions an image has, and how alike their outcomes are (intraclass correlation)."""

    most: int
    fewest: int
    correlation: float

    def __str__(self) -> str:
        count = str(self.most) if self.most == self.fewest else f"{self.fewest}–{self.most}"
        return f"{count}, " + (f"correlation {self.correlation:g}" if self.correlation else "independent")

    def sizes(self, images: int, random: np.random.Generator) -> Array:
        return random.integers(self.fewest, self.most + 1, images)

    def expected(self, images: int, share: float) -> float:
        """Misses expected; images with a miss, where outcomes are alike."""
        captions = images * (self.most + self.fewest) / 2
        return captions * share / (1 + (self.most - 1) * self.correlation)


CAPTIONS = tuple(Captions(*kind) for kind in ((1, 1, 0), (5, 5, 0), (5, 5, 0.4), (5, 5, 1), (9, 1, 0), (9, 1, 0.4)))


def outcomes(chances: Array, captions: Captions, random: np.random.Generator) -> tuple[Array, Array]:
    """The outcome of every caption (its number), and its image; ``chances`` of the outcomes, as one row per image."""
    sizes = captions.sizes(len(chances), random)
    clusters = np.repeat(np.arange(len(chances)), sizes)
    if captions.correlation == 1:
        drawn = (random.random(len(chances))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
        return np.minimum(drawn, chances.shape[1] - 1)[clusters], clusters
    if captions.correlation:
        strength = (1 - captions.correlation) / captions.correlation
        weights = random.gamma(np.maximum(chances * strength, 1e-12))
        chances = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    drawn = (random.random(len(clusters))[:, None] > chances.cumsum(axis=1)[clusters]).sum(axis=1)
    return np.minimum(drawn, chances.shape[1] - 1), clusters


def share_covered(images: int, share: float, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of one simulated hit rate contains the true one."""
    missed, clusters = outcomes(np.tile([share, 1 - share], (images, 1)), captions, random)
    figure = Bootstrap(clusters).estimate(1.0 - missed, bounds=(0, 1))
    return bool(figure.low <= share <= figure.high)


def difference_covered(
    images: int, gains: tuple[float, float], captions: Captions, random: np.random.Generator
) -> bool:
    """Whether the interval of one simulated difference of two models' hit rates contains the true one."""
    wins, losses = gains
    drawn, clusters = outcomes(np.tile([wins, losses, 1 - wins - losses], (images, 1)), captions, random)
    test = paired_permutation(
        (drawn == 0).astype(float), (drawn == 1).astype(float), clusters, permutations=1, bounds=(0, 1)
    )
    return bool(test.low - 1e-12 <= wins - losses <= test.high + 1e-12)


def rsum_covered(images: int, share: float, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of one simulated Rsum (three nested cutoffs, two directions) contains the true one.

    The cutoffs miss with chances 1, 1/2 and 1/4 of ``1 − share``.
    """
    miss = 1 - share
    chances = np.tile([miss / 4, miss / 4, miss / 2, 1 - miss], (images, 1))
    drawn, clusters = outcomes(chances, captions, random)
    image_outcomes, _ = outcomes(chances, Captions(1, 1, 0), random)
    parts = [
        (Bootstrap(np.arange(images)), 100.0 * np.array([0, 1, 2, 3])[image_outcomes]),
        (Bootstrap(clusters), 100.0 * np.array([0, 1, 2, 3])[drawn]),
    ]
    true = 200 * (3 - miss * (1 / 4 * 3 + 1 / 4 * 2 + 1 / 2))
    figure = sum_of_means(parts, bounds=(0, 600))
    return bool(figure.low <= true <= figure.high)


STUDIES = {
    "coverage": (share_covered, SHARES, lambda share: f"{100 * share:g} %", lambda share: 1 - share),
    "coverage of differences": (
        difference_covered, DISAGREEMENTS, lambda gains: f"+{100 * gains[0]:g} −{100 * gains[1]:g}", sum,
    ),
    "coverage of Rsum": (rsum_covered, SHARES, lambda share: f"{100 * share:g} %", lambda share: 1 - share),
}  # fmt: skip


def cells(study: str, repeats: int, seed: int = 0, images: tuple[int, ...] = IMAGES) -> list[tuple[Any, ...]]:
    """(captions, images, setting, coverage, whether so few misses are expected that it may exceed 97 %)."""
    settings = STUDIES[study][1]
    grid = [
        (study, captions, count, n, repeats, seed)
        for captions in CAPTIONS
        for count in images
        for n in range(len(settings))
    ]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(cell, *zip(*grid, strict=True)))


def cell(study: str, captions: Captions, images: int, number: int, repeats: int, seed: int) -> tuple[Any, ...]:
    """One cell of the grid; its draws depend on nothing but the cell and the seed."""
    covered, settings, _, rare = STUDIES[study]
    setting = settings[number]
    random = np.random.default_rng([seed, CAPTIONS.index(captions), images, number])
    share = np.mean([covered(images, setting, captions, random) for _ in range(repeats)])
    return captions, images, setting, float(share), captions.expected(images, rare(setting)) < FEW


def table(study: str, repeats: int) -> str:
    """A row per number of images and kind of captions, a column per true figure."""
    settings, written = STUDIES[study][1:3]
    lines = [
        "| captions per image | images | " + " | ".join(written(setting) for setting in settings) + " |",
        "|---|---|" + "---|" * len(settings),
    ]
    row: list[str] = []
    for captions, count, _, share, few in cells(study, repeats):
        row.append(f"{100 * share:.1f}" + ("*" if few else ""))
        if len(row) == len(settings):
            lines.append(f"| {captions} | {count:,} | " + " | ".join(row) + " |")
            row = []
    return "\n".join(lines)


def main() -> int:
    """Simulate, print the tables, compare them with the page or write them into it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--repeats", type=int, default=2000, help="simulated datasets per cell")
    arguments = parser.parse_args()
    return update_page(PAGE, {study: table(study, arguments.repeats) for study in STUDIES}, write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
