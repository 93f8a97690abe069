"""Does the right caption win? Each case of a set of hard negatives judged by its scores, and the shares that result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives.cases import ACCURACY, HardNegatives
from crosslens.core import InputError, UsageError, argument, first_inexact, inexact_score
from crosslens.statistics import Bootstrap, Estimate, sum_of_means

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

ALL_CASES, MACRO = "all", "macro"
"""The groupings of rows over all cases, and over all categories."""

ROUNDING = 1e-6
"""A smaller difference between scores may be rounding alone."""


@dataclass(frozen=True, eq=False)
class CaseOutcomes:
    """By measure and case, the margin of the right candidate over the wrong ones.

    A case is right where the margin is above ``tolerance``: a tie is wrong. It is tied where the margin is not further
    from 0 than that.
    """

    margins: Mapping[str, FloatArray]
    tolerance: float = 0.0

    def correct(self, measure: str) -> BoolArray:
        """Which cases are right."""
        return self.margins[measure] > self.tolerance

    def tied(self, measure: str) -> BoolArray:
        """Which cases are undecided, and so count as wrong."""
        return np.abs(self.margins[measure]) <= self.tolerance

    @property
    def by_rounding(self) -> int:
        """How many cases are decided by a difference as small as rounding makes them."""
        return sum(
            int(((np.abs(margin) <= ROUNDING) & (np.abs(margin) > self.tolerance)).sum())
            for margin in self.margins.values()
        )


def judge_cases(negatives: HardNegatives, scores: FloatArray, tolerance: float = 0.0) -> CaseOutcomes:
    """The margins of every case, from a score for each of ``negatives.pairs``.

    text (accuracy): the right caption of a picture over its best wrong one; of two pictures, the smaller margin
    image: the right picture of a caption over the wrong one; of two captions, the smaller margin
    group: the smaller of both
    """
    if not tolerance >= 0:
        raise UsageError(f"tolerance = {tolerance}", fix="use 0 or a small number such as 1e-6", option="tolerance")
    given, pairs = scores, negatives.pairs
    scores = np.asarray(scores, np.float64)
    if scores.shape != (pairs.height,):
        raise InputError(f"scores of shape {scores.shape}", expected=f"one for each of {pairs.height:,} pairs")
    inexact = first_inexact(given)
    if inexact is not None:
        raise inexact_score(given[inexact], inexact, "of a pair")
    if not np.isfinite(scores).all():
        row = int(np.argmax(~np.isfinite(scores)))
        caption = negatives.dataset.caption_ids[pairs["caption"][row]]
        raise InputError(
            f"no score of caption {caption!r} ({scores[row]})",
            expected="a finite score for every pair",
            fix=f"score it, or leave such cases out: {argument('skip_missing', True)}",
        )
    scored = pairs.with_columns(pl.Series("score", scores))
    text = _margins(scored, "image")
    if negatives.measures == ACCURACY:
        return CaseOutcomes({ACCURACY[0]: text}, tolerance)
    image = _margins(scored, "caption")
    return CaseOutcomes({"text": text, "image": image, "group": np.minimum(text, image)}, tolerance)


def _margins(scored: pl.DataFrame, query: str) -> FloatArray:
    """For each case: the right candidate of the ``query`` (image or caption) less the best of the wrong ones."""
    right = pl.col("score").filter(pl.col("right")).first()
    wrong = pl.col("score").filter(~pl.col("right")).max()
    margins = scored.group_by("case", query).agg((right - wrong).alias("margin"))
    return margins.group_by("case").agg(pl.col("margin").min()).sort("case")["margin"].to_numpy()


@dataclass(frozen=True)
class CategoryAccuracy:
    """A measure over the cases of a category: the share that is right, its interval, chance, the share tied."""

    grouping: str
    category: str
    measure: str
    cases: int
    value: float
    low: float
    high: float
    chance: float
    tied: float


def category_accuracies(
    negatives: HardNegatives, outcomes: CaseOutcomes, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[CategoryAccuracy, ...]:
    """Every measure over all cases, as the mean over categories (macro), and by category."""
    shares = _Shares(negatives, outcomes, Bootstrap(negatives.clusters, resamples, seed), level)
    accuracies = []
    for measure in negatives.measures:
        accuracies.append(shares.over(measure, ALL_CASES, "", np.ones(len(negatives), np.bool_)))
        accuracies += shares.macro(measure)
        for grouping in negatives.groupings:
            members = members_of(negatives, grouping)
            accuracies += [shares.over(measure, grouping, category, part) for category, part in members.items()]
    return tuple(accuracies)


def members_of(negatives: HardNegatives, grouping: str) -> dict[str, BoolArray]:
    """Which cases are in each category of a grouping."""
    labels = negatives.cases[grouping]
    categories = sorted(labels.drop_nulls().unique())
    return {category: (labels == category).fill_null(False).to_numpy() for category in categories}


@dataclass(frozen=True)
class _Shares:
    negatives: HardNegatives
    outcomes: CaseOutcomes
    draws: Bootstrap
    level: float

    def over(self, measure: str, grouping: str, category: str, members: BoolArray) -> CategoryAccuracy:
        """Every case counts the same."""
        correct = np.where(members, self.outcomes.correct(measure), np.nan)
        estimate = self.draws.estimate(correct, level=self.level, bounds=(0, 1))
        return self._accuracy(measure, grouping, category, int(members.sum()), estimate, [members])

    def macro(self, measure: str) -> list[CategoryAccuracy]:
        """Every category counts the same, however many cases it has; those below ``fewest`` do not count."""
        negatives = self.negatives
        if negatives.averaged is None:
            return []
        categories = members_of(negatives, negatives.averaged).values()
        members = [category for category in categories if category.sum() >= negatives.fewest]
        if not members:
            return []
        correct = self.outcomes.correct(measure).astype(np.float64)
        estimate = macro_estimate(correct, np.array(members), negatives.clusters, self.draws, self.level)
        size = int(np.any(members, axis=0).sum())
        return [self._accuracy(measure, MACRO, negatives.averaged, size, estimate, members)]

    def _accuracy(
        self, measure: str, grouping: str, category: str, size: int, estimate: Estimate, parts: Sequence[BoolArray]
    ) -> CategoryAccuracy:
        facts = (self.negatives.chances[measure], self.outcomes.tied(measure))
        chance, tied = (float(np.mean([fact[part].mean() for part in parts])) for fact in facts)
        return CategoryAccuracy(
            grouping, category, measure, size, estimate.mean, estimate.low, estimate.high, chance, tied
        )


def macro_estimate(
    values: FloatArray, members: BoolArray, clusters: np.ndarray[Any, Any], draws: Bootstrap, level: float = 0.95
) -> Estimate:
    """The mean of the categories' means, with an interval over the clusters of all; ``members``: a row per category."""
    parts = [(Bootstrap(clusters[part], draws.resamples, draws.seed), values[part] / len(members)) for part in members]
    return sum_of_means(parts, level, bounds=(0, 1))
