"""The accuracy of a model on hard negatives: by category and case by case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives.cases import ACCURACY, HardNegatives
from crosslens.analyze.hard_negatives.outcomes import (
    ALL_CASES,
    BoolArray,
    CaseOutcomes,
    CategoryAccuracy,
    FloatArray,
    category_accuracies,
    judge_cases,
    members_of,
)
from crosslens.analyze.hard_negatives.sections import accuracy_bars, comparison_sections, result_sections
from crosslens.core import Presented, Section, UnknownNameError, UsageError, json_form
from crosslens.statistics import holm, paired_permutation


@dataclass(frozen=True, eq=False)
class HardNegativesResult(Presented):
    """The outcome of every case and the accuracies over them; prints as a table.

    ``scores`` are those of ``negatives.pairs``. ``left_out`` says how many cases had no score.
    """

    model: str
    negatives: HardNegatives
    scores: FloatArray
    outcomes: CaseOutcomes
    figures: tuple[CategoryAccuracy, ...]
    level: float = 0.95
    left_out: int = 0

    def sections(self, failures: int = 5, **options: Any) -> Iterator[Section]:
        """The accuracies as a chart and a table, what they mean, and the largest failures."""
        yield Section("", tuple(accuracy_bars([self], measure) for measure in self.negatives.measures))
        yield from result_sections(self, failures)

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"{self.model} on {self.negatives.name}"

    @property
    def resampled(self) -> str:
        """What intervals resample: photos, whose cases are not independent; of cases with two pictures, the cases."""
        return "photos" if self.negatives.measures == ACCURACY else "cases"

    def figure(self, category: str = "", measure: str | None = None, grouping: str | None = None) -> CategoryAccuracy:
        """The accuracy of a category (empty: all cases), by the first measure unless another is named.

        ``grouping="macro"`` is the mean over categories.
        """
        measure = measure or self.negatives.measures[0]
        if measure not in self.negatives.measures:
            raise UnknownNameError("measure", measure, self.negatives.measures)
        grouping = grouping or (None if category else ALL_CASES)
        for row in self.figures:
            if row.measure == measure and grouping in (None, row.grouping) and category in (row.category, ""):
                return row
        raise UnknownNameError("category", category or str(grouping), {row.category for row in self.figures} - {""})

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per category and measure: cases, value, interval, chance, the share of ties."""
        return pl.DataFrame([asdict(row) for row in self.figures])

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row per case: groups, texts, scores, and by measure whether it is right, tied, and by how far."""
        table = self.negatives.cases
        for measure in self.negatives.measures:
            prefix = "" if measure == ACCURACY[0] else f"{measure}_"
            table = table.with_columns(
                pl.Series(f"{prefix}correct", self.outcomes.correct(measure)),
                pl.Series(f"{prefix}tied", self.outcomes.tied(measure)),
                pl.Series(f"{prefix}margin", self.outcomes.margins[measure]),
            )
        texts = self._one_picture() if self.negatives.measures == ACCURACY else self._two_pictures()
        return table.with_columns(texts)

    def failures(self, most: int | None = 10) -> pl.DataFrame:
        """The cases that are wrong, lowest margin first; of cases with two pictures, by the group score."""
        prefix = "" if self.negatives.measures == ACCURACY else "group_"
        wrong = self.cases.filter(~pl.col(f"{prefix}correct"))
        ordered = wrong.sort(f"{prefix}margin", maintain_order=True)
        return ordered if most is None else ordered.head(most)

    def as_dict(self, failures: int = 10) -> dict[str, Any]:
        """The accuracies and the largest failures, as JSON can hold them."""
        content = {
            "set": self.negatives.name,
            "model": self.model,
            "cases": len(self.negatives),
            "images": self.negatives.dataset.images.height,
            "left_out": self.left_out,
            "tolerance": self.outcomes.tolerance,
            "by_rounding": self.outcomes.by_rounding,
            "level": self.level,
            "figures": [asdict(row) for row in self.figures],
            "failures": self.failures(failures).to_dicts(),
            "notes": list(self.negatives.notes),
        }
        return dict(json_form(content))

    def _scored(self) -> pl.DataFrame:
        dataset = self.negatives.dataset
        return self.negatives.pairs.with_columns(
            pl.Series("score", self.scores),
            pl.Series("id", dataset.caption_ids, dtype=pl.String).gather(self.negatives.pairs["caption"]),
            pl.Series("text", dataset.texts, dtype=pl.String).gather(self.negatives.pairs["caption"]),
            pl.Series("picture", dataset.image_ids, dtype=pl.String).gather(self.negatives.pairs["image"]),
        )

    def _one_picture(self) -> list[pl.Series]:
        """The picture, the right caption, and the best of the wrong ones."""
        scored = self._scored()
        right = scored.filter("right").sort("case")
        wrong = scored.filter(~pl.col("right")).sort("case", "score", descending=[False, True], maintain_order=True)
        wrong = wrong.unique("case", keep="first", maintain_order=True)
        return [
            right["picture"].alias("image"),
            right["text"].alias("right"),
            wrong["text"].alias("wrong"),
            wrong["id"].alias("wrong_caption"),
            right["score"].alias("right_score"),
            wrong["score"].alias("wrong_score"),
        ]

    def _two_pictures(self) -> list[pl.Series]:
        """Both captions, both pictures, and the four scores."""
        scored = self._scored().sort("case", "caption", "image", maintain_order=True)
        right = scored.filter("right")
        columns = [
            right[name].gather_every(2, side).alias(f"{label}_{side}")
            for name, label in (("text", "caption"), ("picture", "image"))
            for side in (0, 1)
        ]
        own = right["image"].gather_every(2, 0).to_numpy(), right["image"].gather_every(2, 1).to_numpy()
        images = scored["image"].to_numpy().reshape(-1, 2, 2)
        values = scored["score"].to_numpy().reshape(-1, 2, 2)
        for caption in (0, 1):
            for side in (0, 1):
                column = np.argmax(images[:, caption] == own[side][:, None], axis=1)
                score = np.take_along_axis(values[:, caption], column[:, None], axis=1)[:, 0]
                columns.append(pl.Series(f"score_{caption}_{side}", score))
        return columns


def evaluate_scores(
    negatives: HardNegatives,
    scores: FloatArray,
    model: str,
    *,
    skip_missing: bool = False,
    tolerance: float = 0.0,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> HardNegativesResult:
    """The result from a score for each of ``negatives.pairs``; a missing one (NaN) raises, or its case is left out."""
    missing = 0
    scores = np.asarray(scores, np.float64)
    if skip_missing and np.isnan(scores).any():
        lacking = np.bincount(negatives.pairs["case"].to_numpy()[np.isnan(scores)], minlength=len(negatives)) > 0
        scores = scores[~lacking[negatives.pairs["case"].to_numpy()]]
        negatives, missing = negatives.select(~lacking), int(lacking.sum())
    outcomes = judge_cases(negatives, scores, tolerance)
    accuracies = category_accuracies(negatives, outcomes, resamples=resamples, level=level, seed=seed)
    return HardNegativesResult(model, negatives, scores, outcomes, accuracies, level, missing)


@dataclass(frozen=True)
class CategoryDifference:
    """First − second over the cases of one category.

    ``only_first`` and ``only_second`` count the cases that one model alone has right. ``p_value`` comes from a
    permutation test that swaps photos, ``corrected`` from it for the number of rows (Holm); ``mcnemar`` is McNemar's
    exact test, which takes cases for independent.
    """

    grouping: str
    category: str
    measure: str
    cases: int
    difference: float
    low: float
    high: float
    only_first: int
    only_second: int
    p_value: float
    mcnemar: float
    corrected: float = float("nan")


@dataclass(frozen=True)
class HardNegativesComparison(Presented):
    """Two models, difference by difference; prints as a table."""

    first: str
    second: str
    differences: tuple[CategoryDifference, ...]
    level: float = 0.95

    def sections(self, **options: Any) -> Iterator[Section]:
        """A table per measure, a row per category."""
        return comparison_sections(self)

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"{self.first} and {self.second}"

    @property
    def table(self) -> pl.DataFrame:
        """One row per category and measure."""
        return pl.DataFrame([asdict(row) for row in self.differences])

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        rows = [asdict(row) for row in self.differences]
        return dict(json_form({"first": self.first, "second": self.second, "differences": rows}))


def compare_hard_negatives(
    first: HardNegativesResult,
    second: HardNegativesResult,
    *,
    permutations: int = 10_000,
    resamples: int = 1000,
    seed: int = 0,
) -> HardNegativesComparison:
    """First − second on the cases that both have scores for."""
    negatives, left, right = _common(first, second)
    rows = []
    for measure in negatives.measures:
        ours, theirs = left.correct(measure), right.correct(measure)
        for grouping, category, part in _parts(negatives):
            test = paired_permutation(
                np.where(part, ours, np.nan), np.where(part, theirs, np.nan), negatives.clusters,
                permutations=permutations, resamples=resamples, level=first.level, seed=seed, bounds=(0, 1),
            )  # fmt: skip
            only = int((part & ours & ~theirs).sum()), int((part & ~ours & theirs).sum())
            values = (test.difference, test.low, test.high, *only, test.p_value, mcnemar(*only))
            rows.append(CategoryDifference(grouping, category, measure, int(part.sum()), *values))
    corrected = holm(np.array([row.p_value for row in rows]))
    differences = tuple(replace(row, corrected=float(p)) for row, p in zip(rows, corrected, strict=True))
    return HardNegativesComparison(first.model, second.model, differences, first.level)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided test that the two counts come from a fair coin; 1 where both are 0."""
    from scipy.stats import binomtest

    total = only_first + only_second
    return 1.0 if total == 0 else float(binomtest(only_first, total, 0.5).pvalue)


def _parts(negatives: HardNegatives) -> list[tuple[str, str, BoolArray]]:
    whole: list[tuple[str, str, BoolArray]] = [(ALL_CASES, "", np.ones(len(negatives), np.bool_))]
    for grouping in negatives.groupings:
        fewest = negatives.fewest if grouping == negatives.averaged else 1
        members = members_of(negatives, grouping)
        whole += [(grouping, category, part) for category, part in members.items() if part.sum() >= fewest]
    return whole


def _common(
    first: HardNegativesResult, second: HardNegativesResult
) -> tuple[HardNegatives, CaseOutcomes, CaseOutcomes]:
    """The cases that both have, and both models' outcomes there."""
    if first.negatives.name != second.negatives.name or first.negatives.measures != second.negatives.measures:
        raise UsageError(
            f"results on {first.negatives.name} and on {second.negatives.name}", fix="compare results on the same cases"
        )
    shared = set(first.negatives.cases["case"]) & set(second.negatives.cases["case"])
    common = []
    for result in (first, second):
        kept = result.negatives.cases["case"].is_in(list(shared)).to_numpy()
        margins = {name: values[kept] for name, values in result.outcomes.margins.items()}
        common.append((result.negatives.select(kept), CaseOutcomes(margins, result.outcomes.tolerance)))
    (negatives, left), (other, right) = common
    if negatives.fingerprint != other.fingerprint:
        raise UsageError("the two results have different cases of one name", fix="compare results on the same cases")
    return negatives, left, right
