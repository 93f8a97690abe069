"""Results by group: any column of the dataset splits the queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    DIRECTION_LABELS,
    PAGE_WIDTH,
    Grid,
    MetricValues,
    Run,
    UnknownNameError,
    UsageError,
    split_name,
)
from crosslens.language import count_words
from crosslens.metrics import bounds_of, facts_of, format_count, metric_names, select_metrics
from crosslens.pipeline import table_notes
from crosslens.report.text.runs import value_cells
from crosslens.statistics import estimate

RowIndices = np.ndarray[Any, np.dtype[np.int64]]

NO_VALUE = "(none)"
CAPTION_LENGTH = "caption_length"
"""The words of a caption query: a column that every run with captions has."""
_MOST_NUMBERS = 12
"""A column of numbers with more distinct values than this is split at its quartiles."""


@dataclass(frozen=True)
class GroupedMetrics:
    """``values["t2i/Hit@1"]["zebra"]`` is that metric over the queries whose ``column`` says zebra.

    ``left_out`` says how many smaller groups of a direction are not there; ``overlapping``, whether a query can be in
    several groups.
    """

    column: str
    values: Mapping[str, Mapping[str, MetricValues]]
    overlapping: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: metric, group, figures."""
        return {
            "by": self.column,
            "overlapping": self.overlapping,
            "left_out": dict(self.left_out),
            "metrics": {
                name: {group: values.as_dict() for group, values in groups.items()}
                for name, groups in self.values.items()
            },
        }

    def text(self, width: int | None = PAGE_WIDTH) -> str:
        """One table per direction, up to ``width``; a row per group, the largest first."""
        directions = dict.fromkeys(split_name(name)[0] for name in self.values)
        parts = [self._direction(direction, width) for direction in directions]
        notes = table_notes(
            {name: values for name, groups in self.values.items() for values in list(groups.values())[:1]}
        )
        notes = notes[1:]  # the counts are in the table
        if self.overlapping:
            notes.insert(0, f"A query with several values of {self.column} counts in each of their groups.")
        return "\n\n".join([*parts, "\n".join(notes)])

    def __str__(self) -> str:
        return self.text()

    def _direction(self, direction: str, width: int | None) -> str:
        names = [name for name in self.values if split_name(name)[0] == direction]
        groups = list(self.values[names[0]])
        header = (self.column, "queries", *(split_name(name)[1] for name in names))
        counts = [f"{self.values[names[0]][group].n:,}" for group in groups]
        columns = [value_cells([self.values[name][group] for group in groups]) for name in names]
        grid = Grid(header, tuple(zip(groups, counts, *columns, strict=True)), "lr" + "l" * len(names))
        rest = self.left_out.get(direction, 0)
        more = f"\n… and {format_count(rest, 'smaller group')}" if rest else ""
        return f"{DIRECTION_LABELS.get(direction, direction)}\n{grid.text(width)}{more}"


def group_metrics(
    run: Run,
    column: str,
    metrics: str | Sequence[str] | None = None,
    *,
    largest: int | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> GroupedMetrics:
    """The chosen metrics of a run over each group of queries, with an interval of its own; the largest groups first.

    A caption query belongs to a group by its own columns, by those of its image, and by ``caption_length``, its words.
    Numbers with many different values are split at their quartiles; a column of lists puts a query into several
    groups. ``largest`` keeps that many groups of each direction.
    """
    column = column_of(run, column)
    grouped: dict[str, dict[str, MetricValues]] = {}
    left_out: dict[str, int] = {}
    overlapping = False
    for name in _chosen(run, column, metrics):
        labels = _labels(run, name, column)
        assert labels is not None
        overlapping |= isinstance(labels.dtype, pl.List)
        counted = _counted(run, split_name(name)[0])
        members = [(group, rows) for group, rows in _members(labels) if counted[rows].any()]
        kept = members[:largest]
        left_out[split_name(name)[0]] = len(members) - len(kept)
        grouped[name] = {group: _subset(run[name], rows, seed, resamples) for group, rows in kept}
    return GroupedMetrics(column, grouped, overlapping, left_out)


def grouping_columns(run: Run, direction: str) -> pl.DataFrame:
    """The columns that the queries of a direction can be grouped by; those with a text have the length of it, too."""
    table = run.columns.get(direction, pl.DataFrame())
    if "text" not in table.columns or CAPTION_LENGTH in table.columns:
        return table
    return table.with_columns(count_words(table["text"]).alias(CAPTION_LENGTH))


def _column_names(run: Run) -> set[str]:
    """The names of :func:`grouping_columns` of all directions; counting words only to know of them takes too long."""
    names = {name for table in run.columns.values() for name in table.columns}
    return names | ({CAPTION_LENGTH} if "text" in names else set())


def column_of(run: Run, column: str) -> str:
    """What a dataset's column is called in a run: ``query`` is ``query_``, as a run has its own column of that name."""
    known = _column_names(run)
    if not known:
        raise UsageError(
            f"the run {run.name!r} has no columns to group by",
            fix="evaluate with a dataset: its columns and the length of its captions make groups",
        )
    match = next((candidate for candidate in (column, f"{column}_") if candidate in known), None)
    if match is None:
        raise UnknownNameError("column", column, known)
    return match


def group_members(run: Run, direction: str, column: str) -> dict[str, tuple[str, ...]]:
    """The query ids of each group of a direction, the largest group first; queries without a value are in none."""
    name = next((name for name in run if split_name(name)[0] == direction), None)
    labels = None if name is None else _labels(run, name, column_of(run, column))
    if name is None or labels is None:
        raise UsageError(
            f"the {direction} queries of the run {run.name!r} have no {column}", fix="choose another column"
        )
    ids = run[name].query_ids
    return {group: tuple(ids[row] for row in rows) for group, rows in _members(labels) if group != NO_VALUE}


def group_names(run: Run) -> list[str]:
    """The columns that queries can usefully be grouped by: not those that differ for each of them."""
    return sorted(_column_names(run) - {"text", "image", "file"})


def groupable_metrics(run: Run, column: str) -> list[str]:
    """The metrics of a run that a column can group: at least one."""
    column = column_of(run, column)
    directions = {split_name(name)[0]: name for name in run}
    grouped = {direction for direction, name in directions.items() if _labels(run, name, column) is not None}
    names = [name for name in run if _separable(name) and split_name(name)[0] in grouped]
    if not names:
        raise UsageError(f"no metric of the run {run.name!r} has values by {column}", fix="choose another column")
    return names


def _chosen(run: Run, column: str, metrics: str | Sequence[str] | None) -> list[str]:
    """The chosen metrics, in every direction that the column can group."""
    possible = groupable_metrics(run, column)
    if metrics is None:
        return possible
    chosen: dict[str, None] = {}
    for metric in metric_names(metrics):
        usable = [name for name in select_metrics(run, [metric]) if name in possible]
        if not usable:
            raise UsageError(f"{metric} has no values by {column}", fix=f"choose from {', '.join(possible)}")
        chosen |= dict.fromkeys(usable)
    return list(chosen)


def _separable(name: str) -> bool:
    """Whether a group's queries give the group's figure: not for one over pairs of queries and items, nor for a sum
    over both directions.
    """
    return split_name(name)[0] != BOTH and not facts_of(name).pooled


def _labels(run: Run, name: str, column: str) -> pl.Series | None:
    """What the column says of each query of a metric; None where it belongs to the other direction."""
    direction = split_name(name)[0]
    table = grouping_columns(run, direction) if column == CAPTION_LENGTH else run.columns.get(direction, pl.DataFrame())
    # In a run folder both directions share one table: a column of captions is there for images too, all empty.
    return table[column] if column in table.columns and table[column].null_count() < table.height else None


def _counted(run: Run, direction: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which queries of a direction count in any metric: images without captions alone make no group."""
    values = [run[name].values for name in run if split_name(name)[0] == direction]
    return np.asarray(np.isfinite(values).any(axis=0))


def _members(labels: pl.Series) -> list[tuple[str, RowIndices]]:
    """Every group with the rows of its queries: the largest first, bins of numbers in their own order."""
    if labels.dtype.is_numeric() and labels.n_unique() > _MOST_NUMBERS:
        return _quartiles(labels.cast(pl.Float64).fill_null(np.nan).to_numpy())
    table = pl.DataFrame({"label": labels}).with_row_index("row")
    if isinstance(labels.dtype, pl.List):
        filled = pl.when(pl.col("label").list.len() > 0).then(pl.col("label"))  # an empty list is no value
        table = table.with_columns(filled).explode("label").unique(maintain_order=True)
    table = table.with_columns(pl.col("label").cast(pl.String).replace("", None).fill_null(NO_VALUE))
    groups = table.group_by("label").agg("row").sort(pl.col("row").list.len(), "label", descending=[True, False])
    return [(str(label), rows.to_numpy()) for label, rows in zip(groups["label"], groups["row"], strict=True)]


def _quartiles(numbers: np.ndarray[Any, Any]) -> list[tuple[str, RowIndices]]:
    edges = np.unique(np.nanquantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
    bins = np.searchsorted(edges[1:-1], numbers, side="right")
    bins[np.isnan(numbers)] = -1
    quartiles = []
    for number in range(max(1, len(edges) - 1)):
        low, high = edges[number], edges[min(number + 1, len(edges) - 1)]
        name = f"[{low:g}, {high:g}{']' if number >= len(edges) - 2 else ')'}"
        quartiles.append((name, np.flatnonzero(bins == number)))
    quartiles.append((NO_VALUE, np.flatnonzero(bins == -1)))
    return [(name, rows) for name, rows in quartiles if len(rows)]


def _subset(values: MetricValues, rows: RowIndices, seed: int, resamples: int) -> MetricValues:
    part, clusters = values.values[rows], values.clusters[rows]
    figures = estimate(
        part, clusters, statistic=values.statistic, seed=seed, resamples=resamples, level=values.level,
        bounds=bounds_of(values.name),
    )  # fmt: skip
    return replace(
        values,
        query_ids=tuple(values.query_ids[row] for row in rows),
        values=part,
        clusters=clusters,
        mean=figures.mean,
        low=figures.low,
        high=figures.high,
    )
