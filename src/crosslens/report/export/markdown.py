"""A Markdown table, for a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.grid import Grid
from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format, Metrics
from crosslens.report.table import runs_grid


def render(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The table that fits the number of runs."""
    return {"": grid_markdown(runs_grid(runs, metrics))}


def grid_markdown(grid: Grid) -> str:
    """Any table in Markdown."""
    rule = ["---:" if align == "r" else "---" for align in grid.align]
    lines = [grid.header, rule, *grid.rows]
    return "".join(f"| {' | '.join(map(_escape, line))} |\n" for line in lines)


def _escape(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())


FORMAT = Format(render, "a Markdown table with intervals", ".md", several=True)
