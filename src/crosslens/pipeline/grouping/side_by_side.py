"""Runs side by side: tables with a column per run and a row per metric or group, and charts of one metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import isfinite
from typing import Any

import polars as pl

from crosslens.analyze import NO_VALUE
from crosslens.comparisons import grouping_columns, notes_on_protocols, notes_on_published, run_labels
from crosslens.core import ABSENT, Bars, Cell, Presented, Row, Section, Table, Text, UnknownNameError, UsageError
from crosslens.metrics import dataset_name, facts_of, format_count, metric_figure
from crosslens.pipeline.evaluations.sections import share_bars, table_notes, value_figure
from crosslens.pipeline.grouping.groups import (
    chosen_metrics,
    column_of,
    group_bars,
    group_metrics,
    metric_title,
    several_values,
    smaller_groups,
)
from crosslens.storage import json_form
from crosslens.values import BOTH, DIRECTION_LABELS, MetricValues, Run, split_name

WHOLE = "(all)"
"""The row with the figure over all queries, under those of the groups."""
PREFERRED = "t2i/Hit@1"
"""What is drawn by default, where all runs have it."""
_QUERIES = {"i2t": "image query", "t2i": "caption query"}

RunGroups = Mapping[str, Mapping[str, MetricValues]]
"""Run, group, figures."""


@dataclass(frozen=True)
class SideBySide(Presented):
    """``values["t2i/Hit@1"]["v0"]["colour"]``: a metric of a run over a group; without ``column`` over ``(all)`` only.

    A run that lacks a metric or a group is not there. ``left_out`` says how many smaller groups of a metric are not.
    """

    runs: tuple[str, ...]
    values: Mapping[str, RunGroups]
    column: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    overlapping: bool = False
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return ", ".join(self.runs) + (f", by {self.column}" if self.column else "")

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: metric, run, group, figures; fractions, never percent."""
        head = {"runs": self.runs, **({"notes": self.notes} if self.notes else {})}
        if self.column is None:
            whole = {name: {run: groups[WHOLE] for run, groups in runs.items()} for name, runs in self.values.items()}
            return json_form({**head, "metrics": whole})
        facts = {"by": self.column, "overlapping": self.overlapping, "left_out": self.left_out}
        return json_form({**head, **facts, "metrics": self.values})

    def in_order(self, groups: Sequence[str]) -> SideBySide:
        """These runs with these groups first, in this order."""
        values = {
            metric: {
                run: {group: values[group] for group in dict.fromkeys([*groups, *values]) if group in values}
                for run, values in runs.items()
            }
            for metric, runs in self.values.items()
        }
        return replace(self, values=values)

    def sections(self) -> Iterator[Section]:
        """Tables with intervals, where a terminal has room for them, what the figures are, and the same as charts."""
        charts: tuple[Bars, ...]
        if self.column is None:
            whole = {
                metric: {run: groups[WHOLE] for run, groups in runs.items()} for metric, runs in self.values.items()
            }
            tables, charts = {"": whole}, share_bars(self.title, whole)
        else:
            tables = {}
            for metric, runs in self.values.items():
                groups = dict.fromkeys(group for figures in runs.values() for group in figures if group != WHOLE)
                tables[metric] = {
                    group: {run: figures[group] for run, figures in runs.items() if group in figures}
                    for group in (*groups, WHOLE)
                }
            charts = tuple(
                group_bars(
                    metric, self.column, [group for group in tables[metric] if group != WHOLE], runs,
                    {run: groups[WHOLE] for run, groups in runs.items()},
                )
                for metric, runs in self.values.items()
            )  # fmt: skip
        parts = [
            replace(self._table(metric, rows), narrow=self._table(metric, rows, intervals=False))
            for metric, rows in tables.items()
        ]
        yield Section("", (*parts, Row(charts)) if charts else tuple(parts))

    def _table(self, metric: str, rows: RunGroups, *, intervals: bool = True) -> Table:
        """The notes are under the last table, and about all of them."""

        def cell(values: MetricValues | None) -> Cell:
            if values is None:
                return ABSENT
            return value_figure(values) if intervals else metric_figure(values.name, values.mean)

        cells = tuple((name, *(cell(row.get(run)) for run in self.runs)) for name, row in rows.items())
        notes = smaller_groups(self.left_out.get(metric, 0))
        notes += tuple(self._notes(intervals)) if metric in ("", list(self.values)[-1]) else ()
        title = metric_title(metric) if metric else ""
        return Table((self.column or "metric", *self.runs), cells, "l" + "r" * len(self.runs), title, notes)

    def _notes(self, intervals: bool) -> Iterator[str]:
        """How many queries each run has, by direction: runs with different queries are no paired comparison."""
        directions = _first_of_each_direction(self.values)
        if len(directions) > 1:
            directions.pop(BOTH, None)  # its queries are the images, which are there already
        for direction, metric in directions.items():
            counts = {
                run: f"{whole.n:,}" if len(whole.values) else "unknown"  # of published figures
                for run, whole in ((run, groups[WHOLE]) for run, groups in self.values[metric].items())
            }
            same = len(set(counts.values())) == 1
            counted = ", ".join(f"{run} {n}" for run, n in counts.items())
            counted = f"{next(iter(counts.values()))} each" if same else counted
            yield f"Queries, {DIRECTION_LABELS.get(direction, direction)}: {counted}."
        first = {metric: next(iter(runs.values()))[WHOLE] for metric, runs in self.values.items()}
        yield from table_notes(first, intervals=intervals)[1:]
        if not intervals:
            yield "Intervals do not fit: see crosslens plot, or one run at a time."
        if self.overlapping and self.column:
            yield several_values(self.column)
        yield from self.notes


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
    # Benchmarks publish dozens of figures: beside runs, those that the runs have, too.
    evaluated = [run for run in runs if not run.published] if metrics is None else []
    names = chosen_metrics(evaluated or runs, metrics, column)
    if metrics is None and column is not None:
        names = list(_first_of_each_direction(names).values())
    values: dict[str, dict[str, dict[str, MetricValues]]] = {name: {} for name in names}
    overlapping = False
    for label, run in zip(labels, runs, strict=True):
        present = [name for name in names if name in run.values]
        groups = group_metrics(run, column, present, seed=seed) if column is not None and present else None
        overlapping |= groups is not None and groups.overlapping
        for name in present:
            values[name][label] = {**(groups.values[name] if groups is not None else {}), WHOLE: run[name]}
    left_out = dict.fromkeys(names, 0)
    for name in names if largest is not None else ():
        dropped = _by_size(values[name])[largest:]
        left_out[name] = len(dropped)
        for by_group, group in product(values[name].values(), dropped):
            by_group.pop(group, None)
    column = None if column is None else column_of(runs[0], column)
    return SideBySide(
        labels, values, column, left_out, overlapping, (*notes_on_protocols(runs), *notes_on_published(runs))
    )


def _by_size(runs: RunGroups, fewest: int = 0) -> list[str]:
    """The groups with at least ``fewest`` queries in all runs together, the largest first."""
    sizes: Counter[str] = Counter()
    for groups in runs.values():
        sizes.update({group: values.n for group, values in groups.items() if group != WHOLE})
    return sorted((group for group, size in sizes.items() if size >= fewest), key=lambda group: -sizes[group])


@dataclass(frozen=True)
class GroupChart(Presented):
    """One metric of one or several runs by one column; ``whole`` are the figures over all queries.

    ``groups`` are in the order in which they are drawn; a run need not have all of them. ``left_out`` says how many
    smaller groups are not among them.
    """

    metric: str
    column: str
    groups: tuple[str, ...]
    runs: RunGroups
    whole: Mapping[str, MetricValues]
    dataset: str = ""
    left_out: int = 0
    overlapping: bool = False

    @property
    def title(self) -> str:
        return metric_title(self.metric, self.column)

    @property
    def facts(self) -> tuple[str, ...]:
        """What a reader has to know beside the title: the data, the queries, the interval, which way is better."""
        values = [figure for groups in self.runs.values() for figure in groups.values()]
        levels = " and ".join(dict.fromkeys(f"{100 * figure.level:g}%" for figure in values if isfinite(figure.low)))
        alone = next(iter(self.runs)) if len(self.runs) == 1 else ""  # several are named in the legend
        noun = _QUERIES.get(split_name(self.metric)[0], "query")
        counts = {run: values.n for run, values in self.whole.items()}
        queries = format_count(next(iter(counts.values())), noun)
        if len(set(counts.values())) > 1:
            each = ", ".join(f"{n:,} ({run})" for run, n in counts.items())
            queries = f"{each} {format_count(0, noun).removeprefix('0 ')}"
        facts = (
            " on ".join(part for part in (alone, self.dataset) if part),
            queries,
            f"{levels} intervals over images" if levels else "no intervals",
            f"{'higher' if facts_of(self.metric).higher_is_better else 'lower'} is better",
            f"{format_count(self.left_out, 'smaller group')} not shown" if self.left_out else "",
            f"a query with several values of {self.column} counts in each of their groups" if self.overlapping else "",
        )
        return tuple(fact for fact in facts if fact)

    def sections(self) -> Iterator[Section]:
        """A bar for each group of each run, the numbers, and what a reader has to know."""
        several = len(self.runs) > 1
        rows: list[tuple[Cell, ...]] = [
            (group, *((run,) if several else ()), value_figure(groups[group]), groups[group].n)
            for group in self.groups
            for run, groups in self.runs.items()
            if group in groups
        ]
        names = (self.column or "queries of", *(("run",) if several else ()))
        header = (*names, split_name(self.metric)[1], "queries")
        table = Table(header, tuple(rows), "l" * len(names) + "rr", names=len(names))
        bars = group_bars(self.metric, self.column, self.groups, self.runs, self.whole)
        yield Section(self.title, (bars, table, Text.of(" · ".join(self.facts), note=True)))

    def as_dict(self) -> dict[str, Any]:
        return json_form({"metric": self.metric, "by": self.column or None, "runs": self.runs})


def plot(
    runs: Run | Sequence[Run],
    column: str | None = None,
    metric: str | None = None,
    *,
    largest: int | None = 20,
    seed: int = 0,
) -> GroupChart:
    """One metric of the runs by a column of their dataset, ready to be drawn.

    Numbers keep their order; other groups are in the order of the first run's figures, the best first.

    Args:
        runs: One or several.
        column: The column that makes the groups; without one, the chart is over all queries.
        metric: By default ``t2i/Hit@1``, or the first that all runs have.
        largest: How many groups are kept.
        seed: Seed of the intervals.
    """
    runs = [runs] if isinstance(runs, Run) else list(runs)
    if not runs:
        raise UsageError("no runs to draw", fix="pass at least one")
    name = _shared_metric(runs, column, metric)
    table = side_by_side(runs, name, column=column, seed=seed)
    values = table.values[name]
    whole = {run: groups[WHOLE] for run, groups in values.items()}
    datasets = list(dict.fromkeys(map(dataset_name, runs)))
    dataset = datasets[0] if len(datasets) == 1 else ""
    if table.column is None:
        everything = "all queries"
        bars = {run: {everything: values} for run, values in whole.items()}
        return GroupChart(name, "", (everything,), bars, whole, dataset)
    counted = _by_size(values, fewest=1)
    top = counted[:largest]
    grouped = {run: {group: groups[group] for group in top if group in groups} for run, groups in values.items()}
    first = values[table.runs[0]]
    order = [group for group in first if group in top] + [group for group in top if group not in first]
    labels = grouping_columns(runs[0], split_name(name)[0])[table.column]
    if labels.dtype.is_numeric() or labels.dtype == pl.Boolean:
        # Parts of a range are no numbers, and in order already.
        numbers = dict(zip(order, pl.Series(order).cast(pl.Float64, strict=False).fill_null(0.0), strict=True))
        order.sort(key=lambda group: (group == NO_VALUE, numbers[group]))
    else:  # those that the first run lacks are last
        sign = -1.0 if facts_of(name).higher_is_better else 1.0
        order.sort(key=lambda group: sign * first[group].mean if group in first else float("inf"))
    left_out = len(counted) - len(top)
    return GroupChart(name, table.column, tuple(order), grouped, whole, dataset, left_out, table.overlapping)


def _shared_metric(runs: Sequence[Run], column: str | None, metric: str | None) -> str:
    """The full name of the chosen metric, which every run must have."""
    names = chosen_metrics(runs, metric, column)
    shared = [name for name in names if all(name in run.values for run in runs)]
    if not shared and metric is None:
        raise UsageError(
            f"the runs have no metric{f' by {column}' if column else ''} in common",
            fix="evaluate the runs with the same metrics and the same dataset",
        )
    if not shared:
        lacking = next(run for run in runs if names[0] not in run.values)
        raise UnknownNameError(f"metric in {lacking.name!r}", names[0], lacking.values)
    if metric is not None and len(shared) > 1:
        raise UsageError(
            f"{metric} has values in {len(shared)} directions, and a figure shows one",
            fix=f"choose {' or '.join(shared)}",
        )
    return PREFERRED if metric is None and PREFERRED in shared else shared[0]


def _first_of_each_direction(names: Iterable[str]) -> dict[str, str]:
    """Direction → the first metric of it."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(split_name(name)[0], name)
    return first
