"""Runs beside each other: the concepts that only one of two confuses, concept metrics of several (EXPL's Table 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Cell, Figure, InputError, Presented, Section, Table, Text, argument
from crosslens.explanations.causes import OUTCOMES, cause_column
from crosslens.explanations.lexicon import ancestor_at
from crosslens.explanations.overview import Overview, concept_figure, size_notes, synset_label
from crosslens.explanations.statistics import EXAMPLES, SCOPES, column_of
from crosslens.metrics import format_count
from crosslens.statistics import Bootstrap
from crosslens.storage import json_form

_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("first", "second"), pl.Int64),
    **dict.fromkeys(("difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("only_first", "only_second"), pl.Int64),
    **dict.fromkeys(("first_examples", "second_examples"), pl.List(pl.String)),
}
FAILS = "Fails"
"""The share of queries that fail."""
WRONG_COUNTS = "wrong_counts"
"""Common concepts of another count, as a number per failure: what EXPL prints as a percentage."""
_TABLE_3: Mapping[str, str] = {
    FAILS: "fails, % ↓",
    "CA": "CA, % ↑",
    "NonCommonSimilarity": "NCS ↑",
    "CE": "CE ↓",
    "SD[binary]": "SD, % ↓",
    "object_hit": "hit ↑",
    "object_miss": "missed ↓",
    "matched_synsets": "matched, % ↑",
    WRONG_COUNTS: "wrong counts ↓",
}


@dataclass(frozen=True, eq=False)
class OverviewComparison(Presented):
    """``causes`` and ``confusions``: per cause, per expected and shown concept, how many queries fail so in each run.

    ``difference`` is second − first as a share of all queries that both runs answered, with its interval over images;
    ``only_first`` counts the queries that only the first run fails so; the examples name some of them.
    """

    first: Overview
    second: Overview
    queries: int
    failed: pl.DataFrame
    causes: pl.DataFrame
    confusions: pl.DataFrame

    @property
    def title(self) -> str:
        return f"Failures of {self.first.run} and {self.second.run}"

    def sections(self) -> Iterator[Section]:
        """Causes and confusions, side by side."""
        head = (
            f"first: {self.first.run}, second: {self.second.run}; {format_count(self.queries, 'query')} in both "
            f"({self.first.direction}); difference: second − first, in percent of them"
        )
        yield Section("", (Text.of(head),))

        def cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
            difference = Figure.percent(None, signed=True).of_row(row, "difference")
            return row["first"], row["second"], difference, row["only_first"], row["only_second"]

        header = ("", "first", "second", "difference", "only first", "only second")
        causes = [("all failures", *cells(self.failed.to_dicts()[0]))]
        causes += [(row["cause"], *cells(row)) for row in self.causes.to_dicts()]
        names = self.first.names
        pairs = tuple(
            (f"{synset_label(row['expected'], names)} → {synset_label(row['shown'], names)}", *cells(row))
            for row in self.confusions.head(self.first.listed).to_dicts()
        )
        yield Section("Failures by cause", (Table(header, causes),))
        if pairs:
            yield Section("Confused with", (Table(header, pairs, notes=("The largest differences first.",)),))
        yield from self.first.limits()

    def as_dict(self) -> dict[str, Any]:
        return json_form({**vars(self), "failed": self.failed.to_dicts()[0]})


def compare_overviews(
    first: Overview, second: Overview, *, minimum: int = 5, depth: int | None = None
) -> OverviewComparison:
    """Where two runs fail differently, over the queries that both answered.

    Confusions with fewer than ``minimum`` failures in both runs are left out; ``depth`` replaces concepts by hypernyms.
    """
    _check_directions([(first.run, first), (second.run, second)])
    answered = first.queries.join(second.queries.select("query"), on="query", how="semi", maintain_order="left")
    if not answered.height:
        raise InputError(
            f"{first.run} and {second.run} have no query in common",
            expected="two runs over the same dataset",
            fix="compare runs of the same queries",
        )
    rows: dict[str, int] = {query: row for row, query in enumerate(answered["query"])}
    draws = _draws(first, answered)

    def compare(failing: Sequence[Collection[str]]) -> dict[str, Any]:
        """Counts of the failing queries, their difference with its interval, and queries that fail in one run only."""
        before, after = (rows.keys() & set(queries) for queries in failing)
        changes = np.zeros(len(rows))
        changes[[rows[query] for query in before]] -= 1.0
        changes[[rows[query] for query in after]] += 1.0
        estimate = draws.estimate(changes, level=first.level, bounds=(-1, 1))
        only_first, only_second = (sorted(side, key=rows.__getitem__) for side in (before - after, after - before))
        examples = (only_first[:EXAMPLES], only_second[:EXAMPLES])
        values = (len(before), len(after), *estimate.cells, len(only_first), len(only_second), *examples)
        return dict(zip(_NUMBERS, values, strict=True))

    tables = [overview.failures for overview in (first, second)]
    causes = []
    for cause in OUTCOMES:
        column = cause_column(cause)
        queries = [frozenset(table.filter(pl.col(column))["query"] if column in table else ()) for table in tables]
        causes.append({"cause": cause, **compare(queries)})
    pairs: dict[tuple[str, str], tuple[set[str], set[str]]] = {}  # the queries that confuse both, in either run
    for run, overview in enumerate((first, second)):
        names = overview.failures["query"].to_list()
        for failure, expected, shown, _ in overview.pairs.iter_rows():
            if names[failure] in rows:
                pair = (ancestor_at(expected, depth), ancestor_at(shown, depth))
                pairs.setdefault(pair, (set(), set()))[run].add(names[failure])
    confusions = []
    for expected, shown in sorted(pairs):
        confusing = pairs[expected, shown]
        if max(map(len, confusing)) >= minimum:
            confusions.append({"expected": expected, "shown": shown, **compare(confusing)})
    table = pl.DataFrame(confusions, schema={"expected": pl.String, "shown": pl.String, **_NUMBERS})
    order = [pl.col("difference").abs(), pl.col("expected"), pl.col("shown")]
    return OverviewComparison(
        first,
        second,
        len(rows),
        pl.DataFrame([compare([frozenset(failures["query"]) for failures in tables])], schema=_NUMBERS),
        pl.DataFrame(causes, schema={"cause": pl.String, **_NUMBERS}),
        table.sort(order, descending=[True, False, False]),
    )


def _check_directions(overviews: Iterable[tuple[str, Overview]]) -> None:
    directions = {overview.direction: name for name, overview in overviews}
    if len(directions) > 1:
        (first, run), (second, other), *_ = directions.items()
        raise InputError(
            f"{run} was explained in the direction {first}, {other} in {second}",
            expected="the same direction",
            fix=f"choose a direction with {argument('direction')}",
        )


def _draws(overview: Overview, queries: pl.DataFrame) -> Bootstrap:
    """Resamples the relevant images of these queries."""
    clusters = np.unique(queries["ground_truth"].to_numpy(), return_inverse=True)[1]
    return Bootstrap(clusters, overview.resamples, overview.seed)


@dataclass(frozen=True, eq=False)
class ConceptTable(Presented):
    """``overviews`` by the name of their run; ``metrics``: a row per run, scope and metric, as fractions.

    Means are over the failures of a run that define a metric, with intervals over images; ``total`` is their sum,
    ``pooled`` the share over all failures together. Runs fail on different queries: their means are over other pairs.
    """

    overviews: Mapping[str, Overview]
    direction: str
    metrics: pl.DataFrame

    @property
    def title(self) -> str:
        return f"Concept metrics of {format_count(len(self.overviews), 'run')}"

    def sections(self) -> Iterator[Section]:
        """A row per run, query-agnostic and query-informed; intervals where they fit."""
        first = next(iter(self.overviews.values()))
        head = f"{len(self.overviews)} runs on {first.dataset}, {self.direction}; concepts from {first.source}"
        yield Section("", (Text.of(head),))
        notes = (
            "A row per run, over its own failures: runs fail on different queries. hit, missed: objects in all; "
            "matched: over all failures together; wrong counts: common concepts of another count, per failure; others: "
            "means.",
            *size_notes(first.settings, self.metrics),
            f"NCS: concept similarity (NonCommonSimilarity). {100 * first.level:g}% intervals over images.",
        )
        titles = ("Concept metrics, every object", "Concept metrics, query concepts")
        for scope, title, under in zip(SCOPES, titles, ((), notes), strict=True):
            metrics = [name for name in _TABLE_3 if scope == SCOPES[0] or name != FAILS]
            rows: list[tuple[Cell, ...]] = []
            for run in self.overviews:
                metric_rows = self.metrics.filter((pl.col("run") == run) & (pl.col("scope") == scope)).to_dicts()
                by_metric = {row["metric"]: row for row in metric_rows}
                rows.append((run, *(_concept_cell(name, by_metric[name]) for name in metrics)))
            header = ("run", *(_TABLE_3[name] for name in metrics))
            table = Table(header, rows, notes=under)
            bare = tuple(
                tuple(replace(cell, low=nan, high=nan) if isinstance(cell, Figure) else cell for cell in row)
                for row in rows
            )
            yield Section(title, (replace(table, narrow=replace(table, rows=bare)),))
        yield from first.limits()

    def as_dict(self) -> dict[str, Any]:
        runs = [
            {
                "run": name,
                "queries": overview.queries.height,
                "failures": overview.failures.height,
                **{part: getattr(overview, part) for part in ("settings", "totals", "cause_numbers")},
            }
            for name, overview in self.overviews.items()
        ]
        head = {"format": "crosslens/explain-runs", "version": 1, "direction": self.direction}
        return json_form({**head, "runs": runs, "metrics": self.metrics})


def _concept_cell(metric: str, row: Mapping[str, Any]) -> Figure:
    """Totals of objects, the share over all failures of matched synsets, means of the others."""
    if metric in ("object_hit", "object_miss"):
        return Figure(row["total"], digits=0)
    if metric == "matched_synsets":
        return Figure.percent(row["pooled"])
    return Figure.percent(None).of_row(row) if metric == FAILS else concept_figure(metric, row)


def tabulate_overviews(overviews: Mapping[str, Overview]) -> ConceptTable:
    """The concept metrics of several runs as their overviews have them, and failed queries and wrong counts."""
    _check_directions(overviews.items())
    tables = []
    for name, overview in overviews.items():
        failures, queries = overview.failures, overview.queries
        failing = queries["query"].is_in(failures["query"].to_list()).cast(pl.Float64)
        failed = _draws(overview, queries).estimate(failing.to_numpy(), level=overview.level, bounds=(0, 1))
        more = [(SCOPES[0], FAILS, failed, failing)]
        draws = _draws(overview, failures)
        for scope in SCOPES:
            values = failures[column_of(WRONG_COUNTS, scope)].cast(pl.Float64)
            more.append(
                (scope, WRONG_COUNTS, draws.estimate(values.to_numpy(), level=overview.level, bounds=(0, inf)), values)
            )
        rows = [
            (scope, metric, *estimate.cells, values.len(), 0, float(values.sum()), None)
            for scope, metric, estimate, values in more
        ]
        metrics = pl.concat([overview.metrics, pl.DataFrame(rows, schema=overview.metrics.schema, orient="row")])
        labels = {"run": name, "queries": queries.height, "failures": failures.height}
        tables.append(metrics.select(*(pl.lit(value).alias(key) for key, value in labels.items()), pl.all()))
    return ConceptTable(dict(overviews), next(iter(overviews.values())).direction, pl.concat(tables))
