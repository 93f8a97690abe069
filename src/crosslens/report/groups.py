"""Results by group: any column of the dataset splits the queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import CrosslensError, UnknownNameError, UsageError
from crosslens.core.metric_values import MetricValues
from crosslens.core.run import Run
from crosslens.report.figures import DIRECTION_LABELS, count, select, split_name
from crosslens.report.table import Grid, cells, explanation

Rows = np.ndarray[Any, np.dtype[np.int64]]

NO_VALUE = "(none)"
_MOST_NUMBERS = 12
"""A column of numbers with more distinct values than this is split at its quartiles."""


@dataclass(frozen=True)
class Groups:
    """``values["t2i/Hit@1"]["zebra"]`` is that metric over the queries whose ``column`` says zebra."""

    column: str
    values: Mapping[str, Mapping[str, MetricValues]]
    overlapping: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: metric, group, figures."""
        return {
            "by": self.column,
            "overlapping": self.overlapping,
            "metrics": {
                name: {group: one.as_dict() for group, one in groups.items()} for name, groups in self.values.items()
            },
        }

    def text(self, width: int | None = None, limit: int | None = None) -> str:
        """One table per direction, a row per group, the largest groups first; ``limit`` leaves out the smallest."""
        directions = dict.fromkeys(split_name(name)[0] for name in self.values)
        parts = [self._direction(direction, width, limit) for direction in directions]
        notes = explanation({name: one for name, groups in self.values.items() for one in list(groups.values())[:1]})
        notes = notes[1:]  # the counts stand in the table
        if self.overlapping:
            notes.insert(0, f"A query with several values of {self.column} counts in each of their groups.")
        return "\n\n".join([*parts, "\n".join(notes)])

    def __str__(self) -> str:
        return self.text()

    def _direction(self, direction: str, width: int | None, limit: int | None) -> str:
        names = [name for name in self.values if split_name(name)[0] == direction]
        groups = list(self.values[names[0]])
        shown = groups[:limit]
        header = (self.column, "queries", *(split_name(name)[1] for name in names))
        counts = [f"{self.values[names[0]][group].n:,}" for group in shown]
        columns = [cells([(name, self.values[name][group]) for group in shown]) for name in names]
        grid = Grid(header, tuple(zip(shown, counts, *columns, strict=True)), "lr" + "l" * len(names))
        left_out = len(groups) - len(shown)
        rest = f"\n… and {count(left_out, 'smaller group')}" if left_out else ""
        return f"{DIRECTION_LABELS.get(direction, direction)}\n{grid.text(width)}{rest}"


def by(
    run: Run, column: str, metrics: str | Sequence[str] | None = None, *, seed: int = 0, resamples: int = 1000
) -> Groups:
    """The chosen metrics of a run over each group of queries, with an interval of its own.

    A caption query belongs to a group by its own columns and by those of its image. Numbers with many different
    values are split at their quartiles; a column of lists puts a query into several groups.
    """
    known = {one for table in run.columns.values() for one in table.columns}
    if column not in known:
        raise UnknownNameError("column", column, known)
    chosen = select(run, metrics)
    names = [name for name in chosen if column in _columns(run, name) and _separable(name)]
    if not names or (metrics is not None and len(names) < len(chosen)):
        apart = next(name for name in chosen if name not in names)
        raise UsageError(
            f"{apart} has no values by {column}",
            fix="choose metrics of one direction with one value per query, such as t2i/Hit@1",
        )
    found: dict[str, dict[str, MetricValues]] = {}
    overlapping = False
    for name in names:
        labels = _columns(run, name)[column]
        overlapping |= isinstance(labels.dtype, pl.List)
        found[name] = {group: _subset(run[name], rows, seed, resamples) for group, rows in _members(labels)}
    return Groups(column, found, overlapping)


def _separable(name: str) -> bool:
    """Whether a group's queries give the group's figure: not for one over pairs of queries and items, nor for a sum
    over both directions.
    """
    from crosslens.metrics import family_of
    from crosslens.metrics.spec import read_spec

    try:
        spec = read_spec(split_name(name)[1])
        return not (family_of(spec).pooled(spec) or family_of(spec).across)
    except CrosslensError:  # from a plug-in that is not installed here
        return True


def _columns(run: Run, name: str) -> pl.DataFrame:
    return run.columns.get(split_name(name)[0], pl.DataFrame())


def _members(labels: pl.Series) -> list[tuple[str, Rows]]:
    """Every group with the rows of its queries: the largest first, bins of numbers in their own order."""
    if labels.dtype.is_numeric() and labels.n_unique() > _MOST_NUMBERS:
        return _quartiles(labels.cast(pl.Float64).fill_null(np.nan).to_numpy())
    table = pl.DataFrame({"label": labels}).with_row_index("row")
    if isinstance(labels.dtype, pl.List):
        filled = pl.when(pl.col("label").list.len() > 0).then(pl.col("label"))  # an empty list is no value
        table = table.with_columns(filled).explode("label").unique(maintain_order=True)
    table = table.with_columns(pl.col("label").cast(pl.String).replace("", None).fill_null(NO_VALUE))
    parts = table.partition_by("label", as_dict=True, maintain_order=True)
    found = [(str(label), part["row"].to_numpy()) for (label,), part in parts.items()]
    return sorted(found, key=lambda group: (-len(group[1]), group[0]))


def _quartiles(numbers: np.ndarray[Any, Any]) -> list[tuple[str, Rows]]:
    edges = np.unique(np.nanquantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
    bins = np.searchsorted(edges[1:-1], numbers, side="right")
    bins[np.isnan(numbers)] = -1
    found = []
    for place in range(max(1, len(edges) - 1)):
        low, high = edges[place], edges[min(place + 1, len(edges) - 1)]
        name = f"[{low:g}, {high:g}{']' if place >= len(edges) - 2 else ')'}"
        found.append((name, np.flatnonzero(bins == place)))
    found.append((NO_VALUE, np.flatnonzero(bins == -1)))
    return [(name, rows) for name, rows in found if len(rows)]


def _subset(values: MetricValues, rows: Rows, seed: int, resamples: int) -> MetricValues:
    from crosslens.statistics import estimate

    part, clusters = values.values[rows], values.clusters[rows]
    figures = estimate(part, clusters, statistic=values.statistic, seed=seed, resamples=resamples, level=values.level)
    return replace(
        values,
        query_ids=tuple(values.query_ids[row] for row in rows),
        values=part,
        clusters=clusters,
        mean=figures.mean,
        low=figures.low,
        high=figures.high,
    )
