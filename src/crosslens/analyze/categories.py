"""Results by category: how well each level of difficulty, or any other group of pairs, is retrieved and recognised.

A pair counts in its own category; the ranks are those of the whole gallery, in which the pairs of other categories stay
where they are. So a category's metric is that of the same ranking with its relevant pairs restricted to the category.

Two denominators. ``category``: the mean over the queries that have a relevant pair of the category. ``all``: the same
sum over all queries that have any relevant pair. Each caption query has one category, so the ``all`` columns of t2i add
up to the total; an image has captions of several categories, and counts in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.analyze.options import DIFFICULTY
from crosslens.analyze.pair_difficulty.assignment import Difficulty, read_difficulty
from crosslens.analyze.pair_scores import ImageCaptionPairs
from crosslens.core import (
    Bars,
    Cell,
    Figure,
    InputError,
    Part,
    Presented,
    Row,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
)
from crosslens.data import read_table
from crosslens.metrics import MetricRequest, family_of, measure, metric_figure, parse_metrics, unit_of, unit_sentence
from crosslens.statistics import Area, Bootstrap, auprc
from crosslens.storage import Array, BoolArray, IntArray, json_form
from crosslens.values import (
    BOTH,
    DIRECTION_LABELS,
    IMAGE_TO_TEXT,
    Dataset,
    MetricValues,
    Ranking,
    Run,
    match_ids,
    split_name,
)

Key = Literal["caption", "image", "pair"]

TOTAL = "total"
"""What results call all pairs together."""
NO_CATEGORY = "(none)"
"""Pairs that the table does not mention, or whose value is empty."""
USUAL_ORDER = ("easy", "medium", "hard")
MOST_CATEGORIES = 20

Source = pl.DataFrame | str | Path | Any
"""A table, its file, or a result that has one, such as a ``Difficulty``."""


@dataclass(frozen=True, eq=False)
class ClassificationPairs:
    """Pairs that match, each with its category, and pairs that do not.

    ``pairs`` are of the dataset with the rejected captions added to it. ``categories`` has the position of a matching
    pair's category in ``names`` (−1: none) and −1 for a pair that does not match. ``scores`` are those that the
    tables held already, by model.
    """

    pairs: ImageCaptionPairs
    matches: BoolArray
    categories: IntArray
    names: tuple[str, ...]
    negatives: str
    scores: Mapping[str, Array] = field(default_factory=dict)

    @property
    def images(self) -> IntArray:
        """The image of every pair: intervals resample images."""
        return self.pairs.images


@dataclass(frozen=True, eq=False)
class Categories:
    """``labels`` maps an id to the position of its category in ``names``.

    The ids are captions where the table has a row per caption, images where it has only those, and (caption, image)
    where a caption has several rows. ``table`` is the whole table.
    """

    column: str
    key: Key
    names: tuple[str, ...]
    labels: Mapping[Any, int]
    table: pl.DataFrame

    @staticmethod
    def of(source: Source, column: str = DIFFICULTY) -> Categories:
        """The categories in a column of a table with the columns ``caption``, ``image`` or both."""
        levels: tuple[str, ...] = ()  # the order of the table's levels of difficulty, where it says one
        if isinstance(source, pl.DataFrame):
            table = source
        elif isinstance(source, str | Path):
            if Path(source).suffix.lower() == ".jsonl":
                raise UsageError(f"{source} ends in '.jsonl'", fix="use .csv, .tsv or .parquet")
            table = read_table(source).frame
            if column == DIFFICULTY and {"caption", "image", DIFFICULTY} <= set(table.columns):
                levels = read_difficulty(source).levels
        elif isinstance(attached := getattr(source, "table", None), pl.DataFrame):
            table = attached
            if isinstance(source, Difficulty) and column == DIFFICULTY:
                levels = source.levels
        else:
            raise UsageError(f"categories from {type(source).__name__}", fix="pass a table, its file or a Difficulty")
        ids = [name for name in ("caption", "image") if name in table.columns]
        if not ids:
            raise InputError(
                f"neither a column 'caption' nor 'image' (columns: {', '.join(table.columns)})",
                file=source if isinstance(source, str | Path) else None,
                expected="the ids of captions, of images or of both",
                fix="rename the column that holds the ids",
            )
        if column not in table.columns:
            raise UnknownNameError("column", column, [name for name in table.columns if name not in ids])
        table = table.with_columns(pl.col(ids).cast(pl.String))
        key: Key = "image" if ids == ["image"] else "caption"
        if key == "caption" and len(ids) == 2 and table["caption"].n_unique() < table.height:
            key = "pair"
        columns = ids if key == "pair" else [key]
        if table[column].dtype.is_nested():
            raise UsageError(f"the column {column!r} holds lists", fix="name a column with one value per row")
        values: list[str | None] = table[column].cast(pl.String).replace("", None).to_list()
        names = _order(values, levels)
        repeated = table.select(columns).is_duplicated()
        if repeated.any():
            row = int(repeated.arg_max() or 0)
            pair = " and ".join(f"{name} {table[name][row]!r}" for name in columns)
            raise InputError(f"{pair} has several rows", row=row, expected="one category per pair", fix="keep one row")
        position_of = {name: position for position, name in enumerate(names)}
        rows = table.select(columns).rows() if key == "pair" else table[key].to_list()
        labels = {row: position_of[value] for row, value in zip(rows, values, strict=True) if value is not None}
        return Categories(column, key, names, labels, table)

    def of_dataset(self, dataset: Dataset) -> IntArray:
        """The category of every caption with its own image, by position; −1 for one without."""
        captions = np.arange(len(dataset.caption_ids))
        return self.of_pairs(dataset.image_ids, dataset.caption_ids, dataset.caption_image, captions)

    def of_pairs(
        self, image_ids: Sequence[str], caption_ids: Sequence[str], images: IntArray, captions: IntArray
    ) -> IntArray:
        """The category of pairs of positions among these ids."""
        if self.key == "pair":
            table_images = list(dict.fromkeys(image for _, image in self.labels))
            spelled = [table_images[row] if row >= 0 else "" for row in match_ids(image_ids, table_images)]
            pairs = zip(captions.tolist(), images.tolist(), strict=True)
            codes = [self.labels.get((caption_ids[caption], spelled[image]), -1) for caption, image in pairs]
            return np.array(codes, np.int64)
        ids, positions = (caption_ids, captions) if self.key == "caption" else (image_ids, images)
        stored = np.array([*self.labels.values(), -1], np.int64)
        # −1, an id that the table does not have, takes the last entry.
        rows = match_ids(ids, list(self.labels), any_ending=self.key == "image")
        return np.asarray(stored[rows][positions], np.int64)

    def names_in(self, codes: IntArray) -> tuple[str, ...]:
        """The names to list: all of the table's, and the one for pairs without a category where there are any."""
        return self.names + ((NO_CATEGORY,) if (codes < 0).any() else ())


def _order(values: Sequence[str | None], levels: Sequence[str]) -> tuple[str, ...]:
    """Levels of difficulty from easy to hard; numbers by size; anything else by the alphabet."""
    names = {value for value in values if value is not None}
    if not names:
        raise InputError("no row has a category", expected="at least one value in the column", fix="name another one")
    if len(names) > MOST_CATEGORIES:
        raise UsageError(
            f"{len(names):,} different values are too many categories (at most {MOST_CATEGORIES})",
            fix="name a column with few values, or put values together first",
        )
    for reserved in (TOTAL, NO_CATEGORY):
        if reserved in names:
            raise InputError(f"a category is called {reserved!r}", fix="give it another name: results use this one")
    for order in (levels, USUAL_ORDER):
        if names <= set(order):
            return tuple(name for name in order if name in names)
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(sorted(names))


RETRIEVAL_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MedR[all]", "MeanR[all]", "mAP@R")
"""Those of IMP Tables 3 and 4."""
ALL, CATEGORY = "all", "category"


def restricted(ranking: Ranking, subset: BoolArray) -> Ranking:
    """The ranking with some of its relevant pairs alone; the others count as any other item."""
    offsets = np.zeros_like(ranking.offsets)
    np.cumsum(np.bincount(ranking.rows[subset], minlength=len(ranking.query_ids)), out=offsets[1:])
    pairs = {name: getattr(ranking, name)[subset] for name in ("relevant", "grades", "above", "tied", "tied_before")}
    return replace(ranking, offsets=offsets, **pairs)


def category_rows(
    run: Run, model: str, categories: Categories, requests: Sequence[MetricRequest], resampling: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """One row per direction, metric, category and denominator, the total first."""
    if not run.rankings:
        raise InputError(
            f"the run {run.name!r} keeps no rankings",
            expected="a run whose folder holds ranking-t2i or ranking-i2t",
            fix="repeat the evaluation with -o",
        )
    settings = {"ties": run.provenance.get("options", {}).get("ties", "stable"), **resampling}
    order = {name: position for position, name in enumerate(categories.names)} | {NO_CATEGORY: -1}
    matched = False
    for direction, ranking in run.rankings.items():
        pairs = ranking.query_ids, ranking.item_ids, ranking.rows, ranking.relevant
        if direction != IMAGE_TO_TEXT:  # images come first
            pairs = ranking.item_ids, ranking.query_ids, ranking.relevant, ranking.rows
        codes = categories.of_pairs(*pairs)
        matched |= bool((codes >= 0).any())
        specs = [request.spec for request in requests if request.direction in (None, direction)]
        if not specs:
            continue
        clusters = clusters_of(run, ranking)
        whole, *category_values = (
            measure({direction: part}, {direction: clusters}, specs, **settings)
            for part in (ranking, *(restricted(ranking, codes == order[name]) for name in categories.names_in(codes)))
        )
        parts = dict(zip(categories.names_in(codes), category_values, strict=True))
        draws = Bootstrap(clusters, resampling["resamples"], resampling["seed"])
        for spec in specs:
            name, family = f"{direction}/{spec}", family_of(spec)
            total = whole[name]
            fields = {"model": model, "direction": direction, "metric": str(spec)}
            yield fields | {"category": TOTAL, "denominator": None} | _figures(total)
            for category, values in parts.items():
                row = fields | {"category": category}
                if family.statistic_of(spec) == "mean" and isfinite(family.bounds()[1]):
                    # A query without a pair of the category contributes nothing; one that never counts stays out.
                    filled = np.where(np.isnan(total.values), np.nan, np.nan_to_num(values[name].values))
                    share = draws.estimate(filled, level=resampling["level"], bounds=family.bounds())
                    yield row | {"denominator": ALL, "value": share.mean, "low": share.low, "high": share.high,
                                 "queries": total.n}  # fmt: skip
                yield row | {"denominator": CATEGORY} | _figures(values[name])
    if not matched:
        raise InputError(
            f"no pair of the run {run.name!r} has a {categories.column}",
            expected="a table with the ids of this run's dataset",
            fix="name the table that belongs to this dataset",
        )


def clusters_of(run: Run, ranking: Ranking) -> IntArray:
    """The image of every query of a direction, as the run's metrics have it."""
    for name, values in run.values.items():
        if split_name(name)[0] == ranking.direction and values.query_ids == ranking.query_ids:
            return values.clusters
    if split_name(next(iter(run.values), BOTH))[0] == BOTH or ranking.direction == "i2t":
        return np.arange(len(ranking.query_ids))
    raise InputError(f"the run {run.name!r} has no metric of {ranking.direction}", fix="repeat the evaluation")


def _figures(values: MetricValues) -> dict[str, Any]:
    return {"value": values.mean, "low": values.low, "high": values.high, "queries": values.n}


AUPRC = "AUPRC"
_DRAWN = "Hit@5"
"""The metric of the chart, where it is among the results."""


def _metric_rows(
    result: CategoryResults, rows: pl.DataFrame, metric: str, columns: Sequence[str], *, intervals: bool = True
) -> list[tuple[Cell, ...]]:
    """The rows of a metric: its models and, where there are several, their mean and spread."""
    several = len(result.models) > 1
    lines: list[tuple[Cell, ...]] = []
    for model in dict.fromkeys(rows["model"]):
        row_of = {row["category"]: row for row in rows.filter(pl.col("model") == model).iter_rows(named=True)}
        cells = (_cell(metric, row_of.get(category), intervals and not several) for category in columns)
        lines.append((metric, *((model,) if several else ()), *cells))
    if several and len(lines) > 1:
        for label, statistic in (("mean", pl.col("value").mean()), ("sd", pl.col("value").std())):
            values = dict(rows.group_by("category").agg(statistic).iter_rows())
            lines.append((metric, label, *(_figure(metric, values.get(category)) for category in columns)))
    return lines


def _table(result: CategoryResults, title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    names = ("metric", "model") if len(result.models) > 1 else ("metric",)
    align = "l" * len(names) + "r" * len(columns)
    return Table((*names, *columns), tuple(rows), align, title=title, names=len(names))


def _cell(metric: str, row: dict[str, Any] | None, intervals: bool) -> Cell:
    if row is None:
        return ""
    ends = [nan if row[end] is None or not intervals else row[end] for end in ("low", "high")]
    return _figure(metric, row["value"], *ends)


def _figure(metric: str, value: float | None, low: float = nan, high: float = nan) -> Figure:
    """AUPRC is a share like a hit; every other metric is registered."""
    return metric_figure("Hit@1" if metric == AUPRC else metric, value, low, high)


def _first_model(result: CategoryResults) -> pl.DataFrame:
    return result.classification.filter(pl.col("model") == result.classification["model"][0])


def _bars(result: CategoryResults, rows: pl.DataFrame, metric: str, title: str, mark: Series | None = None) -> Bars:
    series = []
    for model in result.models:
        row_of = {row["category"]: row for row in rows.filter(pl.col("model") == model).iter_rows(named=True)}
        cells = (_cell(metric, row_of.get(name), True) for name in result.categories)
        series.append(Series(model, tuple(cell if isinstance(cell, Figure) else Figure(None) for cell in cells)))
    subtitle = f"{100 * result.level:g}% intervals over images"
    if len(result.models) > 1:
        subtitle += "; mean ± standard deviation over the models"
        spread = {name: (mean, sd or 0.0) for name, mean, sd in rows.group_by("category").agg(
            mean=pl.col("value").mean(), sd=pl.col("value").std()).iter_rows()}  # fmt: skip
        spreads = [spread.get(name, (None, 0.0)) for name in result.categories]
        figures = (_figure(metric, m, *(nan, nan) if m is None else (m - sd, m + sd)) for m, sd in spreads)
        series.append(Series("mean ± sd", tuple(figures)))
    share = metric == AUPRC or unit_of(metric) == "share"
    return Bars(
        title=title, about=subtitle + ("; | is chance" if mark else ""), groups=result.categories, series=tuple(series),
        heading=result.column, axis="%" if share else "", limits=(0.0, 1.0) if share else None, mark=mark,
    )  # fmt: skip


def _notes(result: CategoryResults) -> Iterator[str]:
    if result.retrieval.height:
        directions, metrics = set(result.retrieval["direction"]), dict.fromkeys(result.retrieval["metric"])
        yield unit_sentence(metrics)
        if "t2i" in directions:
            yield "text → image, of all queries: the categories add up to the total."
        if "i2t" in directions:
            yield "image → text: an image counts in the category of each of its captions."
        if {"MedR[all]", "MeanR[all]"} & set(metrics):
            yield "[all]: over every relevant pair of the category."
    if result.classification.height:
        rows = _first_model(result)
        counts = ", ".join(f"{row['category']} {row['positives']:,}" for row in rows.iter_rows(named=True))
        how = "average precision" if result.area == "step" else "trapezoids"
        yield f"{AUPRC} ({how}): {counts} matching pairs against {rows['negatives'][0]:,} {result.negatives}."
    if len(result.models) == 1 and any(low is not None and isfinite(low) for low in result.table["low"]):
        yield f"In brackets: {100 * result.level:g}% intervals over images."
    if len(result.models) > 1:
        yield f"mean, sd: over the {len(result.models)} models."
    yield from result.notes


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
        return f"Results by {self.column}"

    def sections(self) -> Iterator[Section]:
        """Charts, a table per direction and denominator, the AUPRC, and what the columns mean."""
        charts = []
        metrics = self.retrieval["metric"].unique(maintain_order=True).to_list()
        if metrics:  # one metric in each direction, of the category's own queries
            metric = _DRAWN if _DRAWN in metrics else metrics[0]
            metric_rows = self.retrieval.filter(pl.col("metric") == metric, pl.col("denominator") == CATEGORY)
            for direction in metric_rows["direction"].unique(maintain_order=True):
                title = f"{metric}, {DIRECTION_LABELS.get(direction, direction)}"
                charts.append(_bars(self, metric_rows.filter(pl.col("direction") == direction), metric, title))
        chance: dict[str, float] = {}
        if self.classification.height:
            chance = {row["category"]: row["chance"] for row in _first_model(self).iter_rows(named=True)}
            mark = Series("chance", tuple(_figure(AUPRC, chance.get(name)) for name in self.categories))
            charts.append(_bars(self, self.classification, AUPRC, AUPRC, mark))
        parts: list[Part] = [Row(tuple(charts))]
        for direction in dict.fromkeys(self.retrieval["direction"]):
            table = self.retrieval.filter(pl.col("direction") == direction)
            for denominator, words in ((ALL, "of all queries"), (CATEGORY, "of the category's queries")):
                columns = ((TOTAL,) if denominator == ALL else ()) + self.categories
                rows: list[tuple[Cell, ...]] = []
                for metric in table.filter(pl.col("denominator") == denominator)["metric"].unique(maintain_order=True):
                    with_total = pl.col("denominator").eq_missing(denominator) | (pl.col("category") == TOTAL)
                    part = table.filter(pl.col("metric") == metric, with_total)
                    # Parts of the whole are there to be added up; their intervals would hide that.
                    rows += _metric_rows(self, part, metric, columns, intervals=denominator == CATEGORY)
                if rows:
                    parts.append(_table(self, f"{DIRECTION_LABELS.get(direction, direction)}, {words}", columns, rows))
        if self.classification.height:
            columns = (TOTAL, *self.categories)
            rows = _metric_rows(self, self.classification, AUPRC, columns)
            names = (AUPRC, "chance") if len(self.models) > 1 else ("chance",)
            rows.append((*names, *(_figure(AUPRC, chance.get(category)) for category in columns)))
            parts.append(_table(self, f"{AUPRC}: matching pairs against pairs that do not match", columns, rows))
        heading = f"Results by {self.column}: {', '.join(self.categories)}"
        yield Section(heading, (*parts, Text(tuple(_notes(self)), note=True)))

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
        names = ("categories", "models", "level", "retrieval", "classification")
        panel = self.panel if len(self.models) > 1 else ()
        more = {"negatives": self.negatives or None, "area": self.area, "panel": panel, "notes": self.notes}
        return json_form({"by": self.column, **{name: getattr(self, name) for name in names}, **more})


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
    """How well the pairs of each category are retrieved, and separated from pairs that do not match.

    Every metric is given with both denominators. Intervals resample images.

    Args:
        runs: Runs, whose rankings retrieval comes from.
        categories: A table (or its file, or a ``Difficulty``) with the ids of captions, of images or of both.
        by: The column of the categories.
        metrics: Names of metrics.
        pairs: For the area under the precision–recall curve (AUPRC), the pairs from :func:`classification_pairs`.
        scores: What each model gives them: one number per pair, or a matrix of images × captions.
        area: ``step`` (average precision) or ``trapezoid``.
        resamples: Resamples for the intervals.
        level: Confidence level of the intervals.
        seed: Seed of the intervals.
    """
    labels = categories if isinstance(categories, Categories) else Categories.of(categories, by)
    if isinstance(runs, Mapping):
        by_name = dict(runs)
    else:
        by_name = {}
        for run in [runs] if isinstance(runs, Run) else runs:
            if run.name in by_name:
                raise UsageError(f"two runs are named {run.name!r}", fix="pass a mapping from names to runs")
            by_name[run.name] = run
    if not by_name and pairs is None:
        raise UsageError("neither runs nor scored pairs", fix="name run folders, or pass pairs and their scores")
    resampling = {"resamples": resamples, "level": level, "seed": seed}
    requests = parse_metrics(RETRIEVAL_METRICS if metrics is None else metrics)
    for request in requests:
        if family_of(request.spec).graded or request.spans_both or family_of(request.spec).across:
            raise UsageError(
                f"{request.spec} cannot be split by category", fix="name metrics of ranks, such as Hit@5 or MedR[all]"
            )
    rows = [row for name, run in by_name.items() for row in category_rows(run, name, labels, requests, resampling)]
    retrieval = pl.DataFrame(rows, schema=dict(_RETRIEVAL), strict=False, nan_to_null=True)
    classified = [] if pairs is None else list(_classified(pairs, scores or {}, area, resampling))
    classification = pl.DataFrame(classified, schema=dict(_CLASSIFICATION), strict=False, nan_to_null=True)
    models = tuple(dict.fromkeys([*by_name, *classification["model"]]))
    present = {*retrieval["category"], *classification["category"]}
    names = tuple(name for name in (*labels.names, NO_CATEGORY) if name in present)
    negatives = "" if pairs is None else pairs.negatives
    return CategoryResults(labels.column, names, models, retrieval, classification, negatives, area, level)


def _classified(
    labelled: ClassificationPairs, scores: Mapping[str, Any], area: Area, resampling: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row per model and category, the total first."""
    for model, model_scores in {**labelled.scores, **scores}.items():
        values = labelled.pairs.from_given(model_scores, model)
        parts = {TOTAL: labelled.matches}
        parts |= {name: labelled.categories == number for number, name in enumerate(labelled.names)}
        parts[NO_CATEGORY] = labelled.matches & (labelled.categories < 0)
        for name, positive in parts.items():
            if not positive.any():
                continue
            compared = positive | ~labelled.matches
            figure = auprc(positive[compared], values[compared], labelled.images[compared], kind=area, **resampling)
            yield {
                "model": model, "metric": AUPRC, "category": name, "value": figure.mean, "low": figure.low,
                "high": figure.high, "chance": float(positive.sum() / compared.sum()), "positives": int(positive.sum()),
                "negatives": int((~labelled.matches).sum()),
            }  # fmt: skip
