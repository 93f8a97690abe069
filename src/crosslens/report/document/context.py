"""What the sections of a report share: its shape, headlines, groups, comparisons and findings, each computed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
import polars as pl

from crosslens.analyze import label_groups, makes_groups
from crosslens.audits import findings_of_runs
from crosslens.comparisons import CAPTION_LENGTH, Comparison, MetricComparison, compare, grouping_columns
from crosslens.core import CrosslensError, Finding, Interval, Intervals
from crosslens.explanations import join_words, query_outcomes, ranking_of
from crosslens.metrics import dataset_name, facts_of, unit_of
from crosslens.pipeline import over_queries, over_same_queries
from crosslens.report.inputs import ReportInputs
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, MetricValues, Run, split_name

_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a stored result of another shape leads to."""
_HEADLINES = ("Hit@1", "Recall@1", "CappedRecall@1", "MRR", "mAP@R", "Hit@5", "Hit@10")
"""What a report leads with: the first of these that a run has."""
_FIRST_COLUMNS = ("task", "difficulty", "category", "style", CAPTION_LENGTH)
_MOST_COLUMNS, _LARGEST = 6, 14
_MOST_NUMBERS = 12
"""Numbers with more values are split into bins."""
Shape = Literal["single", "galleries", "models", "grid"]

Value = TypeVar("Value")


class ReportContext:
    """The inputs of a report with what several sections need, each computed once."""

    def __init__(self, inputs: ReportInputs) -> None:
        self.inputs = inputs
        self.notes: list[str] = list(inputs.notes)
        self.pictures_wanted = self.pictures_shown = 0
        self.placed: set[str] = set()
        """Stages whose bars have a place on the page."""
        self._outcomes: dict[tuple[str, str], pl.DataFrame | None] = {}

    def read_stored(self, read: Callable[[], Value], part: str, otherwise: Value) -> Value:
        """What is read from results of stages; where one has another shape, that is noted and ``otherwise`` is used."""
        try:
            return read()
        except _DAMAGED as error:
            if not self.inputs.results:
                raise
            self.notes.append(f"Left out of {part}: a stored result that cannot be read ({error!r}).")
            return otherwise

    @cached_property
    def direction(self) -> str:
        """The direction that the report looks at in detail: captions as queries, where there are any."""
        directions = {split_name(name)[0] for run in self.inputs.runs.values() for name in run}
        in_order = (TEXT_TO_IMAGE, "t2t", IMAGE_TO_TEXT, *sorted(directions))
        return next(name for name in in_order if name in directions or not directions)

    @cached_property
    def shape(self) -> Shape:
        """What is compared: one run, one model in several galleries, several models on one dataset, or a grid."""
        datasets, models = len(self.inputs.by_dataset()), len({self.model(name) for name in self.inputs.runs})
        if len(self.inputs.runs) == 1:
            return "single"
        return "models" if datasets == 1 else "galleries" if models == 1 else "grid"

    def model(self, name: str) -> str:
        """The model behind a run of several datasets, whose names may end with the dataset's; else the run's name."""
        of_datasets, run = self.inputs.by_dataset(), self.inputs.runs[name]
        if len(of_datasets) == 1:
            return name
        namesakes = [other for other in of_datasets[dataset_name(run)].values() if other.label == run.label]
        if len(namesakes) == 1 and re.fullmatch(rf"{re.escape(run.label)} \(\d+\)", name):
            name = run.label  # numbered only because the same model has a run on another dataset
        return name.removesuffix(f"-{dataset_name(run)}")

    def short(self, name: str) -> str:
        """What tells a run from the others."""
        dataset = dataset_name(self.inputs.runs[name])
        if self.shape == "grid":
            return f"{self.model(name)} on {dataset}"
        return dataset if self.shape == "galleries" and dataset else name

    def files(self, name: str) -> Mapping[str, str]:
        """The picture files of a run's dataset by image."""
        return self.inputs.pictures.get(dataset_name(self.inputs.runs[name]), {})

    def gallery(self, name: str) -> int:
        """How many items a run ranks."""
        run = self.inputs.runs[name]
        ranking = run.rankings.get(self.direction)
        return len(ranking.item_ids) if ranking is not None else int(
            dict(run.provenance.get("dataset") or {}).get("images") or 0
        )  # fmt: skip

    def said(self, finding: Finding) -> str:
        """The sentence of a finding, which names its run as the report does, and where else it is true."""
        several = len(self.inputs.by_dataset()) > 1
        whose = finding.model or ("" if several else finding.dataset)
        text = finding.text.removeprefix(f"{whose}: ")
        if text != finding.text and len(self.inputs.runs) > 1 and finding.model in self.inputs.runs:
            text = f"{self.short(finding.model)}: {text}"
        elif not finding.model and finding.dataset not in text and several:
            text = f"{finding.dataset}: {text}"
        also = sorted(finding.also, key=[*self.inputs.by_dataset(), *finding.also].index)
        return f"{text} The same on {join_words(also)}." if also else text

    def was_looked_at(self, stage: str) -> bool:
        """Whether a stage of the audit looked; without an audit, what rankings alone can tell is looked at."""
        if self.inputs.results:
            return bool(self.inputs.stage(stage))
        return stage in ("groups", "twins") and any(map(self.inputs.dataset_of, self.inputs.runs.values()))

    def why_not(self, stages: Sequence[str]) -> str:
        """Why none of the stages looked."""
        return next((f"that {self.inputs.skipped[stage]}" for stage in stages if stage in self.inputs.skipped), "")

    @cached_property
    def looked(self) -> bool:
        """Whether anything looked for what breaks a model."""
        return any(map(self.was_looked_at, ("soundness", "groups", "twins", "probes")))

    def costs(self) -> list[Interval]:
        """What changing every caption costs the last run, the most first."""
        result = self.inputs.stage_of("robustness", self.ordered[-1])
        charts = [chart for section in result.sections for chart in section.charts] if result is not None else []
        rows = next((list(chart.rows) for chart in charts if isinstance(chart, Intervals)), [])
        return sorted((row for row in rows if row.figure.known), key=lambda row: -(row.figure.value or 0))

    @cached_property
    def ordered(self) -> list[str]:
        """The runs as they are shown beside each other: galleries from the smallest to the largest."""
        return sorted(self.inputs.runs, key=self.gallery) if self.shape == "galleries" else list(self.inputs.runs)

    @cached_property
    def shared(self) -> dict[str, MetricValues]:
        """Of one model in several galleries, the headline over the queries that are the same in all of them.

        They have the same id and the same text. Nothing where there are none; galleries then cannot be compared.
        """
        metric = self.headline(self.inputs.runs[self.ordered[0]])
        return {} if metric is None else self.over_shared(metric)

    def over_shared(self, metric: str) -> dict[str, MetricValues]:
        """A metric of one model in several galleries over the queries that all of them share."""
        if self.shape != "galleries":
            return {}
        runs = {name: self.inputs.runs[name] for name in self.ordered}
        return {name: run[metric] for name, run in over_same_queries(runs, metric).items()}

    def headline(self, run: Run) -> str | None:
        """The metric that says most of a run."""
        in_direction = [name for name in run if split_name(name)[0] == self.direction]
        wanted = [f"{self.direction}/{metric}" for metric in _HEADLINES]
        shares = [name for name in in_direction if unit_of(name) == "share"]
        return next((name for name in (*wanted, *shares, *in_direction) if name in in_direction), None)

    def outcomes(self, name: str, direction: str = "") -> pl.DataFrame | None:
        """What every query of a run retrieved; None without a dataset, or with another one."""
        key = name, direction or self.direction
        if key not in self._outcomes:
            run = self.inputs.runs[name]
            dataset = self.inputs.dataset_of(run)
            try:
                has_lists = dataset is not None and ranking_of(run, key[1]).depth > 0
                self._outcomes[key] = query_outcomes(run, dataset, key[1]) if has_lists and dataset else None
            except CrosslensError as error:
                self.notes.append(f"{name}: {error.problem}.")
                self._outcomes[key] = None
        return self._outcomes[key]

    def columns(self, run: Run | None = None) -> list[str]:
        """The columns of a run, or of all of them, that make groups, those that say most first."""
        names: dict[str, None] = {}
        runs = self.inputs.runs.values() if run is None else (run,)
        for table in (grouping_columns(of_run, self.direction) for of_run in runs):
            able = (name for name in table.columns if not name.endswith("_id") and name not in ("image", "text"))
            names |= dict.fromkeys(name for name in able if makes_groups(table[name]))
        order = sorted(names, key=lambda name: _FIRST_COLUMNS.index(name) if name in _FIRST_COLUMNS else 99)
        return order[:_MOST_COLUMNS]

    def grouped(self, column: str) -> dict[str, dict[str, MetricValues]]:
        """The headline of every run over the groups of a column; numbers are split alike for all runs."""
        tables = {name: grouping_columns(run, self.direction) for name, run in self.inputs.runs.items()}
        labels = {name: table[column] for name, table in tables.items() if column in table.columns}
        edges = common_edges(list(labels.values()))
        grouped: dict[str, dict[str, MetricValues]] = {}
        for name, values in labels.items():
            run = self.inputs.runs[name]
            metric = self.headline(run)
            if metric is None or len(values) != len(run[metric].query_ids):
                continue
            if edges is not None:
                values = binned(values, edges)
            groups = label_groups(values)
            if len(groups) > _LARGEST:  # so many parts say little of each
                return {}
            grouped[name] = {
                group: over_queries(run[metric], rows, resamples=1000)
                for group, rows in groups
                if np.isfinite(run[metric].values[rows]).any()
            }
        return grouped

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The runs of each dataset that has several: every one against every other."""
        compared = {}
        for dataset, runs in self.inputs.by_dataset().items():
            metrics = [name for name in map(self.headline, runs.values()) if name is not None]
            if len(runs) > 1 and metrics:
                # Under which protocol they are does not keep runs from being compared.
                renamed = [replace(run, name=name, provenance={**run.provenance, "protocol": {}})
                           for name, run in runs.items()]  # fmt: skip
                try:
                    compared[dataset] = compare(*renamed, metrics=metrics[:1], all_pairs=True)
                except CrosslensError as error:
                    self.notes.append(f"The runs are not compared: {error.problem}.")
        return compared

    @cached_property
    def leading(self) -> dict[str, tuple[list[str], MetricComparison]]:
        """By dataset, the best run and the next best, and how they compare."""
        best = {dataset: self.by_headline(runs)[:2] for dataset, runs in self.inputs.by_dataset().items()}
        compared = ((dataset, entry) for dataset, each in self.comparisons.items() for entry in each.results)
        return {dataset: (best[dataset], entry) for dataset, entry in compared
                if {entry.baseline, entry.other} == set(best[dataset])}  # fmt: skip

    def of_stages(self, stages: Iterable[str]) -> list[Finding]:
        """What stages of the audit found."""
        return [finding for finding in self.findings if finding.stage in stages]

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """What the audit says; without one, what the runs say by the same tests, as far as their rankings tell."""
        if self.inputs.findings or self.inputs.results:
            return self.inputs.findings
        return findings_of_runs({name: (run, self.inputs.dataset_of(run)) for name, run in self.inputs.runs.items()})

    def by_headline(self, runs: Mapping[str, Run]) -> list[str]:
        """Runs from the best to the worst by the headline of the first; those without it come last."""
        metric = self.headline(next(iter(runs.values())))
        if metric is None:
            return list(runs)
        sign = 1 if facts_of(metric).higher_is_better else -1
        means = {name: sign * run[metric].mean if metric in run.values else np.nan for name, run in runs.items()}
        return sorted(runs, key=lambda name: -float(np.nan_to_num(means[name], nan=-np.inf)))


def common_edges(columns: Sequence[pl.Series]) -> list[float] | None:
    """Where numbers with many values are split, for all runs alike: at their quartiles; None for other columns."""
    if not columns or not all(column.dtype.is_numeric() for column in columns):
        return None
    numbers = pl.concat([column.cast(pl.Float64).alias("") for column in columns]).drop_nulls()
    if numbers.n_unique() <= _MOST_NUMBERS:
        return None
    edges = np.nanquantile(numbers.to_numpy(), [0, 0.25, 0.5, 0.75, 1])
    whole = all(column.dtype.is_integer() for column in columns)
    return [float(edge) for edge in np.unique(np.ceil(edges) if whole else edges)]


def binned(numbers: pl.Series, edges: Sequence[float]) -> pl.Series:
    """The bin of each number in words: ``9 to 12``."""
    names = []
    for low, high in pairwise(edges):
        end = high - 1 if numbers.dtype.is_integer() and high < edges[-1] else high
        names.append(f"{low:g} to {end:g}" if end > low else f"{low:g}")
    values = numbers.cast(pl.Float64).fill_null(np.nan).to_numpy()
    bins = np.searchsorted(edges[1:-1], values, side="right").tolist()
    labels = [None if missing else names[row] for row, missing in zip(bins, np.isnan(values), strict=True)]
    return pl.Series(numbers.name, labels, dtype=pl.String)
