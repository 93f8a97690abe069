"""Hard negatives as a picture: a bar per category and model, its interval, and what guessing reaches."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.analyze import ACCURACY, ALL_CASES, MACRO, CategoryAccuracy, HardNegativesResult
from crosslens.core import percent
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.hard_negatives import interval_text, shown_categories

_BAR, _GAP, _TOP, _BOTTOM = 15, 12, 118, 56
_LINE, _LETTERS = 17, 118
"""Pixels per line of the subtitle, and the letters that fit beside each other."""


def negatives_figure(results: Sequence[HardNegativesResult], measure: str) -> Any:
    """A plotly figure of one measure: categories down, a bar per model, a mark where guessing would end."""
    style.check_series_count(len(results), "models")
    objects = style.plotly_objects()
    drawn = objects.Figure()
    for index, result in enumerate(results):
        drawn.add_trace(_bars(objects, result, measure, index))
    rows = shown_categories(results[0].figures, measure)
    drawn.add_trace(
        objects.Scatter(
            name="chance",
            mode="markers",
            x=[row.chance for row in rows],
            y=[category_label(row, results[0]) for row in rows],
            marker={"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": style.INK}},
            hovertemplate="chance %{x:.1%}<extra></extra>",
        )
    )
    return _with_layout(drawn, results, measure, rows)


def write_negatives_plot(
    results: Sequence[HardNegativesResult], output: str | Path, *, overwrite: bool = False
) -> Path:
    """A page with a figure per measure and its numbers; or a picture of the last measure, the strictest."""
    measures = results[0].negatives.measures
    shown = measures if style.figure_suffix(output) == style.HTML else measures[-1:]
    return style.write_figures(
        output,
        f"Hard negatives: {results[0].negatives.name}",
        lambda: [negatives_figure(results, measure) for measure in shown],
        lambda: [_table(result) for result in results],
        overwrite=overwrite,
    )


def category_label(row: CategoryAccuracy, result: HardNegativesResult) -> str:
    """What a category is called beside the axis; categories of two groupings may share a name."""
    if row.grouping in (ALL_CASES, MACRO):
        return "all cases" if row.grouping == ALL_CASES else "macro"
    return style.label(f"{row.grouping}: {row.category}" if len(result.negatives.groupings) > 1 else row.category)


def _bars(objects: Any, result: HardNegativesResult, measure: str, index: int) -> Any:
    rows = shown_categories(result.figures, measure)
    known = [isfinite(row.low) and isfinite(row.high) for row in rows]
    return objects.Bar(
        name=style.label(result.model),
        orientation="h",
        y=[category_label(row, result) for row in rows],
        x=[row.value for row in rows],
        error_x=style.error_bars(
            [row.value - row.low if there else 0 for row, there in zip(rows, known, strict=True)],
            [row.high - row.value if there else 0 for row, there in zip(rows, known, strict=True)],
        ),
        marker={"color": style.COLOURS[index], "opacity": 0.78},
        hovertext=[_hover(result, row) for row in rows],
        hoverinfo="text",
    )  # fmt: skip


def _hover(result: HardNegativesResult, row: CategoryAccuracy) -> str:
    interval = interval_text(row.low, row.high)
    return "<br>".join(
        (
            f"<b>{category_label(row, result)}</b>, {style.label(result.model)}",
            f"{percent(row.value)}" + (f"  {interval}" if interval else ""),
            f"{format_count(row.cases, 'case')}, chance {percent(row.chance)}, tied {percent(row.tied)}",
        )
    )


def _with_layout(
    drawn: Any, results: Sequence[HardNegativesResult], measure: str, rows: Sequence[CategoryAccuracy]
) -> Any:
    first = results[0]
    name = measure if measure == ACCURACY[0] else f"{measure} score"
    facts = f"{_counted_cases(results)}, {100 * first.level:g}% intervals over {first.resampled}"
    subtitle = textwrap.wrap(f"{facts}; ties are wrong; | is chance", _LETTERS)
    top = _TOP + _LINE * (len(subtitle) - 1)
    height = top + len(rows) * (_BAR * len(results) + _GAP) + _BOTTOM
    names = [category_label(row, first) for row in rows]
    drawn.update_layout(
        **style.figure_layout(f"{first.negatives.name}: {name}", "<br>".join(map(style.label, subtitle)), height),
        barmode="group", bargroupgap=0.08, bargap=_GAP / (_GAP + _BAR * len(results)),
        margin={"t": top, "r": 52, "b": _BOTTOM, "l": 30},
        legend={"orientation": "h", "x": 20 / style.WIDTH, "xref": "container", "y": 1 - (top - 10) / height,
                "yref": "container", "yanchor": "bottom", "traceorder": "normal"},
        xaxis={"range": [0, 1], "tickformat": ".0%", "dtick": 0.2, "gridcolor": style.FAINT, "fixedrange": True},
        yaxis=style.category_axis(names, names),
    )  # fmt: skip
    return drawn


def _counted_cases(results: Sequence[HardNegativesResult]) -> str:
    """How many cases the bars count: with cases left out for lack of a score, it depends on the model."""
    counts = [len(result.negatives) for result in results]
    if len(set(counts)) == 1:
        return format_count(counts[0], "case")
    return ", ".join(
        f"{format_count(count, 'case')} ({result.model})" for count, result in zip(counts, results, strict=True)
    )


def _table(result: HardNegativesResult) -> str:
    header = ("", "measure", "cases", "value", "interval", "chance", "tied")
    rows = [
        (
            category_label(row, result),
            row.measure,
            f"{row.cases:,}",
            percent(row.value),
            interval_text(row.low, row.high),
            percent(row.chance),
            percent(row.tied),
        )
        for row in result.figures
    ]
    return folded_table(result.model, header, rows)
