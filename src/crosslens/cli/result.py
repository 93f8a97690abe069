"""How a finished run is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.cli.console import note, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.run import Run


def written_at(output: Path | None) -> int | None:
    """When the run in a folder was written; None where there is none yet."""
    from crosslens.core.run import RUN_FILE

    file = None if output is None else output / RUN_FILE
    return file.stat().st_mtime_ns if file is not None and file.exists() else None


def print_run(
    run: Run, *, json: bool, output: Path | None = None, before: int | None = None, name: str | None = None
) -> None:
    """The figures on standard output; notes, and where the run lies, on standard error.

    ``before`` is what :func:`written_at` said of the output when the command began, ``name`` the name asked for.
    """
    from crosslens.report.table import run_table

    notes = [str(one) for one in run.provenance.get("notes", ())]
    already = before is not None and before == written_at(output)
    if already and name is not None and name != run.name:
        notes.append(f"the run that is already there keeps its name, {run.name!r}")
    for one in notes:
        note(f"note: {one}")
    if json:
        say_json({**run.as_dict(), "notes": notes})
        return
    say(run_table(run, width=width()))
    if output is not None:
        note(f"\nalready there: {output} (nothing to do)" if already else f"\nwritten to {output}")
