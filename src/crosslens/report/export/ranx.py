"""ranx run files: JSON ``{query: {item: score}}``, one file per direction."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format
from crosslens.report.export.lists import written_lists


def render(runs: Sequence[Run], metrics: Sequence[str] | None = None) -> Files:
    """The kept lists of one run."""
    (run,) = runs
    return written_lists(run, ".json")


FORMAT = Format(render, "ranx runs as JSON, one per direction")
