"""Results by group: tasks, difficulty, length of captions, and every other column of the dataset that makes groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crosslens.core import Bars, Chart, CrosslensError, Figure, Grid, Run
from crosslens.pipeline import StageResult, add_columns, group_metrics, read_columns
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import (
    Content,
    ReportSection,
    figure_of,
    series_of,
    side_by_side,
    stored_figure,
    table_of,
)
from crosslens.report.forms.page import paragraph

_LEVELS = "difficulty"
_FEWER = 3
"""Columns of each dataset, where there are several."""


def groups(context: ReportContext) -> ReportSection | None:
    """A chart per column and dataset, with the runs beside each other."""
    charts = [
        chart
        for dataset, runs in context.inputs.by_dataset().items()
        for chart in _charts(context, runs, dataset if len(context.inputs.by_dataset()) > 1 else "")
    ]
    difficulty = list(_difficulty(context))
    if not charts and not difficulty:
        return None
    lead = paragraph(
        "The same metric over parts of the queries. Intervals of small groups are wide: groups whose intervals overlap "
        "widely may not differ."
    )
    return ReportSection("groups", "Groups, tasks, difficulty", (lead, side_by_side(charts), *difficulty))


def _charts(context: ReportContext, runs: dict[str, Run], dataset: str) -> Iterator[Chart]:
    first = next(iter(runs.values()))
    metric = context.headline(first)
    if metric is None:
        return
    for column in context.columns(first)[: _FEWER if dataset else None]:
        values = {name: context.grouped(name, column, metric) for name in runs}
        names = list(dict.fromkeys(group for own in values.values() for group in own))
        if len(names) < 2:
            continue
        sizes = {group: next(own[group].n for own in values.values() if group in own) for group in names}
        series = {name: [figure_of(own.get(group), metric) for group in names] for name, own in values.items()}
        yield Bars(
            title=f"{metric} by {column}{f', {dataset}' if dataset else ''}",
            groups=tuple(f"{group} ({sizes[group]:,})" for group in names), series=series_of(series), heading=column,
            axis=metric, limits=(0, 1), about=f"{metric} over the queries of each {column}; in brackets how many.",
        )  # fmt: skip


def _difficulty(context: ReportContext) -> Iterator[Content]:
    """How many pairs are easy or hard for the models together, and the metric on each level."""
    for result in context.inputs.stage("difficulty"):
        levels = result.payload["levels"]
        where = f" of {result.payload['dataset']}" if result.payload.get("dataset") else ""
        rows = tuple(
            (name, f"{level['pairs']:,}", str(stored_figure(level, Figure.percent(None), "share")))
            for name, level in levels.items()
        )
        yield table_of(f"Pairs{where} by difficulty", Grid(("level", "pairs", "share, %"), rows, "lrr"))
        yield paragraph(
            "A level says how many models score a caption and its image above their thresholds: "
            f"{result.payload['mapping']} of {', '.join(result.payload['models'])}.",
            "facts",
        )
        yield from _by_level(context, result)


def _by_level(context: ReportContext, result: StageResult) -> Iterator[Content]:
    """The main metric on each level, where the table of pairs is there."""
    table = next((Path(file) for file in result.payload.get("files", ()) if str(file).endswith(".parquet")), None)
    if result.folder is not None and (table is None or not table.exists()):
        table = next(iter(sorted(result.folder.glob("*.parquet"))), None)
    if table is None or not table.exists():
        return
    series: dict[str, dict[str, Figure]] = {}
    metric = None
    for name, run in context.inputs.runs.items():
        metric = context.headline(run)
        if metric is None or result.dataset not in ("", context.dataset_label(run)):
            continue
        try:
            grouped = group_metrics(add_columns(run, read_columns(table))[0], _LEVELS, [metric])
        except CrosslensError:
            continue
        series[name] = {group: figure_of(values) for group, values in grouped.values.get(metric, {}).items()}
    names = list(dict.fromkeys(group for own in series.values() for group in own))
    if metric is not None and names:
        shown = {name: [own.get(group, figure_of(None, metric)) for group in names] for name, own in series.items()}
        yield Bars(
            title=f"{metric} by difficulty", groups=tuple(names), series=series_of(shown), heading=_LEVELS,
            limits=(0, 1),
        )  # fmt: skip
