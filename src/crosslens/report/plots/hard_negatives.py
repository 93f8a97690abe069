"""Hard negatives as a picture: a bar per category and model, its interval, and what guessing reaches."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.analyze.hard_negatives import ALL, MACRO, Figure
from crosslens.analyze.hard_negatives_result import HardNegativesResult, bounds, percent, shown_figures
from crosslens.core.errors import UsageError
from crosslens.data.hard_negatives import ACCURACY
from crosslens.metrics.figures import count
from crosslens.report.plots.paper import PAGE, folded_table, suffix_of, write_figures
from crosslens.report.plots.style import COLOURS, FAINT, INK, SOFT, WIDTH, label, plotly_objects, tick

_BAR, _GAP, _TOP, _BOTTOM = 15, 12, 118, 56
_FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def negatives_figure(results: Sequence[HardNegativesResult], measure: str) -> Any:
    """A plotly figure of one measure: categories down, a bar per model, a mark where guessing would end."""
    if len(results) > len(COLOURS):
        raise UsageError(f"{len(results)} models in one figure cannot be told apart", fix=f"draw up to {len(COLOURS)}")
    objects = plotly_objects()
    drawn = objects.Figure()
    for place, result in enumerate(results):
        drawn.add_trace(_bars(objects, result, measure, place))
    rows = shown_figures(results[0].figures, measure)
    drawn.add_trace(
        objects.Scatter(
            name="chance",
            mode="markers",
            x=[one.chance for one in rows],
            y=[row_name(one, results[0]) for one in rows],
            marker={"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": INK}},
            hovertemplate="chance %{x:.1%}<extra></extra>",
        )
    )
    return _dressed(drawn, results, measure, rows)


def write_negatives_plot(
    results: Sequence[HardNegativesResult], output: str | Path, *, overwrite: bool = False
) -> Path:
    """A page with a figure per measure and its numbers; or a picture of the last measure, the strictest."""
    output = Path(output)
    measures = results[0].negatives.measures
    shown = measures if suffix_of(output) == PAGE else measures[-1:]
    return write_figures(
        [negatives_figure(results, measure) for measure in shown],
        output,
        f"Hard negatives: {results[0].negatives.name}",
        lambda: [_table(result) for result in results],
        overwrite=overwrite,
    )


def row_name(one: Figure, result: HardNegativesResult) -> str:
    """What a category is called beside the axis; categories of two groupings may share a name."""
    if one.grouping in (ALL, MACRO):
        return "all cases" if one.grouping == ALL else "macro"
    return label(f"{one.grouping}: {one.category}" if len(result.negatives.groupings) > 1 else one.category)


def _bars(objects: Any, result: HardNegativesResult, measure: str, place: int) -> Any:
    rows = shown_figures(result.figures, measure)
    known = [isfinite(one.low) and isfinite(one.high) for one in rows]
    return objects.Bar(
        name=label(result.model),
        orientation="h",
        y=[row_name(one, result) for one in rows],
        x=[one.value for one in rows],
        error_x={
            "type": "data", "symmetric": False, "color": INK, "thickness": 1.4, "width": 3.5,
            "array": [one.high - one.value if there else 0 for one, there in zip(rows, known, strict=True)],
            "arrayminus": [one.value - one.low if there else 0 for one, there in zip(rows, known, strict=True)],
        },
        marker={"color": COLOURS[place], "opacity": 0.78},
        hovertext=[_hover(result, one) for one in rows],
        hoverinfo="text",
    )  # fmt: skip


def _hover(result: HardNegativesResult, one: Figure) -> str:
    interval = bounds(one.low, one.high)
    return "<br>".join(
        (
            f"<b>{row_name(one, result)}</b>, {label(result.model)}",
            f"{percent(one.value)}" + (f"  {interval}" if interval else ""),
            f"{count(one.cases, 'case')}, chance {percent(one.chance)}, tied {percent(one.tied)}",
        )
    )


def _dressed(drawn: Any, results: Sequence[HardNegativesResult], measure: str, rows: Sequence[Figure]) -> Any:
    height = _TOP + len(rows) * (_BAR * len(results) + _GAP) + _BOTTOM
    first = results[0]
    name = measure if measure == ACCURACY[0] else f"{measure} score"
    facts = f"{count(len(first.negatives), 'case')}, {100 * first.level:g}% intervals from resampling {first.resampled}"
    names = [row_name(one, first) for one in rows]
    drawn.update_layout(
        template="none", width=WIDTH, height=height, barmode="group", bargroupgap=0.08,
        bargap=_GAP / (_GAP + _BAR * len(results)),
        margin={"t": _TOP, "r": 52, "b": _BOTTOM, "l": 30},
        font={"family": _FONT, "size": 13, "color": INK},
        title={
            "text": f"<b>{label(first.negatives.name)}: {name}</b>",
            "subtitle": {"text": f"{facts}; ties are wrong; | is chance", "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 32 / height,
            "yref": "container", "yanchor": "bottom",
        },
        legend={"orientation": "h", "x": 20 / WIDTH, "xref": "container", "y": 1 - (_TOP - 10) / height,
                "yref": "container", "yanchor": "bottom", "traceorder": "normal"},
        xaxis={"range": [0, 1], "tickformat": ".0%", "dtick": 0.2, "gridcolor": FAINT, "fixedrange": True},
        yaxis={"type": "category", "categoryorder": "array", "categoryarray": names, "tickmode": "array",
               "tickvals": names, "ticktext": [tick(one) for one in names], "autorange": "reversed",
               "automargin": True, "ticks": "", "ticklabelstandoff": 6, "fixedrange": True},
    )  # fmt: skip
    return drawn


def _table(result: HardNegativesResult) -> str:
    header = ("", "measure", "cases", "value", "interval", "chance", "tied")
    rows = [
        (
            row_name(one, result),
            one.measure,
            f"{one.cases:,}",
            percent(one.value),
            bounds(one.low, one.high),
            percent(one.chance),
            percent(one.tied),
        )
        for one in result.figures
    ]
    return folded_table(result.model, header, rows)
