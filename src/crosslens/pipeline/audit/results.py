"""What an audit keeps of a stage, and what it says in the end. Reports are rendered from these alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS, RESULTS, FINDINGS_FILE, REPORT_FILE = "runs", "results", "findings.json", "report.html"
"""Below an audit's folder: a run folder per model and dataset; a file per stage; the findings; the page."""


@dataclass(frozen=True)
class StageResult:
    """What one stage computed: the payload that the stage's own command prints with ``--json``."""

    stage: str
    """Its name, such as ``robustness``: what ``--only`` and ``--skip`` take."""
    payload: Mapping[str, Any]
    command: str
    """The command that computes the same by itself."""
    model: str = ""
    """The name of the run that it is about; empty: about the dataset."""
    dataset: str = ""
    folder: Path | None = None
    """Where the stage's tables and pictures are, if it wrote a folder."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One sentence that the audit says about a model or a dataset."""

    text: str
    importance: float
    """0–1; the most important is said first."""
    stage: str
    model: str = ""
    dataset: str = ""
