"""How a leaderboard is shown: models down, datasets or metrics across, the best and what is as good as it marked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from crosslens.comparisons.comparison import compare, notes_on_published, primary_metric, unused_label
from crosslens.comparisons.options import PermutationOptions
from crosslens.comparisons.results import MetricComparison, corrected, significance_sentences
from crosslens.core import (
    ABSENT,
    Bars,
    Cell,
    CrosslensError,
    Figure,
    Presented,
    Row,
    Section,
    Series,
    Table,
    UnknownNameError,
    UsageError,
    accepts_options,
    refuse_other_keywords,
)
from crosslens.metrics import bounds_of, facts_of, matching_names, metric_figure, split_metrics, unit_of, unit_sentence
from crosslens.storage import json_form
from crosslens.values import DIRECTION_LABELS, Run, split_name

if TYPE_CHECKING:
    from crosslens.comparisons.keywords import PermutationKeywords

BEST, AS_GOOD, UNTESTED = "*", "=", "?"


def board_table(board: Leaderboard, columns: Mapping[str, tuple[str, str]], title: str, *, noted: bool = True) -> Table:
    """A row per model, a column per dataset and metric; without intervals where they do not fit."""
    keys = list(columns.values())
    best = frozenset(
        (row, column)
        for row, model in enumerate(board.models)
        for column, key in enumerate(keys, start=1)
        if _mark(board, model, *key) == BEST
    )

    def table(*, intervals: bool) -> Table:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (model, *(_figure(board, model, *key, intervals=intervals) for key in keys)) for model in board.models
        )
        notes = tuple(board_notes(board, intervals=intervals)) if noted else ()
        align = "l" * (1 + len(keys))  # marks behind the figures would push numbers on the right out of line
        return Table(("model", *columns), rows, align, title=title, notes=notes, best=best)

    return replace(table(intervals=True), narrow=table(intervals=False))


def _figure(board: Leaderboard, model: str, dataset: str, metric: str, *, intervals: bool = True) -> Figure:
    cell = board.cell(model, dataset, metric)
    if cell is None:
        return metric_figure(metric, None)
    figure = metric_figure(metric, cell.mean, *((cell.low, cell.high) if intervals else ()))
    return replace(figure, mark=_mark(board, model, dataset, metric))


def _mark(board: Leaderboard, model: str, dataset: str, metric: str) -> str:
    """``*`` for the best, ``=`` where the difference to it may be chance, ``?`` where it was not tested."""
    cell = board.cell(model, dataset, metric)
    if cell is None or sum((other, dataset, metric) in board.cells for other in board.models) == 1:
        return ""  # nothing to be better than
    if cell.best or cell.significant:
        return BEST if cell.best else ""
    return UNTESTED if cell.significant is None or cell.smallest_p >= 1 - board.level else AS_GOOD


def board_notes(board: Leaderboard, *, intervals: bool = True) -> Iterator[str]:
    """Everything that a reader of the tables has to know, as sentences."""
    cells = board.cells.values()
    if board.tested or any(not cell.best and cell.significant is None for cell in cells):
        yield (
            f"{BEST}: the best on a dataset. {AS_GOOD}: the difference to it may be chance "
            f"(p ≥ {1 - board.level:.2g}); {UNTESTED}: not tested, or too few images to decide; "
            "without a mark: significantly worse."
        )
    yield from board.test_notes
    if any(isfinite(cell.low) and isfinite(cell.high) for cell in cells):
        yield (
            f"In brackets: {100 * board.level:g}% intervals over images."
            if intervals
            else "Intervals do not fit: see --json, or fewer metrics."
        )
    yield unit_sentence(board.metrics)
    if any(not facts_of(name).higher_is_better for name in board.metrics):
        yield "↓: lower is better."
    if len(board.cells) < len(board.models) * len(board.datasets) * len(board.metrics):
        yield f"{ABSENT}: not evaluated."
    yield from board.notes


@dataclass(frozen=True)
class LeaderboardCell:
    """One figure of a model on a dataset, and how far it is from the best model there.

    ``difference`` is this model − the best, with its paired interval; NaN for the best itself and where there was
    nothing to test. ``significant`` is None then.
    """

    model: str
    dataset: str
    metric: str
    mean: float
    low: float
    high: float
    n: int
    best: bool = False
    difference: float = nan
    difference_low: float = nan
    difference_high: float = nan
    p_value: float = nan
    adjusted_p: float = nan
    significant: bool | None = None
    images: int = 0
    smallest_p: float = nan
    """The smallest corrected p-value that so many images can give."""
    same_as: str | None = None
    """The metric whose test against the best is the same here."""


@dataclass(frozen=True)
class Leaderboard(Presented):
    """Models × datasets × metrics; a cell that nobody evaluated is not there.

    ``tests`` is the number of comparisons that p-values are corrected for: all pairs of models in every column, since
    which model is the best was decided by looking at all of them. Those of the ``primary`` metric and those of the
    others are corrected separately.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: Mapping[tuple[str, str, str], LeaderboardCell]
    """By model, dataset and metric."""
    correction: str
    permutations: int
    seed: int
    level: float
    tests: int
    notes: tuple[str, ...] = ()
    primary: str = ""
    test_notes: tuple[str, ...] = ()
    """How the p-values came about, as sentences."""

    title = "Leaderboard"

    def cell(self, model: str, dataset: str, metric: str) -> LeaderboardCell | None:
        """The cell of a model; None where it was not evaluated."""
        for kind, name, names in (
            ("model", model, self.models), ("dataset", dataset, self.datasets), ("metric", metric, self.metrics),
        ):  # fmt: skip
            if name not in names:
                raise UnknownNameError(f"{kind} in this leaderboard", name, names)
        return self.cells.get((model, dataset, metric))

    def best(self, dataset: str, metric: str) -> tuple[str, ...]:
        """The models with the best figure: several where they are equal, none where nobody has the metric."""
        return tuple(model for model in self.models if (cell := self.cell(model, dataset, metric)) and cell.best)

    @property
    def tested(self) -> bool:
        return any(isfinite(cell.p_value) for cell in self.cells.values())

    def sections(self) -> Iterator[Section]:
        titles, charts = {}, []
        for name in self.metrics:
            direction, metric = split_name(name)
            titles[name] = f"{self._name(name, metric)}, {DIRECTION_LABELS.get(direction, direction)}"
            series = tuple(
                Series(dataset, tuple(_figure(self, model, dataset, name) for model in self.models))
                for dataset in self.datasets
            )
            bounded = any(figure.bounded for bars in series for figure in bars.figures)
            note, share = f"{100 * self.level:g}% intervals over images" if bounded else "", unit_of(name) == "share"
            charts.append(
                Bars(title=titles[name], about=note, groups=self.models, series=series, heading="model",
                     axis="%" if share else "", limits=bounds_of(name) if share else None)
            )  # fmt: skip
        if len(self.datasets) == 1:
            columns = {self._name(name, name): (self.datasets[0], name) for name in self.metrics}
            tables = [board_table(self, columns, self.datasets[0])]
        else:
            tables = [
                board_table(
                    self, {dataset: (dataset, name) for dataset in self.datasets}, title, noted=name == self.metrics[-1]
                )
                for name, title in titles.items()
            ]
        yield Section("", (*tables, Row(tuple(charts))))

    def _name(self, name: str, title: str) -> str:
        title += "" if facts_of(name).higher_is_better else " ↓"
        return f"{title} (primary)" if name == self.primary and len(self.metrics) > 1 else title

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Leaderboard:
        cells: dict[tuple[str, str, str], LeaderboardCell] = {}
        for stored in content["cells"]:
            numbers: dict[str, Any] = {name: nan if value is None else value for name, value in stored.items()}
            cell = LeaderboardCell(**numbers | {"significant": stored["significant"]})
            cells[cell.model, cell.dataset, cell.metric] = cell
        return cls(
            tuple(content["models"]), tuple(content["datasets"]), tuple(content["metrics"]), cells,
            content["correction"], content["permutations"], content["seed"], content["level"], content["tests"],
            tuple(content["notes"]), content.get("primary", ""), tuple(content.get("test_notes", ())),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        facts = ("primary", "tests", "correction", "permutations", "seed", "level", "notes", "test_notes")
        content = {
            "models": self.models,
            "datasets": self.datasets,
            "metrics": {name: facts_of(name) for name in self.metrics},
            "cells": self.cells.values(),
            "test": "paired permutation over images, two-sided, all pairs of models; a cell has its own with the best",
        }
        return json_form({**content, **{name: getattr(self, name) for name in facts}})


@accepts_options(PermutationOptions)
def leaderboard(
    runs: Mapping[tuple[str, str], Run | str | Path],
    metrics: str | Sequence[str] | None = None,
    **options: Unpack[PermutationKeywords],
) -> Leaderboard:
    """Runs by model and dataset as one table.

    On every dataset all pairs of models are tested by a paired permutation test over images, and each cell has the
    result of the pair with the best. The best is chosen by looking, so p-values are corrected for all pairs: the tests
    of ``compare(…, all_pairs=True)`` of these runs and metrics.

    Args:
        runs: Runs, or their folders, by model and dataset; cells may be missing.
        metrics: Names of metrics; by default all that any run has.
    """
    refuse_other_keywords(options, leaderboard)
    test_options = PermutationOptions.pick(options)
    if not runs:
        raise UsageError("a leaderboard requires a run", fix="name at least one")
    loaded = {key: run if isinstance(run, Run) else Run.load(run) for key, run in runs.items()}
    everything = list(dict.fromkeys(name for run in loaded.values() for name in run))
    requested: dict[str, None] = {}
    parts = [metrics] if isinstance(metrics, str) else metrics or ()
    for word in (word for part in parts for word in split_metrics(part)):
        matching = matching_names(word, everything)
        if not matching:
            raise UnknownNameError("metric in these runs", word, everything)
        requested |= dict.fromkeys(matching)
    if metrics is not None and not requested:
        raise UsageError("no metrics", fix=f"choose from {', '.join(everything)}", option="metrics")
    names = list(requested) or everything
    by_dataset: dict[str, dict[str, Run]] = {}
    for (model, dataset), run in loaded.items():
        by_dataset.setdefault(dataset, {})[model] = run
    notes: dict[str, None] = dict.fromkeys(notes_on_published(loaded.values()))
    main = primary_metric(names, test_options.primary)
    pairs: dict[tuple[str, str, str], list[MetricComparison]] = {}
    for dataset, models in by_dataset.items():
        for first, second in combinations([model for model, run in models.items() if not run.published], 2):
            compared = _compared(models[first], models[second], names, replace(test_options, primary=main))
            pairs[dataset, first, second] = [part for part in compared.values() if isinstance(part, MetricComparison)]
            for error in compared.values():  # other queries, or no pairs to test: the figure itself is still there
                if isinstance(error, CrosslensError):
                    notes[f"Not tested: {second} against {first} on {dataset} ({error.problem})."] = None
    level = next(run[name].level for run in loaded.values() for name in run)
    results: list[MetricComparison] = []
    tests: dict[tuple[str, str], dict[tuple[str, str], MetricComparison]] = {}
    corrected_pairs = corrected(list(pairs.values()), test_options.correction)
    for (dataset, first, second), block in zip(pairs, corrected_pairs, strict=True):
        results += block
        for result in block:
            tests.setdefault((dataset, result.metric), {})[first, second] = result
    cells = {
        (cell.model, dataset, name): cell
        for (dataset, models), name in product(by_dataset.items(), names)
        for cell in _column(models, dataset, name, tests.get((dataset, name), {}), level)
    }
    number = sum(result.same_as is None and isfinite(result.p_value) for result in results)
    test = "paired permutation test over images against the best"
    drawn = test_options.permutations, test_options.correction
    test_notes = list(significance_sentences(test, results, *drawn, level)) if number else []
    if len(pairs) > len({dataset for dataset, *_ in pairs}):
        test_notes.append("All pairs of models are tests, since the best was chosen among all.")
    return Leaderboard(
        tuple(dict.fromkeys(model for model, _ in loaded)), tuple(by_dataset), tuple(names),
        cells, test_options.correction, test_options.permutations, test_options.seed, level, number, tuple(notes), main,
        tuple(test_notes),
    )  # fmt: skip


def group_runs(runs: Sequence[Run]) -> dict[tuple[str, str], Run]:
    """Runs by the names of their model and dataset, as :func:`leaderboard` takes them.

    Runs share a dataset where its content, the relevance and the folds are the same. A model is called as its encoder
    where no dataset has two runs of that encoder, and as its run otherwise. What has the same name still gets a number.
    Published figures stand with the runs whose dataset has the name of theirs, in capitals or not.
    """
    datasets: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: bool(run.published)):
        if (key := _dataset_key(run)) not in datasets:
            label = dataset_label(run.provenance)
            same = [name for name in datasets.values() if name.casefold() == label.casefold()]
            datasets[key] = same[0] if run.published and same else unused_label(label, datasets.values())
    encoders = Counter((_encoder(run), _dataset_key(run)) for run in runs)
    repeated = {encoder for (encoder, _), number in encoders.items() if number > 1} | {""}
    grouped: dict[tuple[str, str], Run] = {}
    for run in runs:
        dataset = datasets[_dataset_key(run)]
        name = run.label if _encoder(run) in repeated else _encoder(run)
        grouped[unused_label(name, [model for model, where in grouped if where == dataset]), dataset] = run
    return grouped


_CONTENT = re.compile(r"@[0-9a-f]{12}$")
"""What an encoder's name ends with: the beginning of its weights' hash."""


def _encoder(run: Run) -> str:
    """The encoder behind both sides of a run, with its protocol; empty where there is none or they differ."""
    inputs = run.provenance.get("inputs") or {}
    names = {facts.get("model", "") for facts in inputs.values() if isinstance(facts, Mapping)}
    name = _CONTENT.sub("", names.pop()) if len(names) == 1 else ""
    return replace(run, name=name).label if name else ""


def _dataset_key(run: Run) -> str:
    facts = run.provenance.get("dataset", {})
    options = run.provenance.get("options", {})
    content = [facts.get("fingerprint", facts.get("name")), run.provenance.get("relevance"), options.get("folds", 1)]
    return json.dumps(content, sort_keys=True, default=str)


def dataset_label(provenance: Mapping[str, Any]) -> str:
    """The name of a run's dataset, with whatever makes its figures different from the usual ones."""
    name = str((provenance.get("dataset") or {}).get("name", "")) or "dataset"
    folds = provenance.get("options", {}).get("folds", 1)
    relevance = provenance.get("relevance") or {}
    every = [relevance, *(part for part in relevance.values() if isinstance(part, Mapping))]
    sources = dict.fromkeys(Path(str(part["source"])).name for part in every if part.get("source"))
    parts = [source for source in sources if source != "captions"]  # what else says which pairs are relevant
    parts += [f"{folds} folds"] if folds != 1 else []
    return f"{name} ({', '.join(parts)})" if parts else name


def _compared(
    first: Run, second: Run, names: Sequence[str], test: PermutationOptions
) -> dict[str, MetricComparison | CrosslensError]:
    """Two runs by the metrics that both have; by each alone, where one of them cannot be tested."""
    shared = [name for name in names if name in first.values and name in second.values]

    def compared(metrics: list[str]) -> dict[str, MetricComparison | CrosslensError]:
        """A pair that lacks the primary metric has secondary ones only."""
        role = test.primary if test.primary in metrics else None
        options = vars(replace(test, correction="none", primary=role))
        results = compare(first, second, metrics=metrics, **options).results
        return {result.metric: replace(result, primary=result.metric == test.primary) for result in results}

    if not shared:
        return {}
    try:
        return compared(shared)
    except CrosslensError:
        results: dict[str, MetricComparison | CrosslensError] = {}
        for name in shared:
            try:
                results |= compared([name])
            except CrosslensError as error:
                results[name] = error
        return results


def _column(
    models: Mapping[str, Run], dataset: str, name: str, tests: Mapping[tuple[str, str], MetricComparison], level: float
) -> Iterator[LeaderboardCell]:
    """The cells of one metric on one dataset."""
    column = {model: run[name] for model, run in models.items() if name in run.values}
    figures = {model: values.mean for model, values in column.items() if isfinite(values.mean)}
    target = (max if facts_of(name).higher_is_better else min)(figures.values(), default=nan)
    leader = next((model for model, figure in figures.items() if figure == target), "")
    for model, values in column.items():
        cell = LeaderboardCell(model, dataset, name, values.mean, values.low, values.high, values.n)
        test = tests.get((leader, model)) or tests.get((model, leader))
        if test is not None and isfinite(test.p_value):
            # The difference is that of the second run to the first.
            limits = (test.difference, test.low, test.high)
            if (model, leader) in tests:
                limits = (-test.difference, -test.high, -test.low)
            cell = replace(
                cell, difference=limits[0] + 0.0, difference_low=limits[1] + 0.0, difference_high=limits[2] + 0.0,
                p_value=test.p_value, adjusted_p=test.adjusted_p, significant=test.adjusted_p < 1 - level,
                images=test.images, smallest_p=test.smallest_p, same_as=test.same_as,
            )  # fmt: skip
        yield replace(cell, best=cell.mean == target)
