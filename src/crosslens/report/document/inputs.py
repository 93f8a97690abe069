"""What a report is made from: runs, results of stages, datasets and picture files; and what its sections share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import polars as pl

from crosslens.core import (
    HEADER_FILE,
    IMAGE_TO_TEXT,
    RUN_FILE,
    TEXT_TO_IMAGE,
    CrosslensError,
    Dataset,
    Finding,
    InputError,
    Run,
    UsageError,
    being_written,
    distinct_names,
    read_header,
    split_name,
)
from crosslens.explanations import (
    dataset_change,
    dataset_of_run,
    first_relevant,
    image_files_of_run,
    query_outcomes,
    ranking_of,
)
from crosslens.metrics import dataset_name, facts_of, unit_of
from crosslens.pipeline import (
    CAPTION_LENGTH,
    Audit,
    AuditFolder,
    Comparison,
    GroupedMetrics,
    Sensitivity,
    StageResult,
    compare,
    findings_of_runs,
    group_metrics,
    group_names,
    kept_sensitivities,
    load_audit,
)
from crosslens.report.forms.pictures import SharedPictures

SIZE_BUDGET = 5_000_000
"""Bytes that a report takes at most; its pictures are made smaller, or fewer, to fit."""
QUERIES = 6
"""Queries of each kind that a report shows."""
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a stored result of another shape leads to."""
_HEADLINES = ("Hit@1", "Recall@1", "CappedRecall@1", "MRR", "mAP@R", "Hit@5", "Hit@10")
"""What a report leads with: the first of these that a run has."""
_FIRST_COLUMNS = ("task", "difficulty", "category", "style", "caption_length")
_MOST_COLUMNS, _MOST_GROUPS, _LARGEST = 6, 40, 12
_FEWEST = 5
"""Queries that a group has at least, on average, for its column to be shown."""

Source: TypeAlias = Run | Audit | str | Path
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """Runs by name, what the stages of an audit computed, and the datasets behind them.

    ``datasets`` are those of the runs by name; ``dataset`` is enough where there is one. ``pictures`` are the paths of
    picture files: by dataset, then by image. ``sources`` say where runs are, for the commands that repeat them.
    """

    title: str
    runs: Mapping[str, Run]
    results: Sequence[StageResult] = ()
    findings: Sequence[Finding] = ()
    sensitivities: Sequence[Sensitivity] = ()
    dataset: Dataset | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    pictures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    command: str = ""
    size: int = SIZE_BUDGET
    queries: int = QUERIES

    def stage(self, name: str) -> list[StageResult]:
        """What a stage computed: of every run, in their order, or of every dataset."""
        order = {run: number for number, run in enumerate(self.runs)}
        results = [result for result in self.results if result.stage == name]
        return sorted(results, key=lambda result: order.get(result.model, -1))

    def stage_of(self, stage: str, name: str) -> StageResult | None:
        """What a stage computed of a run, or of its dataset."""
        results, dataset = self.stage(stage), dataset_name(self.runs[name])
        own = [result for result in results if result.model == name]
        about = [result for result in results if not result.model and result.dataset in ("", dataset)]
        return next(iter([*own, *about]), None)

    def dataset_of(self, run: Run) -> Dataset | None:
        named = self.datasets.get(dataset_name(run))
        alone = len({dataset_name(other) for other in self.runs.values()}) == 1
        return named or (self.dataset if alone else None)

    def by_dataset(self) -> dict[str, dict[str, Run]]:
        """The runs of each dataset; those that do not say which belong together."""
        grouped: dict[str, dict[str, Run]] = {}
        for name, run in self.runs.items():
            grouped.setdefault(dataset_name(run), {})[name] = run
        return grouped


def report_inputs(
    sources: Sequence[Source],
    *,
    title: str | None = None,
    dataset: Dataset | str | Path | None = None,
    dataset_options: Mapping[str, Any] | None = None,
    image_folder: str | Path | None = None,
    **settings: Any,
) -> ReportInputs:
    """The inputs of a report on runs and audits, given as values or as folders.

    ``dataset`` replaces what the runs' recipes name; without either, a report has no queries and no pictures.
    ``settings`` are further fields of :class:`ReportInputs`.
    """
    if not sources:
        raise UsageError("a report requires a run", fix="name at least one run folder or audit folder")
    opened: list[tuple[str, Run]] = []
    results: list[tuple[int, StageResult]] = []
    findings: list[Finding] = []
    sensitivities: list[tuple[int, Sensitivity]] = []
    notes: list[str] = []
    kind = "Report on"
    for source in sources:
        if not isinstance(source, Run | Audit):
            if is_audit(source):
                source = load_audit(source)
            elif (Path(source) / RUN_FILE).exists() or being_written(Path(source)) is not None:
                source = Run.load(source)
            else:
                fix = "name a folder that evaluate -o or audit -o wrote"
                raise InputError("neither a run nor an audit", file=Path(source), fix=fix)
        if isinstance(source, Run):
            opened.append((source.label, source))
            continue
        if not source.runs:
            raise InputError("this audit has no run yet", file=source.folder, fix="run the same audit again")
        kind = "Audit of"
        position = {name: len(opened) + row for row, name in enumerate(source.runs)}
        opened += source.runs.items()
        results += [(position.get(result.model, -1), result) for result in source.results]
        findings += source.findings
        kept = kept_sensitivities(AuditFolder(source.folder))
        sensitivities += [(position[name], own.sensitivity) for name, own in kept.items() if name in position]
        notes += [f"{entry.stage} was left out: it {entry.reason}." for entry in source.skipped]
    names = distinct_names([name for name, _ in opened])
    runs = {name: run for name, (_, run) in zip(names, opened, strict=True)}
    about = ", ".join(dict.fromkeys(name for name in map(dataset_name, runs.values()) if name))
    who = names[0] if len(runs) == 1 else f"{len(runs)} runs"
    datasets = _datasets(runs.values(), dataset, dataset_options or {}, notes)
    return ReportInputs(
        title or f"{kind} {who}{f' on {about}' if about else ''}",
        runs,
        tuple(result if row < 0 else replace(result, model=names[row]) for row, result in results),
        tuple(findings),
        tuple(replace(own, run=names[row]) for row, own in sensitivities),
        next(iter(datasets.values()), None),
        datasets=datasets,
        pictures=_pictures(runs.values(), datasets, image_folder, notes),
        sources={name: str(run.home) for name, run in runs.items() if run.home is not None},
        notes=tuple(dict.fromkeys(notes)),
        **settings,
    )


def is_audit(folder: str | Path) -> bool:
    """Whether a folder holds an audit."""
    try:
        read_header(Path(folder) / HEADER_FILE, "audit")
    except (CrosslensError, OSError):
        return False
    return True


def _datasets(
    runs: Iterable[Run], dataset: Dataset | str | Path | None, options: Mapping[str, Any], notes: list[str]
) -> dict[str, Dataset]:
    """The datasets by the name that runs know them by; what cannot be read is noted, unless it was asked for."""
    datasets: dict[str, Dataset] = {}
    for run in runs:
        name = dataset_name(run)
        if name in datasets:
            continue
        try:
            datasets[name] = dataset_of_run(run, dataset, **options)
        except CrosslensError as error:
            if dataset is not None or options:
                raise
            notes.append(f"Without queries and pictures: {error.problem}.")
        else:
            changed = None if dataset is not None else dataset_change(run, datasets[name])
            notes += [changed] if changed else []
    return datasets


def _pictures(
    runs: Iterable[Run], datasets: Mapping[str, Dataset], folder: str | Path | None, notes: list[str]
) -> dict[str, dict[str, str]]:
    """The picture files of each dataset by image; why there are none is noted."""
    pictures: dict[str, dict[str, str]] = {}
    for run in runs:
        name = dataset_name(run)
        if name in datasets and name not in pictures:
            files, problem = image_files_of_run(run, datasets[name], datasets[name].image_ids, folder)
            pictures[name] = files
            notes += [f"Without pictures: {problem}."] if problem else []
    return pictures


class ReportContext:
    """The inputs of a report with what several sections need, each computed once."""

    def __init__(self, inputs: ReportInputs) -> None:
        self.inputs = inputs
        self.pictures = SharedPictures(inputs.pictures)
        self.notes: list[str] = list(inputs.notes)
        self._outcomes: dict[str, pl.DataFrame | None] = {}
        self._grouped: dict[tuple[str, str, str], GroupedMetrics | None] = {}

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

    def headline(self, run: Run) -> str | None:
        """The metric that says most of a run."""
        own = [name for name in run if split_name(name)[0] == self.direction]
        wanted = [f"{self.direction}/{metric}" for metric in _HEADLINES]
        shares = [name for name in own if unit_of(name) == "share"]
        return next((name for name in (*wanted, *shares, *own) if name in own), None)

    def first_ranks(self, run: Run) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        """The rank of the first relevant item of every query that has one; −1 where a given list ends before it."""
        ranking = run.rankings.get(self.direction)
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

    def grouped(self, name: str, column: str, metric: str) -> GroupedMetrics | None:
        """A metric of a run over the largest groups of a column; None where it cannot be grouped."""
        key = name, column, metric
        if key not in self._grouped:
            try:
                self._grouped[key] = group_metrics(self.inputs.runs[name], column, [metric], largest=_LARGEST)
            except UsageError:
                self._grouped[key] = None
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
                # Under which protocol they are does not keep runs from being compared.
                named = [
                    replace(run, name=name, provenance={**run.provenance, "protocol": {}}) for name, run in runs.items()
                ]
                try:
                    compared[dataset] = compare(*named, metrics=metrics[:1], all_pairs=True)
                except CrosslensError as error:
                    self.notes.append(f"The runs are not compared: {error.problem}.")
        return compared

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """What the audit says; without one, what the runs say by the same tests, as far as their rankings tell."""
        if self.inputs.findings or self.inputs.results:
            return self.inputs.findings
        return findings_of_runs({name: (run, self.inputs.dataset_of(run)) for name, run in self.inputs.runs.items()})

    def best(self, runs: dict[str, Run]) -> str:
        metric = self.headline(next(iter(runs.values())))
        able = [name for name, run in runs.items() if metric in run.values]
        if metric is None or not able:
            return next(iter(runs))
        sign = 1 if facts_of(metric).higher_is_better else -1
        return max(able, key=lambda name: sign * float(np.nan_to_num(runs[name][metric].mean, nan=-sign * np.inf)))


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
