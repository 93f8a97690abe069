"""The folder of an audit: whose it is, what is in it, and a result per stage that the next call finds again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosslens.core import (
    FORMAT_VERSION,
    HEADER_FILE,
    ConflictError,
    CrosslensError,
    InputError,
    Layout,
    argument,
    json_form,
    read_header,
    remove,
    write_header,
)
from crosslens.pipeline.audit.results import FINDINGS_FILE, REPORT_FILE, RESULTS, RUNS, Finding, StageResult

STAGE_FOLDERS = ("robustness", "explanations", "label-quality", "missing-positives", "difficulty")
"""Where stages put tables and pictures."""
AUDIT_DATASETS = "datasets"
"""Datasets that were given as values."""
_OWN = (RUNS, RESULTS, AUDIT_DATASETS, *STAGE_FOLDERS, FINDINGS_FILE, REPORT_FILE)
_LAYOUT = Layout("an audit", HEADER_FILE, ())
_KIND, _RESULT, _FINDINGS = "audit", "audit-result", "audit-findings"


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
        if _LAYOUT.holds(folder.path):
            if overwrite:
                folder._clear()
            elif folder._stored_key() != key and folder._has_results():
                raise ConflictError(
                    f"{folder.path}: already contains a different audit",
                    fix=f"choose another output folder, or pass {argument('overwrite', True)}",
                )
        if folder._stored_key() != key:
            folder.path.mkdir(parents=True, exist_ok=True)
            folder._write(HEADER_FILE, _KIND, {"key": key, **header})
        (folder.path / RUNS).mkdir(exist_ok=True)
        (folder.path / RESULTS).mkdir(exist_ok=True)
        return folder

    def header(self) -> dict[str, Any]:
        """What the audit is of."""
        return read_header(self.path / HEADER_FILE, _KIND)

    def run_folder(self, name: str) -> Path:
        """Where a run is."""
        return self.path / RUNS / name

    def stored(self, file: str, key: str) -> StageResult | None:
        """The result of a stage, if it was computed from the same things; None if it has to be computed."""
        try:
            content = read_header(self.path / RESULTS / file, _RESULT)
            return self._result(content) if content["key"] == key else None
        except (CrosslensError, KeyError, TypeError):
            return None

    def store(self, file: str, key: str, result: StageResult) -> None:
        """Keep the result of a stage."""
        folder = None if result.folder is None else result.folder.relative_to(self.path).as_posix()
        self._write(f"{RESULTS}/{file}", _RESULT, {"key": key, **vars(result), "folder": folder})

    def results(self) -> tuple[StageResult, ...]:
        """Every stored result."""
        files = sorted((self.path / RESULTS).glob("*.json"))
        return tuple(self._result(read_header(file, _RESULT)) for file in files)

    def conclude(self, findings: Iterable[Finding], skipped: Iterable[Skipped]) -> None:
        """Keep what was found, and what could not be looked at."""
        content = {"findings": list(map(asdict, findings)), "skipped": list(map(asdict, skipped))}
        self._write(FINDINGS_FILE, _FINDINGS, content)

    @property
    def is_concluded(self) -> bool:
        """Whether all stages have been run."""
        return (self.path / FINDINGS_FILE).exists()

    def conclusions(self) -> tuple[tuple[Finding, ...], tuple[Skipped, ...]]:
        """The same, read; nothing of an audit that was interrupted."""
        if not self.is_concluded:
            return (), ()
        content = read_header(self.path / FINDINGS_FILE, _FINDINGS)
        try:
            findings = tuple(Finding(**entry) for entry in content["findings"])
            return findings, tuple(Skipped(**entry) for entry in content["skipped"])
        except (KeyError, TypeError) as error:
            raise _damaged(self.path / FINDINGS_FILE) from error

    def _result(self, content: Mapping[str, Any]) -> StageResult:
        try:
            folder = content["folder"]
            names = ("stage", "payload", "command", "model", "dataset", "seconds")
            values = {name: content[name] for name in names}
            return StageResult(**values, folder=None if folder is None else self.path / folder)
        except (KeyError, TypeError) as error:
            raise _damaged(self.path / RESULTS) from error

    def _write(self, name: str, kind: str, content: Mapping[str, Any]) -> None:
        header = {"format": f"crosslens/{kind}", "version": FORMAT_VERSION, **json_form(content)}
        write_header(self.path / name, header)

    def _has_results(self) -> bool:
        return any((self.path / RESULTS).glob("*.json"))

    def _stored_key(self) -> str | None:
        try:
            return str(self.header()["key"])
        except (InputError, KeyError):
            return None

    def _clear(self) -> None:
        """Remove what audits write; the header goes last, so that an interrupted removal is continued."""
        for name in (*_OWN, HEADER_FILE):
            remove(self.path / name)


def _damaged(file: Path) -> InputError:
    return InputError("not a result of an audit", file=file, fix="run the same audit again")
