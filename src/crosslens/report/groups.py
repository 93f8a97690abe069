"""Results by group: any column of the dataset splits the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    DIRECTION_LABELS,
    Bars,
    Cell,
    MetricValues,
    Presented,
    Row,
    Run,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    split_name,
)
from crosslens.language import count_words
from crosslens.metrics import bounds_of, facts_of, format_count, metric_figure, metric_names, select_metrics, unit_of
from crosslens.pipeline import Need, StageOutput, StageWork, audit_stage, table_notes, value_figure
from crosslens.statistics import estimate

RowIndices = np.ndarray[Any, np.dtype[np.int64]]

NO_VALUE = "(none)"
CAPTION_LENGTH = "caption_length"
"""The words of a caption query: a column that every run with captions has."""
_MOST_NUMBERS = 12
"""A column of numbers with more distinct values than this is split at its quartiles."""
_METRICS = ("Hit@1", "Hit@10", "Hit@5", "MRR")
"""What an audit groups; a quick one, the first ``_QUICK`` of them."""
_QUICK = 2
_MOST_GROUPS = 20
_MOST_COLUMNS = 12


@dataclass(frozen=True)
class GroupedMetrics(Presented):
    """``values["t2i/Hit@1"]["zebra"]`` is that metric over the queries whose ``column`` says zebra.

    ``left_out`` says how many smaller groups of a direction are not there; ``overlapping``, whether a query can be in
    several groups; ``whole`` has the figures over all queries.
    """

    column: str
    values: Mapping[str, Mapping[str, MetricValues]]
    overlapping: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, MetricValues] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The run and the column."""
        return f"{self.name}, by {self.column}"

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the run, and its figures."""
        return {"name": self.name, **({"protocol": dict(self.protocol)} if self.protocol else {}), **self.figures()}

    def figures(self) -> dict[str, Any]:
        """Metric, group, figures."""
        return {
            "by": self.column,
            "overlapping": self.overlapping,
            "left_out": dict(self.left_out),
            "metrics": {
                name: {group: values.as_dict() for group, values in groups.items()}
                for name, groups in self.values.items()
            },
        }

    def sections(self, **options: Any) -> Iterator[Section]:
        """A table per direction, a row per group, the largest first; below, a chart of each metric."""
        tables = [self._direction(name) for name in dict.fromkeys(split_name(name)[0] for name in self.values)]
        shown = {name: next(iter(groups.values())) for name, groups in self.values.items()}
        notes = table_notes(shown)[1:]  # the counts are in the table
        if self.overlapping:
            notes.insert(0, several_values(self.column))
        charts = (
            group_bars(name, self.column, tuple(groups), {self.name: groups}, {self.name: self.whole[name]})
            for name, groups in self.values.items()
        )
        yield Section("", (*tables, Text(tuple(notes), note=True), Row(tuple(charts))))

    def _direction(self, direction: str) -> Table:
        names = [name for name in self.values if split_name(name)[0] == direction]
        first = self.values[names[0]]
        rows: list[tuple[Cell, ...]] = [
            (group, first[group].n, *(value_figure(self.values[name][group]) for name in names)) for group in first
        ]
        return Table(
            (self.column, "queries", *(split_name(name)[1] for name in names)), tuple(rows), "lr" + "l" * len(names),
            title=DIRECTION_LABELS.get(direction, direction), notes=smaller_groups(self.left_out.get(direction, 0)),
        )  # fmt: skip


def smaller_groups(number: int) -> tuple[str, ...]:
    """The note under a table that lacks so many groups."""
    return (f"… and {format_count(number, 'smaller group')}",) if number else ()


def several_values(column: str) -> str:
    """The note on groups that overlap."""
    return f"A query with several values of {column} counts in each of their groups."


def metric_title(metric: str, column: str | None = None) -> str:
    """A metric, its direction and the column."""
    direction, name = split_name(metric)
    return f"{name}, {DIRECTION_LABELS.get(direction, direction)}" + (f", by {column}" if column else "")


def group_bars(
    metric: str,
    column: str | None,
    groups: Sequence[str],
    runs: Mapping[str, Mapping[str, MetricValues]],
    whole: Mapping[str, MetricValues],
) -> Bars:
    """A bar for each group of each run; of a single run, a mark at its figure over all queries."""
    share, name = unit_of(metric) == "share", split_name(metric)[1]
    marked = column and len(runs) == 1
    wholes = {run: metric_figure(metric, values.mean) for run, values in whole.items()}
    empty = metric_figure(metric, None)
    return Bars(
        title=metric_title(metric, column),
        about="| is the figure over all queries" if marked else "",
        groups=tuple(groups),
        series=tuple(
            Series(
                f"{run} ({wholes[run].number} over all)",
                tuple(value_figure(own[group]) if group in own else empty for group in groups),
            )
            for run, own in runs.items()
        ),
        heading=column or "queries of", axis=f"{name}, %" if share else name, limits=(0.0, 1.0) if share else None,
        mark=Series("all queries", tuple(wholes.values()) * len(groups)) if marked else None,
    )  # fmt: skip


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
    whole = {name: run[name] for name in grouped}
    return GroupedMetrics(column, grouped, overlapping, left_out, run.name, run.protocol, whole)


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


def _useful_columns(run: Run) -> list[str]:
    """The columns that split the queries into some groups, but not into single queries."""
    return [name for name in group_names(run) if _is_useful(run, name)][:_MOST_COLUMNS]


def _is_useful(run: Run, column: str) -> bool:
    for table in run.columns.values():
        if column in table.columns and not table[column].dtype.is_nested():
            values = table[column].drop_nulls()
            if 1 < values.n_unique() <= max(2, len(values) // 5):
                return True
    return column == CAPTION_LENGTH and any("text" in table.columns for table in run.columns.values())


def _without_columns(work: StageWork) -> str | None:
    return None if _useful_columns(work.run.evaluated) else "the dataset has none"


@audit_stage(
    "groups", about="run", order=30, needs=(Need("columns that make groups", _without_columns),), cost=(1, 0.5)
)
def audited_groups(work: StageWork) -> StageOutput:
    """Metrics by every column of the dataset that makes groups, and by caption length."""
    run, options = work.run.evaluated, work.options
    wanted = _METRICS[:_QUICK] if options.quick else _METRICS
    tables: list[dict[str, Any]] = []
    for column in _useful_columns(run):
        names = [name for name in groupable_metrics(run, column) if split_name(name)[1] in wanted]
        if names:
            grouped = group_metrics(
                run, column, names, largest=_MOST_GROUPS, seed=options.seed, resamples=options.resamples
            )
            tables.append(grouped.figures())
    command = f"crosslens show {work.run.folder} --by {'|'.join(table['by'] for table in tables)}"
    return StageOutput({"name": run.name, "groups": tables}, command)
