"""How figures look: colours that colour-blind readers can tell apart, plain axes, words that say what is shown."""

from __future__ import annotations

import textwrap
from html import escape
from math import isfinite
from typing import Any

from crosslens.core.errors import MissingExtraError, UsageError
from crosslens.core.metric_values import MetricValues
from crosslens.core.run import split_name
from crosslens.metrics.figures import count, figure, interval
from crosslens.report.plots.chart import Chart, Series

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#4D4D4D")
"""Okabe and Ito's palette without its yellow, which is too light for paper."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
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


def colour_of(place: int) -> str:
    """The colour of the run at a place."""
    return COLOURS[place]


def demand_readable(chart: Chart) -> None:
    """Raise where a figure could not be read."""
    if len(chart.series) > len(COLOURS):
        raise UsageError(
            f"{len(chart.series)} runs in one figure cannot be told apart", fix=f"draw up to {len(COLOURS)}"
        )


def label(text: str) -> str:
    """A name as plotly shows it literally: in its labels ``<b>`` would make bold."""
    return escape(text, quote=False)


def tick(text: str) -> str:
    """A group's name beside an axis: a very long one is cut, as it would leave no room for the figure."""
    return label(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def legend_name(series: Series) -> str:
    """A run with its figure over all queries."""
    return f"{label(series.name)} ({figure(series.whole.name, series.whole.mean)} over all)"


def hover(chart: Chart, series: Series, group: str) -> str:
    """What a pointer on a group shows: the run, the figure, its interval, how many queries."""
    one = series.groups[group]
    bounds = interval(one.name, one.low, one.high)
    lines = [
        f"<b>{label(group)}</b>, {label(series.name)}",
        f"{split_name(chart.metric)[1]} {figure(one.name, one.mean)}" + (f"  {bounds}" if bounds else ""),
        count(one.n, "query") + (f", {one.excluded:,} more without a relevant item" if one.excluded else ""),
    ]
    return "<br>".join(lines)


def reach(one: MetricValues) -> tuple[float, float]:
    """How far the interval goes below and above the figure; nowhere without one."""
    if not (isfinite(one.low) and isfinite(one.high)):
        return 0.0, 0.0
    return max(0.0, one.mean - one.low), max(0.0, one.high - one.mean)


def scale(chart: Chart) -> dict[str, Any]:
    """The axis of the metric: a share from 0 to 1, written in percent; anything else from 0 as far as it goes."""
    if chart.unit == "share":
        return {"range": [0, 1], "tickformat": ".0%", "dtick": 0.2}
    highest = max(
        (end for series in chart.series for one in series.groups.values() for end in (one.mean, one.high)
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


def dress(figure_: Any, chart: Chart, height: int) -> Any:
    """Title, subtitle, legend, fonts and margins, the same for every figure."""
    top = top_margin(chart)
    figure_.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": top, "r": 52, "b": 56, "l": 30},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 13, "color": INK},
        paper_bgcolor="white",
        plot_bgcolor="white",
        title={
            "text": f"<b>{label(chart.title)}</b>",
            "subtitle": {"text": "<br>".join(map(label, subtitle_lines(chart))), "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 24},
            "y": 1 - 32 / height,
            "yref": "container",
            "yanchor": "bottom",
        },
        showlegend=len(chart.series) > 1,
        legend={
            "orientation": "h", "x": 20 / WIDTH, "xref": "container", "xanchor": "left", "y": 1 - (top - 10) / height,
            "yref": "container", "yanchor": "bottom", "traceorder": "normal", "itemsizing": "constant",
        },
        hoverlabel={"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    )  # fmt: skip
    return figure_
