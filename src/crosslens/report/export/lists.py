"""The kept top of every list of a run, for the formats that hand lists on."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crosslens.core.errors import InputError, UsageError
from crosslens.core.run import Run
from crosslens.report.export.format import Files


def written_lists(run: Run, suffix: str) -> Files:
    """The lists of each direction as :func:`crosslens.data.write_run` writes them for this suffix."""
    from crosslens.data import write_run

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
