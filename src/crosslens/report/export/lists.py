"""The kept top of every list of a run as files of ranked lists, one per direction: TREC runs, and ranx's JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from crosslens.core.errors import InputError, UsageError
from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format, Metrics


def trec(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """``query Q0 item place score tag``; ids must be free of blanks, which the format uses as separators."""
    return _written(runs, ".run")


def ranx(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """``{query: {item: score}}``."""
    return _written(runs, ".json")


def _written(runs: Sequence[Run], suffix: str) -> Files:
    """The lists of each direction as :func:`crosslens.data.write_run` writes them for this suffix."""
    from crosslens.data import write_run

    (run,) = runs
    if not run.rankings:
        raise UsageError(
            f"the run {run.name!r} holds no ranked lists",
            fix="export from the folder that `crosslens evaluate -o` wrote, or choose csv, markdown or latex",
        )
    system = "_".join(run.name.split()) or "crosslens"
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for direction, ranking in run.rankings.items():
            place = Path(folder) / f"{direction}{suffix}"
            try:
                write_run(ranking, place, system)
            except InputError as error:
                error.file = None  # the file is nobody's: the mistake is in the ids
                raise
            files[direction] = place.read_text(encoding="utf-8")
    return files


TREC = Format(trec, "TREC run files, one per direction", ".run")
RANX = Format(ranx, "ranx runs as JSON, one per direction", ".ranx.json")
