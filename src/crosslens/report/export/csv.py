"""CSV for spreadsheets and scripts: one row per run and metric, fractions rather than percent."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core.run import Run, split_name
from crosslens.report.export.format import Files, Format, Metrics
from crosslens.report.selection import select

_SCHEMA = {
    "run": pl.String,
    "direction": pl.String,
    "metric": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "excluded": pl.Int64,
    "statistic": pl.String,
    "level": pl.Float64,
}


def render(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """Every chosen metric of every run in long form."""
    rows = [
        {
            "run": run.name,
            "direction": split_name(name)[0],
            "metric": split_name(name)[1],
            **run[name].as_dict(),
        }
        for run in runs
        for name in select(run, metrics)
    ]
    return {"": pl.DataFrame(rows, schema=_SCHEMA).write_csv()}


FORMAT = Format(render, "one row per metric, as fractions", ".csv", several=True)
