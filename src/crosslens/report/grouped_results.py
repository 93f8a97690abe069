"""Comparisons, failures and drops by group: each over the queries of one group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Cell, Figure, Presented, Run, Section, Table, UsageError, json_form, split_name
from crosslens.explanations import CAUSES, Overview, cause_column
from crosslens.metrics import metric_figure, metric_names, select_metrics, unit_sentence
from crosslens.pipeline import Comparison, Robustness, compare, difference_figure
from crosslens.report.groups import group_members, groupable_metrics
from crosslens.statistics import correct, estimate, significance_sentence

_SMALLEST = 2
"""Queries that a group must have to be compared."""


@dataclass(frozen=True)
class GroupedComparison(Presented):
    """The comparison of runs within each group of a column."""

    column: str
    groups: Mapping[str, Comparison]

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Runs compared by {self.column}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """A row per group, metric and two runs, and how the p-values came about."""
        first = next(iter(self.groups.values()))
        results = [(group, result) for group, comparison in self.groups.items() for result in comparison.results]
        rows = tuple(
            (
                group,
                f"{result.baseline} → {result.other}: {result.metric}",
                result.n,
                metric_figure(result.metric, result.baseline_mean),
                metric_figure(result.metric, result.other_mean),
                difference_figure(result),
                Figure.p(result.adjusted_p, first.permutations),
            )
            for group, result in results
        )
        test = "paired permutation test over images"
        notes = (
            significance_sentence(test, first.permutations, first.correction, len(rows)),
            f"In brackets: {100 * first.level:g}% interval of the difference, over images.",
            unit_sentence(result.metric for _, result in results),
        )
        header = (self.column, "runs", "queries", "1st", "2nd", "difference", "p")
        yield Section("", (Table(header, rows, "llrrrlr", notes=notes),))

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"by": self.column, "groups": {group: own.as_dict() for group, own in self.groups.items()}}


def compare_groups(
    runs: Sequence[Run], column: str, *, metrics: str | None = None, correction: str = "holm", **options: Any
) -> GroupedComparison:
    """The comparison of the runs within each group of the first run's queries; p-values corrected over all groups."""
    possible = groupable_metrics(runs[0], column)
    chosen = possible
    if metrics is not None:
        chosen = [name for metric in metric_names(metrics) for name in select_metrics(runs[0], [metric])]
        unfit = [name for name in chosen if name not in possible]
        if unfit:
            raise UsageError(f"{unfit[0]} has no values by {column}", fix=f"choose from {', '.join(possible)}")
    chosen = [name for name in chosen if all(name in run.values for run in runs)]
    if not chosen:
        raise UsageError(f"no metric of all runs has values by {column}", fix="choose another column")
    members: dict[str, dict[str, set[str]]] = {}
    for direction in dict.fromkeys(split_name(name)[0] for name in chosen):
        for group, queries in group_members(runs[0], direction, column).items():
            if len(queries) >= _SMALLEST:
                members.setdefault(group, {})[direction] = set(queries)
    compared = {
        group: compare(*(_restricted(run, chosen, queries) for run in runs), correction="none", **options)
        for group, queries in members.items()
    }
    results = [result for comparison in compared.values() for result in comparison.results]
    adjusted = iter(correct([result.p_value for result in results], correction))
    corrected = {
        group: replace(
            comparison,
            correction=correction,
            results=tuple(replace(result, adjusted_p=float(next(adjusted))) for result in comparison.results),
        )
        for group, comparison in compared.items()
    }
    return GroupedComparison(column, corrected)


def _restricted(run: Run, metrics: Sequence[str], queries: Mapping[str, set[str]]) -> Run:
    """The run with the queries of one group only."""
    values = {}
    for name in metrics:
        own = run[name]
        wanted = queries.get(split_name(name)[0], set())
        rows = np.array([row for row, query in enumerate(own.query_ids) if query in wanted], np.int64)
        if len(rows):
            part = own.values[rows]
            figure = estimate(part, own.clusters[rows], statistic=own.statistic, resamples=0).mean
            values[name] = replace(
                own, query_ids=tuple(own.query_ids[row] for row in rows), values=part, clusters=own.clusters[rows],
                mean=figure, low=float("nan"), high=float("nan"),
            )  # fmt: skip
    return Run(run.name, values, {}, {}, run.provenance)


@dataclass(frozen=True, eq=False)
class GroupedTable(Presented):
    """What belongs to each group of a column: ``table`` as JSON has it, ``part`` as it is shown."""

    heading: str
    column: str
    table: pl.DataFrame = field()
    part: Table

    @property
    def title(self) -> str:
        """The heading of the page."""
        return self.heading

    def sections(self, **options: Any) -> Iterator[Section]:
        """The table and its note."""
        yield Section("", (self.part,))

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(json_form({"by": self.column, "groups": self.table.to_dicts()}))


def failures_by(overview: Overview, labels: Mapping[str, str], column: str) -> GroupedTable:
    """How many queries of each group fail, and why: the share of its failures that each cause applies to."""
    queries = overview.queries.with_columns(group=pl.Series([labels.get(str(q)) for q in overview.queries["query"]]))
    failed = set(overview.failures["query"].to_list())
    rows = []
    cells: list[tuple[Cell, ...]] = []
    for group in _largest_first(queries["group"]):
        part = queries.filter(pl.col("group") == group)
        fails = np.array([float(query in failed) for query in part["query"]])
        clusters = np.unique(part["ground_truth"].to_numpy(), return_inverse=True)[1]
        share = estimate(fails, clusters, bounds=(0, 1), level=overview.level)
        own = overview.failures.filter(pl.col("query").is_in(part["query"].to_list()))
        counts = {cause: int(own[cause_column(cause)].fill_null(False).sum()) for cause in CAUSES}
        causes = {cause: count / own.height if own.height else float("nan") for cause, count in counts.items()}
        rows.append({"group": group, "queries": part.height, "failures": own.height, "share": share.mean,
                     "low": share.low, "high": share.high, **causes})  # fmt: skip
        fraction = Figure.percent(share.mean, share.low, share.high)
        cells.append((str(group), part.height, fraction, *map(Figure.percent, causes.values())))
    note = "failures: percent of queries, with intervals over images; causes: percent of the group's failures."
    shown = Table((column, "queries", "failures", *CAUSES), tuple(cells), "lrr" + "r" * len(CAUSES), notes=(note,))
    return GroupedTable(f"Failures of {overview.run} by {column}", column, pl.DataFrame(rows), shown)


def drops_by(study: Robustness, labels: Mapping[str, str], column: str, level: float = 0.95) -> GroupedTable:
    """What each perturbation costs the queries of each group: the change of the direction's Rsum, in points."""
    table = study.queries
    table = table.with_columns(group=pl.Series([labels.get(str(query)) for query in table["query"]], dtype=pl.String))
    table = table.drop_nulls("group")
    groups = _largest_first(table.unique(["query"])["group"])
    rows, cells = [], []
    for (model, perturbation), part in table.group_by("model", "perturbation", maintain_order=True):
        line: list[Cell] = [str(model), str(perturbation)]
        for group in groups:
            own = part.filter(pl.col("group") == group)
            change = 100 * (own["hits_after"] - own["hits_before"]).to_numpy()
            drop = estimate(change, own["cluster"].to_numpy(), level=level)
            rows.append({"model": model, "perturbation": perturbation, "group": group, "queries": own.height,
                         "change": drop.mean, "low": drop.low, "high": drop.high})  # fmt: skip
            line.append(Figure(drop.mean, drop.low, drop.high, digits=1, signed=True))
        cells.append(tuple(line))
    note = f"Change of Hit@1 + Hit@5 + Hit@10 ({study.direction}) in points, by {column}; intervals over images."
    shown = Table(("model", "perturbation", *groups), tuple(cells), "ll" + "r" * len(groups), notes=(note,), names=2)
    return GroupedTable(f"{study.title}, by {column}", column, pl.DataFrame(rows), shown)


def _largest_first(labels: pl.Series) -> list[str]:
    """The groups by size; those of one size by name, so that the same results always print the same table."""
    sizes = Counter(labels.drop_nulls())
    return sorted(sizes, key=lambda group: (-sizes[group], group))
