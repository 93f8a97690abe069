"""Two scorers over the same pairs: distributions, correlation, limits of agreement, and where they disagree most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.categories.labels import NO_CATEGORY, TOTAL, Categories, Source
from crosslens.analyze.difficulty.levels import DIFFICULTY
from crosslens.analyze.pair_scores import ImageCaptionPairs
from crosslens.analyze.scorers.sections import scorer_sections
from crosslens.core import Dataset, InputError, Presented, Section, UsageError, json_form
from crosslens.statistics import COEFFICIENTS, SCALES, BlandAltman, Estimate, bland_altman, correlations, rescaled

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

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
        """The heading of a page."""
        return f"{self.first} and {self.second}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Distributions, correlations, Bland–Altman figures, and the largest disagreements."""
        return scorer_sections(self)

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
        """As JSON can hold it."""
        return dict(
            json_form(
                {
                    "dataset": self.dataset,
                    "first": self.first,
                    "second": self.second,
                    "pairs": len(self),
                    "left_out": self.left_out,
                    "by": self.column or None,
                    "level": self.level,
                    "distributions": self.distributions.to_dicts(),
                    "correlations": {
                        part: {name: vars(figure) for name, figure in figures.items()}
                        for part, figures in self.correlations.items()
                    },
                    "bland_altman": {
                        scale: {
                            "mean": vars(figure.mean), "sd": figure.sd, "lower": vars(figure.lower),
                            "upper": vars(figure.upper),
                        }
                        for scale, figure in self.agreement.items()
                    },
                    "disagreements": self.disagreements(self.shown).to_dicts(),
                }
            )
        )  # fmt: skip


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

    ``scores`` has two entries: one number per caption, or a matrix of images × captions. A pair that one of them does
    not score (NaN) is left out and counted. ``categories`` is a table (or its file, or a ``Difficulty``) whose column
    ``by`` splits the pairs.
    """
    if len(scores) != 2:
        raise UsageError(f"{len(scores)} scorers", fix="name exactly two scorers", option="scores")
    names_of = list(scores)
    pairs = ImageCaptionPairs.own(dataset)
    values = {name: _per_caption(pairs, given, name) for name, given in scores.items()}
    kept = np.flatnonzero(np.isfinite(np.stack(list(values.values()))).all(axis=0))
    if len(kept) < 2:
        raise InputError(
            f"{len(kept)} of {len(pairs):,} pairs have a score of both scorers",
            expected="at least two",
            fix="check that both belong to this dataset",
        )
    first, second = (column[kept] for column in values.values())
    labels, names, column = _labels(dataset, categories, by, kept)
    images = dataset.caption_image[kept]
    resampling = {"resamples": resamples, "seed": seed}
    parts = {TOTAL: np.ones(len(kept), np.bool_), **{name: labels == name for name in names}}
    fits = {part: correlations(first[rows], second[rows], images[rows], **resampling) for part, rows in parts.items()}
    ranks = [rescaled(column, "rank") for column in (first, second)]
    table = pl.DataFrame(
        {
            "caption": [dataset.caption_ids[row] for row in kept],
            "image": [dataset.image_ids[row] for row in images],
            "text": [dataset.texts[row] for row in kept],
            **({"category": labels.tolist()} if names else {}),
            **{f"score[{name}]": column for name, column in zip(values, (first, second), strict=True)},
            "rank_difference": ranks[1] - ranks[0],
        }
    )
    return ScorerComparison(
        dataset.name,
        names_of[0],
        names_of[1],
        table,
        pl.DataFrame(
            [
                _distribution(name, part, column[rows])
                for name, column in zip(values, (first, second), strict=True)
                for part, rows in parts.items()
                if rows.any()
            ],
            schema=dict(_DISTRIBUTION),
            nan_to_null=True,
        ),
        {part: {name: fit.estimate(name, level) for name in COEFFICIENTS} for part, fit in fits.items()},
        {
            scale: bland_altman(
                rescaled(first, scale), rescaled(second, scale), images, intervals=resamples > 0, level=level
            )
            for scale in SCALES
        },
        column,
        names,
        len(pairs) - len(kept),
        level,
    )


def _per_caption(pairs: ImageCaptionPairs, given: Any, name: str) -> FloatArray:
    single = isinstance(given, np.ndarray | list | tuple) and np.asarray(given).ndim == 1
    values = np.asarray(given, np.float64) if single else pairs.from_matrix(given, f"the scores of {name}")
    if len(values) != len(pairs):
        problem = f"{len(values):,} scores of {name} for {len(pairs):,} captions"
        raise InputError(problem, expected="one score per caption", fix="score every caption with its image")
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise InputError(f"{name} scores caption {pairs.dataset.caption_ids[row]!r} as {values[row]}", row=row)
    return values


def _labels(
    dataset: Dataset, categories: Source | Categories | None, by: str, kept: Any
) -> tuple[np.ndarray[Any, Any], tuple[str, ...], str]:
    """The category of every kept pair, those that occur, and their column."""
    if categories is None:
        return np.full(len(kept), "", object), (), ""
    known = categories if isinstance(categories, Categories) else Categories.of(categories, by)
    codes = known.of_dataset(dataset)[kept]
    if (codes < 0).all():
        raise InputError(
            f"no caption of {dataset.name!r} has a {known.column}",
            expected="a table with the ids of this dataset",
            fix="name the table that belongs to this dataset",
        )
    labels = np.array([*known.names, NO_CATEGORY], object)[codes]  # −1 is the last
    return labels, tuple(name for name in known.shown(codes) if (labels == name).any()), known.column


def _distribution(scorer: str, category: str, values: FloatArray) -> dict[str, Any]:
    quartiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return {
        "scorer": scorer,
        "category": category,
        "pairs": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        **dict(zip(("minimum", "lower_quartile", "median", "upper_quartile", "maximum"), quartiles, strict=True)),
    }
