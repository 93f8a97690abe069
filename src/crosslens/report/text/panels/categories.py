"""Results by category as text: a table per direction and denominator, models down, categories across."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite
from typing import Any

import polars as pl

from crosslens.analyze import ALL, AUPRC, CATEGORY, TOTAL, CategoryResults
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, UsageError
from crosslens.metrics import format_figure, format_interval, unit_sentence, with_intervals
from crosslens.report.text.runs import DIRECTION_LABELS

MEAN, SPREAD = "mean", "sd"
"""The rows of a panel of models, below its models."""

Row = tuple[str, ...]
_MARK = "\0"
"""Between a figure and its interval, until all of a column are known and can be aligned."""


@RENDERERS.register("CategoryResults")
def categories_text(result: CategoryResults, width: int | None = PAGE_WIDTH) -> str:
    """Every direction with both denominators, then the AUPRC, and what the columns mean."""
    room = width or PAGE_WIDTH
    parts = [f"Results by {result.column}: {', '.join(result.categories)}"]
    for direction in dict.fromkeys(result.retrieval["direction"]):
        for denominator, words in ((ALL, "of all queries"), (CATEGORY, "of the category's queries")):
            grid = retrieval_grid(result, direction, denominator)
            if grid is not None:
                parts.append(f"{DIRECTION_LABELS.get(direction, direction)}, {words}\n{_fitted(grid, width)}")
    if result.classification.height:
        parts.append(f"{AUPRC}: matching pairs against pairs that do not match\n{_fitted(auprc_grid(result), width)}")
    notes = [line for note in _notes(result) for line in textwrap.wrap(note, room)]
    return "\n\n".join([*parts, "\n".join(notes)])


def retrieval_grid(result: CategoryResults, direction: str, denominator: str) -> Grid | None:
    """A row per metric and model; None where no metric has this denominator."""
    rows = result.retrieval.filter(pl.col("direction") == direction)
    metrics = rows.filter(pl.col("denominator") == denominator)["metric"].unique(maintain_order=True).to_list()
    columns = ((TOTAL,) if denominator == ALL else ()) + result.categories
    lines: list[Row] = []
    for metric in metrics:
        part = rows.filter(
            pl.col("metric") == metric, pl.col("denominator").eq_missing(denominator) | (pl.col("category") == TOTAL)
        )
        # Parts of the whole are there to be added up; their intervals would hide that.
        lines += _block(result, part, metric, columns, intervals=denominator == CATEGORY)
    return _grid(result, columns, lines) if lines else None


def auprc_grid(result: CategoryResults) -> Grid:
    """A row per model, and one for what a constant score reaches."""
    columns = (TOTAL, *result.categories)
    lines = _block(result, result.classification, AUPRC, columns)
    first = result.classification.filter(pl.col("model") == result.classification["model"][0])
    chance = dict(first.select("category", "chance").iter_rows())
    cells = tuple(_figure(AUPRC, chance.get(category)) for category in columns)
    label = ("", "chance") if len(result.models) > 1 else ("chance",)
    return _grid(result, columns, [*lines, (*label, *cells)])


def results_grid(result: CategoryResults) -> Grid:
    """Everything as one table, for a paper: a row per direction, metric, denominator and model."""
    blocks: list[tuple[str, str, Grid]] = []
    for direction in dict.fromkeys(result.retrieval["direction"]):
        for denominator in (ALL, CATEGORY):
            grid = retrieval_grid(result, direction, denominator)
            if grid is not None:
                blocks.append((direction, denominator, grid))
    if result.classification.height:
        blocks.append(("", "", auprc_grid(result)))
    names = ("metric",) + (("model",) if len(result.models) > 1 else ())
    columns = (TOTAL, *result.categories)
    rows: list[Row] = []
    for direction, denominator, grid in blocks:
        metric = ""
        for row in grid.rows:
            metric = row[0] or metric
            values = dict(zip(grid.header, row, strict=True))
            named = {**values, "metric": metric}
            rows.append((direction, denominator, *(named.get(name, "") for name in (*names, *columns))))
    return Grid(("direction", "of", *names, *columns), tuple(rows), "ll" + "l" * len(names) + "r" * len(columns))


def check_categories_file(path: Any) -> str:
    """The ending of a file of these results; raises for one that cannot be written."""
    suffix = str(path.suffix).lower()
    if suffix not in (".csv", ".parquet", ".tex"):
        raise UsageError(f"{path}: unknown table format {suffix or '(no suffix)'}", fix="use .csv, .parquet or .tex")
    return suffix


def _block(
    result: CategoryResults, rows: pl.DataFrame, metric: str, columns: Sequence[str], *, intervals: bool = True
) -> list[Row]:
    """The rows of a metric: its models and, where there are several, their mean and spread."""
    several = len(result.models) > 1
    lines: list[Row] = []
    for model in dict.fromkeys(rows["model"]):
        own = {row["category"]: row for row in rows.filter(pl.col("model") == model).iter_rows(named=True)}
        cells = tuple(_cell(metric, own.get(category), intervals and not several) for category in columns)
        lines.append(((metric, model) if several else (metric,)) + cells)
    if several and len(lines) > 1:
        lines = [lines[0], *(("", *line[1:]) for line in lines[1:])]
        for label, statistic in ((MEAN, pl.col("value").mean()), (SPREAD, pl.col("value").std())):
            values = dict(rows.group_by("category").agg(statistic).iter_rows())
            lines.append(("", label, *(_figure(metric, values.get(category)) for category in columns)))
    return lines


def _grid(result: CategoryResults, columns: Sequence[str], lines: Sequence[Row]) -> Grid:
    names = ("metric", "model") if len(result.models) > 1 else ("metric",)
    bare = not any(_MARK in cell for line in lines for cell in line)
    aligned = list(zip(*lines, strict=True))
    for column in range(len(names), len(aligned)):
        parts = [cell.partition(_MARK) for cell in aligned[column]]
        aligned[column] = tuple(with_intervals([part[0] for part in parts], [part[2] for part in parts]))
    align = "l" * len(names) + ("r" if bare else "l") * len(columns)
    return Grid((*names, *columns), tuple(zip(*aligned, strict=True)), align)


def _cell(metric: str, row: dict[str, Any] | None, intervals: bool) -> str:
    if row is None:
        return ""
    low, high = (float("nan") if row[end] is None else row[end] for end in ("low", "high"))
    interval = format_interval(_unit_name(metric), low, high) if intervals else ""
    return f"{_figure(metric, row['value'])}{_MARK}{interval}" if interval else _figure(metric, row["value"])


def _figure(metric: str, value: float | None) -> str:
    return format_figure(_unit_name(metric), float("nan") if value is None else value)


def _unit_name(metric: str) -> str:
    """AUPRC is a share like a hit; every other metric is registered."""
    return "Hit@1" if metric == AUPRC else metric


def _fitted(grid: Grid, width: int | None) -> str:
    """The table; columns that do not fit go into a further block, which repeats the names of its rows."""
    if width is None or grid.width <= width or grid.header[:2] != ("metric", "model"):
        return grid.text(width)
    joined = tuple((" ".join(filter(None, (row[0], row[1]))), *row[2:]) for row in grid.rows)
    return Grid(("model", *grid.header[2:]), joined, grid.align[1:]).text(width)


def _notes(result: CategoryResults) -> list[str]:
    notes = []
    if result.retrieval.height:
        directions = set(result.retrieval["direction"])
        notes.append(unit_sentence([*dict.fromkeys(result.retrieval["metric"])]))
        if "t2i" in directions:
            notes.append("text → image, of all queries: the categories add up to the total.")
        if "i2t" in directions:
            notes.append("image → text: an image counts in the category of each of its captions.")
        if {"MedR[all]", "MeanR[all]"} & set(result.retrieval["metric"]):
            notes.append("[all]: over every relevant pair of the category.")
    if result.classification.height:
        own = result.classification.filter(pl.col("model") == result.classification["model"][0])
        counts = ", ".join(f"{row['category']} {row['positives']:,}" for row in own.iter_rows(named=True))
        how = "average precision" if result.area == "step" else "trapezoids"
        notes.append(f"{AUPRC} ({how}): {counts} matching pairs against {own['negatives'][0]:,} {result.negatives}.")
    bounded = any(low is not None and isfinite(low) for low in result.table["low"])
    if len(result.models) == 1 and bounded:
        notes.append(f"In brackets: {100 * result.level:g}% intervals over images.")
    if len(result.models) > 1:
        notes.append(f"mean, sd: over the {len(result.models)} models.")
    return [*notes, *result.notes]
