"""Bars: a group per line, a bar per run, intervals drawn."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import UnknownNameError, UsageError, split_name
from crosslens.metrics import format_figure, format_interval
from crosslens.report.html import folded_table
from crosslens.report.plots.files import HTML, figure_suffix, write_figures
from crosslens.report.plots.group_chart import Chart, Series
from crosslens.report.plots.style import (
    CLEAR,
    COLOURS,
    DASHES,
    FAINT,
    INK,
    SOFT,
    SYMBOLS,
    apply_layout,
    axis_label,
    check_series_count,
    hover_text,
    interval_lengths,
    label,
    legend_name,
    plotly_objects,
    top_margin,
    value_axis,
)

_BAR, _GROUP_GAP, _BOTTOM = 15, 11, 56


def bar_figure(chart: Chart) -> Any:
    """A plotly figure with a horizontal bar for each group of each run; lines mark the figures over all queries."""
    check_series_count(len(chart.series), "runs")
    objects = plotly_objects()
    drawn = objects.Figure()
    for index, series in enumerate(chart.series):
        drawn.add_trace(_bars(objects, chart, series, index))
        drawn.add_trace(_figures(objects, chart, series, index))
        if isfinite(series.whole.mean):
            _mark_whole(drawn, chart, series, index)
    rows = len(chart.groups) * (len(chart.series) * _BAR + _GROUP_GAP)
    apply_layout(drawn, chart, top_margin(chart) + max(rows, 60) + _BOTTOM)
    unit = " (rank)" if chart.unit == "rank" else ""
    drawn.update_layout(
        barmode="group",
        scattermode="group",
        bargap=_GROUP_GAP / (len(chart.series) * _BAR + _GROUP_GAP),
        bargroupgap=0.08,
        xaxis={
            **value_axis(chart),
            "title": {"text": split_name(chart.metric)[1] + unit, "font": {"size": 13, "color": SOFT}, "standoff": 8},
            "gridcolor": FAINT, "zeroline": True, "zerolinecolor": SOFT, "zerolinewidth": 1, "fixedrange": True,
        },
        yaxis={
            "type": "category", "categoryorder": "array", "categoryarray": [label(group) for group in chart.groups],
            "tickmode": "array", "tickvals": [label(group) for group in chart.groups],
            "ticktext": [axis_label(group) for group in chart.groups],
            "autorange": "reversed", "automargin": True, "ticks": "", "ticklabelstandoff": 6, "fixedrange": True,
        },
    )  # fmt: skip
    return drawn


def _bars(objects: Any, chart: Chart, series: Series, index: int) -> Any:
    shown = [group for group in chart.groups if group in series.groups]
    ends = [interval_lengths(series.groups[group]) for group in shown]
    return objects.Bar(
        name=legend_name(series),
        orientation="h",
        y=[label(group) for group in shown],
        x=[_number(series.groups[group].mean) for group in shown],
        error_x={
            "type": "data", "symmetric": False, "arrayminus": [low for low, _ in ends],
            "array": [high for _, high in ends], "color": INK, "thickness": 1.4, "width": 3.5,
        },
        marker={"color": COLOURS[index], "opacity": 0.78},  # intervals must show on the bars
        offsetgroup=str(index),
        legendgroup=str(index),
        hovertext=[hover_text(chart, series, group) for group in shown],
        hoverinfo="text",
    )  # fmt: skip


def _figures(objects: Any, chart: Chart, series: Series, index: int) -> Any:
    """The numbers, to the right of the intervals: a bar's own text would lie under its interval."""
    shown = [group for group in chart.groups if group in series.groups]
    values = [series.groups[group] for group in shown]
    return objects.Scatter(
        mode="text",
        orientation="h",
        y=[label(group) for group in shown],
        x=[_number(metric.mean + interval_lengths(metric)[1]) for metric in values],
        text=[f"  {format_figure(metric.name, metric.mean)}" for metric in values],
        textposition="middle right",
        textfont={"size": 11, "color": INK},
        cliponaxis=False,
        offsetgroup=str(index),
        legendgroup=str(index),
        showlegend=False,
        hoverinfo="skip",
    )


def _mark_whole(drawn: Any, chart: Chart, series: Series, index: int) -> None:
    """A line through all groups at the figure over all queries."""
    alone = len(chart.series) == 1
    colour = SOFT if alone else COLOURS[index]
    drawn.add_shape(
        type="line", xref="x", yref="paper", x0=series.whole.mean, x1=series.whole.mean, y0=0, y1=1,
        line={"color": colour, "width": 1.3, "dash": "dot"}, layer="below" if alone else "above",
    )  # fmt: skip
    if alone:
        drawn.add_annotation(
            x=series.whole.mean, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False,
            text=f"all queries: {format_figure(chart.metric, series.whole.mean)}", font={"size": 11, "color": SOFT},
        )  # fmt: skip


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


MIN_GROUPS, MAX_GROUPS = 3, 24
"""How many groups a radar chart can show: with two it is a line, with very many a disc."""
_ROOM = 520
_APART = 2.2  # degrees between two runs on the same spoke


def radar_problem(chart: Chart) -> str:
    """Why a chart cannot be drawn as a radar; empty where it can."""
    groups = len(chart.groups)
    return "" if MIN_GROUPS <= groups <= MAX_GROUPS else f"a radar chart cannot show {groups} groups"


def radar_figure(chart: Chart) -> Any:
    """A plotly figure with an outline for each run over the groups around a circle, the first at the top."""
    check_series_count(len(chart.series), "runs")
    if problem := radar_problem(chart):
        raise UsageError(problem, fix=f"draw bars, or choose a column with {MIN_GROUPS} to {MAX_GROUPS} groups")
    objects = plotly_objects()
    drawn = objects.Figure()
    for index, series in enumerate(chart.series):
        drawn.add_trace(_outline(objects, chart, series, index))
        drawn.add_trace(_intervals(objects, chart, series, index))
    top = top_margin(chart) + 26
    apply_layout(drawn, chart, top + _ROOM)
    between = 90 - 180 / len(chart.groups)  # the scale is between the first two spokes, clear of their labels
    drawn.update_layout(
        margin={"t": top, "b": 40},
        polar={
            "bgcolor": "white",
            "angularaxis": {
                "direction": "clockwise", "rotation": 90, "tickmode": "array", "tickvals": _angles(chart),
                "ticktext": [axis_label(group) for group in chart.groups], "gridcolor": FAINT, "linecolor": SOFT,
                "ticks": "outside", "ticklen": 7, "tickcolor": CLEAR, "tickfont": {"size": 13},
            },
            "radialaxis": {
                **value_axis(chart), "angle": between, "tickangle": between, "gridcolor": FAINT, "linecolor": CLEAR,
                "tickfont": {"size": 11, "color": SOFT}, "ticks": "",
            },
        },
    )  # fmt: skip
    return drawn


def _angles(chart: Chart, index: int | None = None) -> list[float]:
    """The spokes in degrees; for the run at a place a little beside them, so that intervals do not hide each other."""
    shift = 0.0 if index is None else (index - (len(chart.series) - 1) / 2) * _APART
    return [360 * spoke / len(chart.groups) + shift for spoke in range(len(chart.groups))]


def _outline(objects: Any, chart: Chart, series: Series, index: int) -> Any:
    values = [series.groups.get(group) for group in chart.groups]
    radii = [metric.mean if metric is not None and isfinite(metric.mean) else None for metric in values]
    words = [hover_text(chart, series, group) if group in series.groups else "" for group in chart.groups]
    angles = _angles(chart, index)
    return objects.Scatterpolar(
        name=legend_name(series),
        r=[*radii, radii[0]],
        theta=[*angles, angles[0]],
        mode="lines+markers",
        line={"color": COLOURS[index], "width": 2.2, "dash": DASHES[index]},
        marker={"color": COLOURS[index], "size": 7, "symbol": SYMBOLS[index]},
        fill="toself",
        fillcolor=f"rgba({_rgb(COLOURS[index])}, 0.08)",
        legendgroup=str(index),
        hovertext=[*words, words[0]],
        hoverinfo="text",
        hoveron="points",
        cliponaxis=False,
    )


def _intervals(objects: Any, chart: Chart, series: Series, index: int) -> Any:
    """Strokes from the low to the high end."""
    radii: list[float | None] = []
    angles: list[float | None] = []
    for group, angle in zip(chart.groups, _angles(chart, index), strict=True):
        metric = series.groups.get(group)
        if metric is not None and isfinite(metric.low) and isfinite(metric.high):
            radii += [metric.low, metric.high, None]
            angles += [angle, angle, None]
    return objects.Scatterpolar(
        r=radii,
        theta=angles,
        mode="lines",
        line={"color": COLOURS[index], "width": 1.6},
        opacity=0.75,
        legendgroup=str(index),
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )


def _rgb(colour: str) -> str:
    return ", ".join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))


KINDS = ("bar", "radar", "both")

_DRAW = {"bar": bar_figure, "radar": radar_figure}


def draw_chart(chart: Chart, kind: str = "both") -> list[Any]:
    """The plotly figures of a chart: bars, a radar chart, or both (only bars, where a radar would show nothing)."""
    if kind not in KINDS:
        raise UnknownNameError("kind of figure", kind, KINDS)
    if kind == "both":
        return [bar_figure(chart)] if radar_problem(chart) else [bar_figure(chart), radar_figure(chart)]
    return [_DRAW[kind](chart)]


def write_plot(
    charts: Chart | Sequence[Chart], output: str | Path, kind: str | None = None, *, overwrite: bool = False
) -> Path:
    """Draw charts into a file, by its suffix: a page (``.html``) with all of them, or a picture of one.

    ``kind`` is ``bar``, ``radar`` or ``both`` (the default of a page; of a picture, ``bar``). A page holds all it needs
    and opens without a network. An existing file with other content is kept unless ``overwrite``.
    """
    charts = [charts] if isinstance(charts, Chart) else list(charts)
    output = Path(output)
    kind = kind or ("both" if figure_suffix(output) == HTML else "bar")
    figures = [drawn for chart in charts for drawn in draw_chart(chart, kind)]
    title = charts[0].title if len(charts) == 1 else f"{charts[0].title} and {len(charts) - 1} more"
    return write_figures(figures, output, title, lambda: [_table(chart) for chart in charts], overwrite=overwrite)


def _table(chart: Chart) -> str:
    rows = []
    for group in chart.groups:
        for series in chart.series:
            if (metric := series.groups.get(group)) is not None:
                numbers = (
                    format_figure(metric.name, metric.mean),
                    format_interval(metric.name, metric.low, metric.high),
                    f"{metric.n:,}",
                )
                rows.append((group, series.name, *numbers))
    header = (chart.column, "run", "figure", "interval", "queries")
    return folded_table(f"The numbers: {chart.title}", header, rows, about=" · ".join(chart.facts))
