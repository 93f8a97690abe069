"""A LaTeX table in the booktabs style."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format
from crosslens.report.models import models_grid
from crosslens.report.table import Grid, run_grid

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "–": "--",
}


def render(runs: Sequence[Run], metrics: Sequence[str] | None = None) -> Files:
    """One run: metrics down, directions across, with intervals. Several: one row per run, as papers print them."""
    grid = run_grid(runs[0], metrics) if len(runs) == 1 else models_grid(runs, metrics)
    return {"": _tabular(grid)}


def _tabular(grid: Grid) -> str:
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{grid.align}}}",
        "\\toprule",
        _row(grid.header),
        "\\midrule",
        *(_row(row) for row in grid.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    # A row must not begin with "[": LaTeX would read it as an argument of the \\ before it.
    return " & ".join(_escape(cell) for cell in cells) + r" \\"


def _escape(cell: str) -> str:
    text = "".join(_SPECIAL.get(letter, letter) for letter in " ".join(cell.split()))
    return f"{{{text}}}" if text.startswith("[") else text


FORMAT = Format(render, "a booktabs table", several=True)
