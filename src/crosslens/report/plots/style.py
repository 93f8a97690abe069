"""The style of figures: colours that colour-blind readers can distinguish, fonts, labels, layout."""

from __future__ import annotations

import textwrap
from html import escape
from math import isfinite
from typing import Any

from crosslens.core import MetricValues, MissingExtraError, UsageError, split_name
from crosslens.metrics import format_count, format_figure, format_interval
from crosslens.report.plots.group_chart import Chart, Series

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#4D4D4D")
"""Okabe and Ito's palette without its yellow, which is too light for paper."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
_FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
INK, SOFT, FAINT = "#1A1A1A", "#666666", "#E3E3E3"
CLEAR = "rgba(0, 0, 0, 0)"
WIDTH = 860
LINE = 17
"""Pixels per line of the subtitle."""
_LETTERS = 118
"""Letters of the subtitle that fit beside each other."""

_LONGEST = 60
"""Letters of a group's name that an axis shows."""


def plotly_objects() -> Any:
    """plotly's figures; a clear error where it is not installed."""
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise MissingExtraError("drawing figures", "plotly", "plot") from error
    return plotly.graph_objects


def check_series_count(series: int, noun: str) -> None:
    """Raise where a figure has more series than there are colours."""
    if series > len(COLOURS):
        raise UsageError(
            f"{series} {noun} exceed the {len(COLOURS)} colours of a figure", fix=f"draw up to {len(COLOURS)}"
        )


def label(text: str) -> str:
    """A name as plotly shows it literally: in its labels ``<b>`` would make bold."""
    return escape(text, quote=False)


def axis_label(text: str) -> str:
    """A group's name beside an axis: a very long one is cut, so that the figure has room."""
    return label(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def legend_name(series: Series) -> str:
    """A run with its figure over all queries."""
    return f"{label(series.name)} ({format_figure(series.whole.name, series.whole.mean)} over all)"


def hover_text(chart: Chart, series: Series, group: str) -> str:
    """What a pointer on a group shows: the run, the figure, its interval, how many queries."""
    metric = series.groups[group]
    bounds = format_interval(metric.name, metric.low, metric.high)
    lines = [
        f"<b>{label(group)}</b>, {label(series.name)}",
        f"{split_name(chart.metric)[1]} {format_figure(metric.name, metric.mean)}" + (f"  {bounds}" if bounds else ""),
        format_count(metric.n, "query")
        + (f", {metric.excluded:,} more without a relevant item" if metric.excluded else ""),
    ]
    return "<br>".join(lines)


def interval_lengths(metric: MetricValues) -> tuple[float, float]:
    """How far the interval goes below and above the figure; nowhere without one."""
    if not (isfinite(metric.low) and isfinite(metric.high)):
        return 0.0, 0.0
    return max(0.0, metric.mean - metric.low), max(0.0, metric.high - metric.mean)


def value_axis(chart: Chart) -> dict[str, Any]:
    """The axis of the metric: a share from 0 to 1, written in percent; anything else from 0 as far as it goes."""
    if chart.unit == "share":
        return {"range": [0, 1], "tickformat": ".0%", "dtick": 0.2}
    highest = max(
        (end for series in chart.series for metric in series.groups.values() for end in (metric.mean, metric.high)
         if isfinite(end)),
        default=1.0,
    )  # fmt: skip
    return {"range": [0, 1.08 * highest or 1.0]}


def subtitle_lines(chart: Chart) -> list[str]:
    """The facts under the title, wrapped."""
    return textwrap.wrap(" · ".join(chart.facts), _LETTERS, break_on_hyphens=False)


def top_margin(chart: Chart) -> int:
    """Room for the title, the subtitle and the legend."""
    return 64 + LINE * len(subtitle_lines(chart)) + (30 if len(chart.series) > 1 else 6)


def figure_layout(
    title: str, subtitle: str, height: float, *, font_size: int = 13, title_top: int = 32
) -> dict[str, Any]:
    """Size, fonts, title and subtitle (which is markup already): the layout that every figure has."""
    return {
        "template": "none",
        "width": WIDTH,
        "height": height,
        "font": {"family": _FONT, "size": font_size, "color": INK},
        "title": {
            "text": f"<b>{label(title)}</b>",
            "subtitle": {"text": subtitle, "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "xanchor": "left", "pad": {"l": 24},
            "y": 1 - title_top / height, "yref": "container", "yanchor": "bottom",
        },
        "hoverlabel": {"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    }  # fmt: skip


def apply_layout(drawn: Any, chart: Chart, height: int) -> Any:
    """Title, subtitle, legend and margins of a chart by group."""
    top = top_margin(chart)
    drawn.update_layout(
        **figure_layout(chart.title, "<br>".join(map(label, subtitle_lines(chart))), height),
        margin={"t": top, "r": 52, "b": 56, "l": 30},
        paper_bgcolor="white",
        plot_bgcolor="white",
        showlegend=len(chart.series) > 1,
        legend={
            "orientation": "h", "x": 20 / WIDTH, "xref": "container", "xanchor": "left", "y": 1 - (top - 10) / height,
            "yref": "container", "yanchor": "bottom", "traceorder": "normal", "itemsizing": "constant",
        },
    )  # fmt: skip
    return drawn
