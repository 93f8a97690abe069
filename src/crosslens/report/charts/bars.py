"""Horizontal bars with intervals: a row per group, a bar per series."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from crosslens.core import Grid
from crosslens.report.charts.drawing import (
    ChartHtml,
    Number,
    Point,
    SvgDrawing,
    finite_range,
    legend,
    series_class,
    tick_words,
    ticks,
)

_WIDTH, _LABELS, _RIGHT, _BAR, _GAP = 480.0, 140.0, 14.0, 13.0, 9.0


def bar_chart(
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[Point]],
    *,
    number: Number,
    about: str = "",
    heading: str = "group",
    axis: str = "",
    limits: tuple[float, float] | None = None,
) -> ChartHtml:
    """A bar per group and series, from 0; the line through a bar's end is its interval.

    ``number`` writes a value; ``limits`` are the ends of the axis (default: from the values); ``heading`` is what the
    groups are, in the table behind the chart.
    """
    points = [point for values in series.values() for point in values]
    ends = limits or finite_range([0.0, *(end for point in points for end in point)])
    marks = ticks(*ends)
    drawing = SvgDrawing(title, about or f"{len(groups)} bars, longer is more.", _WIDTH, 0)
    top = 4 + legend(drawing, list(series), _LABELS, 4)
    row = _BAR * len(series) + _GAP
    bottom = top + row * len(groups)
    drawing.height = bottom + (40 if axis else 24)

    def across(value: float) -> float:
        share = (min(max(value, marks[0]), marks[-1]) - marks[0]) / (marks[-1] - marks[0])
        return _LABELS + share * (_WIDTH - _LABELS - _RIGHT)

    for mark in marks:
        drawing.line(across(mark), top, across(mark), bottom)
        drawing.text(across(mark), bottom + 14, tick_words(number, mark), "soft middle")
    if axis:
        drawing.text((_LABELS + _WIDTH) / 2, bottom + 32, axis, "soft middle")
    for index, group in enumerate(groups):
        above = top + row * index + _GAP / 2
        drawing.text(_LABELS - 8, above + _BAR * len(series) / 2 + 4, group, "end", _LABELS - 12)
        for order, (name, values) in enumerate(series.items()):
            _bar(drawing, across, above + _BAR * order, values[index], f"{group}, {name}", number, order)
    return ChartHtml(title, drawing, _table(heading, groups, series, number))


def _bar(
    drawing: SvgDrawing,
    across: Callable[[float], float],
    top: float,
    point: Point,
    name: str,
    number: Number,
    order: int,
) -> None:
    if not math.isfinite(point.value):
        return
    start, end = sorted((across(0.0), across(point.value)))
    drawing.add(f'<g class="{series_class(order)}">')
    drawing.rectangle(start, top, end - start, _BAR - 2, "bar", f"{name}: {point.words(number)}")
    drawing.add("</g>")
    if point.bounded:
        middle, low, high = top + _BAR / 2 - 1, across(point.low), across(point.high)
        drawing.line(low, middle, high, middle, "interval")
        for edge in (low, high):
            drawing.line(edge, middle - 3, edge, middle + 3, "interval")


def _table(heading: str, groups: Sequence[str], series: Mapping[str, Sequence[Point]], number: Number) -> Grid:
    rows = tuple(
        (group, *(values[index].words(number) for values in series.values())) for index, group in enumerate(groups)
    )
    return Grid((heading, *series), rows, "l" + "r" * len(series))
