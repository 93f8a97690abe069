"""Models × perturbations as a heat map: how much each takes from each, with the numbers in the cells."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import UnknownNameError, split_name
from crosslens.metrics import format_figure, format_interval
from crosslens.pipeline import Robustness
from crosslens.report.html import folded_table
from crosslens.report.plots.files import figure_suffix, write_figures
from crosslens.report.plots.style import axis_label, figure_layout, label, plotly_objects
from crosslens.report.text.robustness import study_summary, table_sections

_SCALE = [[0.0, "#0072B2"], [0.5, "#FFFFFF"], [1.0, "#D55E00"]]
"""Better in blue, worse in orange, white where nothing changed: readable by the colour-blind."""
_UNDER = ("drops", "applied", "seeds", "metrics", "changes", "groups", "overlap", "words")
"""The tables under the figure of a page."""
_ROW, _TOP, _BOTTOM = 30, 96, 150


def heat_map_figure(study: Robustness, metric: str | None = None) -> Any:
    """A plotly figure: a row per perturbation, a column per model, the drop of the metric as colour and number."""
    metric = metric or study.headline
    cells = _cells(study, metric)
    objects = plotly_objects()
    drops = [[cells[model, name]["drop"] for model in study.models] for name in study.perturbations]
    largest = (
        max((abs(drop) for row in drops for drop in row if drop is not None and isfinite(drop)), default=1.0) or 1.0
    )
    drawn = objects.Figure(
        objects.Heatmap(
            z=drops,
            x=[axis_label(model) for model in study.models],
            y=[axis_label(name) for name in study.perturbations],
            text=[[format_figure(metric, drop, signed=True) for drop in row] for row in drops],
            texttemplate="%{text}",
            hovertext=[[_hover(metric, cells[m, name]) for m in study.models] for name in study.perturbations],
            hoverinfo="text",
            colorscale=_SCALE,
            zmin=-largest,
            zmax=largest,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": "drop", "side": "right"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    return _with_layout(drawn, study, metric)


def write_heat_map(
    study: Robustness, output: str | Path, *, metric: str | None = None, overwrite: bool = False
) -> Path:
    """Draw the heat map into a file: a page (``.html``) with the tables under it, or a picture."""
    output = Path(output)
    figure_suffix(output)
    return write_figures(
        [heat_map_figure(study, metric)], output, _title(metric or study.headline), lambda: _tables(study),
        overwrite=overwrite,
    )  # fmt: skip


def _cells(study: Robustness, metric: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = study.drops.filter(pl.col("metric") == metric)
    if not rows.height:
        raise UnknownNameError("metric in this study", metric, study.drops["metric"].unique().to_list())
    first = rows.filter(pl.col("seed") == rows["seed"][0])
    return {(row["model"], row["perturbation"]): row for row in first.to_dicts()}


def _hover(metric: str, row: dict[str, Any]) -> str:
    bounds = format_interval(metric, row["low"], row["high"], signed=True)
    return "<br>".join(
        (
            f"<b>{label(row['perturbation'])}</b>, {label(row['model'])}",
            f"{label(metric)}: {format_figure(metric, row['before'])} → {format_figure(metric, row['after'])}",
            f"drop {format_figure(metric, row['drop'], signed=True)}  {bounds}",
            f"applied to {100 * row['applied_share']:.1f}% of the captions; corrected p {row['adjusted_p']:.4f}",
        )
    )


def _title(metric: str) -> str:
    return f"Drop of {metric}" if split_name(metric)[1] != metric or "Rsum" in metric else f"Drop of {metric} (both)"


def _with_layout(drawn: Any, study: Robustness, metric: str) -> Any:
    height = _TOP + _ROW * len(study.perturbations) + _BOTTOM
    drawn.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False)
    drawn.update_xaxes(automargin=True, ticks="", showgrid=False, side="bottom")
    drawn.update_layout(
        **figure_layout(_title(metric), label(study_summary(study)), height),
        margin={"t": _TOP, "r": 30, "b": 60, "l": 40},
    )  # fmt: skip
    return drawn


def _tables(study: Robustness) -> list[str]:
    return [
        folded_table(
            ": ".join(filter(None, (section.title, above))), grid.header, grid.rows, about=" ".join(section.notes)
        )
        for section in table_sections(study, _UNDER)
        for above, grid in section.grids
    ]
