"""The tables of docs/explanation/intervals-and-tests.md: how often a 95 % interval contains the true figure.

    make reproduce-coverage                      # up to an hour on two cores
    python reproduce/interval_coverage.py --write         # put the tables into the page
    python reproduce/interval_coverage.py --study "exact coverage"   # one of them; this one takes seconds

Of one caption an image, coverage is computed exactly: it is the chance of all counts whose interval contains the true
share. Otherwise images are drawn from a population whose true figure is known: hits of one to nine captions an image,
independent or alike within an image (a beta distribution of hit rates, with the intraclass correlation named), pairs of
models that agree on most queries, grades, differences of two scorers, scores of right and wrong pairs. The exit status
says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.statistics import (
    Bootstrap,
    Samples,
    auprc,
    bland_altman,
    estimate,
    paired_permutation,
    paired_samples,
    sum_of_means,
)
from pages import update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "intervals-and-tests.md"
Array = np.ndarray[Any, Any]

IMAGES = (20, 100, 1000)
EXACT_IMAGES = (10, 20, 50, 100, 200, 500, 1000, 5000)
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.998)
DISAGREEMENTS = ((0.3, 0.3), (0.2, 0.05), (0.05, 0.05), (0.02, 0.01), (0.01, 0.0), (0.002, 0.002))
FEW = 20
"""Below this many misses expected (images with one, where they are alike) no interval can be exact: a share of so few
has too few possible values, and the next larger set of them covers more than 97 %."""


def percent(share: float) -> str:
    """A share as a page shows it."""
    return f"{100 * share:g} %"


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
SEVERAL = (*CAPTIONS[1:3], *CAPTIONS[4:])
"""Where outcomes of an image differ: if they do not, or there is one, coverage is exact."""


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


@dataclass(frozen=True)
class Grades:
    """Values between 0 and 1: their name, how they are drawn, their mean, and the share of them that is below 1."""

    name: str
    draw: Callable[[np.random.Generator, int], Array]
    mean: float
    missed: float = 1.0

    def __str__(self) -> str:
        return self.name


def reciprocal_ranks(hit: float) -> Grades:
    """1 ÷ rank, where every rank that is reached is the right one with the same chance."""
    mean = -hit * float(np.log(hit)) / (1 - hit)
    return Grades(f"MRR {mean:.2f}", lambda random, count: 1 / random.geometric(hit, count), mean, 1 - hit)


GRADES = (
    Grades("0.50 ± 0.03", lambda random, count: np.clip(random.normal(0.5, 0.03, count), 0, 1), 0.5),
    Grades("0.90 ± 0.02", lambda random, count: random.beta(201.6, 22.4, count), 0.9),
    Grades("0 to 1, flat", lambda random, count: random.random(count), 0.5),
    *map(reciprocal_ranks, (0.3, 0.8, 0.95)),
)


def alike(draw: Callable[[np.random.Generator, int], Array], captions: Captions, images: int,
          random: np.random.Generator) -> tuple[Array, Array]:  # fmt: skip
    """A value for every caption, some of which are their image's, so that two of an image correlate as named."""
    clusters = np.repeat(np.arange(images), captions.sizes(images, random))
    shared, own = draw(random, images)[clusters], draw(random, len(clusters))
    return np.where(random.random(len(clusters)) < captions.correlation**0.5, shared, own), clusters


def grades_covered(images: int, grades: Grades, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of the mean of simulated grades contains the true one."""
    values, clusters = alike(grades.draw, captions, images, random)
    figure = estimate(values, clusters, bounds=(0, 1))
    return bool(figure.low <= grades.mean <= figure.high)


def rare_failures(rate: float) -> Grades:
    """Grades of 0.9 ± 0.02, of which the named share is 0."""

    def draw(random: np.random.Generator, count: int) -> Array:
        return np.where(random.random(count) < rate, 0.0, random.beta(201.6, 22.4, count))

    return Grades(percent(rate), draw, 0.9 * (1 - rate), rate)


def grade_difference_covered(images: int, grades: Grades, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of the difference of two models' grades contains the true one; one of them fails rarely."""
    failing, clusters = alike(grades.draw, captions, images, random)
    values, _ = alike(GRADES[1].draw, captions, images, random)
    test = paired_permutation(failing, values[: len(failing)], clusters, permutations=1, bounds=(0, 1))
    return bool(test.low <= grades.mean - GRADES[1].mean <= test.high)


@dataclass(frozen=True)
class Drop:
    """Hit rates before and after a change; of the queries that are right after it, as many as can were before."""

    before: float
    after: float

    def __str__(self) -> str:
        return f"{100 * self.before:g} → {100 * self.after:g}"


DROPS = tuple(Drop(*rates) for rates in ((0.3, 0.02), (0.3, 0.1), (0.3, 0.28), (0.8, 0.4), (0.05, 0.02), (0.02, 0.3)))


def drop_covered(images: int, drop: Drop, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of one simulated drop in percent contains the true one, and nothing below −100 %."""
    both = min(drop.before, drop.after)
    chances = [both, drop.before - both, drop.after - both, 1 - max(drop.before, drop.after)]
    drawn, clusters = outcomes(np.tile(chances, (images, 1)), captions, random)
    before, after = (drawn <= 1).astype(float), ((drawn == 0) | (drawn == 2)).astype(float)
    if not before.any():
        return True  # no drop in percent is printed
    change = paired_samples(Samples(before, clusters, after, clusters), permutations=0, bounds=(0, 1))
    return bool(-1 <= change.relative_low <= drop.after / drop.before - 1 <= change.relative_high)


@dataclass(frozen=True)
class Unbounded:
    """Values without a range: how they are drawn, and their mean."""

    name: str
    draw: Callable[[np.random.Generator, int], Array]
    mean: float

    def __str__(self) -> str:
        return self.name


UNBOUNDED = (
    Unbounded("normal", lambda random, count: random.normal(5, 1, count), 5.0),
    Unbounded("long tails (Laplace)", lambda random, count: random.laplace(5, 1, count), 5.0),
    Unbounded("exponential", lambda random, count: random.exponential(size=count), 1.0),
    Unbounded("geometric ranks", lambda random, count: random.geometric(0.3, count).astype(float), 1 / 0.3),
    Unbounded("log-normal, σ 1", lambda random, count: random.lognormal(size=count), float(np.exp(0.5))),
    Unbounded("log-normal, σ 1.5", lambda random, count: random.lognormal(0, 1.5, count), float(np.exp(1.125))),
)


def unbounded_covered(images: int, values: Unbounded, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of the mean of values without a range contains the true one."""
    drawn, clusters = alike(values.draw, captions, images, random)
    figure = estimate(drawn, clusters)
    return bool(figure.low <= values.mean <= figure.high)


DIFFERENCES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda random, count: random.normal(size=count),
    "flat": lambda random, count: 12**0.5 * (random.random(count) - 0.5),
    "long tails (Laplace)": lambda random, count: random.laplace(size=count) / 2**0.5,
}


def limits_covered(images: int, shape: str, captions: Captions, random: np.random.Generator) -> float:
    """The share of the two limits of agreement whose interval contains the true limit."""
    clusters = np.repeat(np.arange(images), captions.sizes(images, random))
    shared, own = DIFFERENCES[shape](random, images)[clusters], DIFFERENCES[shape](random, len(clusters))
    differences = captions.correlation**0.5 * shared + (1 - captions.correlation) ** 0.5 * own
    result = bland_altman(np.zeros(len(clusters)), differences, clusters)
    return float(
        np.mean([result.lower.low <= -1.96 <= result.lower.high, result.upper.low <= 1.96 <= result.upper.high])
    )


@dataclass(frozen=True)
class LabelledScores:
    """Right and wrong pairs of an image; scores are normal, those of right pairs higher by so many deviations."""

    right: int
    wrong: int
    shift: float

    @cached_property
    def area(self) -> float:
        """The true area under the precision–recall curve."""
        from scipy.special import ndtr

        thresholds = np.linspace(12, -8, 100_001)
        recall, false = ndtr(self.shift - thresholds), ndtr(-thresholds)
        precision = self.right * recall / (self.right * recall + self.wrong * false)
        return float(((precision[1:] + precision[:-1]) / 2 * np.diff(recall)).sum())

    def __str__(self) -> str:
        return f"{self.right} : {self.wrong}, {self.area:.2f}"


AREAS = tuple(LabelledScores(*kind) for kind in ((1, 1, 1.0), (1, 1, 2.0), (1, 1, 3.0), (5, 1, 1.0), (1, 5, 1.5)))


def area_covered(images: int, labelled: LabelledScores, captions: Captions, random: np.random.Generator) -> bool:
    """Whether the interval of one simulated AUPRC contains the true one."""
    per_image = labelled.right + labelled.wrong
    positive = np.tile(np.arange(per_image) < labelled.right, images)
    clusters = np.repeat(np.arange(images), per_image)
    shared, own = random.normal(size=images)[clusters], random.normal(size=len(clusters))
    scores = captions.correlation**0.5 * shared + (1 - captions.correlation) ** 0.5 * own + labelled.shift * positive
    figure = auprc(positive, scores, clusters, resamples=1)
    return bool(figure.low <= labelled.area <= figure.high)


@dataclass(frozen=True)
class Study:
    """What is simulated, for which true figures, images and captions; ``rare`` is the chance of the rarer outcome.

    Infinite where nothing is rare.
    """

    covered: Callable[..., float]
    settings: tuple[Any, ...]
    written: Callable[[Any], str] = str
    rare: Callable[[Any], float] = lambda setting: float("inf")
    images: tuple[int, ...] = IMAGES
    captions: tuple[Captions, ...] = CAPTIONS
    rows: str = "captions per image"


STUDIES = {
    "coverage": Study(share_covered, SHARES, percent, lambda share: 1 - share, captions=SEVERAL),
    "coverage of differences": Study(
        difference_covered, DISAGREEMENTS, lambda gains: f"+{100 * gains[0]:g} −{100 * gains[1]:g}", sum
    ),
    "coverage of Rsum": Study(rsum_covered, SHARES, percent, lambda share: 1 - share),
    "coverage of grades": Study(
        grades_covered, GRADES, rare=lambda grades: grades.missed, captions=(CAPTIONS[0], *SEVERAL[:2]),
    ),
    "coverage of rare failures": Study(
        grades_covered, tuple(map(rare_failures, (0.01, 0.02, 0.05, 0.1, 0.2))), rare=lambda grades: grades.missed,
        images=(10, 20, 50, 100, 1000), captions=(CAPTIONS[0], *SEVERAL[:2], CAPTIONS[3]),
    ),
    "coverage of differences of grades": Study(
        grade_difference_covered, tuple(map(rare_failures, (0.01, 0.02, 0.05, 0.1, 0.2))),
        rare=lambda grades: grades.missed, images=(20, 100, 1000), captions=CAPTIONS[:1],
    ),
    "coverage of drops in percent": Study(
        drop_covered, DROPS, rare=lambda drop: min(drop.before, drop.after), images=(20, 50, 100, 1000),
        captions=(CAPTIONS[0], *SEVERAL[:2], CAPTIONS[3]),
    ),
    "coverage of unbounded means": Study(
        unbounded_covered, UNBOUNDED, images=(10, 20, 50, 200),
        captions=(CAPTIONS[0], *SEVERAL[:2], CAPTIONS[3]),
    ),
    "coverage of limits of agreement": Study(
        limits_covered, tuple(DIFFERENCES), images=(10, 20, 50, 100), captions=CAPTIONS[:3],
    ),
    "coverage of AUPRC": Study(
        area_covered, AREAS, images=(20, 50, 100), rows="scores of an image",
        captions=(CAPTIONS[0], Captions(1, 1, 0.4)),
    ),
}  # fmt: skip
EXACT = "exact coverage"


def cells(study: str, repeats: int, seed: int = 0, images: tuple[int, ...] | None = None) -> list[tuple[Any, ...]]:
    """(captions, images, setting, coverage, whether so few misses are expected that it may exceed 97 %)."""
    plan = STUDIES[study]
    grid = [
        (study, captions, count, number, repeats, seed)
        for captions in plan.captions
        for count in images or plan.images
        for number in range(len(plan.settings))
    ]
    with ProcessPoolExecutor() as pool:
        covered = pool.map(cell, *zip(*grid, strict=True))
        return [
            (captions, count, setting, share, captions.expected(count, plan.rare(setting)) < FEW)
            for (_, captions, count, number, *_), share in zip(grid, covered, strict=True)
            for setting in (plan.settings[number],)
        ]


def cell(study: str, captions: Captions, images: int, number: int, repeats: int, seed: int) -> float:
    """The coverage of one cell of the grid; its draws depend on nothing but the cell and the seed."""
    plan = STUDIES[study]
    random = np.random.default_rng([seed, plan.captions.index(captions), images, number])
    return float(np.mean([plan.covered(images, plan.settings[number], captions, random) for _ in range(repeats)]))


def table(study: str, repeats: int) -> str:
    """A row per number of images and kind of captions, a column per true figure."""
    plan = STUDIES[study]
    lines = [
        f"| {plan.rows} | images | " + " | ".join(plan.written(setting) for setting in plan.settings) + " |",
        "|---|---|" + "---|" * len(plan.settings),
    ]
    row: list[str] = []
    for captions, count, _, share, few in cells(study, repeats):
        row.append(f"{100 * share:.1f}" + ("*" if few else ""))
        if len(row) == len(plan.settings):
            kind = str(captions) if plan.rows == Study.rows else str(captions).split(", ")[1]
            lines.append(f"| {kind} | {count:,} | " + " | ".join(row) + " |")
            row = []
    return "\n".join(lines)


def exact_coverage(images: int, shares: Array) -> Array:
    """The chance of all counts of hits whose interval contains the share, of each share."""
    from scipy.stats import binom

    chances = binom.pmf(np.arange(images + 1)[:, None], images, shares)
    counts = np.flatnonzero(chances.max(axis=1) > 1e-9)
    limits = np.array([
        estimate((np.arange(images) < hits).astype(float), np.arange(images), bounds=(0, 1)).interval for hits in counts
    ])  # fmt: skip
    return np.asarray((chances[counts] * ((limits[:, :1] <= shares) & (shares <= limits[:, 1:]))).sum(axis=0))


def possible_coverages(images: int, share: float) -> Array:
    """The chance of every run of counts: what intervals that depend on the count can have."""
    from scipy.stats import binom

    below = binom.cdf(np.arange(-1, images + 1), images, share)
    return np.asarray(below[None, :] - below[:, None])


def exact_table() -> str:
    """A row per number of images, with one caption each (or all alike); the last columns are over all shares."""
    lines = [
        "| images | " + " | ".join(map(percent, SHARES)) + " | lowest | mean |",
        "|---|" + "---|" * (len(SHARES) + 2),
    ]
    for images in EXACT_IMAGES:
        row = []
        for share, coverage in zip(SHARES, exact_coverage(images, np.array(SHARES)), strict=True):
            possible = possible_coverages(images, share)
            reachable = ((possible >= 0.94) & (possible <= 0.97)).any()
            row.append(f"{100 * coverage:.1f}" + ("" if reachable else "*"))
        if images <= 1000:
            every = exact_coverage(images, np.linspace(0.001, 0.999, 1997))
            row += [f"{100 * every.min():.1f}", f"{100 * every.mean():.1f}"]
        else:
            row += ["–", "–"]
        lines.append(f"| {images:,} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> int:
    """Simulate, print the tables, compare them with the page or write them into it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--repeats", type=int, default=500, help="simulated datasets per cell")
    parser.add_argument("--study", action="append", choices=(EXACT, *STUDIES), help="only this table (repeatable)")
    arguments = parser.parse_args()
    chosen = arguments.study or (EXACT, *STUDIES)
    tables = {name: exact_table() if name == EXACT else table(name, arguments.repeats) for name in chosen}
    return update_page(PAGE, tables, write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
