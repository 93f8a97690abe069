"""Metrics by group: bars (a group per line, a bar per run), radar charts, intervals drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import MetricValues, UnknownNameError, UsageError, split_name
from crosslens.metrics import format_count, format_figure, format_interval
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.plots.group_chart import GroupChart, GroupSeries

_BAR, _GROUP_GAP, _BOTTOM = 15, 11, 56
_LINE = 17
"""Pixels per line of the subtitle."""
_LETTERS = 118
"""Letters of the subtitle that fit beside each other."""


def bar_figure(chart: GroupChart) -> Any:
    """A plotly figure with a horizontal bar for each group of each run; lines mark the figures over all queries."""
    style.check_series_count(len(chart.series), "runs")
    objects = style.plotly_objects()
    drawn = objects.Figure()
    for index, series in enumerate(chart.series):
        drawn.add_trace(_bars(objects, chart, series, index))
        drawn.add_trace(_figures(objects, chart, series, index))
        if chart.column and isfinite(series.whole.mean):
            _mark_whole(drawn, chart, series, index)
    rows = len(chart.groups) * (len(chart.series) * _BAR + _GROUP_GAP)
    _apply_layout(drawn, chart, _top_margin(chart) + max(rows, 60) + _BOTTOM)
    metric, unit = split_name(chart.metric)[1], " (rank)" if chart.unit == "rank" else ""
    drawn.update_layout(
        barmode="group",
        scattermode="group",
        bargap=_GROUP_GAP / (len(chart.series) * _BAR + _GROUP_GAP),
        bargroupgap=0.08,
        xaxis={
            **_value_axis(chart),
            "title": {"text": metric + unit, "font": {"size": 13, "color": style.SOFT}, "standoff": 8},
            "gridcolor": style.FAINT, "zeroline": True, "zerolinecolor": style.SOFT, "zerolinewidth": 1,
            "fixedrange": True,
        },
        yaxis=style.category_axis([style.label(group) for group in chart.groups], chart.groups),
    )  # fmt: skip
    return drawn


def _bars(objects: Any, chart: GroupChart, series: GroupSeries, index: int) -> Any:
    shown = [group for group in chart.groups if group in series.groups]
    ends = [_interval_lengths(series.groups[group]) for group in shown]
    return objects.Bar(
        name=_legend_name(series),
        orientation="h",
        y=[style.label(group) for group in shown],
        x=[style.finite_or_none(series.groups[group].mean) for group in shown],
        error_x=style.error_bars([low for low, _ in ends], [high for _, high in ends]),
        marker={"color": style.COLOURS[index], "opacity": 0.78},  # intervals must show on the bars
        offsetgroup=str(index),
        legendgroup=str(index),
        hovertext=[_hover_text(chart, series, group) for group in shown],
        hoverinfo="text",
    )  # fmt: skip


def _figures(objects: Any, chart: GroupChart, series: GroupSeries, index: int) -> Any:
    """The numbers, to the right of the intervals: a bar's own text would lie under its interval."""
    shown = [group for group in chart.groups if group in series.groups]
    values = [series.groups[group] for group in shown]
    return objects.Scatter(
        mode="text",
        orientation="h",
        y=[style.label(group) for group in shown],
        x=[style.finite_or_none(metric.mean + _interval_lengths(metric)[1]) for metric in values],
        text=[f"  {format_figure(metric.name, metric.mean)}" for metric in values],
        textposition="middle right",
        textfont={"size": 11, "color": style.INK},
        cliponaxis=False,
        offsetgroup=str(index),
        legendgroup=str(index),
        showlegend=False,
        hoverinfo="skip",
    )


def _mark_whole(drawn: Any, chart: GroupChart, series: GroupSeries, index: int) -> None:
    """A line through all groups at the figure over all queries."""
    alone = len(chart.series) == 1
    colour = style.SOFT if alone else style.COLOURS[index]
    drawn.add_shape(
        type="line", xref="x", yref="paper", x0=series.whole.mean, x1=series.whole.mean, y0=0, y1=1,
        line={"color": colour, "width": 1.3, "dash": "dot"}, layer="below" if alone else "above",
    )  # fmt: skip
    if alone:
        drawn.add_annotation(
            x=series.whole.mean, y=1, xref="x", yref="paper", yanchor="bottom", font={"size": 11, "color": style.SOFT},
            text=f"all queries: {format_figure(chart.metric, series.whole.mean)}", showarrow=False,
        )  # fmt: skip


MIN_GROUPS, MAX_GROUPS = 3, 24
"""How many groups a radar chart can show: with two it is a line, with very many a disc."""
_ROOM = 520
_APART = 2.2  # degrees between two runs on the same spoke


def radar_problem(chart: GroupChart) -> str:
    """Why a chart cannot be drawn as a radar; empty where it can."""
    groups = len(chart.groups)
    return "" if MIN_GROUPS <= groups <= MAX_GROUPS else f"a radar chart cannot show {groups} groups"


def radar_figure(chart: GroupChart) -> Any:
    """A plotly figure with an outline for each run over the groups around a circle, the first at the top."""
    style.check_series_count(len(chart.series), "runs")
    if problem := radar_problem(chart):
        raise UsageError(problem, fix=f"draw bars, or choose a column with {MIN_GROUPS} to {MAX_GROUPS} groups")
    objects = style.plotly_objects()
    drawn = objects.Figure()
    for index, series in enumerate(chart.series):
        drawn.add_trace(_outline(objects, chart, series, index))
        drawn.add_trace(_intervals(objects, chart, series, index))
    top = _top_margin(chart) + 26
    _apply_layout(drawn, chart, top + _ROOM)
    between = 90 - 180 / len(chart.groups)  # the scale is between the first two spokes, clear of their labels
    drawn.update_layout(
        margin={"t": top, "b": 40},
        polar={
            "bgcolor": "white",
            "angularaxis": {
                "direction": "clockwise", "rotation": 90, "tickmode": "array", "tickvals": _angles(chart),
                "ticktext": list(map(style.axis_label, chart.groups)), "gridcolor": style.FAINT,
                "linecolor": style.SOFT, "ticks": "outside", "ticklen": 7, "tickcolor": style.CLEAR,
                "tickfont": {"size": 13},
            },
            "radialaxis": {
                **_value_axis(chart), "angle": between, "tickangle": between, "gridcolor": style.FAINT,
                "linecolor": style.CLEAR, "tickfont": {"size": 11, "color": style.SOFT}, "ticks": "",
            },
        },
    )  # fmt: skip
    return drawn


def _angles(chart: GroupChart, index: int | None = None) -> list[float]:
    """The spokes in degrees; for the run at a place a little beside them, so that intervals do not hide each other."""
    shift = 0.0 if index is None else (index - (len(chart.series) - 1) / 2) * _APART
    return [360 * spoke / len(chart.groups) + shift for spoke in range(len(chart.groups))]


def _outline(objects: Any, chart: GroupChart, series: GroupSeries, index: int) -> Any:
    values = [series.groups.get(group) for group in chart.groups]
    radii = [None if metric is None else style.finite_or_none(metric.mean) for metric in values]
    words = [_hover_text(chart, series, group) if group in series.groups else "" for group in chart.groups]
    angles = _angles(chart, index)
    return objects.Scatterpolar(
        name=_legend_name(series),
        r=[*radii, radii[0]],
        theta=[*angles, angles[0]],
        mode="lines+markers",
        line={"color": style.COLOURS[index], "width": 2.2, "dash": style.DASHES[index]},
        marker={"color": style.COLOURS[index], "size": 7, "symbol": style.SYMBOLS[index]},
        fill="toself",
        fillcolor=style.translucent(style.COLOURS[index], 0.08),
        legendgroup=str(index),
        hovertext=[*words, words[0]],
        hoverinfo="text",
        hoveron="points",
        cliponaxis=False,
    )


def _intervals(objects: Any, chart: GroupChart, series: GroupSeries, index: int) -> Any:
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
        line={"color": style.COLOURS[index], "width": 1.6},
        opacity=0.75,
        legendgroup=str(index),
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )


KINDS = ("bar", "radar", "both")

_DRAW = {"bar": bar_figure, "radar": radar_figure}


def draw_chart(chart: GroupChart, kind: str = "both") -> list[Any]:
    """The plotly figures of a chart: bars, a radar chart, or both (only bars, where a radar would show nothing)."""
    if kind not in KINDS:
        raise UnknownNameError("kind of figure", kind, KINDS)
    if kind == "both":
        return [bar_figure(chart)] if radar_problem(chart) else [bar_figure(chart), radar_figure(chart)]
    return [_DRAW[kind](chart)]


def write_plot(
    charts: GroupChart | Sequence[GroupChart], output: str | Path, kind: str | None = None, *, overwrite: bool = False
) -> Path:
    """Draw charts into a file, by its suffix: a page (``.html``) with all of them, or a picture of one.

    ``kind`` is ``bar``, ``radar`` or ``both`` (the default of a page; of a picture, ``bar``). A page holds all it needs
    and opens without a network. An existing file with other content is kept unless ``overwrite``.
    """
    charts = [charts] if isinstance(charts, GroupChart) else list(charts)
    kinds = kind or ("both" if style.figure_suffix(output) == style.HTML else "bar")
    title = charts[0].title if len(charts) == 1 else f"{charts[0].title} and {len(charts) - 1} more"
    return style.write_figures(
        output,
        title,
        lambda: [drawn for chart in charts for drawn in draw_chart(chart, kinds)],
        lambda: [_table(chart) for chart in charts],
        overwrite=overwrite,
    )


def _table(chart: GroupChart) -> str:
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
    header = (chart.column or "queries of", "run", "figure", "interval", "queries")
    return folded_table(f"The numbers: {chart.title}", header, rows, about=" · ".join(chart.facts))


def _legend_name(series: GroupSeries) -> str:
    return f"{style.label(series.name)} ({format_figure(series.whole.name, series.whole.mean)} over all)"


def _hover_text(chart: GroupChart, series: GroupSeries, group: str) -> str:
    """What a pointer on a group shows: the run, the figure, its interval, how many queries."""
    metric = series.groups[group]
    bounds = format_interval(metric.name, metric.low, metric.high)
    lines = [
        f"<b>{style.label(group)}</b>, {style.label(series.name)}",
        f"{split_name(chart.metric)[1]} {format_figure(metric.name, metric.mean)}" + (f"  {bounds}" if bounds else ""),
        format_count(metric.n, "query")
        + (f", {metric.excluded:,} more without a relevant item" if metric.excluded else ""),
    ]
    return "<br>".join(lines)


def _interval_lengths(metric: MetricValues) -> tuple[float, float]:
    """How far the interval goes below and above the figure; nowhere without one."""
    if not (isfinite(metric.low) and isfinite(metric.high)):
        return 0.0, 0.0
    return max(0.0, metric.mean - metric.low), max(0.0, metric.high - metric.mean)


def _value_axis(chart: GroupChart) -> dict[str, Any]:
    """The axis of the metric: a share from 0 to 1, written in percent; anything else from 0 as far as it goes."""
    if chart.unit == "share":
        return {"range": [0, 1], "tickformat": ".0%", "dtick": 0.2}
    highest = max(
        (end for series in chart.series for metric in series.groups.values() for end in (metric.mean, metric.high)
         if isfinite(end)),
        default=1.0,
    )  # fmt: skip
    return {"range": [0, 1.08 * highest or 1.0]}


def _subtitle_lines(chart: GroupChart) -> list[str]:
    return textwrap.wrap(" · ".join(chart.facts), _LETTERS, break_on_hyphens=False)


def _top_margin(chart: GroupChart) -> int:
    """Room for the title, the subtitle and the legend."""
    return 64 + _LINE * len(_subtitle_lines(chart)) + (30 if len(chart.series) > 1 else 6)


def _apply_layout(drawn: Any, chart: GroupChart, height: int) -> Any:
    top = _top_margin(chart)
    drawn.update_layout(
        **style.figure_layout(chart.title, "<br>".join(map(style.label, _subtitle_lines(chart))), height),
        margin={"t": top, "r": 52, "b": 56, "l": 30},
        paper_bgcolor="white",
        plot_bgcolor="white",
        showlegend=len(chart.series) > 1,
        legend={
            "orientation": "h", "x": 20 / style.WIDTH, "xref": "container", "xanchor": "left",
            "y": 1 - (top - 10) / height, "yref": "container", "yanchor": "bottom", "traceorder": "normal",
            "itemsizing": "constant",
        },
    )  # fmt: skip
    return drawn
