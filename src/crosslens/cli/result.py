"""How a finished run is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.cli.console import note, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.run import Run


def print_run(run: Run, *, json: bool, output: Path | None = None) -> None:
    """The figures on standard output; notes, and where the run lies, on standard error."""
    from crosslens.report.table import run_table

    notes = [str(one) for one in run.provenance.get("notes", ())]
    for one in notes:
        note(f"note: {one}")
    if json:
        say_json({**run.as_dict(), "notes": notes})
        return
    say(run_table(run, width=width()))
    if output is not None:
        note(f"\nwritten to {output}")
