"""Models × perturbations as a heat map: how much each takes from each, with the numbers in the cells."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.errors import UnknownNameError
from crosslens.core.run import split_name
from crosslens.metrics.figures import figure, interval
from crosslens.pipeline.robustness import Robustness
from crosslens.report.plots.paper import folded_table, suffix_of, write_figures
from crosslens.report.plots.style import INK, SOFT, WIDTH, label, plotly_objects, tick
from crosslens.report.robustness import sections, study_line

_SCALE = [[0.0, "#0072B2"], [0.5, "#FFFFFF"], [1.0, "#D55E00"]]
"""Better in blue, worse in orange, white where nothing changed: readable by the colour-blind."""
_UNDER = ("drops", "applied", "seeds", "metrics", "changes", "groups", "overlap", "words")
"""The tables under the figure of a page."""
_ROW, _TOP, _BOTTOM = 30, 96, 150


def heat_map_figure(found: Robustness, metric: str | None = None) -> Any:
    """A plotly figure: a row per perturbation, a column per model, the drop of the metric as colour and number."""
    metric = metric or found.headline
    cells = _cells(found, metric)
    objects = plotly_objects()
    drops = [[cells[model, name]["drop"] for model in found.models] for name in found.perturbations]
    largest = max((abs(one) for row in drops for one in row if one is not None and isfinite(one)), default=1.0) or 1.0
    drawn = objects.Figure(
        objects.Heatmap(
            z=drops,
            x=[tick(model) for model in found.models],
            y=[tick(name) for name in found.perturbations],
            text=[[figure(metric, one, signed=True) for one in row] for row in drops],
            texttemplate="%{text}",
            hovertext=[[_hover(metric, cells[m, name]) for m in found.models] for name in found.perturbations],
            hoverinfo="text",
            colorscale=_SCALE,
            zmin=-largest,
            zmax=largest,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": "drop", "side": "right"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    return _dressed(drawn, found, metric)


def write_heat_map(
    found: Robustness, output: str | Path, *, metric: str | None = None, overwrite: bool = False
) -> Path:
    """Draw the heat map into a file: a page (``.html``) with the tables under it, or a picture."""
    output = Path(output)
    suffix_of(output)
    return write_figures(
        [heat_map_figure(found, metric)], output, _title(metric or found.headline), lambda: _tables(found),
        overwrite=overwrite,
    )  # fmt: skip


def _cells(found: Robustness, metric: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = found.drops.filter(pl.col("metric") == metric)
    if not rows.height:
        raise UnknownNameError("metric in this study", metric, found.drops["metric"].unique().to_list())
    first = rows.filter(pl.col("seed") == rows["seed"][0])
    return {(one["model"], one["perturbation"]): one for one in first.to_dicts()}


def _hover(metric: str, one: dict[str, Any]) -> str:
    bounds = interval(metric, one["low"], one["high"], signed=True)
    return "<br>".join(
        (
            f"<b>{label(one['perturbation'])}</b>, {label(one['model'])}",
            f"{label(metric)}: {figure(metric, one['before'])} → {figure(metric, one['after'])}",
            f"drop {figure(metric, one['drop'], signed=True)}  {bounds}",
            f"applied to {100 * one['applied_share']:.1f}% of the captions; corrected p {one['adjusted_p']:.4f}",
        )
    )


def _title(metric: str) -> str:
    return f"Drop of {metric}" if split_name(metric)[1] != metric or "Rsum" in metric else f"Drop of {metric} (both)"


def _dressed(drawn: Any, found: Robustness, metric: str) -> Any:
    height = _TOP + _ROW * len(found.perturbations) + _BOTTOM
    drawn.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False)
    drawn.update_xaxes(automargin=True, ticks="", showgrid=False, side="bottom")
    drawn.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": _TOP, "r": 30, "b": 60, "l": 40},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 13, "color": INK},
        title={
            "text": f"<b>{label(_title(metric))}</b>",
            "subtitle": {"text": label(study_line(found)), "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 32 / height,
            "yref": "container", "yanchor": "bottom",
        },
        hoverlabel={"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    )  # fmt: skip
    return drawn


def _tables(found: Robustness) -> list[str]:
    return [
        folded_table(
            ": ".join(filter(None, (section.title, above))), grid.header, grid.rows, about=" ".join(section.notes)
        )
        for section in sections(found, _UNDER)
        for above, grid in section.grids
    ]
