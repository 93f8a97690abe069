"""The stored top of every ranked list of a run, one file per direction: TREC runs, and ranx's JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from crosslens.core import InputError, Run, UsageError
from crosslens.report.export.files import EXPORTS, Files, Metrics


@EXPORTS.register("trec", suffix=".run")
def trec(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """TREC run files, one per direction.

    ``query Q0 item rank score tag``; ids must be free of blanks, which the format uses as separators.
    """
    return _render(runs, ".run")


@EXPORTS.register("ranx", suffix=".ranx.json")
def ranx(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """ranx runs as JSON, one per direction.

    ``{query: {item: score}}``.
    """
    return _render(runs, ".json")


def _render(runs: Sequence[Run], suffix: str) -> Files:
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
            path = Path(folder) / f"{direction}{suffix}"
            try:
                write_run(ranking, path, system)
            except InputError as error:
                error.file = None  # a temporary file: the mistake is in the ids
                raise
            files[direction] = path.read_text(encoding="utf-8")
    return files
