"""A LaTeX table in the booktabs style."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.grid import Grid
from crosslens.core.run import Run
from crosslens.report.export.format import Files, Format, Metrics
from crosslens.report.table import runs_grid

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


def render(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The table that fits the number of runs."""
    grid = runs_grid(runs, metrics)
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


FORMAT = Format(render, "a booktabs table", ".tex", several=True)
