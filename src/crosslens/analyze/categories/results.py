"""Results by category of one or several models, and the mean and spread over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.categories.labels import NO_CATEGORY, TOTAL, Categories, Source
from crosslens.analyze.categories.negatives import ClassificationPairs
from crosslens.analyze.categories.retrieval import Resampling, category_rows, rank_requests
from crosslens.analyze.categories.sections import AUPRC, category_sections
from crosslens.analyze.difficulty.levels import DIFFICULTY
from crosslens.core import InputError, Presented, Run, Section, UsageError, json_form
from crosslens.statistics import Area, auprc

_RETRIEVAL: Mapping[str, Any] = {
    **dict.fromkeys(("model", "direction", "metric", "category", "denominator"), pl.String),
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "queries": pl.Int64,
}
_CLASSIFICATION: Mapping[str, Any] = {
    **dict.fromkeys(("model", "metric", "category"), pl.String),
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64),
    **dict.fromkeys(("positives", "negatives"), pl.Int64),
}
_KEYS = ("direction", "metric", "category", "denominator")


@dataclass(frozen=True, eq=False)
class CategoryResults(Presented):
    """``retrieval`` and ``classification``: a row per model, metric and category; fractions, never percent.

    A retrieval row has a ``direction`` and a ``denominator``: ``all`` divides by all queries, ``category`` by those
    that have a pair of the category; the category ``total`` is the metric of the whole run. A classification row has
    the numbers of matching and other pairs and their share of matching ones, which is the AUPRC of a constant score.
    """

    column: str
    categories: tuple[str, ...]
    models: tuple[str, ...]
    retrieval: pl.DataFrame
    classification: pl.DataFrame
    negatives: str = ""
    area: Area = "step"
    level: float = 0.95
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Results by {self.column}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Charts, a table per direction and denominator, the AUPRC, and what the columns mean."""
        return category_sections(self)

    @property
    def table(self) -> pl.DataFrame:
        """Both tables as one."""
        return pl.concat([self.retrieval, self.classification], how="diagonal")

    @property
    def panel(self) -> pl.DataFrame:
        """Over the models, per metric and category: mean, standard deviation (n − 1), lowest, highest, and how many."""
        return (
            self.table.group_by(_KEYS, maintain_order=True)
            .agg(
                mean=pl.col("value").mean(),
                sd=pl.col("value").std(),
                minimum=pl.col("value").min(),
                maximum=pl.col("value").max(),
                models=pl.col("value").is_not_null().sum(),
            )
            .with_columns(pl.col("models").cast(pl.Int64))
        )

    def value(
        self, model: str, metric: str, category: str, *, direction: str | None = None, denominator: str | None = None
    ) -> float:
        """A single figure; NaN where there is none."""
        rows = self.table.filter(
            pl.col("model") == model,
            pl.col("metric") == metric,
            pl.col("category") == category,
            pl.col("direction").eq_missing(pl.lit(direction)),
            pl.col("denominator").eq_missing(pl.lit(denominator)),
        )["value"]
        return float(rows[0]) if len(rows) and rows[0] is not None else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(
            json_form(
                {
                    "by": self.column,
                    "categories": list(self.categories),
                    "models": list(self.models),
                    "level": self.level,
                    "retrieval": self.retrieval.to_dicts(),
                    "classification": self.classification.to_dicts(),
                    "negatives": self.negatives or None,
                    "area": self.area,
                    "panel": self.panel.to_dicts() if len(self.models) > 1 else [],
                    "notes": list(self.notes),
                }
            )
        )


def category_results(
    runs: Run | Sequence[Run] | Mapping[str, Run] = (),
    categories: Source | Categories = None,
    *,
    by: str = DIFFICULTY,
    metrics: str | Sequence[str] | None = None,
    pairs: ClassificationPairs | None = None,
    scores: Mapping[str, Any] | None = None,
    area: Area = "step",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> CategoryResults:
    """How well the pairs of each category are retrieved, and told from pairs that do not match.

    ``categories`` is a table (or its file, or a ``Difficulty``) with the ids of captions, of images or of both, and
    the column ``by``. Retrieval comes from the rankings of ``runs``: every metric is given with both denominators.

    For the area under the precision–recall curve (AUPRC), ``pairs`` are the pairs from :func:`classification_pairs`
    and ``scores`` what each model gives them: one number per pair, or a matrix of images × captions. ``area`` is
    ``step`` (average precision) or ``trapezoid``. Intervals resample images.
    """
    labels = categories if isinstance(categories, Categories) else Categories.of(categories, by)
    named = _named(runs)
    if not named and pairs is None:
        raise UsageError("neither runs nor scored pairs", fix="name run folders, or pass pairs and their scores")
    resampling = Resampling(resamples, level, seed)
    requests = rank_requests(metrics)
    rows = [row for name, run in named.items() for row in category_rows(run, name, labels, requests, resampling)]
    retrieval = pl.DataFrame(rows, schema=dict(_RETRIEVAL), strict=False, nan_to_null=True)
    judged = [] if pairs is None else list(_classified(pairs, scores or {}, area, resampling))
    classification = pl.DataFrame(judged, schema=dict(_CLASSIFICATION), strict=False, nan_to_null=True)
    models = tuple(dict.fromkeys([*named, *classification["model"]]))
    shown = {*retrieval["category"], *classification["category"]}
    names = tuple(name for name in (*labels.names, NO_CATEGORY) if name in shown)
    negatives = "" if pairs is None else pairs.negatives
    return CategoryResults(labels.column, names, models, retrieval, classification, negatives, area, level)


def _named(runs: Run | Sequence[Run] | Mapping[str, Run]) -> dict[str, Run]:
    if isinstance(runs, Mapping):
        return dict(runs)
    several = [runs] if isinstance(runs, Run) else list(runs)
    names = [run.name for run in several]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"two runs are named {repeated!r}", fix="pass a mapping from names to runs")
    return dict(zip(names, several, strict=True))


def _classified(
    labelled: ClassificationPairs, scores: Mapping[str, Any], area: Area, resampling: Resampling
) -> Iterator[dict[str, Any]]:
    """A row per model and category, the total first."""
    for model, given in {**labelled.scores, **scores}.items():
        values = _per_pair(labelled, given, model)
        parts = {TOTAL: labelled.matches}
        parts |= {name: labelled.categories == number for number, name in enumerate(labelled.names)}
        parts[NO_CATEGORY] = labelled.matches & (labelled.categories < 0)
        for name, positive in parts.items():
            if not positive.any():
                continue
            kept = positive | ~labelled.matches
            figure = auprc(positive[kept], values[kept], labelled.images[kept], kind=area, **vars(resampling))
            yield {
                "model": model, "metric": AUPRC, "category": name, "value": figure.mean, "low": figure.low,
                "high": figure.high, "chance": float(positive.sum() / kept.sum()), "positives": int(positive.sum()),
                "negatives": int((~labelled.matches).sum()),
            }  # fmt: skip


def _per_pair(labelled: ClassificationPairs, given: Any, model: str) -> np.ndarray[Any, Any]:
    single = isinstance(given, np.ndarray | list | tuple) and np.asarray(given).ndim == 1
    values = np.asarray(given, np.float64) if single else labelled.pairs.from_matrix(given, f"the scores of {model}")
    if len(values) != len(labelled.pairs):
        problem = f"{len(values):,} scores of {model} for {len(labelled.pairs):,} pairs"
        raise InputError(problem, expected="one score per pair", fix="score the pairs of these categories")
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        image, caption = labelled.pairs.named[missing[0]]
        more = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
        raise InputError(
            f"{model} has no finite score of image {image!r} and caption {caption!r}{more}",
            expected="a score for every pair",
            fix="score these pairs, or leave the model out",
        )
    return values
