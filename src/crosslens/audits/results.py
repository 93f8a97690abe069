"""What an audit keeps of a stage, and what it says in the end. Reports are rendered from these alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crosslens.audits.conclusions import Observed
from crosslens.core import (
    CrosslensError,
    Effect,
    FactList,
    Finding,
    InputError,
    Observation,
    Presented,
    Section,
    Table,
    Text,
    restored_part,
    stored_part,
)
from crosslens.explanations import dataset_of_run
from crosslens.metrics import dataset_name, metric_figure
from crosslens.storage import (
    FORMAT_VERSION,
    HEADER_FILE,
    Layout,
    atomic_folder,
    is_empty,
    json_form,
    read_header,
    read_whole,
    remove,
    remove_abandoned,
    write_header,
)
from crosslens.values import Dataset, Run

RUNS, RESULTS, FINDINGS_FILE, REPORT_FILE = "runs", "results", "findings.json", "report.html"
SENSITIVITY_FILE = "sensitivity.json"
_HEADLINES = ("t2i/Hit@1", "t2i/Hit@10", "i2t/Hit@1", "t2t/Hit@1")
"""Below an audit's folder: a run folder per model and dataset; a file per stage; the findings; the page."""


@dataclass(frozen=True)
class StageResult:
    """What one stage computed: the payload that the stage's own command prints with ``--json``."""

    stage: str
    """Its name, such as ``robustness``: what ``--only`` and ``--skip`` take."""
    payload: Mapping[str, Any]
    command: str
    """The command that computes the same by itself, as far as there is one."""
    model: str = ""
    """The name of the run that it is about; empty: about the dataset."""
    dataset: str = ""
    folder: Path | None = None
    """Where the stage's tables and pictures are, if it wrote a folder."""
    seconds: float = 0.0
    sections: tuple[Section, ...] = ()
    """How it is shown."""
    observations: tuple[Observation, ...] = ()
    """What was looked at for findings, whether there is something to say or not."""

    def observed(self) -> Iterator[Observed]:
        return (Observed(observation, self.stage, self.model, self.dataset) for observation in self.observations)


STAGE_FOLDERS = ("robustness", "explanations", "label-quality", "missing-positives", "difficulty")
"""Where stages put tables and pictures."""
AUDIT_DATASETS = "datasets"
"""Datasets that were given as values."""
_OWN = (RUNS, RESULTS, AUDIT_DATASETS, *STAGE_FOLDERS, FINDINGS_FILE, SENSITIVITY_FILE, REPORT_FILE)
_LAYOUT = Layout("an audit", HEADER_FILE, ())
_KIND, _RESULT, _FINDINGS, _SENSITIVITY = "audit", "audit-result", "audit-findings", "audit-sensitivity"


@dataclass(frozen=True)
class Skipped:
    """A stage that could not run, and why, in one line."""

    stage: str
    subject: str
    reason: str


@dataclass(frozen=True)
class AuditFolder:
    """An audit on disk. Every file is written at once or not at all, so that a killed audit goes on where it was."""

    path: Path

    @staticmethod
    def open(path: str | Path, key: str, header: Mapping[str, Any], *, overwrite: bool) -> AuditFolder:
        """The folder of the audit with this key, made if need be; another audit is replaced only with ``overwrite``.

        A folder in which no stage was finished holds nothing of worth: corrected inputs simply take it over. Only its
        header is then written anew, so that nothing is removed that somebody else put there.
        """
        folder = AuditFolder(Path(path))
        results = folder.path / RESULTS
        if _LAYOUT.holds(folder.path) and overwrite:
            for name in _OWN:  # the header stays until it is replaced: it says whose folder this is
                remove(folder.path / name)
        try:
            same = folder.header()["key"] == key
        except (InputError, KeyError):
            same = False
        if not same and any(results.glob("*.json")):
            _LAYOUT.refuse_other(folder.path, overwrite=False)
        remove_abandoned(folder.path, resumable=not same)
        if is_empty(folder.path):  # in one step: a folder without a header would not be taken for an audit's
            with atomic_folder(folder.path, _LAYOUT) as begun:
                AuditFolder(begun)._write(HEADER_FILE, _KIND, {"key": key, **header})
        elif not same or overwrite:
            folder._write(HEADER_FILE, _KIND, {"key": key, **header})
        for inside in (folder.path / RUNS, results):
            inside.mkdir(exist_ok=True)
        return folder

    def header(self) -> dict[str, Any]:
        return read_header(self.path / HEADER_FILE, _KIND)

    def run_folder(self, name: str) -> Path:
        return self.path / RUNS / name

    def has(self, file: str, key: str) -> bool:
        """Whether the result of a stage is stored, and was computed from the same inputs."""
        try:
            content = read_header(self.path / RESULTS / file, _RESULT)
            return content["key"] == key and self._result(content) is not None
        except (CrosslensError, KeyError):
            return False

    def store(self, file: str, key: str, result: StageResult) -> None:
        folder = None if result.folder is None else result.folder.relative_to(self.path).as_posix()
        content = {
            **vars(result), "folder": folder,
            "sections": stored_part(result.sections), "observations": [vars(entry) for entry in result.observations],
        }  # fmt: skip
        self._write(f"{RESULTS}/{file}", _RESULT, {"key": key, **content})

    def results(self) -> tuple[StageResult, ...]:
        files = sorted((self.path / RESULTS).glob("*.json"))
        return tuple(self._result(read_header(file, _RESULT)) for file in files)

    def conclude(self, findings: Iterable[Finding], skipped: Iterable[Skipped]) -> None:
        """Store what the results say, and which stages could not run."""
        self._write(FINDINGS_FILE, _FINDINGS, {"findings": findings, "skipped": skipped})

    def sensitivities(self) -> dict[str, dict[str, Any]]:
        """What could have been noticed, by run: with its key, as :func:`crosslens.calibrate` keeps it."""
        file = self.path / SENSITIVITY_FILE
        return dict(read_header(file, _SENSITIVITY)["runs"]) if file.exists() else {}

    def keep_sensitivity(self, run: str, key: str, content: Mapping[str, Any]) -> None:
        """Replace what is kept of a run."""
        runs = {**self.sensitivities(), run: {"key": key, **content}}
        self._write(SENSITIVITY_FILE, _SENSITIVITY, {"runs": runs})

    @property
    def is_concluded(self) -> bool:
        return (self.path / FINDINGS_FILE).exists()

    def _result(self, content: Mapping[str, Any]) -> StageResult:
        with complete(self.path / RESULTS):
            folder, names = content["folder"], ("stage", "payload", "command", "model", "dataset", "seconds")
            values = {name: content[name] for name in names}
            sections = restored_part(content["sections"])
            observations = tuple(
                Observation(**{**entry, "effect": Effect(*entry["effect"])}) for entry in content["observations"]
            )
            folder = None if folder is None else self.path / folder
            return StageResult(**values, folder=folder, sections=sections, observations=observations)

    def _write(self, name: str, kind: str, content: Mapping[str, Any]) -> None:
        header = {"format": f"crosslens/{kind}", "version": FORMAT_VERSION, **json_form(content)}
        write_header(self.path / name, header)


@contextmanager
def complete(file: Path, fix: str = "run the same audit again") -> Iterator[None]:
    """Say of a file that lacks something that it is damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("not a result of an audit", file=file, fix=fix) from error


@dataclass(frozen=True, eq=False)
class Audit(Presented):
    """An audit: its runs, what every stage computed, and what that says, the most important first."""

    folder: Path
    runs: Mapping[str, Run]
    results: tuple[StageResult, ...]
    findings: tuple[Finding, ...]  # type: ignore[assignment]  # concluded from the observations of all results
    skipped: tuple[Skipped, ...] = ()
    """Stages that could not run, and why."""

    @cached_property
    def header(self) -> Mapping[str, Any]:
        """What the audit is of: its runs by model and dataset, its options, and the command."""
        return AuditFolder(self.folder).header()

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets by name, read as the runs' recipes say."""
        datasets: dict[str, Dataset] = {}
        for run in self.runs.values():
            name = dataset_name(run)
            if name and name not in datasets:
                datasets[name] = dataset_of_run(run)
        return datasets

    @property
    def dataset(self) -> Dataset | None:
        """The first dataset; None of an audit without one."""
        return next(iter(self.datasets.values()), None)

    @property
    def report(self) -> Path:
        return self.folder / REPORT_FILE

    @property
    def title(self) -> str:
        return f"Audit of {', '.join(self.runs)}"

    def sections(self) -> Iterator[Section]:
        metrics = [name for name in _HEADLINES if any(name in run for run in self.runs.values())]
        figures = [
            (name, *(metric_figure(values.name, values.mean, values.low, values.high) if values else None
                     for values in map(run.values.get, metrics)))
            for name, run in self.runs.items()
        ]  # fmt: skip
        rows = []
        for number, finding in enumerate(self.findings[:10], 1):
            more = f" The same on {', '.join(finding.also)}." if finding.also else ""
            rows.append((f"{number:>2}.", f"{finding.text}{more} ({finding.certainty})"))
        facts = FactList(tuple(rows)) if rows else Text.of(self._nothing_stands_out)
        headline = (Table(("run", *metrics), figures),) if metrics else ()
        yield Section("", (*headline, facts, Text.of(f"Report: {self.report}")))

    @property
    def _nothing_stands_out(self) -> str:
        """What an audit without findings shows: little where hardly anything could be tested, or nothing."""
        if any(result.observations for result in self.results):
            return "Nothing stands out: no test of this audit found a fault."
        reason = next((entry.reason for entry in self.skipped), "")
        return f"Nothing was tested for faults{f': that {reason}' if reason else ''}."

    def as_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "runs": {name: str(self.folder / "runs" / name) for name in self.runs},
            "stages": [
                {"stage": result.stage, "model": result.model, "dataset": result.dataset, "command": result.command}
                for result in self.results
            ],
            "skipped": [vars(entry) for entry in self.skipped],
            "findings": [finding.as_dict() for finding in self.findings],
            "report": str(self.report),
        }


def load_audit(folder: str | Path) -> Audit:
    """Read the folder of an audit, an unfinished one too."""
    stored = AuditFolder(Path(folder))

    def read() -> Audit:
        runs = {name: stored.run_folder(name) for name in stored.header().get("runs") or {}}
        loaded = {name: Run.load(path) for name, path in runs.items() if path.exists()}
        file = stored.path / FINDINGS_FILE
        content: Mapping[str, Any] = {"findings": (), "skipped": ()}
        if stored.is_concluded:  # not of an audit that was interrupted
            content = read_header(file, _FINDINGS)
        with complete(file):
            findings = tuple(map(Finding.from_dict, content["findings"]))
            skipped = tuple(Skipped(**entry) for entry in content["skipped"])
        return Audit(stored.path, loaded, stored.results(), findings, skipped)

    # Written stage by stage: what a process is still working on is not taken for the result.
    return read_whole(stored.path, stored.path / HEADER_FILE, read=read, is_complete=lambda _: stored.is_concluded)
