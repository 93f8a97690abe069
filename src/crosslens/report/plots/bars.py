"""Bars: a group per line, a bar per run, intervals drawn."""

from __future__ import annotations

from math import isfinite
from typing import Any

from crosslens.core.run import split_name
from crosslens.metrics.figures import figure
from crosslens.report.plots.chart import Chart, Series
from crosslens.report.plots.style import (
    FAINT,
    INK,
    SOFT,
    colour_of,
    demand_readable,
    dress,
    hover,
    label,
    legend_name,
    plotly_objects,
    reach,
    scale,
    tick,
    top_margin,
)

_BAR, _GROUP_GAP, _BOTTOM = 15, 11, 56


def bar_figure(chart: Chart) -> Any:
    """A plotly figure with a horizontal bar for each group of each run; lines mark the figures over all queries."""
    demand_readable(chart)
    objects = plotly_objects()
    drawn = objects.Figure()
    for place, series in enumerate(chart.series):
        drawn.add_trace(_bars(objects, chart, series, place))
        drawn.add_trace(_figures(objects, chart, series, place))
        if isfinite(series.whole.mean):
            _mark_whole(drawn, chart, series, place)
    rows = len(chart.groups) * (len(chart.series) * _BAR + _GROUP_GAP)
    dress(drawn, chart, top_margin(chart) + max(rows, 60) + _BOTTOM)
    unit = " (place in the list)" if chart.unit == "places" else ""
    drawn.update_layout(
        barmode="group",
        scattermode="group",
        bargap=_GROUP_GAP / (len(chart.series) * _BAR + _GROUP_GAP),
        bargroupgap=0.08,
        xaxis={
            **scale(chart),
            "title": {"text": split_name(chart.metric)[1] + unit, "font": {"size": 13, "color": SOFT}, "standoff": 8},
            "gridcolor": FAINT, "zeroline": True, "zerolinecolor": SOFT, "zerolinewidth": 1, "fixedrange": True,
        },
        yaxis={
            "type": "category", "categoryorder": "array", "categoryarray": [label(one) for one in chart.groups],
            "tickmode": "array", "tickvals": [label(one) for one in chart.groups],
            "ticktext": [tick(one) for one in chart.groups],
            "autorange": "reversed", "automargin": True, "ticks": "", "ticklabelstandoff": 6, "fixedrange": True,
        },
    )  # fmt: skip
    return drawn


def _bars(objects: Any, chart: Chart, series: Series, place: int) -> Any:
    shown = [group for group in chart.groups if group in series.groups]
    ends = [reach(series.groups[group]) for group in shown]
    return objects.Bar(
        name=legend_name(series),
        orientation="h",
        y=[label(group) for group in shown],
        x=[_number(series.groups[group].mean) for group in shown],
        error_x={
            "type": "data", "symmetric": False, "arrayminus": [low for low, _ in ends],
            "array": [high for _, high in ends], "color": INK, "thickness": 1.4, "width": 3.5,
        },
        marker={"color": colour_of(place), "opacity": 0.78},  # intervals must show on the bars
        offsetgroup=str(place),
        legendgroup=str(place),
        hovertext=[hover(chart, series, group) for group in shown],
        hoverinfo="text",
    )  # fmt: skip


def _figures(objects: Any, chart: Chart, series: Series, place: int) -> Any:
    """The numbers, to the right of the intervals: a bar's own text would lie under its interval."""
    shown = [group for group in chart.groups if group in series.groups]
    values = [series.groups[group] for group in shown]
    return objects.Scatter(
        mode="text",
        orientation="h",
        y=[label(group) for group in shown],
        x=[_number(one.mean + reach(one)[1]) for one in values],
        text=[f"  {figure(one.name, one.mean)}" for one in values],
        textposition="middle right",
        textfont={"size": 11, "color": INK},
        cliponaxis=False,
        offsetgroup=str(place),
        legendgroup=str(place),
        showlegend=False,
        hoverinfo="skip",
    )


def _mark_whole(drawn: Any, chart: Chart, series: Series, place: int) -> None:
    """A line through all groups at the figure over all queries."""
    alone = len(chart.series) == 1
    colour = SOFT if alone else colour_of(place)
    drawn.add_shape(
        type="line", xref="x", yref="paper", x0=series.whole.mean, x1=series.whole.mean, y0=0, y1=1,
        line={"color": colour, "width": 1.3, "dash": "dot"}, layer="below" if alone else "above",
    )  # fmt: skip
    if alone:
        drawn.add_annotation(
            x=series.whole.mean, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False,
            text=f"all queries: {figure(chart.metric, series.whole.mean)}", font={"size": 11, "color": SOFT},
        )  # fmt: skip


def _number(value: float) -> float | None:
    return value if isfinite(value) else None
