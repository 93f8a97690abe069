"""Runs side by side: a column per run, a row per metric or per group."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crosslens.core import BOTH, DIRECTION_LABELS, PAGE_WIDTH, Grid, MetricValues, Run, UsageError, split_name
from crosslens.metrics import format_count, format_figure, metric_names, select_metrics
from crosslens.pipeline import notes_on_protocols, run_labels, table_notes
from crosslens.report.groups import column_of, group_metrics, groupable_metrics
from crosslens.report.text.runs import value_cells

WHOLE = "(all)"
"""The row with the figure over all queries, under those of the groups."""
_ABSENT = "–"


@dataclass(frozen=True)
class SideBySide:
    """``values["t2i/Hit@1"]["v0"]["colour"]``: a metric of a run over a group; without ``column`` over ``(all)`` only.

    A run that lacks a metric or a group is not there. ``left_out`` says how many smaller groups of a metric are not.
    """

    runs: tuple[str, ...]
    values: Mapping[str, Mapping[str, Mapping[str, MetricValues]]]
    column: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    overlapping: bool = False
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: metric, run, group, figures; fractions, never percent."""
        shown = {
            metric: {run: {group: values.as_dict() for group, values in groups.items()} for run, groups in runs.items()}
            for metric, runs in self.values.items()
        }
        if self.column is None:
            whole = {metric: {run: groups[WHOLE] for run, groups in runs.items()} for metric, runs in shown.items()}
            return {"runs": list(self.runs), **self._noted(), "metrics": whole}
        return {
            "runs": list(self.runs),
            **self._noted(),
            "by": self.column,
            "overlapping": self.overlapping,
            "left_out": dict(self.left_out),
            "metrics": shown,
        }

    def _noted(self) -> dict[str, Any]:
        return {"notes": list(self.notes)} if self.notes else {}

    def in_order(self, groups: Sequence[str]) -> SideBySide:
        """The same with these groups first, in this order."""
        values = {
            metric: {
                run: {group: values[group] for group in dict.fromkeys([*groups, *values]) if group in values}
                for run, values in runs.items()
            }
            for metric, runs in self.values.items()
        }
        return replace(self, values=values)

    def text(self, width: int | None = PAGE_WIDTH) -> str:
        """Tables up to ``width`` (None: any), with intervals where they fit, and what the figures are."""
        if self.column is None:
            rows = {
                metric: {run: groups[WHOLE] for run, groups in runs.items()} for metric, runs in self.values.items()
            }
            tables = {"": rows}
        else:
            tables = {metric: self._groups(metric) for metric in self.values}
        full = {name: self._grid(rows, intervals=True) for name, rows in tables.items()}
        intervals = width is None or all(grid.width <= width for grid in full.values())
        grids = full if intervals else {name: self._grid(rows, intervals=False) for name, rows in tables.items()}
        parts = [f"{self._heading(name)}{grid.text(width)}{self._rest(name)}" for name, grid in grids.items()]
        return "\n\n".join([*parts, "\n".join(self._notes(intervals))])

    def __str__(self) -> str:
        return self.text()

    def _groups(self, metric: str) -> dict[str, dict[str, MetricValues]]:
        """Group, run, figures: the first run's groups, those that only others have, and all."""
        runs = self.values[metric]
        groups = [
            *dict.fromkeys(group for run_groups in runs.values() for group in run_groups if group != WHOLE),
            WHOLE,
        ]
        return {group: {run: runs[run][group] for run in runs if group in runs[run]} for group in groups}

    def _grid(self, rows: Mapping[str, Mapping[str, MetricValues]], *, intervals: bool) -> Grid:
        columns = [[row.get(run) for row in rows.values()] for run in self.runs]
        shown = [value_cells(column) if intervals else _figures(column) for column in columns]
        filled = [[cell or _ABSENT for cell in column] for column in shown]
        align = "l" + ("l" if intervals else "r") * len(columns)
        return Grid((self.column or "metric", *self.runs), tuple(zip(rows, *filled, strict=True)), align)

    def _heading(self, metric: str) -> str:
        direction, name = split_name(metric)
        return f"{name}, {DIRECTION_LABELS.get(direction, direction)}\n" if metric else ""

    def _rest(self, metric: str) -> str:
        rest = self.left_out.get(metric, 0)
        return f"\n… and {format_count(rest, 'smaller group')}" if rest else ""

    def _notes(self, intervals: bool) -> list[str]:
        first = {metric: next(iter(runs.values()))[WHOLE] for metric, runs in self.values.items()}
        notes = table_notes(first, intervals=intervals)[1:]
        if not intervals:
            notes.append("Intervals do not fit: see crosslens plot, or one run at a time.")
        if self.overlapping:
            notes.append(f"A query with several values of {self.column} counts in each of their groups.")
        return [*self._queries(), *notes, *(line for note in self.notes for line in textwrap.wrap(note, PAGE_WIDTH))]

    def _queries(self) -> list[str]:
        """How many queries each run has, by direction; runs with different queries are no paired comparison."""
        lines = []
        directions = list(dict.fromkeys(split_name(metric)[0] for metric in self.values))
        for direction in directions:
            if direction == BOTH and len(directions) > 1:
                continue  # its queries are the images, which are there already
            metric = next(name for name in self.values if split_name(name)[0] == direction)
            counts = {run: groups[WHOLE].n for run, groups in self.values[metric].items()}
            same = len(set(counts.values())) == 1
            counted = f"{next(iter(counts.values())):,} each" if same else ", ".join(
                f"{run} {n:,}" for run, n in counts.items()
            )  # fmt: skip
            lines += textwrap.wrap(f"Queries, {DIRECTION_LABELS.get(direction, direction)}: {counted}.", PAGE_WIDTH)
        return lines


def side_by_side(
    runs: Sequence[Run],
    metrics: str | Sequence[str] | None = None,
    *,
    column: str | None = None,
    largest: int | None = None,
    seed: int = 0,
) -> SideBySide:
    """Several runs beside each other: over all queries, or by a column of their dataset.

    ``metrics`` are those that any of the runs has (default: all; by a column, the first of each direction). The runs
    need not have the same queries: for a test of a difference there is :func:`crosslens.compare`.
    """
    if not runs:
        raise UsageError("no runs", fix="pass at least one")
    labels = tuple(run_labels(tuple(runs)))
    names = _chosen(runs, metrics, column)
    values: dict[str, dict[str, dict[str, MetricValues]]] = {name: {} for name in names}
    overlapping = False
    for label, run in zip(labels, runs, strict=True):
        present = [name for name in names if name in run.values]
        groups = group_metrics(run, column, present, seed=seed) if column is not None and present else None
        overlapping |= groups is not None and groups.overlapping
        for name in present:
            values[name][label] = {**(groups.values[name] if groups is not None else {}), WHOLE: run[name]}
    left_out = {name: _keep_largest(values[name], largest) for name in names}
    column = None if column is None else column_of(runs[0], column)
    return SideBySide(labels, values, column, left_out, overlapping, tuple(notes_on_protocols(runs)))


def _keep_largest(runs: dict[str, dict[str, MetricValues]], largest: int | None) -> int:
    """Drop all but the groups with the most queries in all runs together; how many that are."""
    sizes: dict[str, int] = {}
    for groups in runs.values():
        for group, values in groups.items():
            sizes[group] = sizes.get(group, 0) + values.n
    sizes.pop(WHOLE, None)
    dropped = [] if largest is None else sorted(sizes, key=lambda group: -sizes[group])[largest:]
    for groups in runs.values():
        for group in dropped:
            groups.pop(group, None)
    return len(dropped)


def _chosen(runs: Sequence[Run], metrics: str | Sequence[str] | None, column: str | None) -> list[str]:
    possible = list(dict.fromkeys(name for run in runs for name in (groupable_metrics(run, column) if column else run)))
    if metrics is None:
        return possible if column is None else _first_of_each_direction(possible)
    chosen: dict[str, None] = {}
    for metric in metric_names(metrics):
        names = [name for name in _anywhere(runs, metric) if name in possible]
        if not names:
            raise UsageError(f"{metric} has no values by {column}", fix=f"choose from {', '.join(possible)}")
        chosen |= dict.fromkeys(names)
    return list(chosen)


def _anywhere(runs: Sequence[Run], metric: str) -> list[str]:
    """The full names of a metric in whichever run has it; unknown in all, the error is that of the first."""
    known = {name: run for run in runs for name in run}
    joined = Run("any", {name: run[name] for name, run in known.items()})
    return select_metrics(joined, [metric])


def _first_of_each_direction(names: Sequence[str]) -> list[str]:
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(split_name(name)[0], name)
    return list(first.values())


def _figures(column: Sequence[MetricValues | None]) -> list[str]:
    return ["" if values is None else format_figure(values.name, values.mean) for values in column]
