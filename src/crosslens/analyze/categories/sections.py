"""How results by category are shown: a table per direction and denominator, models down, categories across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import polars as pl

from crosslens.analyze.categories.labels import TOTAL
from crosslens.analyze.categories.retrieval import ALL, CATEGORY
from crosslens.core import DIRECTION_LABELS, Bars, Cell, Figure, Part, Row, Section, Series, Table, Text
from crosslens.metrics import metric_figure, unit_of, unit_sentence

if TYPE_CHECKING:
    from crosslens.analyze.categories.results import CategoryResults

AUPRC = "AUPRC"
_DRAWN = "Hit@5"
"""The metric of the chart, where it is among the results."""


def category_sections(result: CategoryResults) -> Iterator[Section]:
    """Charts, every direction with both denominators, then the AUPRC, and what the columns mean."""
    parts: list[Part] = [Row(tuple(_charts(result)))]
    for direction in dict.fromkeys(result.retrieval["direction"]):
        for denominator, words in ((ALL, "of all queries"), (CATEGORY, "of the category's queries")):
            if rows := _retrieval_rows(result, direction, denominator):
                columns = ((TOTAL,) if denominator == ALL else ()) + result.categories
                parts.append(_table(result, f"{DIRECTION_LABELS.get(direction, direction)}, {words}", columns, rows))
    if result.classification.height:
        columns = (TOTAL, *result.categories)
        rows = _metric_rows(result, result.classification, AUPRC, columns)
        chance = {row["category"]: row["chance"] for row in _first_model(result).iter_rows(named=True)}
        names = (AUPRC, "chance") if len(result.models) > 1 else ("chance",)
        rows.append((*names, *(_figure(AUPRC, chance.get(category)) for category in columns)))
        parts.append(_table(result, f"{AUPRC}: matching pairs against pairs that do not match", columns, rows))
    heading = f"Results by {result.column}: {', '.join(result.categories)}"
    yield Section(heading, (*parts, Text(tuple(_notes(result)), note=True)))


def _retrieval_rows(result: CategoryResults, direction: str, denominator: str) -> list[tuple[Cell, ...]]:
    """A row per metric and model; none where no metric has this denominator."""
    rows = result.retrieval.filter(pl.col("direction") == direction)
    columns = ((TOTAL,) if denominator == ALL else ()) + result.categories
    lines: list[tuple[Cell, ...]] = []
    for metric in rows.filter(pl.col("denominator") == denominator)["metric"].unique(maintain_order=True):
        part = rows.filter(
            pl.col("metric") == metric, pl.col("denominator").eq_missing(denominator) | (pl.col("category") == TOTAL)
        )
        # Parts of the whole are there to be added up; their intervals would hide that.
        lines += _metric_rows(result, part, metric, columns, intervals=denominator == CATEGORY)
    return lines


def _metric_rows(
    result: CategoryResults, rows: pl.DataFrame, metric: str, columns: Sequence[str], *, intervals: bool = True
) -> list[tuple[Cell, ...]]:
    """The rows of a metric: its models and, where there are several, their mean and spread."""
    several = len(result.models) > 1
    lines: list[tuple[Cell, ...]] = []
    for model in dict.fromkeys(rows["model"]):
        own = {row["category"]: row for row in rows.filter(pl.col("model") == model).iter_rows(named=True)}
        cells = (_cell(metric, own.get(category), intervals and not several) for category in columns)
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


def _charts(result: CategoryResults) -> Iterator[Bars]:
    """One metric in each direction, of the category's own queries, and the AUPRC."""
    metrics = result.retrieval["metric"].unique(maintain_order=True).to_list()
    if metrics:
        metric = _DRAWN if _DRAWN in metrics else metrics[0]
        own = result.retrieval.filter(pl.col("metric") == metric, pl.col("denominator") == CATEGORY)
        for direction in own["direction"].unique(maintain_order=True):
            title = f"{metric}, {DIRECTION_LABELS.get(direction, direction)}"
            yield _bars(result, own.filter(pl.col("direction") == direction), metric, title)
    if result.classification.height:
        chance = {row["category"]: row["chance"] for row in _first_model(result).iter_rows(named=True)}
        mark = Series("chance", tuple(_figure(AUPRC, chance.get(name)) for name in result.categories))
        yield _bars(result, result.classification, AUPRC, AUPRC, mark)


def _bars(result: CategoryResults, rows: pl.DataFrame, metric: str, title: str, mark: Series | None = None) -> Bars:
    series = []
    for model in result.models:
        own = {row["category"]: row for row in rows.filter(pl.col("model") == model).iter_rows(named=True)}
        cells = (_cell(metric, own.get(name), True) for name in result.categories)
        series.append(Series(model, tuple(cell if isinstance(cell, Figure) else Figure(None) for cell in cells)))
    about = f"{100 * result.level:g}% intervals over images"
    if len(result.models) > 1:
        about += "; mean ± standard deviation over the models"
        spread = {name: (mean, sd or 0.0) for name, mean, sd in rows.group_by("category").agg(
            mean=pl.col("value").mean(), sd=pl.col("value").std()).iter_rows()}  # fmt: skip
        known = [spread.get(name, (None, 0.0)) for name in result.categories]
        figures = (_figure(metric, m, *(nan, nan) if m is None else (m - sd, m + sd)) for m, sd in known)
        series.append(Series("mean ± sd", tuple(figures)))
    share = metric == AUPRC or unit_of(metric) == "share"
    return Bars(
        title=title, about=about + ("; | is chance" if mark else ""), groups=result.categories, series=tuple(series),
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
        own = _first_model(result)
        counts = ", ".join(f"{row['category']} {row['positives']:,}" for row in own.iter_rows(named=True))
        how = "average precision" if result.area == "step" else "trapezoids"
        yield f"{AUPRC} ({how}): {counts} matching pairs against {own['negatives'][0]:,} {result.negatives}."
    if len(result.models) == 1 and any(low is not None and isfinite(low) for low in result.table["low"]):
        yield f"In brackets: {100 * result.level:g}% intervals over images."
    if len(result.models) > 1:
        yield f"mean, sd: over the {len(result.models)} models."
    yield from result.notes
