"""Runs as tables: CSV for programs, LaTeX for papers, Markdown for a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core import Grid, Run, split_name
from crosslens.report.export.files import EXPORTS, Files, Metrics
from crosslens.report.selection import select_metrics
from crosslens.report.text.runs import runs_grid

_CSV_SCHEMA = {
    "run": pl.String, "direction": pl.String, "metric": pl.String, "mean": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64, "excluded": pl.Int64, "statistic": pl.String, "level": pl.Float64,
}  # fmt: skip
_LATEX_CHARACTERS = str.maketrans({
    **{letter: f"\\{letter}" for letter in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "→": r"$\rightarrow$", "–": "--",
})  # fmt: skip


@EXPORTS.register("csv", suffix=".csv", several=True)
def csv(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """One row per run and metric, as fractions."""
    rows = []
    for run in runs:
        for name in select_metrics(run, metrics):
            direction, metric = split_name(name)
            rows.append({"run": run.name, "direction": direction, "metric": metric, **run[name].as_dict()})
    return {"": pl.DataFrame(rows, schema=_CSV_SCHEMA).write_csv()}


@EXPORTS.register("latex", suffix=".tex", several=True)
def latex(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A booktabs table."""
    grid = runs_grid(runs, metrics)
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{grid.align}}}",
        "\\toprule",
        _latex_row(grid.header),
        "\\midrule",
        *(_latex_row(row) for row in grid.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return {"": "\n".join(lines) + "\n"}


def _latex_row(cells: Sequence[str]) -> str:
    # A row must not begin with "[": LaTeX would read it as an argument of the \\ before it.
    return " & ".join(_latex_cell(cell) for cell in cells) + r" \\"


def _latex_cell(cell: str) -> str:
    text = " ".join(cell.split()).translate(_LATEX_CHARACTERS)
    return f"{{{text}}}" if text.startswith("[") else text


@EXPORTS.register("markdown", suffix=".md", several=True)
def markdown(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A Markdown table with intervals."""
    return {"": grid_markdown(runs_grid(runs, metrics))}


def grid_markdown(grid: Grid) -> str:
    """Any table in Markdown."""
    rule = ["---:" if align == "r" else "---" for align in grid.align]
    lines = [grid.header, rule, *grid.rows]
    return "".join(f"| {' | '.join(map(_markdown_cell, line))} |\n" for line in lines)


def _markdown_cell(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
