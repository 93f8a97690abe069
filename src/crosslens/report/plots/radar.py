"""Radar: a group per spoke, an outline per run, intervals along the spokes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from crosslens.core.errors import UsageError
from crosslens.report.plots.chart import Chart, Series
from crosslens.report.plots.style import (
    CLEAR,
    DASHES,
    FAINT,
    SOFT,
    SYMBOLS,
    colour_of,
    demand_readable,
    dress,
    hover,
    legend_name,
    plotly_objects,
    scale,
    tick,
    top_margin,
)

FEWEST, MOST = 3, 24
"""How many groups a radar chart can show: with two it is a line, with very many a disc."""
_ROOM = 520
_APART = 2.2  # degrees between two runs on the same spoke


def fits_radar(chart: Chart) -> str:
    """Why a chart cannot be drawn as a radar; empty where it can."""
    groups = len(chart.groups)
    return "" if FEWEST <= groups <= MOST else f"a radar chart of {groups} groups says nothing"


def radar_figure(chart: Chart) -> Any:
    """A plotly figure with an outline for each run over the groups around a circle, the first at the top."""
    demand_readable(chart)
    if problem := fits_radar(chart):
        raise UsageError(problem, fix=f"draw bars, or choose a column with {FEWEST} to {MOST} groups")
    objects = plotly_objects()
    drawn = objects.Figure()
    for place, series in enumerate(chart.series):
        drawn.add_trace(_outline(objects, chart, series, place))
        drawn.add_trace(_intervals(objects, chart, series, place))
    top = top_margin(chart) + 26
    dress(drawn, chart, top + _ROOM)
    between = 90 - 180 / len(chart.groups)  # the scale stands between the first two spokes, clear of their labels
    drawn.update_layout(
        margin={"t": top, "b": 40},
        polar={
            "bgcolor": "white",
            "angularaxis": {
                "direction": "clockwise", "rotation": 90, "tickmode": "array", "tickvals": _angles(chart),
                "ticktext": [tick(group) for group in chart.groups], "gridcolor": FAINT, "linecolor": SOFT,
                "ticks": "outside", "ticklen": 7, "tickcolor": CLEAR, "tickfont": {"size": 13},
            },
            "radialaxis": {
                **scale(chart), "angle": between, "tickangle": between, "gridcolor": FAINT, "linecolor": CLEAR,
                "tickfont": {"size": 11, "color": SOFT}, "ticks": "",
            },
        },
    )  # fmt: skip
    return drawn


def _angles(chart: Chart, place: int | None = None) -> list[float]:
    """The spokes in degrees; for the run at a place a little beside them, so that intervals do not hide each other."""
    shift = 0.0 if place is None else (place - (len(chart.series) - 1) / 2) * _APART
    return [360 * spoke / len(chart.groups) + shift for spoke in range(len(chart.groups))]


def _outline(objects: Any, chart: Chart, series: Series, place: int) -> Any:
    values = [series.groups.get(group) for group in chart.groups]
    radii = [one.mean if one is not None and isfinite(one.mean) else None for one in values]
    words = [hover(chart, series, group) if group in series.groups else "" for group in chart.groups]
    angles = _angles(chart, place)
    return objects.Scatterpolar(
        name=legend_name(series),
        r=[*radii, radii[0]],
        theta=[*angles, angles[0]],
        mode="lines+markers",
        line={"color": colour_of(place), "width": 2.2, "dash": DASHES[place]},
        marker={"color": colour_of(place), "size": 7, "symbol": SYMBOLS[place]},
        fill="toself",
        fillcolor=f"rgba({_rgb(colour_of(place))}, 0.08)",
        legendgroup=str(place),
        hovertext=[*words, words[0]],
        hoverinfo="text",
        hoveron="points",
        cliponaxis=False,
    )


def _intervals(objects: Any, chart: Chart, series: Series, place: int) -> Any:
    """Strokes from the low to the high end."""
    radii: list[float | None] = []
    angles: list[float | None] = []
    for group, angle in zip(chart.groups, _angles(chart, place), strict=True):
        one = series.groups.get(group)
        if one is not None and isfinite(one.low) and isfinite(one.high):
            radii += [one.low, one.high, None]
            angles += [angle, angle, None]
    return objects.Scatterpolar(
        r=radii,
        theta=angles,
        mode="lines",
        line={"color": colour_of(place), "width": 1.6},
        opacity=0.75,
        legendgroup=str(place),
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )


def _rgb(colour: str) -> str:
    return ", ".join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))
