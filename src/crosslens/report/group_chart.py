"""A metric of runs by group: which groups, in which order, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from crosslens.core import (
    DIRECTION_LABELS,
    Bars,
    Cell,
    Figure,
    MetricValues,
    Presented,
    Run,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    split_name,
)
from crosslens.metrics import dataset_name, facts_of, format_count, metric_figure, select_metrics, unit_of
from crosslens.pipeline import run_labels
from crosslens.report.groups import (
    NO_VALUE,
    GroupedMetrics,
    column_of,
    group_metrics,
    groupable_metrics,
    grouping_columns,
)

PREFERRED = "t2i/Hit@1"
"""What is drawn by default, where all runs have it."""
WHOLE = "all queries"
"""The group of a figure without groups."""
_QUERIES = {"i2t": "image query", "t2i": "caption query"}


@dataclass(frozen=True)
class GroupSeries:
    """One run in a figure: its figure over all queries, and over each group that it has."""

    name: str
    whole: MetricValues
    groups: Mapping[str, MetricValues]


@dataclass(frozen=True)
class GroupChart(Presented):
    """One metric of one or several runs by one column.

    ``groups`` are in the order in which they are drawn; a run need not have all of them. ``left_out`` says how many
    smaller groups are not among them.
    """

    metric: str
    column: str
    groups: tuple[str, ...]
    series: tuple[GroupSeries, ...]
    dataset: str = ""
    left_out: int = 0
    overlapping: bool = False

    @property
    def title(self) -> str:
        """The metric, its direction and the column."""
        direction, metric = split_name(self.metric)
        by = f", by {self.column}" if self.column else ""
        return f"{metric}, {DIRECTION_LABELS.get(direction, direction)}{by}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What a reader has to know beside the title: the data, the queries, the interval, which way is better."""
        shown = " and ".join(
            dict.fromkeys(f"{100 * values.level:g}%" for values in self._values() if isfinite(values.low))
        )
        facts = [
            " on ".join(part for part in (self._alone(), self.dataset) if part),
            self._queries(),
            f"{shown} intervals over images" if shown else "no intervals",
            f"{'higher' if facts_of(self.metric).higher_is_better else 'lower'} is better",
        ]
        if self.left_out:
            facts.append(f"{format_count(self.left_out, 'smaller group')} not shown")
        if self.overlapping:
            facts.append(f"a query with several values of {self.column} counts in each of their groups")
        return tuple(fact for fact in facts if fact)

    def sections(self, **options: Any) -> Iterator[Section]:
        """A bar for each group of each run, the numbers, and what a reader has to know."""
        several, share = len(self.series) > 1, unit_of(self.metric) == "share"
        rows: list[tuple[Cell, ...]] = [
            (group, *((own.name,) if several else ()), _figure(self.metric, own.groups[group]), own.groups[group].n)
            for group in self.groups
            for own in self.series
            if group in own.groups
        ]
        name = split_name(self.metric)[1]
        runs = ("run",) if several else ()
        table = Table(
            (self.column or "queries of", *runs, name, "queries"),
            tuple(rows),
            "l" * len(runs) + "lrr",
            names=1 + len(runs),
        )
        yield Section(self.title, (self._bars(name, share), table, Text.of(" · ".join(self.facts), note=True)))

    def _bars(self, name: str, share: bool) -> Bars:
        marked = self.column and len(self.series) == 1
        wholes = [_figure(self.metric, own.whole) for own in self.series]
        return Bars(
            title=self.title, about="| is the figure over all queries" if marked else "", groups=self.groups,
            series=tuple(
                Series(f"{own.name} ({whole.number} over all)",
                       tuple(_figure(self.metric, own.groups.get(group)) for group in self.groups))
                for own, whole in zip(self.series, wholes, strict=True)
            ),
            heading=self.column or "queries of", axis=f"{name}, %" if share else name,
            limits=(0.0, 1.0) if share else None,
            mark=Series("all queries", (metric_figure(self.metric, self.series[0].whole.mean),) * len(self.groups))
            if marked else None,
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        runs = {own.name: {group: values.as_dict() for group, values in own.groups.items()} for own in self.series}
        return {"metric": self.metric, "by": self.column or None, "runs": runs}

    def _alone(self) -> str:
        """The name of the only run; several are named in the legend."""
        return self.series[0].name if len(self.series) == 1 else ""

    def _values(self) -> list[MetricValues]:
        return [values for series in self.series for values in series.groups.values()]

    def _queries(self) -> str:
        noun = _QUERIES.get(split_name(self.metric)[0], "query")
        counts = [series.whole.n for series in self.series]
        if len(set(counts)) == 1:
            return format_count(counts[0], noun)
        several = ", ".join(f"{series.whole.n:,} ({series.name})" for series in self.series)
        return f"{several} {format_count(0, noun).removeprefix('0 ')}"


def _figure(metric: str, values: MetricValues | None) -> Figure:
    return (
        metric_figure(metric, None) if values is None else metric_figure(metric, values.mean, values.low, values.high)
    )


def chart(
    runs: Run | Sequence[Run],
    column: str | None = None,
    metric: str | None = None,
    *,
    largest: int | None = 20,
    seed: int = 0,
) -> GroupChart:
    """One metric of the runs by a column of their dataset (without one, over all queries), ready to be drawn.

    Without ``metric`` it is ``t2i/Hit@1``, or the first that all runs have. Numbers keep their order; other groups
    are in the order of the first run's figures, the best first. ``largest`` keeps that many groups.
    """
    runs = [runs] if isinstance(runs, Run) else list(runs)
    if not runs:
        raise UsageError("no runs to draw", fix="pass at least one")
    if column is None:
        return _whole_chart(runs, metric)
    name = _shared_metric(runs, column) if metric is None else _one_metric(runs, column, metric)
    grouped = [group_metrics(run, column, name, seed=seed) for run in runs]
    kept, left_out = _largest([groups.values[name] for groups in grouped], largest)
    labels = run_labels(tuple(runs))
    series = tuple(
        GroupSeries(
            label, run[name], {group: groups.values[name][group] for group in kept if group in groups.values[name]}
        )
        for label, run, groups in zip(labels, runs, grouped, strict=True)
    )
    datasets = dict.fromkeys(dataset_name(run) for run in runs)
    return GroupChart(
        name,
        grouped[0].column,
        _ordered(kept, grouped[0], runs[0], name),
        series,
        dataset=next(iter(datasets)) if len(datasets) == 1 else "",
        left_out=left_out,
        overlapping=any(groups.overlapping for groups in grouped),
    )


def _whole_chart(runs: Sequence[Run], metric: str | None) -> GroupChart:
    """All queries as a single group, which every run has."""
    names = [name for name in select_metrics(runs[0], metric) if all(name in run.values for run in runs)]
    if not names:
        raise UsageError("the runs have no such metric in common", fix="name a metric that all of them have")
    if metric is not None and len(names) > 1:
        raise _several_directions(metric, names)
    name = PREFERRED if metric is None and PREFERRED in names else names[0]
    labels = run_labels(tuple(runs))
    series = tuple(GroupSeries(label, run[name], {WHOLE: run[name]}) for label, run in zip(labels, runs, strict=True))
    datasets = dict.fromkeys(dataset_name(run) for run in runs)
    return GroupChart(name, "", (WHOLE,), series, dataset=next(iter(datasets)) if len(datasets) == 1 else "")


def _several_directions(metric: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        f"{metric} has values in {len(names)} directions, and a figure shows one", fix=f"choose {' or '.join(names)}"
    )


def _shared_metric(runs: Sequence[Run], column: str) -> str:
    possible = groupable_metrics(runs[0], column)
    shared = [name for name in possible if all(name in groupable_metrics(run, column) for run in runs[1:])]
    if not shared:
        raise UsageError(
            f"the runs have no metric by {column} in common",
            fix="evaluate the runs with the same metrics and the same dataset",
        )
    return PREFERRED if PREFERRED in shared else shared[0]


def _one_metric(runs: Sequence[Run], column: str, metric: str) -> str:
    """The full name of the chosen metric, which every run must have, by this column."""
    for run in runs:
        column_of(run, column)
    names = select_metrics(runs[0], [metric])
    usable = [name for name in names if name in groupable_metrics(runs[0], column)]
    if not usable:
        raise UsageError(
            f"{metric} has no values by {column}", fix=f"choose from {', '.join(groupable_metrics(runs[0], column))}"
        )
    everywhere = [name for name in usable if all(name in run.values for run in runs)]
    if not everywhere:
        lacking = next(run for run in runs if usable[0] not in run.values)
        raise UnknownNameError(f"metric in {lacking.name!r}", usable[0], lacking.values)
    if len(everywhere) > 1:
        raise _several_directions(metric, everywhere)
    return everywhere[0]


def _largest(grouped: Sequence[Mapping[str, MetricValues]], largest: int | None) -> tuple[list[str], int]:
    """The groups with the most queries in all runs together; those without any query that counts are no groups."""
    sizes: dict[str, int] = {}
    for groups in grouped:
        for group, values in groups.items():
            sizes[group] = sizes.get(group, 0) + values.n
    with_values = [group for group, size in sizes.items() if size]
    kept = sorted(with_values, key=lambda group: -sizes[group])[:largest]
    return kept, len(with_values) - len(kept)


def _ordered(kept: Sequence[str], groups: GroupedMetrics, run: Run, name: str) -> tuple[str, ...]:
    values = groups.values[name]
    labels = grouping_columns(run, split_name(name)[0])[groups.column]
    present = [group for group in values if group in kept] + [group for group in kept if group not in values]
    if labels.dtype.is_numeric() or labels.dtype == pl.Boolean:
        return tuple(sorted(present, key=lambda group: (group == NO_VALUE, *_number(group, present))))
    sign = -1.0 if facts_of(name).higher_is_better else 1.0
    return tuple(sorted(present, key=lambda group: sign * values[group].mean if group in values else float("inf")))


def _number(group: str, present: Sequence[str]) -> tuple[float, int]:
    """The sort key of a group of numbers; parts of a range are in order already."""
    try:
        return float(group), 0
    except ValueError:
        return 0.0, present.index(group)
