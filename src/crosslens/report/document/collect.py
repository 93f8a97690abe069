"""From run folders and audit folders to the inputs of a report: runs, results, datasets and picture files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from crosslens.core import (
    HEADER_FILE,
    RUN_FILE,
    CrosslensError,
    Dataset,
    InputError,
    Run,
    UsageError,
    being_written,
    distinct_names,
    read_header,
)
from crosslens.explanations import dataset_change, dataset_of_run, image_files_of_run
from crosslens.metrics import dataset_name
from crosslens.pipeline import Audit, Finding, StageResult, load_audit
from crosslens.report.document.inputs import ReportInputs

Source: TypeAlias = Run | Audit | str | Path


@dataclass
class _Collected:
    """What was read so far: runs in order, each with its name in its source and where it is."""

    runs: list[tuple[str, Run, str]] = field(default_factory=list)
    results: list[tuple[int, StageResult]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    audits: int = 0


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
    collected = _Collected()
    for source in sources:
        _collect(source, collected)
    names = distinct_names([name for name, _, _ in collected.runs])
    runs = {name: run for name, (_, run, _) in zip(names, collected.runs, strict=True)}
    datasets = _datasets(runs.values(), dataset, dataset_options or {}, collected.notes)
    return ReportInputs(
        title or _title(runs, collected),
        runs,
        _renamed(collected, names),
        tuple(collected.findings),
        next(iter(datasets.values()), None),
        datasets=datasets,
        pictures=_pictures(runs.values(), datasets, image_folder, collected.notes),
        sources={name: folder for name, (_, _, folder) in zip(names, collected.runs, strict=True) if folder},
        notes=tuple(dict.fromkeys(collected.notes)),
        **settings,
    )


def is_audit(folder: str | Path) -> bool:
    """Whether a folder holds an audit."""
    try:
        read_header(Path(folder) / HEADER_FILE, "audit")
    except (CrosslensError, OSError):
        return False
    return True


def _collect(source: Source, collected: _Collected) -> None:
    if isinstance(source, Run):
        collected.runs.append((source.label, source, "" if source.home is None else str(source.home)))
        return
    if not isinstance(source, Audit):
        if not is_audit(source):
            if not (Path(source) / RUN_FILE).exists() and being_written(Path(source)) is None:
                raise InputError(
                    "neither a run nor an audit",
                    file=Path(source),
                    fix="name a folder that evaluate -o or audit -o wrote",
                )
            run = Run.load(source)
            collected.runs.append((run.label, run, str(source)))
            return
        source = load_audit(source)
    audited, start = source, len(collected.runs)
    if not audited.runs:
        raise InputError("this audit has no run yet", file=audited.folder, fix="run the same audit again")
    position = {name: start + row for row, name in enumerate(audited.runs)}
    collected.runs += [(name, run, str(run.home or "")) for name, run in audited.runs.items()]
    collected.results += [(position.get(result.model, -1), result) for result in audited.results]
    collected.findings += audited.findings
    collected.notes += [f"{entry.stage} was left out: it {entry.reason}." for entry in audited.skipped]
    collected.audits += 1


def _renamed(collected: _Collected, names: Sequence[str]) -> tuple[StageResult, ...]:
    """The results under the names that their runs have in the report."""
    return tuple(
        result if row < 0 or names[row] == result.model else replace(result, model=names[row])
        for row, result in collected.results
    )


def _title(runs: Mapping[str, Run], collected: _Collected) -> str:
    about = ", ".join(dict.fromkeys(name for name in map(dataset_name, runs.values()) if name))
    who = next(iter(runs)) if len(runs) == 1 else f"{len(runs)} runs"
    return f"{'Audit of' if collected.audits else 'Report on'} {who}{f' on {about}' if about else ''}"


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
