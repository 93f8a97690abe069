"""Lines through points, with bands for their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

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

_WIDTH, _HEIGHT = 420.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 12.0, 40.0
_MOST_POINTS = 60
"""Points that have a dot of their own; with more of them the line is enough."""

Position = Callable[[float, float], tuple[float, float]]


def line_chart(
    title: str,
    across: Sequence[float],
    series: Mapping[str, Sequence[Point]],
    *,
    axis: str,
    number: Number,
    about: str = "",
    logarithmic: bool = False,
    limits: tuple[float, float] | None = None,
    marked: int | None = None,
    measured: Mapping[str, float] | None = None,
) -> ChartHtml:
    """A line per series through its values at ``across``.

    ``logarithmic``: equal steps across are equal factors; ``marked`` is the index of a point of the first series that
    gets a ring; ``limits`` are the ends of the vertical axis (default: from the values). ``measured`` says up to where
    a series was measured: beyond, it is extrapolated, and drawn and named so.
    """
    columns = _powers(across) if logarithmic else ticks(*finite_range([0.0, *across]))
    ends = [end for values in series.values() for point in values for end in point]
    rows = ticks(*(limits or finite_range(ends)))
    drawing = SvgDrawing(title, about or f"{len(across)} points from left to right.", _WIDTH, _HEIGHT)
    top = _TOP + legend(drawing, list(series), _LEFT, 4)
    drawing.height = _HEIGHT + top - _TOP
    position = _scale(columns, rows, top, logarithmic=logarithmic)
    _axes(drawing, columns, rows, position, axis, number)
    for order, (name, values) in enumerate(series.items()):
        drawing.add(f'<g class="{series_class(order)}">')
        end = math.inf if measured is None else measured.get(name, math.inf)
        _line(drawing, across, values, position, end)
        _dots(drawing, across, values, position, "" if len(series) == 1 else f"{name}, ", axis, number, end)
        drawing.add("</g>")
    if marked is not None:
        _mark(drawing, *position(across[marked], next(iter(series.values()))[marked].value), top)
    table = tuple(
        (f"{x:,.10g}", *(_told(x, values[row], number, (measured or {}).get(name, math.inf))
                      for name, values in series.items()))
        for row, x in enumerate(across)
    )  # fmt: skip
    return ChartHtml(title, drawing, Grid((axis, *series), table, "r" * (1 + len(series))))


def _scale(columns: Sequence[float], rows: Sequence[float], top: float, *, logarithmic: bool) -> Position:
    change: Callable[[float], float] = math.log10 if logarithmic else float
    start, end = change(columns[0]), change(columns[-1])
    inside = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def position(x: float, y: float) -> tuple[float, float]:
        high = (y - rows[0]) / (rows[-1] - rows[0])
        return _LEFT + inside[0] * (change(x) - start) / (end - start), top + inside[1] * (1 - high)

    return position


def _axes(
    drawing: SvgDrawing, columns: Sequence[float], rows: Sequence[float], position: Position, axis: str, number: Number
) -> None:
    bottom = position(columns[0], rows[0])[1]
    for y in rows:
        height = position(columns[0], y)[1]
        drawing.line(_LEFT, height, _WIDTH - _RIGHT, height)
        drawing.text(_LEFT - 6, height + 4, tick_words(number, y), "soft end")
    for x in columns:
        drawing.text(position(x, rows[0])[0], bottom + 16, _short(x), f"soft {'end' if x == columns[-1] else 'middle'}")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 34, axis, "soft middle")


def _short(x: float) -> str:
    """A number below an axis: ``20,000``, and ``2·10⁶`` where digits would run into those of the next."""
    if x < 1e6:
        return f"{x:,g}"
    power = math.floor(math.log10(x) + 1e-9)
    factor = x / 10.0**power
    digits = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if math.isclose(factor, 1) else f"{factor:g}·10{digits}"


def _line(
    drawing: SvgDrawing, across: Sequence[float], values: Sequence[Point], position: Position, end: float
) -> None:
    shown = [(x, point) for x, point in zip(across, values, strict=True) if math.isfinite(point.value)]
    bounded = [(x, point) for x, point in shown if point.bounded]
    if bounded:
        edge = [position(x, point.high) for x, point in bounded]
        edge += [position(x, point.low) for x, point in reversed(bounded)]
        drawing.add(f'<polygon class="band" points="{_path(edge)}"/>')
    points = [(x, position(x, point.value)) for x, point in shown]
    inside = [point for x, point in points if x <= end]
    outside = [*inside[-1:], *(point for x, point in points if x > end)]
    drawing.add(f'<polyline class="curve" points="{_path(inside)}"/>')
    if len(outside) > len(inside[-1:]):
        drawing.add(f'<polyline class="curve beyond" points="{_path(outside)}"/>')


def _dots(
    drawing: SvgDrawing, across: Sequence[float], values: Sequence[Point], position: Position, name: str, axis: str,
    number: Number, end: float,
) -> None:  # fmt: skip
    if len(across) > _MOST_POINTS:
        return
    for x, point in zip(across, values, strict=True):
        if math.isfinite(point.value):
            left, top = position(x, point.value)
            told = escape(f"{name}{axis} {x:,.10g}: {_told(x, point, number, end)}")
            kind = "point" if x <= end else "point beyond"
            dot = f'<circle class="{kind}" cx="{left:.1f}" cy="{top:.1f}" r="2.5">'
            drawing.add(f"{dot}<title>{told}</title></circle>")


def _told(x: float, point: Point, number: Number, end: float) -> str:
    """A value in words; one beyond what was measured says so."""
    words = point.words(number)
    return f"{words} extrapolated" if x > end and math.isfinite(point.value) else words


def _mark(drawing: SvgDrawing, x: float, y: float, top: float) -> None:
    drawing.line(x, top, x, top + _HEIGHT - _TOP - _BOTTOM, "best-line")
    drawing.add(f'<circle class="best" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _powers(across: Sequence[float]) -> list[float]:
    """1, 10, 100, …, around the values; with 2 and 5 between where there are few."""
    low, high = min(across), max(across)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    marks = [factor * 10.0**power for power in range(first, max(last, first + 1) + 1) for factor in factors]
    start = max((mark for mark in marks if mark <= low), default=marks[0])
    end = min((mark for mark in marks if mark >= high and mark > start), default=marks[-1])
    return [mark for mark in marks if start <= mark <= end]
