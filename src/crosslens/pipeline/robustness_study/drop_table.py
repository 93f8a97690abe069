"""Several studies in one table: a row per perturbation, a column per model and dataset, or per dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import nan
from typing import Any

import numpy as np
import polars as pl

from crosslens.comparisons import unused_label
from crosslens.core import Cell, Figure, Heat, Presented, Row, Section, Table, UnknownNameError, UsageError
from crosslens.metrics import bounds_of, format_count, metric_figure, unit_sentence
from crosslens.pipeline.options import SignificanceOptions
from crosslens.pipeline.robustness_study.tables import StudyTables, direction_rsum
from crosslens.statistics import (
    Bootstrap,
    difference_bounds,
    holm,
    paired_permutation,
    relative_interval,
    significance_sentence,
)
from crosslens.storage import FloatArray, IntArray, json_form

BY_DATASET = "dataset"
_FIGURES = ("drop", "low", "high", "percent", "percent_low", "percent_high", "before", "after")
PERCENT_SENTENCE = "percent of the figure before, which BRIT's Table 4 fits best."


@dataclass(frozen=True)
class Drop:
    """The drop of a figure in points and in percent of the figure before, with intervals; of several models, the means.

    NaN: not known.
    """

    drop: float
    low: float
    high: float
    percent: float
    percent_low: float
    percent_high: float
    before: float
    after: float
    models: int = 1
    applied_share: float = nan
    adjusted_p: float = nan


@dataclass(frozen=True)
class DropTest:
    """Two columns on the same queries: the mean drop of the first − that of the second, over what both have.

    In points and in percent of the figures before: a model that starts low has few points to lose. p-values are of
    paired permutation tests over images, corrected for all pairs and both units.
    """

    first: str
    second: str
    perturbations: int
    points: float
    low: float
    high: float
    p: float
    percent: float
    percent_low: float
    percent_high: float
    percent_p: float
    adjusted_p: float = nan
    percent_adjusted_p: float = nan


@dataclass(frozen=True)
class DropTable(Presented):
    """``cells[column, perturbation]``; a study without a perturbation has no cell there.

    ``means`` are over the perturbations that a column has, ``tests`` of all pairs of columns on the same queries; both
    need values per query, which studies store of the headline and of the sum of a direction's hits.
    """

    metric: str
    columns: tuple[str, ...]
    perturbations: tuple[str, ...]
    cells: Mapping[tuple[str, str], Drop]
    means: Mapping[str, Drop]
    tests: tuple[DropTest, ...] = ()
    level: float = 0.95
    permutations: int = 10_000
    correction: str = "holm"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per cell: column, perturbation, metric and figures."""
        return [
            {"column": column, "perturbation": name, "metric": self.metric, **vars(self.cells[column, name])}
            for column, name in product(self.columns, self.perturbations)
            if (column, name) in self.cells
        ]

    @property
    def title(self) -> str:
        return f"Drop of {self.metric}"

    def sections(self) -> Iterator[Section]:
        drops = replace(table_of_drops(self), narrow=table_of_drops(self, intervals=False))
        tests = [table_of_tests(self)] if self.tests else []
        yield Section(self.title, (Row(drop_maps(self)), drops, *tests))

    def as_dict(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("metric", "level", "columns", "perturbations")}
        test = {"test": "paired permutation over images, two-sided, of the mean drop"}
        test |= {name: getattr(self, name) for name in ("correction", "permutations", "tests")}
        return json_form({**facts, "drops": self.rows, "means": self.means, **test})


@dataclass(frozen=True)
class _Part:
    """A model of a study, whose folder is called ``label``, and its dataset."""

    label: str
    study: StudyTables
    model: str
    dataset: str
    fingerprint: str

    def drops(self, metric: str) -> dict[str, Drop]:
        """By perturbation, the drops of the first seed."""
        table = self.study.drops.filter((pl.col("metric") == metric) & (pl.col("model") == self.model))
        rows = table.sort("seed", maintain_order=True).unique("perturbation", keep="first", maintain_order=True)
        figures = rows.select(pl.col(*_FIGURES, "applied_share", "adjusted_p").cast(pl.Float64).fill_null(nan))
        return {name: Drop(**row) for name, row in zip(rows["perturbation"], figures.to_dicts(), strict=True)}

    def values(self, metric: str, perturbation: str) -> pl.DataFrame | None:
        """Query, cluster, and the figure ``before`` and ``after`` of every query; None where they are not stored."""
        table, side, scale = self.study.headline_queries, "", 1
        if metric == direction_rsum(self.study.direction):
            table, side, scale = self.study.queries, "hits_", 100
        elif metric != self.study.headline:
            return None
        rows = table.filter((pl.col("model") == self.model) & (pl.col("perturbation") == perturbation))
        if not rows.height:
            return None
        return rows.filter(pl.col("seed") == rows["seed"].min()).sort("query").select(
            "query", "cluster", *((scale * pl.col(f"{side}{when}")).alias(when) for when in ("before", "after"))
        )  # fmt: skip


def drop_table(studies: Mapping[str, StudyTables], metric: str | None = None, *, by: str | None = None) -> DropTable:
    """The drops of all models of all studies.

    Args:
        studies: By name, usually that of their folder.
        metric: By default the headline that all studies have.
        by: ``dataset`` takes the mean over the models of each dataset, as BRIT's Table 4 does, with an interval where
            the metric is the sum of a direction's hits.
    """
    if by not in (None, BY_DATASET):
        raise UnknownNameError("column of robustness studies", str(by), (BY_DATASET,))
    parts = [
        _Part(label, study, model, str(study.about.get("dataset", {}).get("name") or label),
              str(study.about.get("dataset", {}).get("fingerprint") or label))
        for label, study in studies.items()
        for model in study.models
    ]  # fmt: skip
    if not parts:
        raise UsageError("no studies", fix="pass at least one")
    every = [part.study for part in parts]
    shared = [name for name in every[0].drops["metric"].unique(maintain_order=True)
              if all((study.drops["metric"] == name).any() for study in every)]  # fmt: skip
    if metric is not None and metric not in shared:
        raise UnknownNameError("metric in all of these studies", metric, shared)
    candidates = [name for study in every for name in (study.headline, direction_rsum(study.direction))]
    headline = metric or next((name for name in (*candidates, *shared) if name in shared), None)
    if headline is None:
        raise UsageError("the studies have no metric in common", fix="measure them with the same metrics")
    columns = _columns(parts, by)
    names = tuple(dict.fromkeys(name for part in parts for name in part.study.perturbations))
    cells = {}
    for column, members in columns.items():
        of_models = [part.drops(headline) for part in members]
        for name in names:
            drops = [by_name[name] for by_name in of_models if name in by_name]
            if len(drops) == len(members):
                cells[column, name] = drops[0] if len(drops) == 1 else _mean(headline, [name], members, drops)
    names_of = {column: [name for name in names if (column, name) in cells] for column in columns}
    means = {
        column: _mean(headline, names_of[column], members, [cells[column, name] for name in names_of[column]])
        for column, members in columns.items()
        if names_of[column]
    }
    testing = parts[0].study.testing
    alone = {column: members[0] for column, members in columns.items() if len(members) == 1}
    tests = _tests(headline, alone, names_of, testing)
    return DropTable(headline, tuple(columns), names, cells, means, tests, testing.level, testing.permutations)


def _columns(parts: Sequence[_Part], by: str | None) -> dict[str, list[_Part]]:
    """Each model of each study under a name of its own, or the models of each dataset together."""
    columns: dict[str, list[_Part]] = {}
    if by == BY_DATASET:
        groups: dict[str, list[_Part]] = {}
        for part in parts:
            groups.setdefault(part.fingerprint, []).append(part)
        for members in groups.values():
            columns[unused_label(members[0].dataset, columns)] = members
        return columns
    several_datasets = len({part.dataset for part in parts}) > 1
    several_models = len({part.model for part in parts}) > 1 or not several_datasets
    for part in parts:
        words = [part.model] * several_models + [part.dataset] * several_datasets
        name = ", ".join(words)
        columns[unused_label(f"{name} ({part.label})" if name in columns and part.label else name, columns)] = [part]
    return columns


def _mean(metric: str, names: Sequence[str], parts: Sequence[_Part], drops: Sequence[Drop]) -> Drop:
    """Over models or perturbations, with an interval of the mean drop, per query the mean of its drops."""
    drop, percent, before, after = (
        float(np.mean([getattr(drop, key) for drop in drops])) for key in ("drop", "percent", "before", "after")
    )
    low = high = percent_low = percent_high = nan
    if all(drop.low == drop.high == 0 for drop in drops):  # perturbed lists are the unperturbed ones
        low = high = percent_low = percent_high = 0.0
    elif changes := _changes(metric, names, parts):
        testing, clusters, bounds = parts[0].study.testing, changes[0].clusters, bounds_of(metric)
        befores, afters = [change.before for change in changes], [change.after for change in changes]
        mean = np.mean([before - after for before, after in zip(befores, afters, strict=True)], axis=0)
        draws, bounds = Bootstrap(clusters, testing.resamples, testing.seed), bounds and difference_bounds(bounds)
        low, high = draws.estimate(mean, level=testing.level, bounds=bounds).interval
        relative = relative_interval(befores, afters, clusters, -high, -low)
        percent_high, percent_low = (-100 * end for end in relative)
    return Drop(drop, low, high, percent, percent_low, percent_high, before, after, models=len(parts))


@dataclass(frozen=True, eq=False)
class _Changes:
    """The figure of every query before, and its mean after several perturbations."""

    clusters: IntArray
    before: FloatArray
    after: FloatArray

    @property
    def percents(self) -> FloatArray:
        """Values whose mean is the drop in percent of the mean before, and whose spread is that of such a ratio.

        Each is the figure and what its query moves it by, in the ratio's linear approximation.
        """
        before, after = (float(np.nanmean(side)) for side in (self.before, self.after))
        ratio = after / before if before else float("nan")
        return 100 * (1 - ratio - (self.after - ratio * self.before) / (before or float("nan")))


def _changes(metric: str, names: Sequence[str], parts: Sequence[_Part]) -> list[_Changes]:
    """The values of every part; none where they are not stored, or parts or perturbations differ in their queries."""
    changes, queries = [], None
    for part in parts:
        tables = []
        for name in names:
            table = part.values(metric, name)
            queries = table["query"] if table is not None and queries is None else queries
            if table is None or queries is None or not table["query"].equals(queries):
                return []
            tables.append(table)
        after = np.mean([table["after"].to_numpy() for table in tables], axis=0)
        changes.append(_Changes(tables[0]["cluster"].to_numpy(), tables[0]["before"].to_numpy(), after))
    return changes


def _tests(
    metric: str, columns: Mapping[str, _Part], names: Mapping[str, Sequence[str]], testing: SignificanceOptions
) -> tuple[DropTest, ...]:
    """All pairs of columns that have the same queries, on the perturbations that both have."""
    options: Any = {key: getattr(testing, key) for key in ("permutations", "resamples", "level", "seed")}
    bounds = bounds_of(metric)
    tests = []
    for (first, ours), (second, theirs) in combinations(columns.items(), 2):
        shared = [name for name in names[first] if name in names[second]]
        if not shared or ours.fingerprint != theirs.fingerprint:
            continue
        changes = _changes(metric, shared, [ours, theirs])
        if not changes:
            continue
        first_change, second_change = changes
        points = paired_permutation(
            first_change.before - first_change.after, second_change.before - second_change.after, first_change.clusters,
            bounds=bounds and difference_bounds(bounds), **options,
        )  # fmt: skip
        share = paired_permutation(first_change.percents, second_change.percents, first_change.clusters, **options)
        tests.append(
            DropTest(
                first, second, len(shared), points.difference, *points.interval, points.p_value,
                share.difference, *share.interval, share.p_value,
            )
        )  # fmt: skip
    adjusted = holm([p for test in tests for p in (test.p, test.percent_p)])
    return tuple(
        replace(test, adjusted_p=float(adjusted[2 * row]), percent_adjusted_p=float(adjusted[2 * row + 1]))
        for row, test in enumerate(tests)
    )


def percent_figure(row: Mapping[str, Any]) -> Figure:
    """A drop in percent of the figure before, with its interval where there is one."""
    return Figure(None, digits=1).of_row(row, "percent", "percent_")


def drop_maps(table: DropTable) -> tuple[Heat, Heat]:
    """A row per perturbation and their mean, a column per model or dataset: the drop in percent, and in points.

    Percent first: a model that starts low has few points to lose, and is not robust for that.
    """
    names = (*table.perturbations, "mean")
    cells = {**table.cells, **{(column, "mean"): mean for column, mean in table.means.items()}}
    starts = tuple(
        f"{column} ({metric_figure(table.metric, table.means[column].before)} before)"
        if column in table.means
        else column
        for column in table.columns
    )
    note = (
        f"What is lost; below 0 it is gained. In brackets: the {100 * table.level:g}% interval over images includes 0."
    )
    points, percent = (
        Heat(
            title=f"{table.title}, {unit}", about=note, rows=names, columns=starts, heading="perturbation", worse=True,
            cells=tuple(
                tuple(_drop_figures(table.metric, cells.get((column, name)))[which] for column in table.columns)
                for name in names
            ),
        )
        for which, unit in enumerate(("points", "percent of the figure before"))
    )  # fmt: skip
    return percent, points


def table_of_drops(table: DropTable, *, intervals: bool = True) -> Table:
    """The figure before, a row per perturbation and their mean; per model or dataset, points and then percent."""
    columns: list[list[Cell]] = []
    for column in table.columns:
        mean = table.means.get(column)
        drops = [*(table.cells.get((column, name)) for name in table.perturbations), mean]
        points, percent = zip(*(_drop_figures(table.metric, drop, intervals) for drop in drops), strict=True)
        columns.append([metric_figure(table.metric, None if mean is None else mean.before), *points])
        columns.append([None, *percent])
    models = {cell.models for cell in table.cells.values()} - {1}
    averaged = f"Means over {' or '.join(map(str, sorted(models)))} models. " if models else ""
    brackets = f"In brackets: {100 * table.level:g}% interval over images."
    note = (
        f"Drop: what is lost, before − after; below 0 it is gained. {averaged}"
        f"{unit_sentence([table.metric]).rstrip('.')}; in the "
        f"columns with %, {PERCENT_SENTENCE} "
        f"{brackets if intervals else 'Intervals do not fit: see crosslens plot, or --json.'}"
    )
    header = (title for column in table.columns for title in (column, f"{column}, %"))
    rows = tuple(zip(("before", *table.perturbations, "mean"), *columns, strict=True))
    return Table(("perturbation", *header), rows, notes=(note,))


def _drop_figures(metric: str, drop: Drop | None, intervals: bool = True) -> tuple[Figure, Figure]:
    row = {} if drop is None else vars(drop) if intervals else {"drop": drop.drop, "percent": drop.percent}
    return metric_figure(metric, None).of_row(row, "drop"), percent_figure(row)


def table_of_tests(table: DropTable) -> Table:
    """A row per pair of columns that were tested: the difference of their mean drops, in points and in percent."""
    rows = tuple(
        (
            f"{test.first} − {test.second}",
            metric_figure(table.metric, test.points, test.low, test.high, signed=True),
            Figure.p(test.adjusted_p, table.permutations),
            replace(percent_figure(vars(test)), signed=True),
            Figure.p(test.percent_adjusted_p, table.permutations),
        )
        for test in table.tests
    )
    numbers = {test.perturbations for test in table.tests}
    over = format_count(numbers.pop(), "perturbation") if len(numbers) == 1 else "the perturbations that both have"
    note = (
        "Above 0: the first model loses more. A model that starts low has fewer points to lose: compare percent. "
        + significance_sentence(
            f"paired permutation test over images of the mean drop over {over}",
            table.permutations, table.correction, 2 * len(table.tests),
        )
    )  # fmt: skip
    header = ("difference of the mean drops", "points", "p", "percent", "p")
    return Table(header, rows, title="Do models differ?", notes=(note,))
