"""Runs as tables: CSV for programs, LaTeX for papers, Markdown for a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core import Run, UnknownNameError, split_name
from crosslens.metrics import select_metrics
from crosslens.pipeline import DropTable, runs_table
from crosslens.report.export.files import EXPORTS, Files, Metrics
from crosslens.report.forms.tables import BOOKTABS, latex_table, markdown_table

_CSV_SCHEMA = {
    "run": pl.String, "direction": pl.String, "metric": pl.String, "mean": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64, "excluded": pl.Int64, "statistic": pl.String, "level": pl.Float64,
}  # fmt: skip


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


@EXPORTS.register("markdown", suffix=".md", several=True)
def markdown(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A Markdown table with intervals."""
    return {"": markdown_table(runs_table(runs, metrics)) + "\n"}


def render_drop_table(table: DropTable, to: str) -> Files:
    """The drops of robustness studies: CSV has a row per cell, LaTeX and Markdown what is printed."""
    endings = {"csv": "", "latex": ".tex", "markdown": ".md"}
    if to not in endings:
        raise UnknownNameError("export format of robustness studies", to, endings)
    ending = endings[to]
    return {"": table.content(ending).decode() if ending else pl.DataFrame(table.rows).write_csv()}
