"""Runs as tables: CSV for programs, LaTeX for papers, Markdown for a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core import Grid, Run, UnknownNameError, split_name
from crosslens.metrics import format_figure, format_interval, select_metrics
from crosslens.pipeline import Comparison, DropTable, runs_table
from crosslens.report.export.files import EXPORTS, Files, Metrics
from crosslens.report.forms.tables import BOOKTABS, latex_table, markdown_table
from crosslens.report.text.comparison import run_letters

_CSV_SCHEMA = {
    "run": pl.String, "direction": pl.String, "metric": pl.String, "mean": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64, "excluded": pl.Int64, "statistic": pl.String, "level": pl.Float64,
}  # fmt: skip
_LATEX_CHARACTERS = str.maketrans({
    **{letter: f"\\{letter}" for letter in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "→": r"$\rightarrow$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "–": "--", "−": "$-$",
})  # fmt: skip


@EXPORTS.register("csv", suffix=".csv", several=True)
def csv(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """One row per run and metric, as fractions; with a column ``protocol`` where a run follows one."""
    rows = []
    followed = any(run.protocol for run in runs)
    schema = _CSV_SCHEMA | ({"protocol": pl.String} if followed else {})
    for run in runs:
        for name in select_metrics(run, metrics):
            direction, metric = split_name(name)
            row = {"run": run.name, "direction": direction, "metric": metric, **run[name].as_dict()}
            rows.append(row | {"protocol": run.protocol.get("name")})
    return {"": pl.DataFrame(rows, schema=schema).write_csv()}


@EXPORTS.register("latex", suffix=".tex", several=True)
def latex(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A booktabs table."""
    return {"": BOOKTABS + latex_table(runs_table(runs, metrics))}


def grid_latex(grid: Grid) -> str:
    """Any table as a booktabs table."""
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
    return "\n".join(lines) + "\n"


def comparison_latex(comparison: Comparison) -> str:
    """A comparison as a booktabs table: a row per run, the best figure bold, intervals, and significance marks.

    Superscripts are the letters of the runs that a run is significantly better than; arrows say which way is better.
    """
    letters = run_letters(comparison)
    better = {result.metric: result.higher_is_better for result in comparison.results}
    best = {name: _best_runs(comparison, name, higher) for name, higher in better.items()}
    titles = [f"{latex_text(name)} ${chr(92)}{'up' if higher else 'down'}arrow$" for name, higher in better.items()]
    lines = ["% needs \\usepackage{booktabs}", f"\\begin{{tabular}}{{ll{'c' * len(better)}}}", "\\toprule"]
    lines += [" & ".join(["", "model", *titles]) + r" \\", "\\midrule"]
    for run in comparison.runs:
        cells = []
        for name in better:
            mean, low, high = comparison.figures[run][name]
            figure = latex_text(format_figure(name, mean))
            marks = "".join(letters[other] for other in comparison.beaten(run, name))
            figure = f"\\textbf{{{figure}}}" if run in best[name] else figure
            superscript = f"$^{{{marks}}}$" if marks else ""
            interval = format_interval(name, low, high)
            cells.append(figure + superscript + (f" {{\\small {interval}}}" if interval else ""))
        lines.append(" & ".join([letters[run], latex_text(run), *cells]) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _best_runs(comparison: Comparison, name: str, higher: bool) -> set[str]:
    means = {run: comparison.figures[run][name][0] for run in comparison.runs}
    best = max(means.values()) if higher else min(means.values())
    return {run for run, mean in means.items() if mean == best}


def _latex_row(cells: Sequence[str]) -> str:
    # A row must not begin with "[": LaTeX would read it as an argument of the \\ before it.
    return " & ".join(latex_text(cell) for cell in cells) + r" \\"


def latex_text(cell: str) -> str:
    """A text of any kind as it is written in LaTeX, on one line."""
    text = " ".join(cell.split()).translate(_LATEX_CHARACTERS)
    return f"{{{text}}}" if text.startswith("[") else text


@EXPORTS.register("markdown", suffix=".md", several=True)
def markdown(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A Markdown table with intervals."""
    return {"": markdown_table(runs_table(runs, metrics)) + "\n"}


def grid_markdown(grid: Grid) -> str:
    """Any table in Markdown."""
    rule = ["---:" if align == "r" else "---" for align in grid.align]
    lines = [grid.header, rule, *grid.rows]
    return "".join(f"| {' | '.join(map(_markdown_cell, line))} |\n" for line in lines)


def _markdown_cell(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())


def render_drop_table(table: DropTable, to: str) -> Files:
    """The drops of robustness studies: CSV has a row per cell, LaTeX and Markdown what is printed."""
    endings = {"csv": "", "latex": ".tex", "markdown": ".md"}
    if to not in endings:
        raise UnknownNameError("export format of robustness studies", to, endings)
    ending = endings[to]
    return {"": table.content(ending).decode() if ending else pl.DataFrame(table.rows).write_csv()}
