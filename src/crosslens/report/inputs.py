"""What a report is made from: runs, results of stages, datasets and picture files, read from folders or given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from crosslens.audits import Audit, AuditFolder, Sensitivity, StageResult, load_audit, stored_sensitivities
from crosslens.core import CrosslensError, Finding, InputError, UsageError
from crosslens.explanations import dataset_change, dataset_of_run, image_files_of_run
from crosslens.metrics import dataset_name
from crosslens.storage import HEADER_FILE, being_written, read_header
from crosslens.values import RUN_FILE, Dataset, Run, distinct_names

SIZE_BUDGET = 2_000_000
"""Bytes that a report takes at most: pictures get smaller, then fewer; in a smaller one, lists get shorter."""
QUERIES = 8
"""Cards of misses that are open from the start."""
Source: TypeAlias = Run | Audit | str | Path


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
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Stages that could not run, and why."""
    notes: Sequence[str] = ()
    command: str = ""
    size: int = SIZE_BUDGET
    queries: int = QUERIES

    @property
    def date(self) -> str:
        """When the newest of the runs was written, as far as they are in folders."""
        files = [Path(source) / RUN_FILE for source in self.sources.values()]
        times = [file.stat().st_mtime for file in files if file.is_file()]
        return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%d %H:%M UTC") if times else ""

    def stage(self, name: str) -> list[StageResult]:
        """What a stage computed: of every run, in their order, or of every dataset."""
        order = {run: number for number, run in enumerate(self.runs)}
        results = [result for result in self.results if result.stage == name]
        return sorted(results, key=lambda result: order.get(result.model, -1))

    def stage_of(self, stage: str, name: str) -> StageResult | None:
        """What a stage computed of a run, or of its dataset."""
        results, dataset = self.stage(stage), dataset_name(self.runs[name])
        of_run = [result for result in results if result.model == name]
        of_dataset = [result for result in results if not result.model and result.dataset in ("", dataset)]
        return next(iter([*of_run, *of_dataset]), None)

    def dataset_of(self, run: Run) -> Dataset | None:
        dataset = self.datasets.get(dataset_name(run))
        alone = len({dataset_name(other) for other in self.runs.values()}) == 1
        return dataset or (self.dataset if alone else None)

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
    skipped: dict[str, str] = {}
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
        kept = stored_sensitivities(AuditFolder(source.folder))
        sensitivities += [(position[name], stored.sensitivity) for name, stored in kept.items() if name in position]
        skipped |= {entry.stage: entry.reason for entry in source.skipped}
    names = distinct_names([name for name, _ in opened])
    runs = {name: run for name, (_, run) in zip(names, opened, strict=True)}
    dataset_names = ", ".join(dict.fromkeys(name for name in map(dataset_name, runs.values()) if name))
    who = names[0] if len(runs) == 1 else f"{len(runs)} runs"
    datasets = _datasets(runs.values(), dataset, dataset_options or {}, notes)
    return ReportInputs(
        title or f"{kind} {who}{f' on {dataset_names}' if dataset_names else ''}",
        runs,
        tuple(result if row < 0 else replace(result, model=names[row]) for row, result in results),
        tuple(findings),
        tuple(replace(sensitivity, run=names[row]) for row, sensitivity in sensitivities),
        next(iter(datasets.values()), None),
        datasets=datasets,
        pictures=_pictures(runs.values(), datasets, image_folder, notes),
        sources={name: str(run.home) for name, run in runs.items() if run.home is not None},
        skipped=skipped,
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
