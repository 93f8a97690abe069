"""Stored runs: opened by the name that a person gives, and shown by the command that made them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from crosslens import core, explanations, pipeline, report as reports, values
from crosslens.cli.answers import wrote
from crosslens.cli.console import print_note, print_notes
from crosslens.cli.datasets import DatasetOptions
from crosslens.core import CrosslensError, InputError, Presented, Section, UsageError, address_of, declarations
from crosslens.engine import EngineOptions

_MAX_SHOWN = 5
_ENGINE_FLAGS = tuple(f"--{name.replace('_', '-')}" for name in declarations(EngineOptions))

StoredRuns: TypeAlias = "dict[str, tuple[Path, values.Run]]"
"""Runs and their folders, by name."""


def load_run(folder: Path) -> values.Run:
    """The run in a folder, or at an address; where there is none, the error names the runs that may be meant."""
    if address_of(folder):
        return values.Run.load(folder)
    try:
        return values.Run.load(folder)
    except InputError as error:
        if (folder / values.RUN_FILE).exists() or error.code == "locked":
            raise
        if reports.holds_results(folder):
            raise InputError(
                "not a run folder", file=folder, expected="a run folder, as evaluate -o writes it",
                fix="published results of mteb and CLIP_benchmark are for crosslens show, leaderboard and export",
            ) from error  # fmt: skip
        problem = "no run.json here" if folder.is_dir() else "this is a file" if folder.exists() else "no such folder"
        inside, beside = _runs_in(folder), {Path(path).name: path for path in _runs_in(folder.parent)}
        fix = "check the path"
        if inside:
            fix = f"name a run inside it, such as {', '.join(inside[:_MAX_SHOWN])}"
        elif near := difflib.get_close_matches(folder.name, beside, n=1):
            fix = f"did you mean {beside[near[0]]}?"
        elif beside:
            fix = f"check the path; there are {', '.join(list(beside.values())[:_MAX_SHOWN])}"
        raise InputError(problem, file=folder, expected="a run folder, as evaluate -o writes it", fix=fix) from error


def load_runs(
    folders: Sequence[Path], columns: Path | None = None, *, with_published: bool = False
) -> list[values.Run]:
    """The runs in folders, with the columns of a table beside their own; notes are printed once.

    ``with_published``: results of mteb and CLIP_benchmark may be among them, and are behind the runs.
    """
    published = [folder for folder in folders if with_published and reports.holds_results(folder)]
    runs = [load_run(folder) for folder in folders if folder not in published]
    runs += reports.read_results(*published)
    if columns is None:
        return runs
    table = pipeline.read_columns(columns)
    added = [pipeline.add_columns(run, table) for run in runs]
    print_notes(dict.fromkeys(note for _, notes in added for note in notes))
    return [run for run, _ in added]


def check_same_captions(runs: Mapping[str, values.Run]) -> None:
    """Raise for runs over different captions: drawn datasets, or splits, may have the same ids."""
    fingerprints = [(run.provenance.get("dataset") or {}).get("fingerprint") for run in runs.values()]
    (first, baseline), *others = runs.items()
    for (name, run), fingerprint in zip(others, fingerprints[1:], strict=True):
        if fingerprint == fingerprints[0]:
            continue
        try:
            datasets = map(explanations.dataset_of_run, (baseline, run))
            texts = [dict(zip(dataset.caption_ids, dataset.texts, strict=True)) for dataset in datasets]
        except CrosslensError:  # a run does not say which captions it is over
            continue
        if texts[0] != texts[1]:
            raise UsageError(
                f"{name} is over another dataset than {first}", fix="name runs over the same captions",
                code="different-datasets", option="runs",
            )  # fmt: skip


def load_named_runs(folders: Sequence[Path]) -> StoredRuns:
    """The runs, which are over the same captions, under the names of their folders."""
    names = [folder.resolve().name for folder in folders]
    runs = {
        name if names.count(name) == 1 else str(folder): (folder, load_run(folder))
        for name, folder in zip(names, folders, strict=True)
    }
    if runs:
        check_same_captions({str(folder): run for folder, run in runs.values()})
    return runs


def dataset_of(runs: StoredRuns) -> values.Dataset:
    """The dataset that the first run's recipe names."""
    if not runs:
        raise UsageError("neither runs nor a dataset", fix="name run folders, or pass --dataset")
    return explanations.dataset_of_run(next(iter(runs.values()))[1])


def dataset_of_run(run: values.Run, source: DatasetOptions) -> values.Dataset:
    """The dataset that the flags name, or the run's recipe; a note says where that has changed since."""
    options = source.reader_options()
    dataset = explanations.dataset_of_run(run, source.dataset, **options)
    if source.dataset is None and not options and (changed := explanations.dataset_change(run, dataset)):
        print_note(f"note: {changed}")
    return dataset


def load_study(folder: Path) -> pipeline.Robustness | None:
    """The robustness study in a folder; None where there is none."""
    return pipeline.Robustness.load(folder) if (folder / pipeline.ROBUSTNESS_FILE).exists() else None


def load_studies(folders: Sequence[Path]) -> dict[str, pipeline.Robustness] | None:
    """The robustness studies in folders, by the folders' names; None where the first is not a study."""
    if not folders or load_study(folders[0]) is None:
        return None
    studies: dict[str, pipeline.Robustness] = {}
    for folder in folders:
        study = load_study(folder)
        if study is None:
            raise UsageError(f"{folder} is not a robustness study, and {folders[0]} is", fix="name studies, or runs")
        name = folder.resolve().name
        studies[name if name not in studies else str(folder)] = study
    return studies


def named_tables(names: str | None) -> tuple[str, ...] | None:
    """The tables of a study that are asked for, such as ``drops words``; an unknown one is refused."""
    if names is None:
        return None
    listed = tuple(names.replace(",", " ").split())
    pipeline.check_tables(listed)
    return listed


def drops_by_column(study: pipeline.Robustness, by: str | None, columns: Path) -> pipeline.GroupedTable:
    """The drops of a study within each group of a column of the table."""
    if by is None:
        raise UsageError("--columns requires --by", fix="name one of its columns: --by difficulty")
    queries = list(dict.fromkeys(map(str, study.queries["query"])))
    labels, notes = pipeline.read_columns(columns).groups(by, queries, f"{study.direction} queries")
    print_notes(notes)
    return pipeline.drops_by(study, labels, by)


def _runs_in(folder: Path) -> list[str]:
    return sorted(str(file.parent) for file in folder.glob(f"*/{values.RUN_FILE}")) if folder.is_dir() else []


def recorded_command() -> list[str]:
    """The command line as runs store it: without credentials and the engine, which changes nothing about the result."""
    words, recorded = iter(sys.argv), []
    for word in words:
        name, joined, _ = word.partition("=")
        if name not in _ENGINE_FLAGS:
            recorded.append(word)
        elif not joined:
            next(words, None)
    return list(map(core.without_secrets, recorded))


def run_written_at(output: Path | None) -> int | None:
    """When the run in a folder was written; None where there is none yet."""
    file = None if output is None else output / values.RUN_FILE
    return file.stat().st_mtime_ns if file is not None and file.exists() else None


@dataclass(frozen=True)
class EvaluatedRun(Presented):
    """A run as the command shows it that made it: what is noted about it has been said on standard error."""

    run: values.Run
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.run.title

    def sections(self) -> Iterable[Section]:
        return self.run.sections()

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        return replace(self.run, provenance={**self.run.provenance, "notes": ()}).text(width, colour=colour)

    def as_dict(self) -> dict[str, Any]:
        return {**self.run.as_dict(), "notes": list(self.notes)}


def evaluated_run(run: values.Run, output: Path | None, unchanged: bool, name: str | None = None) -> EvaluatedRun:
    """The answer of a command that made a run, or found it complete: then :func:`run_written_at` is as it was.

    ``name`` is the name in the command.
    """
    notes = [str(text) for text in run.provenance.get("notes", ())]
    unchanged = unchanged and output is not None
    if unchanged and name is not None and name != run.name:
        notes.append(f"the existing run keeps its name, {run.name!r}")
    print_notes(notes)
    if unchanged:
        print_note(f"up to date: {address_of(output) or output} (nothing to do)")
    else:
        wrote(output)
    return EvaluatedRun(run, tuple(notes))
