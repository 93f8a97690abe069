"""TREC run files: ``query Q0 item place score tag``, one file per direction."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format
from crosslens.report.export.lists import written_lists


def render(runs: Sequence[Run], metrics: Sequence[str] | None = None) -> Files:
    """The kept lists of one run; ids must be free of blanks, which the format uses as separators."""
    (run,) = runs
    return written_lists(run, ".run")


FORMAT = Format(render, "TREC run files, one per direction")
