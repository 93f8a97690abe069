"""One value on its axis, with its interval: what a large figure is worth."""

from __future__ import annotations

from crosslens.core import Grid
from crosslens.report.charts.drawing import ChartHtml, Number, Point, SvgDrawing, finite_range, tick_words, ticks

_WIDTH, _LEFT, _RIGHT, _MIDDLE, _HIGH = 408.0, 30.0, 34.0, 28.0, 20.0


def interval_chart(
    title: str, point: Point, *, number: Number, limits: tuple[float, float] | None = None, unit: str = ""
) -> ChartHtml:
    """A line at the value, and a bar from the low to the high end of its interval; ``limits`` are those of the axis."""
    marks = ticks(*(limits or finite_range([0.0, *point])))
    ends = " to ".join(tick_words(number, end) for end in (marks[0], marks[-1]))
    about = f"{point.words(number)}{unit} on an axis from {ends}."
    drawing = SvgDrawing(title, about, _WIDTH, _MIDDLE + _HIGH / 2 + 20)

    def across(value: float) -> float:
        return _LEFT + (value - marks[0]) / (marks[-1] - marks[0]) * (_WIDTH - _LEFT - _RIGHT)

    drawing.line(across(marks[0]), _MIDDLE, across(marks[-1]), _MIDDLE)
    for mark in marks:
        drawing.line(across(mark), _MIDDLE - 4, across(mark), _MIDDLE + 4)
        last = unit if mark == marks[-1] else ""
        drawing.text(across(mark), _MIDDLE + _HIGH / 2 + 14, f"{tick_words(number, mark)}{last}", "soft middle")
    if point.bounded:
        wide = across(point.high) - across(point.low)
        told = f"interval {number(point.low)} to {number(point.high)}{unit}"
        drawing.add('<g class="s1">')
        drawing.rectangle(across(point.low), _MIDDLE - _HIGH / 2, wide, _HIGH, "bar", told, fill_opacity=0.35)
        drawing.add("</g>")
        drawing.text(across(point.low) + 2, _MIDDLE - _HIGH / 2 - 5, number(point.low), "end")
        drawing.text(across(point.high) - 2, _MIDDLE - _HIGH / 2 - 5, number(point.high))
    drawing.add('<g class="s1">')
    drawing.rectangle(across(point.value) - 1.5, _MIDDLE - _HIGH / 2, 3, _HIGH, "bar", f"{number(point.value)}{unit}")
    drawing.add("</g>")
    bounds = (number(point.low), number(point.high)) if point.bounded else ("–", "–")
    return ChartHtml(title, drawing, Grid(("value", "low", "high"), ((number(point.value), *bounds),), "rrr"))
