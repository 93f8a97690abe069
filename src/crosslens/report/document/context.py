"""What sections share: the pictures, and figures that several of them need, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    CrosslensError,
    MetricValues,
    Ranking,
    Run,
    UsageError,
    split_name,
)
from crosslens.explanations import first_relevant, query_outcomes, ranking_of
from crosslens.metrics import dataset_name, facts_of, unit_of
from crosslens.pipeline import CAPTION_LENGTH, Comparison, compare, group_metrics, group_names
from crosslens.report.document.inputs import ReportInputs
from crosslens.report.document.thumbnails import PictureDesk

Value = TypeVar("Value")
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a stored result of another shape leads to."""
_HEADLINES = ("Hit@1", "Recall@1", "CappedRecall@1", "MRR", "mAP@R", "Hit@5", "Hit@10")
"""What a report leads with: the first of these that a run has."""
_FIRST_COLUMNS = ("task", "difficulty", "category", "style", "caption_length")
_MOST_COLUMNS, _MOST_GROUPS, _LARGEST = 6, 40, 12
_FEWEST = 5
"""Queries that a group has at least, on average, for its column to be shown."""


class ReportContext:
    """The inputs of a report with everything that is derived from them."""

    def __init__(self, inputs: ReportInputs) -> None:
        self.inputs = inputs
        self.pictures = PictureDesk(inputs.pictures)
        self.notes: list[str] = list(inputs.notes)
        self._outcomes: dict[str, pl.DataFrame | None] = {}
        self._grouped: dict[tuple[str, str, str], dict[str, MetricValues]] = {}

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
        named = {split_name(name)[0] for run in self.inputs.runs.values() for name in run}
        return next(
            name for name in (TEXT_TO_IMAGE, "t2t", IMAGE_TO_TEXT, *sorted(named)) if name in named or not named
        )

    def headline(self, run: Run, direction: str | None = None) -> str | None:
        """The metric that says most of a run in one direction."""
        direction = direction or self.direction
        own = [name for name in run if split_name(name)[0] == direction]
        wanted = [f"{direction}/{metric}" for metric in _HEADLINES]
        shares = [name for name in own if unit_of(name) == "share"]
        return next((name for name in (*wanted, *shares, *own) if name in own), None)

    def ranking(self, run: Run, direction: str | None = None) -> Ranking | None:
        """The ranking of a direction, if the run keeps it."""
        return run.rankings.get(direction or self.direction)

    def first_ranks(self, run: Run, direction: str | None = None) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        """The rank of the first relevant item of every query that has one; −1 where a given list ends before it."""
        ranking = self.ranking(run, direction)
        if ranking is None:
            return None
        best, ranks = first_relevant(ranking)
        return np.asarray(ranks[best >= 0], np.int64)

    def outcomes(self, name: str) -> pl.DataFrame | None:
        """What every query of a run retrieved; None without a dataset, or with another one."""
        if name not in self._outcomes:
            run = self.inputs.runs[name]
            dataset = self.inputs.dataset_of(run)
            try:
                known = dataset is not None and ranking_of(run, self.direction).depth > 0
                self._outcomes[name] = query_outcomes(run, dataset, self.direction) if known and dataset else None
            except CrosslensError as error:
                self.notes.append(f"{name}: {error.problem}.")
                self._outcomes[name] = None
        return self._outcomes[name]

    def grouped(self, name: str, column: str, metric: str) -> dict[str, MetricValues]:
        """A metric of a run over the largest groups of a column; nothing where it cannot be grouped."""
        key = name, column, metric
        if key not in self._grouped:
            try:
                groups = group_metrics(self.inputs.runs[name], column, [metric], largest=_LARGEST)
                self._grouped[key] = dict(groups.values.get(metric, {}))
            except UsageError:
                self._grouped[key] = {}
        return self._grouped[key]

    def columns(self, run: Run) -> list[str]:
        """The columns of a dataset that make useful groups: several, and not a group for every query."""
        table = run.columns.get(self.direction)
        names = [name for name in group_names(run) if not name.endswith("_id")]
        order = sorted(names, key=lambda name: (_FIRST_COLUMNS.index(name) if name in _FIRST_COLUMNS else 99, name))
        return [name for name in order if table is not None and _useful(table, name)][:_MOST_COLUMNS]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The runs of each dataset that has several: every one against every other."""
        compared = {}
        for dataset, runs in self.inputs.by_dataset().items():
            metrics = [name for name in map(self.headline, runs.values()) if name is not None]
            if len(runs) > 1 and metrics:
                try:
                    compared[dataset] = compare(*_named(runs), metrics=metrics[:1], all_pairs=True)
                except CrosslensError as error:
                    self.notes.append(f"The runs are not compared: {error.problem}.")
        return compared

    def best(self, runs: dict[str, Run]) -> str:
        """The run with the best headline metric."""
        metric = self.headline(next(iter(runs.values())))
        able = [name for name, run in runs.items() if metric in run.values]
        if metric is None or not able:
            return next(iter(runs))
        sign = 1 if facts_of(metric).higher_is_better else -1
        return max(able, key=lambda name: sign * float(np.nan_to_num(runs[name][metric].mean, nan=-sign * np.inf)))

    def shared_metrics(self, runs: Sequence[Run], metrics: Sequence[str]) -> list[str]:
        """Those of the metrics, in every direction, that any run has."""
        known = dict.fromkeys(name for run in runs for name in run)
        directions = sorted({split_name(name)[0] for name in known} - {BOTH}, reverse=True)
        return [f"{side}/{metric}" for side in directions for metric in metrics if f"{side}/{metric}" in known]

    @staticmethod
    def dataset_label(run: Run) -> str:
        """The name of a run's dataset."""
        return dataset_name(run)


def _named(runs: dict[str, Run]) -> list[Run]:
    return [replace(run, name=name, provenance={**run.provenance, "protocol": {}}) for name, run in runs.items()]


def _useful(table: pl.DataFrame, name: str) -> bool:
    if name == CAPTION_LENGTH:
        return "text" in table.columns or name in table.columns
    if name not in table.columns or table[name].null_count() == table.height:
        return False
    values = table[name].drop_nulls()
    if isinstance(values.dtype, pl.List):
        values = values.explode()
    if values.dtype.is_numeric():
        return values.n_unique() > 1
    if values.dtype.is_nested():
        return False
    groups = values.n_unique()
    return 1 < groups <= _MOST_GROUPS and table.height >= _FEWEST * groups
