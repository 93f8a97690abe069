"""Results by group: any column of the dataset, or of a table of one's own, splits the queries of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from crosslens.analyze import NO_VALUE, label_groups
from crosslens.comparisons import (
    CAPTION_LENGTH,
    Comparison,
    MetricComparison,
    PermutationOptions,
    compare,
    corrected,
    difference_figure,
    disagreements,
    grouping_columns,
    letter_sentence,
    primary_metric,
    run_letters,
    significance_sentences,
)
from crosslens.core import (
    Bars,
    Cell,
    Figure,
    InputError,
    Presented,
    Row,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    accepts_options,
    refuse_other_keywords,
)
from crosslens.data import as_numbers, existing_file, load_dataset, read_table
from crosslens.explanations import CAUSES, Overview, cause_column
from crosslens.metrics import (
    RSUM_CUTOFFS,
    bounds_of,
    facts_of,
    format_count,
    metric_figure,
    metric_names,
    select_metrics,
    unit_of,
    unit_sentence,
)
from crosslens.pipeline.evaluations.sections import table_notes, value_figure
from crosslens.pipeline.robustness_study.study import Robustness
from crosslens.statistics import estimate
from crosslens.storage import IntArray, json_form
from crosslens.values import BOTH, DIRECTION_LABELS, IMAGE_TO_TEXT, MetricValues, Run, split_name

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import GroupTestKeywords

_SMALLEST = 2
"""Queries that a group must have to be compared."""
_KEYS = ("caption", "image")


# Columns of a table of one's own


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """What ``--columns`` reads: a row per caption, or per image where the table has no captions.

    A caption's columns group caption queries; an image's columns group image queries and the captions of those images.
    A key that occurs with several values of a column has the list of them.
    """

    table: pl.DataFrame
    key: str
    file: str

    @property
    def names(self) -> list[str]:
        return [name for name in self.table.columns if name != self.key]

    def of(self, ids: Sequence[str]) -> tuple[pl.DataFrame, int]:
        """The columns in the order of these ids, null where the table does not have one; and how many it has."""
        keys = pl.DataFrame({self.key: list(ids)}, schema={self.key: pl.String})
        count = int(keys[self.key].is_in(self.table[self.key].to_list()).sum())
        return keys.join(self.table, on=self.key, how="left", maintain_order="left").drop(self.key), count

    def groups(self, column: str, ids: Sequence[str], what: str) -> tuple[dict[str, str], list[str]]:
        """The value of one column for each id that has one, and notes; a table that knows none of the ids raises."""
        if column not in self.names:
            raise UnknownNameError("column", column, self.names)
        table, count = self.of(ids)
        note = self.check(count, len(ids), what, ids[0] if len(ids) else "")
        values = table[column]
        if isinstance(values.dtype, pl.List):
            raise UsageError(f"{self.file} has several values of {column} for one {self.key}", fix="keep one of them")
        labels = values.cast(pl.String).to_list()
        return {query: label for query, label in zip(ids, labels, strict=True) if label is not None}, note

    def check(self, count: int, total: int, what: str, example: str) -> list[str]:
        """A note where some ids are not in the table; an error where none is."""
        if not count:
            raise InputError(
                f"none of the {total:,} {what} is in the column {self.key!r}, such as {example!r}",
                file=self.file,
                expected=f"ids of the run's {self.key}s; the table has ids such as {self.table[self.key][0]!r}",
                fix="check that the table is of the same dataset and split",
                code="no-shared-ids",
            )
        if count == total:
            return []
        return [f"{total - count:,} of the {total:,} {what} are not in {self.file}: they have no value of its columns"]


def read_columns(path: str | Path) -> ColumnTable:
    """Read a .parquet, .csv or .tsv table with a column ``caption`` or ``image`` and others.

    Of a folder that FiftyOne exported, the tags and fields of its images.
    """
    if Path(path).is_dir():
        table = load_dataset("fiftyone", folder=path).images.drop("file")
    else:
        path = existing_file(path)
        table = read_table(path).frame
    key = next((name for name in _KEYS if name in table.columns), None)
    names = [name for name in table.columns if name not in _KEYS]
    if key is None or not names:
        raise InputError(
            f"the columns are {', '.join(table.columns) or 'none'}",
            file=path,
            expected="a column caption or image, and others to group by",
            fix="rename the column that holds the ids" if key is None else "add a column",
        )
    if not table.height:
        raise InputError("the table has no rows", file=path, expected="at least one row", fix="check the path")
    table = table.with_columns(pl.col(key).cast(pl.String), *(as_numbers(table[name]) for name in names))
    if table[key].n_unique() < table.height:
        table = table.group_by(key, maintain_order=True).agg(
            pl.col(name).drop_nulls().unique(maintain_order=True) for name in names
        )
        single = [name for name in names if (table[name].list.len() <= 1).all()]
        table = table.with_columns(pl.col(name).list.first() for name in single)
    return ColumnTable(table.select(key, *names), key, str(path))


def add_columns(run: Run, added: ColumnTable) -> tuple[Run, list[str]]:
    """The run with the columns beside its own, and notes about queries without a row; nothing shared raises.

    A column that the run has under the same name gives way to the table's, which was named on purpose.
    """
    columns, notes = dict(run.columns), []
    keys: dict[str, tuple[str, ...]] = {}
    for name, values in run.values.items():
        direction = split_name(name)[0]
        if direction in keys or direction == BOTH:  # sums over both directions have no queries to group
            continue
        existing = columns.get(direction, pl.DataFrame())
        if (direction == IMAGE_TO_TEXT) == (added.key == "image"):
            keys[direction] = values.query_ids
        elif direction != IMAGE_TO_TEXT and "image" in existing.columns:
            keys[direction] = tuple(existing["image"].cast(pl.String))
    matched = {direction: added.of(ids) for direction, ids in keys.items() if ids}
    if not any(count for _, count in matched.values()):
        ids = next(iter(keys.values()), ())
        added.check(0, len(ids), f"{added.key}s of the run {run.name!r}", ids[0] if ids else "")
    for direction, (table, count) in matched.items():
        existing = columns.get(direction, pl.DataFrame())
        replaced = [name for name in added.names if name in existing.columns]
        notes += [f"{name} is that of {added.file}; the run has a {name} of its own" for name in replaced]
        existing = existing.drop(replaced)
        notes += added.check(count, table.height, f"{direction} queries", keys[direction][0])
        columns[direction] = pl.concat([existing, table], how="horizontal") if existing.width else table
    return replace(run, columns=columns), notes


# Metrics by group


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
        return f"{self.name}, by {self.column}"

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, **({"protocol": dict(self.protocol)} if self.protocol else {}), **self.figures()}

    def figures(self) -> dict[str, Any]:
        facts = {"by": self.column, "overlapping": self.overlapping, "left_out": self.left_out}
        return json_form({**facts, "metrics": self.values})

    def sections(self) -> Iterator[Section]:
        """A table per direction, a row per group, the largest first; below, a chart of each metric."""
        directions: dict[str, list[str]] = {}
        for name in self.values:
            directions.setdefault(split_name(name)[0], []).append(name)
        tables = []
        for direction, names in directions.items():
            rows: list[tuple[Cell, ...]] = [
                (group, values.n, *(value_figure(self.values[name][group]) for name in names))
                for group, values in self.values[names[0]].items()
            ]
            header = (self.column, "queries", *(split_name(name)[1] for name in names))
            title, notes = DIRECTION_LABELS.get(direction, direction), smaller_groups(self.left_out.get(direction, 0))
            tables.append(Table(header, tuple(rows), "lr" + "l" * len(names), title, notes))
        first = {name: next(iter(groups.values())) for name, groups in self.values.items()}
        texts = [several_values(self.column)] * self.overlapping + table_notes(first)[1:]  # counts are in the table
        charts = (
            group_bars(name, self.column, tuple(groups), {self.name: groups}, {self.name: self.whole[name]})
            for name, groups in self.values.items()
        )
        yield Section("", (*tables, Text(tuple(texts), note=True), Row(tuple(charts))))


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
                tuple(value_figure(figures[group]) if group in figures else empty for group in groups),
            )
            for run, figures in runs.items()
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
    """Metrics of a run over each group of queries, with an interval of its own; the largest groups first.

    A caption query belongs to a group by its own columns, by those of its image, and by ``caption_length``, its words.
    Numbers with many different values are split at their quartiles; a column of lists puts a query into several groups.

    Args:
        run: Its columns are those of the dataset.
        column: The column that makes the groups.
        metrics: Names of metrics; by default all that can be grouped.
        largest: How many groups of each direction are kept; by default all.
        seed: Seed of the intervals.
        resamples: Resamples for the intervals.
    """
    column = column_of(run, column)
    grouped: dict[str, dict[str, MetricValues]] = {}
    left_out: dict[str, int] = {}
    overlapping = False
    for name in chosen_metrics([run], metrics, column):
        labels = _labels(run, name, column)
        assert labels is not None
        overlapping |= isinstance(labels.dtype, pl.List)
        direction = split_name(name)[0]
        # Queries that count in no metric, such as images without captions, alone make no group.
        figures = [run[other].values for other in run if split_name(other)[0] == direction]
        counted = np.asarray(np.isfinite(figures).any(axis=0))
        members = [(group, rows) for group, rows in label_groups(labels) if counted[rows].any()]
        top = members[:largest]
        left_out[direction] = len(members) - len(top)
        grouped[name] = {group: over_queries(run[name], rows, seed=seed, resamples=resamples) for group, rows in top}
    whole = {name: run[name] for name in grouped}
    return GroupedMetrics(column, grouped, overlapping, left_out, run.name, run.protocol, whole)


def _column_names(run: Run) -> set[str]:
    """The names of :func:`grouping_columns` of all directions; counting words only to know of them takes too long."""
    names = {name for table in run.columns.values() for name in table.columns}
    return names | ({CAPTION_LENGTH} if "text" in names else set())


def column_of(run: Run, column: str) -> str:
    """What a dataset's column is called in a run: ``query`` is ``query_``, as a run has its own column of that name."""
    names = _column_names(run)
    if not names:
        raise UsageError(
            f"the run {run.name!r} has no columns to group by",
            fix="evaluate with a dataset: its columns and the length of its captions make groups",
        )
    match = next((candidate for candidate in (column, f"{column}_") if candidate in names), None)
    if match is None:
        raise UnknownNameError("column", column, names)
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
    return {group: tuple(ids[row] for row in rows) for group, rows in label_groups(labels) if group != NO_VALUE}


def group_names(run: Run) -> list[str]:
    """The columns that queries can usefully be grouped by: not those that differ for each of them."""
    return sorted(_column_names(run) - {"text", "image", "file"})


def groupable_metrics(run: Run, column: str) -> list[str]:
    """The metrics of a run that a column can group: at least one.

    Not those over pairs of queries and items, nor sums over both directions: a group's queries do not give its figure.
    """
    column = column_of(run, column)
    directions = {split_name(name)[0]: name for name in run if split_name(name)[0] != BOTH}
    grouped = {direction for direction, name in directions.items() if _labels(run, name, column) is not None}
    names = [name for name in run if split_name(name)[0] in grouped and not facts_of(name).pooled]
    if not names:
        raise UsageError(f"no metric of the run {run.name!r} has values by {column}", fix="choose another column")
    return names


def chosen_metrics(runs: Sequence[Run], metrics: str | Sequence[str] | None, column: str | None) -> list[str]:
    """The full names of metrics that any of the runs has; by a column, only those that it can group."""
    possible = list(dict.fromkeys(name for run in runs for name in (groupable_metrics(run, column) if column else run)))
    if metrics is None:
        return possible
    any_run = runs[0] if len(runs) == 1 else Run("any", {name: run[name] for run in runs for name in run})
    full_names: dict[str, None] = {}
    for metric in metric_names(metrics):
        names = [name for name in select_metrics(any_run, [metric]) if name in possible]
        if not names:
            raise UsageError(f"{metric} has no values by {column}", fix=f"choose from {', '.join(possible)}")
        full_names |= dict.fromkeys(names)
    return list(full_names)


def _labels(run: Run, name: str, column: str) -> pl.Series | None:
    """What the column says of each query of a metric; None where it belongs to the other direction."""
    direction = split_name(name)[0]
    table = grouping_columns(run, direction) if column == CAPTION_LENGTH else run.columns.get(direction, pl.DataFrame())
    # In a run folder both directions share one table: a column of captions is there for images too, all empty.
    return table[column] if column in table.columns and table[column].null_count() < table.height else None


def over_queries(
    values: MetricValues, rows: IntArray, clusters: IntArray | None = None, *, seed: int = 0, resamples: int = 0
) -> MetricValues:
    """A metric over some of its queries, with an interval of its own where there are ``resamples``."""
    part, clusters = values.values[rows], values.clusters[rows] if clusters is None else clusters
    figures = estimate(
        part, clusters, statistic=values.statistic, seed=seed, resamples=resamples, level=values.level,
        bounds=bounds_of(values.name),
    )  # fmt: skip
    return replace(
        values, query_ids=tuple(values.query_ids[row] for row in rows), values=part, clusters=clusters,
        mean=figures.mean, low=figures.low, high=figures.high,
    )  # fmt: skip


def over_same_queries(runs: Mapping[str, Run], metric: str) -> dict[str, Run]:
    """The runs with this metric alone, over the queries that have the same id and the same text in all of them.

    Figures of different galleries can be compared over these alone. Without two such queries there are no runs.
    """
    direction = split_name(metric)[0]
    rows: dict[str, dict[tuple[str, str], int]] = {}
    for name, run in runs.items():
        columns = run.columns.get(direction, pl.DataFrame())
        if metric not in run.values or "text" not in columns.columns:
            return {}
        queries = zip(run[metric].query_ids, columns["text"], strict=True)
        rows[name] = {query: row for row, query in enumerate(queries)}
    first = next(iter(rows.values()), {})
    common = [query for query in first if all(query in others for others in rows.values())]
    restricted: dict[str, Run] = {}
    clusters = None
    for name, run in runs.items() if len(common) > 1 else ():
        part = np.asarray([rows[name][query] for query in common])
        clusters = run[metric].clusters[part] if clusters is None else clusters
        values = over_queries(run[metric], part, clusters, resamples=1000)
        texts = {direction: run.columns[direction][part]}
        restricted[name] = replace(run, values={metric: values}, columns=texts, rankings={})
    return restricted


# Comparisons, failures and drops by group

_LONGEST, _ENDING = 18, 8


@dataclass(frozen=True)
class GroupedComparison(Presented):
    """The comparison of runs within each group of a column."""

    column: str
    groups: Mapping[str, Comparison]

    @property
    def title(self) -> str:
        return f"Runs compared by {self.column}"

    def sections(self) -> Iterator[Section]:
        """A row per group, metric and two runs, and how the p-values came about."""
        first = next(iter(self.groups.values()))
        results = [(group, result) for group, comparison in self.groups.items() for result in comparison.results]
        letters = run_letters(first.runs)
        notes = (
            *significance_sentences(
                "paired permutation test over images", [result for _, result in results], first.permutations,
                first.correction, first.level,
            ),
            f"In brackets: {100 * first.level:g}% interval of the difference, over images.",
            *disagreements([result for _, result in results], first.level),
            unit_sentence(result.metric for _, result in results),
        )  # fmt: skip

        def table(name: Callable[[str], str], *, counts: bool = True) -> Table:
            rows = tuple(
                (
                    # In a terminal, long names of groups lose their middle: they may differ at their ends.
                    group if name is str or len(group) <= _LONGEST else f"{group[: _LONGEST // 2]}…{group[-_ENDING:]}",
                    f"{name(result.baseline)} → {name(result.other)}: {result.metric}",
                    *((result.n,) if counts else ()),
                    metric_figure(result.metric, result.baseline_mean),
                    metric_figure(result.metric, result.other_mean),
                    difference_figure(result),
                    Figure.p(result.adjusted_p, first.permutations),
                )
                for group, result in results
            )
            header = (self.column, "runs", *("queries",) * counts, "1st", "2nd", "difference", "p")
            legend = () if name is str else (letter_sentence(letters),)
            return Table(header, rows, "ll" + "r" * counts + "rrlr", notes=(*legend, *notes), names=2)

        shortest = table(letters.__getitem__, counts=False)
        yield Section("", (replace(table(str), narrow=replace(table(letters.__getitem__), narrow=shortest)),))

    def as_dict(self) -> dict[str, Any]:
        return json_form({"by": self.column, "groups": self.groups})


@accepts_options(PermutationOptions)
def compare_groups(
    runs: Sequence[Run],
    column: str,
    *,
    metrics: str | None = None,
    all_pairs: bool = False,
    **options: Unpack[GroupTestKeywords],
) -> GroupedComparison:
    """The comparison of the runs within each group of the first run's queries; p-values corrected over all groups."""
    refuse_other_keywords(options, compare_groups)
    test = PermutationOptions.pick(options)
    shared = [name for name in chosen_metrics(runs[:1], metrics, column) if all(name in run.values for run in runs)]
    if not shared:
        raise UsageError(f"no metric of all runs has values by {column}", fix="choose another column")
    members: dict[str, dict[str, set[str]]] = {}
    for direction in dict.fromkeys(split_name(name)[0] for name in shared):
        for group, queries in group_members(runs[0], direction, column).items():
            if len(queries) >= _SMALLEST:
                members.setdefault(group, {})[direction] = set(queries)

    def restricted(run: Run, members: Mapping[str, set[str]]) -> Run:
        """The run with the queries of one group only."""
        values = {}
        for name in shared:
            queries = members.get(split_name(name)[0], set())
            rows = np.array([row for row, query in enumerate(run[name].query_ids) if query in queries], np.int64)
            if len(rows):
                values[name] = over_queries(run[name], rows)
        return Run(run.name, values, {}, {}, run.provenance)

    main, each = primary_metric(shared, test.primary), vars(replace(test, primary=None, correction="none"))
    compared = {
        group: compare(*(restricted(run, queries) for run in runs), all_pairs=all_pairs, **each)
        for group, queries in members.items()
    }
    blocks: dict[tuple[str, str, str], list[MetricComparison]] = {}
    for group, comparison in compared.items():
        for result in comparison.results:
            block = blocks.setdefault((group, result.baseline, result.other), [])
            block.append(replace(result, primary=result.metric == main))
    results: dict[str, list[MetricComparison]] = {}
    for (group, *_), block in zip(blocks, corrected(list(blocks.values()), test.correction), strict=True):
        results.setdefault(group, []).extend(block)
    groups = {
        group: replace(comparison, correction=test.correction, results=tuple(results[group]))
        for group, comparison in compared.items()
    }
    return GroupedComparison(column, groups)


@dataclass(frozen=True, eq=False)
class GroupedTable(Presented):
    """What belongs to each group of a column: ``table`` as JSON has it, ``part`` as it is shown."""

    heading: str
    column: str
    table: pl.DataFrame = field()
    part: Table

    @property
    def title(self) -> str:
        return self.heading

    def sections(self) -> Iterator[Section]:
        yield Section("", (self.part,))

    def as_dict(self) -> dict[str, Any]:
        return json_form({"by": self.column, "groups": self.table})


def failures_by(overview: Overview, labels: Mapping[str, str], column: str) -> GroupedTable:
    """How many queries of each group fail, and why: the share of its failures that each cause applies to."""
    queries = _with_groups(overview.queries, labels).with_columns(
        failed=pl.col("query").is_in(overview.failures["query"].implode())
    )
    failures = _with_groups(overview.failures, labels)
    rows = []
    cells: list[tuple[Cell, ...]] = []
    for group in _largest_first(queries["group"]):
        part, fails = queries.filter(pl.col("group") == group), failures.filter(pl.col("group") == group)
        clusters = np.unique(part["ground_truth"].to_numpy(), return_inverse=True)[1]
        share = estimate(part["failed"].cast(pl.Float64).to_numpy(), clusters, bounds=(0, 1), level=overview.level)
        counts = {cause: int(fails[cause_column(cause)].fill_null(False).sum()) for cause in CAUSES}
        causes = {cause: count / fails.height if fails.height else nan for cause, count in counts.items()}
        rows.append({"group": group, "queries": part.height, "failures": fails.height, "share": share.mean,
                     "low": share.low, "high": share.high, **causes})  # fmt: skip
        fraction = Figure.percent(share.mean, share.low, share.high)
        cells.append((group, part.height, fraction, *map(Figure.percent, causes.values())))
    note = "failures: percent of queries, with intervals over images; causes: percent of the group's failures."
    table = Table((column, "queries", "failures", *CAUSES), tuple(cells), notes=(note,))
    return GroupedTable(f"Failures of {overview.run} by {column}", column, pl.DataFrame(rows), table)


def drops_by(study: Robustness, labels: Mapping[str, str], column: str) -> GroupedTable:
    """What each perturbation costs the queries of each group, in points of the direction's Rsum."""
    table = _with_groups(study.queries, labels)
    groups = _largest_first(table.unique(["query"])["group"])
    rows, cells, most = [], [], 100.0 * len(RSUM_CUTOFFS)
    for (model, perturbation), part in table.group_by("model", "perturbation", maintain_order=True):
        line: list[Cell] = [str(model), str(perturbation)]
        for group in groups:
            members = part.filter(pl.col("group") == group)
            change = 100 * (members["hits_after"] - members["hits_before"]).to_numpy()
            drop = estimate(change, members["cluster"].to_numpy(), bounds=(-most, most))
            rows.append({"model": model, "perturbation": perturbation, "group": group, "queries": members.height,
                         "change": drop.mean, "low": drop.low, "high": drop.high})  # fmt: skip
            line.append(Figure(-drop.mean, -drop.high, -drop.low, digits=1))
        cells.append(tuple(line))
    note = f"What Hit@1 + Hit@5 + Hit@10 ({study.direction}) loses in points, by {column}; intervals over images."
    result = Table(("model", "perturbation", *groups), tuple(cells), notes=(note,), names=2)
    return GroupedTable(f"{study.title}, by {column}", column, pl.DataFrame(rows), result)


def _with_groups(table: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """The rows of queries that have a label, with it."""
    group = pl.col("query").cast(pl.String).replace_strict(labels, default=None, return_dtype=pl.String)
    return table.with_columns(group=group).drop_nulls("group")


def _largest_first(labels: pl.Series) -> list[str]:
    """The groups by size; those of one size by name, so that the same results always print the same table."""
    sizes = Counter(labels.drop_nulls())
    return sorted(sizes, key=lambda group: (-sizes[group], group))
