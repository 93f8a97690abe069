"""Two scorers over the same pairs: distributions, correlation, limits of agreement, and where they disagree most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.agreement import COEFFICIENT_LABELS
from crosslens.analyze.caption_features import distribution_lines, value_steps
from crosslens.analyze.categories import NO_CATEGORY, TOTAL, Categories, Source
from crosslens.analyze.options import DIFFICULTY
from crosslens.analyze.pair_scores import ImageCaptionPairs
from crosslens.core import (
    Cards,
    Cell,
    Cloud,
    Figure,
    InputError,
    PictureCard,
    Presented,
    Row,
    Scatter,
    Section,
    Table,
    Text,
    UnknownNameError,
    UsageError,
)
from crosslens.metrics import format_count
from crosslens.statistics import COEFFICIENTS, SCALES, BlandAltman, Estimate, bland_altman, correlations, rescaled
from crosslens.storage import Array, FloatArray, json_form, random_stream
from crosslens.values import Dataset

CLIPSCORES: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "cosine": lambda cosines: cosines,
    "clipscore": lambda cosines: np.maximum(100 * cosines, 0),
    "hessel": lambda cosines: 2.5 * np.maximum(cosines, 0),
}
"""``clipscore``: max(100 · cos, 0), as torchmetrics prints it; ``hessel``: 2.5 · max(cos, 0), of Hessel et al. (EMNLP
2021); ``cosine``: as it is, which IMP calls CLIPScore."""


def clipscore(cosines: Any, form: str = "clipscore") -> FloatArray:
    """Cosines in one of the forms that are called CLIPScore."""
    if form not in CLIPSCORES:
        raise UnknownNameError("form of CLIPScore", form, CLIPSCORES)
    return CLIPSCORES[form](np.asarray(cosines, np.float64))


SCALE_WORDS = {
    "raw": "scores as they are",
    "z": "standardised",
    "rank": "rank, from 0 to 1",
    "range": "range, from 0 to 1",
}
_MOST_DOTS = 2000


def _estimate(estimate: Estimate, interval: bool = True) -> Figure:
    return _score(estimate.mean, *(estimate.low, estimate.high) if interval else ())


def _score(value: float | None, low: float = nan, high: float = nan) -> Figure:
    """Three digits that count: scores may be of any size."""
    large = value is not None and isfinite(value) and abs(round(value, 3)) >= 100
    return Figure(value, low, high, digits=1 if large else 3)


def _members(result: ScorerComparison) -> dict[str, Any]:
    """Which pairs are in each category; of pairs without categories, all."""
    if not result.categories:
        return {TOTAL: np.ones(len(result), np.bool_)}
    labels = result.table["category"].to_numpy()
    return {name: labels == name for name in result.categories}


def _scatters(result: ScorerComparison) -> tuple[Scatter, ...]:
    """One scorer against the other, and Bland–Altman by rank."""
    dots = np.zeros(len(result), np.bool_)
    dots[random_stream(0, "dots").permutation(len(result))[:_MOST_DOTS]] = True
    first, second = result.scores(result.first), result.scores(result.second)
    ranks = rescaled(first, "rank"), rescaled(second, "rank")
    fewer = f", {int(dots.sum()):,} of them drawn" if not dots.all() else ""
    subtitle = f"{format_count(len(result), 'pair')}{fewer}"
    agreement = result.agreement["rank"]
    ends = [float(end((ranks[0] + ranks[1])[dots] / 2)) for end in (np.min, np.max)]
    trends = (("mean", agreement.mean), ("lower limit", agreement.lower), ("upper limit", agreement.upper))
    return (
        Scatter(
            title=f"{result.first} and {result.second}", about=subtitle, axis=result.first, up=result.second,
            clouds=_clouds(result, first, second, dots),
        ),
        Scatter(
            title=f"Bland–Altman, {SCALE_WORDS['rank']}", about=f"{subtitle}; lines: mean ± 1.96 standard deviations",
            axis="mean of the two", up=f"{result.second} − {result.first}",
            clouds=_clouds(result, (ranks[0] + ranks[1]) / 2, ranks[1] - ranks[0], dots),
            trends=tuple(Cloud(name, tuple((end, line.mean) for end in ends)) for name, line in trends),
        ),
    )  # fmt: skip


def _clouds(result: ScorerComparison, across: Any, up: Any, dots: Any) -> tuple[Cloud, ...]:
    captions = result.table["caption"].to_numpy()
    clouds = []
    for name, members in _members(result).items():
        visible = members & dots
        points = zip(across[visible].tolist(), up[visible].tolist(), strict=True)
        clouds.append(Cloud(name, tuple(points), tuple(map(str, captions[visible]))))
    return tuple(clouds)


_DISTRIBUTION: Mapping[str, Any] = {
    **dict.fromkeys(("scorer", "category"), pl.String),
    "pairs": pl.Int64,
    **dict.fromkeys(("mean", "sd", "minimum", "lower_quartile", "median", "upper_quartile", "maximum"), pl.Float64),
}


@dataclass(frozen=True, eq=False)
class ScorerComparison(Presented):
    """``table`` has a row per pair: ``caption``, ``image``, ``text``, ``category``, both scores (``score[NAME]``), and
    ``rank_difference``: the share of pairs that the second scorer puts below this one, less that of the first.

    ``distributions`` describes both scores per category. ``correlations`` has the coefficients over all pairs and in
    each category, ``agreement`` the Bland–Altman figures of second − first on every scale. Intervals are over images.
    ``shown`` is how many disagreements are listed, ``pictures`` are the files of images that pages show with them.
    """

    dataset: str
    first: str
    second: str
    table: pl.DataFrame = field()
    distributions: pl.DataFrame
    correlations: Mapping[str, Mapping[str, Estimate]]
    agreement: Mapping[str, BlandAltman]
    column: str = ""
    categories: tuple[str, ...] = ()
    left_out: int = 0
    level: float = 0.95
    shown: int = 5
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.first} and {self.second}"

    def sections(self) -> Iterator[Section]:
        """Distributions, correlations, Bland–Altman figures, and the largest disagreements."""
        head = f"{self.first} and {self.second}: {format_count(len(self), 'pair')} of {self.dataset}"
        left_out = f"{format_count(self.left_out, 'pair')} without a score of both left out." if self.left_out else ""
        notes = [
            "Limits of agreement: mean ± 1.96 standard deviations of the differences. Standardised and ranked scores "
            "have the same mean by construction: there the limits alone say how far the two agree."
        ]
        if isfinite(self.agreement["raw"].mean.low):
            notes.append(f"In brackets: {100 * self.level:g}% intervals over images.")
        charts = []
        for scorer in (self.first, self.second):
            scores = self.scores(scorer)
            samples = {name: scores[members] for name, members in _members(self).items()}
            subtitle, steps = "percent of pairs by score", value_steps([scores])
            charts.append(distribution_lines(scorer, "score", samples, steps, about=subtitle))
        header = ("scorer", self.column or "pairs of", "pairs", "mean", "sd", "25%", "median", "75%")
        names = ("mean", "sd", "lower_quartile", "median", "upper_quartile")
        rows = tuple(
            (row["scorer"], row["category"], row["pairs"], *(_score(row[name]) for name in names))
            for row in self.distributions.iter_rows(named=True)
        )
        title = f"Scores by {self.column}" if self.column else "Scores"
        distributions = Table(header, rows, "llrrrrrr", title=title, names=2)
        # With intervals of every category the table would be too wide: those are in the JSON form.
        coefficients: tuple[tuple[Cell, ...], ...] = tuple(
            (label, *(_estimate(figures[name], part == TOTAL) for part, figures in self.correlations.items()))
            for name, label in COEFFICIENT_LABELS.items()
            if name in self.correlations[TOTAL]
        )
        limits: tuple[tuple[Cell, ...], ...] = tuple(
            (SCALE_WORDS[scale], *map(_estimate, (figures.mean, figures.lower, figures.upper)))
            for scale, figures in self.agreement.items()
        )
        yield Section(
            head,
            (
                Text.of(left_out),
                Row(tuple(charts)),
                distributions,
                Table(("", *self.correlations), coefficients, title="Correlation"),
                Row(_scatters(self)),
                Table(
                    ("scale", "mean difference", "lower limit", "upper limit"),
                    limits,
                    title=f"Bland–Altman: {self.second} − {self.first}",
                ),
                Text(tuple(notes), note=True),
            ),
        )
        if self.shown:
            cards = []
            for row in self.disagreements(self.shown).iter_rows(named=True):
                scored = ", ".join(f"{name} {_score(row[f'score[{name}]'])}" for name in (self.first, self.second))
                higher = self.second if row["rank_difference"] > 0 else self.first
                gap = f"{higher} ranks it {100 * abs(row['rank_difference']):.0f} points higher"
                category = f", {row['category']}" if "category" in row else ""
                facts = f"{scored}; {gap}; image {row['image']}{category}"
                cards.append(PictureCard(facts, (row["text"],), image=row["image"]))
            yield Section("", (Cards("Largest disagreements, by rank", tuple(cards), self.pictures),))

    def __len__(self) -> int:
        return self.table.height

    def scores(self, scorer: str) -> FloatArray:
        """A scorer's score of every row."""
        return self.table[f"score[{scorer}]"].to_numpy()

    def disagreements(self, most: int = 10) -> pl.DataFrame:
        """The pairs on which the two disagree most, by rank: largest difference first, either way."""
        order = pl.col("rank_difference").abs()
        return self.table.sort(order, pl.col("caption"), descending=[True, False]).head(most)

    def as_dict(self) -> dict[str, Any]:
        limits = {
            scale: {name: getattr(figures, name) for name in ("mean", "sd", "lower", "upper")}
            for scale, figures in self.agreement.items()
        }
        return json_form(
            {
                "dataset": self.dataset,
                "first": self.first,
                "second": self.second,
                "pairs": len(self),
                "left_out": self.left_out,
                "by": self.column or None,
                "level": self.level,
                "distributions": self.distributions,
                "correlations": self.correlations,
                "bland_altman": limits,
                "disagreements": self.disagreements(self.shown),
            }
        )


def compare_scorers(
    dataset: Dataset,
    scores: Mapping[str, Any],
    categories: Source | Categories | None = None,
    *,
    by: str = DIFFICULTY,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> ScorerComparison:
    """Compare two scorers of every caption with its image.

    A pair that one of them does not score (NaN) is left out and counted.

    Args:
        dataset: Images and their captions.
        scores: Two entries: one number per caption, or a matrix of images × captions.
        categories: A table (or its file, or a ``Difficulty``) that splits the pairs.
        by: The column that splits them.
        resamples: Resamples for the intervals.
        level: Confidence level of the intervals.
        seed: Seed of the intervals.
    """
    if len(scores) != 2:
        raise UsageError(f"{len(scores)} scorers", fix="name exactly two scorers", option="scores")
    pairs = ImageCaptionPairs.of_captions(dataset)
    values = {name: pairs.from_given(model_scores, name, missing=True) for name, model_scores in scores.items()}
    scored = np.flatnonzero(np.isfinite(np.stack(list(values.values()))).all(axis=0))
    if len(scored) < 2:
        raise InputError(
            f"{len(scored)} of {len(pairs):,} pairs have a score of both scorers",
            expected="at least two",
            fix="check that both belong to this dataset",
        )
    first, second = (column[scored] for column in values.values())
    labels, names, category_column = _labels(dataset, categories, by, scored)
    images = dataset.caption_image[scored]
    resampling = {"resamples": resamples, "seed": seed}
    parts = {TOTAL: np.ones(len(scored), np.bool_), **{name: labels == name for name in names}}
    fits = {part: correlations(first[rows], second[rows], images[rows], **resampling) for part, rows in parts.items()}
    ranks = [rescaled(column, "rank") for column in (first, second)]
    table = pl.DataFrame(
        {
            "caption": [dataset.caption_ids[row] for row in scored],
            "image": [dataset.image_ids[row] for row in images],
            "text": [dataset.texts[row] for row in scored],
            **({"category": labels.tolist()} if names else {}),
            **{f"score[{name}]": column for name, column in zip(values, (first, second), strict=True)},
            "rank_difference": ranks[1] - ranks[0],
        }
    )
    first_name, second_name = scores
    columns = {first_name: first, second_name: second}
    distributions = [
        (name, part, len(sample), sample.mean(), sample.std(ddof=1) if len(sample) > 1 else np.nan,
         *np.quantile(sample, [0, 0.25, 0.5, 0.75, 1]))
        for name, column in columns.items()
        for part, rows in parts.items()
        if len(sample := column[rows])
    ]  # fmt: skip
    limits = {
        scale: bland_altman(
            rescaled(first, scale), rescaled(second, scale), images, intervals=resamples > 0, level=level
        )
        for scale in SCALES
    }
    return ScorerComparison(
        dataset.name,
        first_name,
        second_name,
        table,
        pl.DataFrame(distributions, schema=dict(_DISTRIBUTION), orient="row", nan_to_null=True),
        {part: {name: fit.estimate(name, level) for name in COEFFICIENTS} for part, fit in fits.items()},
        limits,
        category_column,
        names,
        len(pairs) - len(scored),
        level,
    )


def _labels(
    dataset: Dataset, categories: Source | Categories | None, by: str, scored: Any
) -> tuple[Array, tuple[str, ...], str]:
    """The category of every scored pair, those that occur, and their column."""
    if categories is None:
        return np.full(len(scored), "", object), (), ""
    grouping = categories if isinstance(categories, Categories) else Categories.of(categories, by)
    codes = grouping.of_dataset(dataset)[scored]
    if (codes < 0).all():
        raise InputError(
            f"no caption of {dataset.name!r} has a {grouping.column}",
            expected="a table with the ids of this dataset",
            fix="name the table that belongs to this dataset",
        )
    labels = np.array([*grouping.names, NO_CATEGORY], object)[codes]  # −1 is the last
    return labels, tuple(name for name in grouping.names_in(codes) if (labels == name).any()), grouping.column
