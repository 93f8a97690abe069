"""An audit as a value: its runs, what its stages computed, and what that says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crosslens.core import HEADER_FILE, Dataset, FactList, Presented, Run, Section, Text, read_whole
from crosslens.explanations import dataset_of_run
from crosslens.pipeline.audit.folder import AuditFolder, Skipped
from crosslens.pipeline.audit.results import REPORT_FILE, Finding, StageResult


@dataclass(frozen=True, eq=False)
class Audit(Presented):
    """An audit: its runs, what every stage computed, and what that says, the most important first."""

    folder: Path
    runs: Mapping[str, Run]
    results: tuple[StageResult, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...] = ()
    """Stages that could not run, and why."""

    @cached_property
    def header(self) -> Mapping[str, Any]:
        """What the audit is of: its runs by model and dataset, its options, and the command."""
        return AuditFolder(self.folder).header()

    @staticmethod
    def dataset_name(run: Run) -> str:
        """The name of a run's dataset; empty where it has none."""
        return str((run.provenance.get("dataset") or {}).get("name", ""))

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets by name, read as the runs' recipes say."""
        read: dict[str, Dataset] = {}
        for run in self.runs.values():
            name = self.dataset_name(run)
            if name and name not in read:
                read[name] = dataset_of_run(run)
        return read

    @property
    def dataset(self) -> Dataset | None:
        """The first dataset; None of an audit without one."""
        return next(iter(self.datasets.values()), None)

    @property
    def report(self) -> Path:
        """Where the report is, once it is written."""
        return self.folder / REPORT_FILE

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Audit of {', '.join(self.runs)}"

    def sections(self, *, shown: int = 10, **options: Any) -> Iterator[Section]:
        """The most important findings, numbered, and where the report is; all of them are in the folder."""
        rows = []
        for number, finding in enumerate(self.findings[:shown], 1):
            subject = (finding.model or finding.dataset) if len(self.runs) > 1 else ""
            about = f"{subject}: " if subject not in finding.text else ""
            rows.append((f"{number:>2}.", f"{about}{finding.text}"))
        yield Section("", (*([FactList(tuple(rows))] if rows else []), Text.of(f"Report: {self.report}")))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: what was computed, where it is, and what it says."""
        return {
            "folder": str(self.folder),
            "runs": {name: str(self.folder / "runs" / name) for name in self.runs},
            "stages": [
                {"stage": result.stage, "model": result.model, "dataset": result.dataset, "command": result.command}
                for result in self.results
            ],
            "skipped": [vars(entry) for entry in self.skipped],
            "findings": [vars(finding) for finding in self.findings],
            "report": str(self.report),
        }


def load_audit(folder: str | Path) -> Audit:
    """Read the folder of an audit, an unfinished one too."""
    stored = AuditFolder(Path(folder))
    # Written stage by stage: what a process is still working on is not taken for the result.
    return read_whole(
        stored.path, stored.path / HEADER_FILE, read=lambda: _read(stored), is_complete=lambda _: stored.is_concluded
    )


def _read(stored: AuditFolder) -> Audit:
    names = stored.header().get("runs") or {}
    runs = {name: stored.run_folder(name) for name in names}
    findings, skipped = stored.conclusions()
    loaded = {name: Run.load(path) for name, path in runs.items() if path.exists()}
    return Audit(stored.path, loaded, stored.results(), findings, skipped)
