"""The accuracy of a model on hard negatives: by category and case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, TypeVar

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives.cases import ACCURACY, HardNegatives
from crosslens.core import (
    Bars,
    Cards,
    Cell,
    Figure,
    InputError,
    Part,
    PictureCard,
    Presented,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    argument,
)
from crosslens.metrics import format_count
from crosslens.statistics import Bootstrap, Estimate, correct, paired_permutation, same_tests, sum_of_means
from crosslens.storage import Array, BoolArray, FloatArray, json_form
from crosslens.values import first_inexact, inexact_score

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
        return self.margins[measure] > self.tolerance

    def tied(self, measure: str) -> BoolArray:
        """Which cases are undecided, and so count as wrong."""
        return np.abs(self.margins[measure]) <= self.tolerance

    @property
    def by_rounding(self) -> int:
        """How many cases are decided by a difference as small as rounding makes them."""
        sizes = np.abs(list(self.margins.values()))
        return int(((sizes <= ROUNDING) & (sizes > self.tolerance)).sum())


def judge_cases(negatives: HardNegatives, scores: FloatArray, tolerance: float = 0.0) -> CaseOutcomes:
    """The margins of every case, from a score for each of ``negatives.pairs``.

    text (accuracy): the right caption of a picture over its best wrong one; of two pictures, the smaller margin
    image: the right picture of a caption over the wrong one; of two captions, the smaller margin
    group: the smaller of both
    """
    if not tolerance >= 0:
        raise UsageError(f"tolerance = {tolerance}", fix="use 0 or a small number such as 1e-6", option="tolerance")
    raw_scores, pairs, scores = scores, negatives.pairs, np.asarray(scores, np.float64)
    if scores.shape != (pairs.height,):
        raise InputError(f"scores of shape {scores.shape}", expected=f"one for each of {pairs.height:,} pairs")
    inexact = first_inexact(raw_scores)
    if inexact is not None:
        raise inexact_score(raw_scores[inexact], inexact, "of a pair")
    if not np.isfinite(scores).all():
        row = int(np.argmax(~np.isfinite(scores)))
        caption = negatives.dataset.caption_ids[pairs["caption"][row]]
        raise InputError(
            f"no score of caption {caption!r} ({scores[row]})",
            expected="a finite score for every pair",
            fix=f"score it, or leave such cases out: {argument('skip_missing', True)}",
        )
    scored = pairs.with_columns(pl.Series("score", scores))

    def margins_of(query: str) -> FloatArray:
        """For each case: the right candidate of the ``query`` (image or caption) less the best of the wrong ones."""
        right = pl.col("score").filter(pl.col("right")).first()
        wrong = pl.col("score").filter(~pl.col("right")).max()
        margins = scored.group_by("case", query).agg((right - wrong).alias("margin"))
        return margins.group_by("case").agg(pl.col("margin").min()).sort("case")["margin"].to_numpy()

    text = margins_of("image")
    if negatives.measures == ACCURACY:
        return CaseOutcomes({ACCURACY[0]: text}, tolerance)
    image = margins_of("caption")
    return CaseOutcomes({"text": text, "image": image, "group": np.minimum(text, image)}, tolerance)


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


def case_groups(negatives: HardNegatives) -> dict[tuple[str, str], BoolArray]:
    """Which cases are in each (grouping, category); all cases first."""
    groups: dict[tuple[str, str], BoolArray] = {(ALL_CASES, ""): np.ones(len(negatives), np.bool_)}
    for grouping in negatives.groupings:
        labels = negatives.cases[grouping]
        for category in sorted(labels.drop_nulls().unique()):
            groups[grouping, category] = (labels == category).fill_null(False).to_numpy()
    return groups


def category_accuracies(
    negatives: HardNegatives, outcomes: CaseOutcomes, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[CategoryAccuracy, ...]:
    """Every measure over all cases, as the mean over categories (macro), and by category."""
    draws = Bootstrap(negatives.clusters, resamples, seed)
    groups = case_groups(negatives)
    # Every category counts the same in the mean, however many cases it has; those below ``fewest`` do not count.
    averaged = [
        part for (name, _), part in groups.items() if name == negatives.averaged and part.sum() >= negatives.fewest
    ]
    accuracies = []
    for measure in negatives.measures:
        correct = outcomes.correct(measure)
        rows = [
            (key, draws.estimate(np.where(part, correct, np.nan), level=level, bounds=(0, 1)), [part])
            for key, part in groups.items()
        ]
        if negatives.averaged is not None and averaged:
            values = correct.astype(np.float64)
            macro = macro_estimate(values, np.array(averaged), negatives.clusters, draws, level)
            rows.insert(1, ((MACRO, negatives.averaged), macro, averaged))
        for key, estimate, parts in rows:
            chance, tied = (
                float(np.mean([values[part].mean() for part in parts]))
                for values in (negatives.chances[measure], outcomes.tied(measure))
            )
            size = int(np.any(parts, axis=0).sum())
            ends = estimate.mean, estimate.low, estimate.high
            accuracies.append(CategoryAccuracy(*key, measure, size, *ends, chance, tied))
    return tuple(accuracies)


def macro_estimate(
    values: FloatArray, members: BoolArray, clusters: Array, draws: Bootstrap, level: float = 0.95
) -> Estimate:
    """The mean of the categories' means, with an interval over the clusters of all; ``members``: a row per category."""
    parts = [(Bootstrap(clusters[part], draws.resamples, draws.seed), values[part] / len(members)) for part in members]
    return sum_of_means(parts, level, bounds=(0, 1))


_MOST_CATEGORIES = 20
Row = TypeVar("Row", "CategoryAccuracy", "CategoryDifference")


@dataclass(frozen=True)
class HardNegativesStudy(Presented):
    """Several models on the same cases: each model's accuracies, and its differences from the first.

    ``failures`` is how many of the worst are shown of each of the first ``seeing`` models; those behind are baselines.
    """

    results: tuple[HardNegativesResult, ...]
    comparisons: tuple[HardNegativesComparison, ...] = ()
    failures: int = 5
    seeing: int | None = None

    @property
    def title(self) -> str:
        return f"Hard negatives: {self.results[0].negatives.name}"

    def sections(self) -> Iterator[Section]:
        """A chart per measure, then model by model, then the differences."""
        yield Section("", tuple(accuracy_bars(self.results, measure) for measure in self.results[0].negatives.measures))
        for number, result in enumerate(self.results):
            negatives = result.negatives
            photos = len(np.unique(negatives.clusters)) if result.resampled == "photos" else 2 * len(negatives)
            cases = f"{format_count(len(negatives), 'case')}, {format_count(photos, 'photo')}"
            parts: list[Part] = [_accuracy_table(result, measure) for measure in negatives.measures]
            parts.append(Text(tuple(_notes(result)), note=True))
            most = self.failures if self.seeing is None or number < self.seeing else 0
            if most and (failures := result.failures(most)).height:
                cards = []
                for row in failures.to_dicts():
                    if "right" in row:
                        margin, image = row["margin"], row["image"]
                        lines = f"right: {row['right']}", f"wrong: {row['wrong']}"
                    else:  # two captions, two pictures
                        margin, image = row["group_margin"], row["image_0"]
                        lines = row["caption_0"], row["caption_1"]
                    cards.append(PictureCard(f"{margin:+.4g}  {row['case']}, {image}", lines, image=image))
                parts.append(Cards("Furthest from right:", tuple(cards)))
            yield Section(f"{result.model} on {negatives.name}: {cases}", tuple(parts))
        for comparison in self.comparisons:
            yield from comparison.sections()

    def as_dict(self) -> dict[str, Any]:
        results = [result.as_dict(self.failures) for result in self.results]
        return json_form({"results": results, "comparisons": self.comparisons})


def accuracy_bars(results: Sequence[HardNegativesResult], measure: str) -> Bars:
    """A bar per category and model, and a mark where guessing would end."""
    first = results[0]
    rows = shown_categories(first.figures, measure)
    counts = dict.fromkeys(format_count(len(result.negatives), "case") for result in results)
    if len(counts) > 1:  # cases left out for lack of a score
        counts = dict.fromkeys(f"{format_count(len(result.negatives), 'case')} ({result.model})" for result in results)
    facts = f"{', '.join(counts)}, {100 * first.level:g}% intervals over {first.resampled}"
    return Bars(
        title=f"{first.negatives.name}: {measure_label(measure)}",
        about=f"{facts}; ties are wrong; | is chance",
        groups=tuple(category_label(row, grouped=len(first.negatives.groupings) > 1) for row in rows),
        series=tuple(
            Series(result.model, tuple(map(accuracy, shown_categories(result.figures, measure)))) for result in results
        ),
        mark=Series("chance", tuple(Figure.percent(row.chance) for row in rows)),
        heading="category", axis="%", limits=(0.0, 1.0),
    )  # fmt: skip


def shown_categories(rows: Sequence[Row], measure: str) -> list[Row]:
    """All cases, macro, and of every grouping the largest categories in their order."""
    rows = [row for row in rows if row.measure == measure]
    selected: list[Row] = []
    for grouping in dict.fromkeys(row.grouping for row in rows):
        members = [row for row in rows if row.grouping == grouping]
        largest = sorted(members, key=lambda row: -row.cases)[:_MOST_CATEGORIES]
        selected += [row for row in members if row in largest]
    return selected


def category_label(row: CategoryAccuracy, *, grouped: bool = False) -> str:
    """What a row is called; categories of two groupings may share a name."""
    if row.grouping in (ALL_CASES, MACRO):
        return "all cases" if row.grouping == ALL_CASES else "macro"
    return f"{row.grouping}: {row.category}" if grouped else row.category


def accuracy(row: CategoryAccuracy) -> Figure:
    """The value with its interval."""
    return Figure.percent(row.value, row.low, row.high)


def measure_label(measure: str) -> str:
    """What a measure is called."""
    return measure if measure == ACCURACY[0] else f"{measure} score"


def _accuracy_table(result: HardNegativesResult, measure: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    before = ALL_CASES
    for row in shown_categories(result.figures, measure):
        if row.grouping not in (ALL_CASES, MACRO, before) and len(result.negatives.groupings) > 1:
            rows.append((f"by {row.grouping}", *[None] * 4))
        before = row.grouping
        label = category_label(row) if row.grouping in (ALL_CASES, MACRO) else f"  {row.category}"
        rows.append((label, row.cases, accuracy(row), Figure.percent(row.chance), Figure.percent(row.tied)))
    return Table(("", "cases", measure_label(measure), "chance", "tied"), tuple(rows), "lrrrr")


def _notes(result: HardNegativesResult) -> Iterator[str]:
    negatives, rounded = result.negatives, result.outcomes.by_rounding
    bounded = any(isfinite(row.low) for row in result.figures)
    intervals = f", with {100 * result.level:g}% intervals over {result.resampled}" if bounded else ""
    yield f"In percent{intervals}. A case is right where the right one scores strictly higher; a tie is wrong."
    if negatives.averaged is not None:
        least = f" of at least {negatives.fewest} cases" if negatives.fewest > 1 else ""
        yield f"macro: the mean over the categories of {negatives.averaged!r}{least}, each counting the same."
    first = negatives.measures[0]
    hidden = sum(row.measure == first for row in result.figures) - len(shown_categories(result.figures, first))
    if hidden:
        yield f"{format_count(hidden, 'smaller category')} not shown; --json has all."
    if rounded:
        yield (
            f"{format_count(rounded, 'outcome')} decided by less than {ROUNDING:g}, which may be "
            f"rounding alone: --tolerance {ROUNDING:g} counts them as ties."
        )
    if result.left_out:
        yield f"{format_count(result.left_out, 'case')} without a score left out."
    yield from negatives.notes


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

    def sections(self) -> Iterator[Section]:
        """The accuracies as a chart and a table, what they mean, and the largest failures."""
        return HardNegativesStudy((self,)).sections()

    @property
    def title(self) -> str:
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
        dataset, pairs = self.negatives.dataset, self.negatives.pairs
        scored = pairs.with_columns(
            pl.Series("score", self.scores),
            pl.Series("id", dataset.caption_ids, dtype=pl.String).gather(pairs["caption"]),
            pl.Series("text", dataset.texts, dtype=pl.String).gather(pairs["caption"]),
            pl.Series("picture", dataset.image_ids, dtype=pl.String).gather(pairs["image"]),
        )
        if self.negatives.measures == ACCURACY:  # the picture, the right caption, and the best of the wrong ones
            wrong = scored.filter(~pl.col("right")).sort("score", descending=True, maintain_order=True)
            best = wrong.unique("case", keep="first").select(
                "case", wrong="text", wrong_caption="id", wrong_score="score"
            )
            texts = scored.filter("right").join(best, on="case").sort("case").select(
                pl.col("picture").alias("image"), pl.col("text").alias("right"), "wrong", "wrong_caption",
                pl.col("score").alias("right_score"), "wrong_score",
            )  # fmt: skip
            return table.hstack(texts)
        # Both captions, both pictures, and the four scores: of caption number and picture number.
        right = scored.filter("right").sort("case", "caption").with_columns(side=pl.int_range(pl.len()).over("case"))
        sides = scored.join(right.select("caption", "side"), on="caption")
        sides = sides.join(right.select("case", "image", picture_side="side"), on=["case", "image"])
        labels = [
            pl.col(name).filter(pl.col("right") & (pl.col("side") == side)).first().alias(f"{label}_{side}")
            for name, label in (("text", "caption"), ("picture", "image"))
            for side in (0, 1)
        ]
        scores = [
            pl.col("score").filter(side=side, picture_side=picture).first().alias(f"score_{side}_{picture}")
            for side in (0, 1)
            for picture in (0, 1)
        ]
        return table.hstack(sides.group_by("case").agg(*labels, *scores).sort("case").drop("case"))

    def failures(self, most: int | None = 10) -> pl.DataFrame:
        """The cases that are wrong, lowest margin first; of cases with two pictures, by the group score."""
        prefix = "" if self.negatives.measures == ACCURACY else "group_"
        wrong = self.cases.filter(~pl.col(f"{prefix}correct"))
        ordered = wrong.sort(f"{prefix}margin", maintain_order=True)
        return ordered if most is None else ordered.head(most)

    def as_dict(self, failures: int = 10) -> dict[str, Any]:
        """The accuracies and the largest failures, as JSON can hold them."""
        return json_form(
            {
                "set": self.negatives.name,
                "model": self.model,
                "cases": len(self.negatives),
                "images": self.negatives.dataset.images.height,
                "left_out": self.left_out,
                "tolerance": self.outcomes.tolerance,
                "by_rounding": self.outcomes.by_rounding,
                "level": self.level,
                "figures": self.figures,
                "failures": self.failures(failures),
                "notes": self.negatives.notes,
            }
        )


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
    left_out = 0
    scores = np.asarray(scores, np.float64)
    if skip_missing and np.isnan(scores).any():
        lacking = np.bincount(negatives.pairs["case"].to_numpy()[np.isnan(scores)], minlength=len(negatives)) > 0
        scores = scores[~lacking[negatives.pairs["case"].to_numpy()]]
        negatives, left_out = negatives.select(~lacking), int(lacking.sum())
    outcomes = judge_cases(negatives, scores, tolerance)
    accuracies = category_accuracies(negatives, outcomes, resamples=resamples, level=level, seed=seed)
    return HardNegativesResult(model, negatives, scores, outcomes, accuracies, level, left_out)


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

    def sections(self) -> Iterator[Section]:
        """A table per measure, a row per category."""
        head = f"1st: {self.first}; 2nd: {self.second}. Difference 1st − 2nd in points."
        note = (
            "1st, 2nd: how many cases this model alone has right. p: a permutation test that swaps photos, adjusted "
            "for the number of rows (Holm)."
        )
        tables = []
        for measure in dict.fromkeys(row.measure for row in self.differences):
            single = measure == ACCURACY[0]
            rows = []
            for row in shown_categories(self.differences, measure):
                name = row.category if single else f"{row.grouping} {row.category}"
                title = "all cases" if row.grouping == ALL_CASES else f"  {name}"
                difference = Figure.percent(row.difference, row.low, row.high, signed=True)
                p = Figure(row.corrected, digits=4)
                rows.append((title, row.cases, difference, row.only_first, row.only_second, p))
            header = ("" if single else measure_label(measure), "cases", "difference", "1st", "2nd", "p")
            tables.append(Table(header, tuple(rows), "lrlrrr"))
        yield Section(head, (*tables, Text.of(note, note=True)))

    @property
    def title(self) -> str:
        return f"{self.first} and {self.second}"

    @property
    def table(self) -> pl.DataFrame:
        """One row per category and measure."""
        return pl.DataFrame([asdict(row) for row in self.differences])

    def as_dict(self) -> dict[str, Any]:
        return json_form({"first": self.first, "second": self.second, "differences": self.differences})


def compare_hard_negatives(
    first: HardNegativesResult,
    second: HardNegativesResult,
    *,
    permutations: int = 10_000,
    resamples: int = 1000,
    seed: int = 0,
) -> HardNegativesComparison:
    """First − second on the cases that both have scores for."""
    if first.negatives.name != second.negatives.name or first.negatives.measures != second.negatives.measures:
        raise UsageError(
            f"results on {first.negatives.name} and on {second.negatives.name}", fix="compare results on the same cases"
        )
    shared = set(first.negatives.cases["case"]) & set(second.negatives.cases["case"])
    common = []
    for result in (first, second):
        is_shared = result.negatives.cases["case"].is_in(list(shared)).to_numpy()
        margins = {name: values[is_shared] for name, values in result.outcomes.margins.items()}
        common.append((result.negatives.select(is_shared), CaseOutcomes(margins, result.outcomes.tolerance)))
    (negatives, first_outcomes), (other_negatives, second_outcomes) = common
    if negatives.fingerprint != other_negatives.fingerprint:
        raise UsageError("the two results have different cases of one name", fix="compare results on the same cases")
    groups = case_groups(negatives)
    rows, tests = [], []
    for measure in negatives.measures:
        ours, theirs = first_outcomes.correct(measure), second_outcomes.correct(measure)
        for (grouping, category), part in groups.items():
            if grouping == negatives.averaged and part.sum() < negatives.fewest:
                continue
            test = paired_permutation(
                np.where(part, ours, np.nan), np.where(part, theirs, np.nan), negatives.clusters,
                permutations=permutations, resamples=resamples, level=first.level, seed=seed, bounds=(0, 1),
            )  # fmt: skip
            tests.append(test)
            only = int((part & ours & ~theirs).sum()), int((part & ~ours & theirs).sum())
            values = (test.difference, test.low, test.high, *only, test.p_value, mcnemar(*only))
            rows.append(CategoryDifference(grouping, category, measure, int(part.sum()), *values))
    corrected = correct([row.p_value for row in rows], same=same_tests(tests))
    differences = tuple(replace(row, corrected=float(p)) for row, p in zip(rows, corrected, strict=True))
    return HardNegativesComparison(first.model, second.model, differences, first.level)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided test that the two counts come from a fair coin; 1 where both are 0."""
    from scipy.stats import binomtest

    total = only_first + only_second
    return 1.0 if total == 0 else float(binomtest(only_first, total, 0.5).pvalue)
