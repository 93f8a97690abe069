"""Results by category as a figure: categories across, a line per model, and the mean and spread of a panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.analyze import AUPRC, CATEGORY, CategoryResults
from crosslens.core import UsageError
from crosslens.metrics import unit_of
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.panels.categories import results_grid
from crosslens.report.text.runs import DIRECTION_LABELS

_TOP, _INNER, _BOTTOM = 122, 300, 84


def categories_figure(result: CategoryResults, metric: str | None = None) -> Any:
    """A panel per direction of one metric (of the category's own queries), and one of the AUPRC."""
    panels = _panels(result, metric)
    style.plotly_objects()
    from plotly.subplots import make_subplots

    drawn = make_subplots(1, len(panels), subplot_titles=[style.label(title) for title, _, _ in panels],
                          horizontal_spacing=0.09)  # fmt: skip
    for column, (_, rows, share) in enumerate(panels, start=1):
        for trace in _traces(result, rows, first=column == 1):
            drawn.add_trace(trace, row=1, col=column)
        look = {"tickformat": ".0%", "range": [0, 1.02]} if share else {"rangemode": "tozero"}
        drawn.update_yaxes(gridcolor=style.FAINT, zeroline=False, linecolor=style.SOFT, row=1, col=column, **look)
    drawn.update_xaxes(
        type="category", categoryorder="array", categoryarray=[style.label(name) for name in result.categories],
        linecolor=style.SOFT, fixedrange=True,
    )  # fmt: skip
    drawn.update_annotations(font={"size": 13, "color": style.INK})
    spread = "; diamonds: mean ± standard deviation over the models" if len(result.models) > 1 else ""
    subtitle = f"bars: {100 * result.level:g}% intervals over images{spread}"
    height = _TOP + _INNER + _BOTTOM
    drawn.update_layout(
        **style.figure_layout(f"Results by {result.column}", subtitle, height, font_size=12, title_top=30),
        margin={"t": _TOP, "r": 30, "b": _BOTTOM, "l": 56},
        legend={"orientation": "h", "x": 0, "y": -44 / _INNER, "yanchor": "top"},
    )
    return drawn


def write_categories_plot(
    result: CategoryResults, output: str | Path, *, metric: str | None = None, overwrite: bool = False
) -> Path:
    """Draw into a file: a page (``.html``) with the numbers below, or a picture."""
    grid = results_grid(result)
    return style.write_figures(
        output,
        f"Results by {result.column}",
        lambda: [categories_figure(result, metric)],
        lambda: [folded_table("Numbers", grid.header, grid.rows)],
        overwrite=overwrite,
    )


def _panels(result: CategoryResults, metric: str | None) -> list[tuple[str, pl.DataFrame, bool]]:
    """Title, rows, and whether they are shares."""
    panels: list[tuple[str, pl.DataFrame, bool]] = []
    if result.retrieval.height:
        names = result.retrieval["metric"].unique(maintain_order=True).to_list()
        usual: str = "Hit@5" if "Hit@5" in names else str(names[0])
        if metric is not None and metric not in (*names, AUPRC):
            raise UsageError(f"no {metric} in these results", fix=f"choose from {', '.join(names)}")
        chosen = metric if metric is not None and metric in names else usual
        own = result.retrieval.filter(pl.col("metric") == chosen, pl.col("denominator") == CATEGORY)
        panels += [
            (f"{chosen}, {DIRECTION_LABELS.get(direction, direction)}", own.filter(pl.col("direction") == direction),
             unit_of(chosen) == "share")
            for direction in own["direction"].unique(maintain_order=True)
        ]  # fmt: skip
    if result.classification.height:
        panels.append((AUPRC, result.classification, True))
    return panels


def _traces(result: CategoryResults, rows: pl.DataFrame, *, first: bool) -> list[Any]:
    objects = style.plotly_objects()
    several, coloured = len(result.models) > 1, len(result.models) <= len(style.COLOURS)
    traces = []
    for number, model in enumerate(result.models):
        own = _by_category(result, rows.filter(pl.col("model") == model))
        colour = style.COLOURS[number] if coloured else style.SOFT
        traces.append(
            objects.Scatter(
                x=[style.label(name) for name in result.categories],
                y=[row.get("value") for row in own],
                error_y=_bars(own, colour),
                name=style.label(model),
                legendgroup=model,
                showlegend=first,
                mode="lines+markers",
                line={"color": colour, "width": 1.6, "dash": style.DASHES[number] if coloured else "solid"},
                marker={"size": 6, "symbol": style.SYMBOLS[number] if coloured else "circle"},
                opacity=0.85 if coloured else 0.5,
            )
        )
    return [*traces, _panel_trace(objects, result, rows, first=first)] if several else traces


def _panel_trace(objects: Any, result: CategoryResults, rows: pl.DataFrame, *, first: bool) -> Any:
    values = rows.group_by("category").agg(mean=pl.col("value").mean(), sd=pl.col("value").std())
    figures = {row["category"]: row for row in values.iter_rows(named=True)}
    known = [figures.get(name, {}) for name in result.categories]
    return objects.Scatter(
        x=[style.label(name) for name in result.categories],
        y=[row.get("mean") for row in known],
        error_y={"type": "data", "array": [row.get("sd") or 0 for row in known], "color": style.INK, "width": 6},
        name="mean ± sd",
        legendgroup="mean",
        showlegend=first,
        mode="markers",
        marker={"size": 9, "symbol": "diamond-open", "color": style.INK, "line": {"width": 2}},
    )


def _by_category(result: CategoryResults, rows: pl.DataFrame) -> Sequence[dict[str, Any]]:
    known = {row["category"]: row for row in rows.iter_rows(named=True)}
    return [known.get(name, {}) for name in result.categories]


def _bars(rows: Sequence[dict[str, Any]], colour: str) -> dict[str, Any]:
    ends = [
        (row["value"] - row["low"], row["high"] - row["value"]) if row.get("low") is not None else (0, 0)
        for row in rows
    ]
    look = {"color": style.translucent(colour, 0.6), "thickness": 1.1, "width": 3}
    return {
        "type": "data",
        "symmetric": False,
        "arrayminus": [e[0] for e in ends],
        "array": [e[1] for e in ends],
        **look,
    }
