"""Every kind of chart as a drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch

import numpy as np

from crosslens.core import (
    FORMS,
    Bars,
    Chart,
    Cloud,
    Figure,
    Heat,
    Histogram,
    Interval,
    Intervals,
    Lines,
    PairedBars,
    Scatter,
    Series,
    Shares,
    SmallMultiples,
)
from crosslens.report.forms.drawing import (
    ChartDrawing,
    Plane,
    finite_range,
    fitting,
    powers,
    range_of,
    series_class,
    tick_text,
    ticks,
    widest,
)
from crosslens.report.forms.theme import LEVEL_COLOURS

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Its multiples modulo 1 fill the interval evenly."""
_MOST_POINTS = 60
"""Points of a line that have a dot of their own: with more, the line is enough. In a scatter so many are large."""


@singledispatch
def draw(chart: Chart) -> ChartDrawing:
    """A chart as a drawing."""
    raise TypeError(f"no drawing for a chart of type {type(chart).__name__}")


@draw.register
def _bars(chart: Bars) -> ChartDrawing:
    width, labels, bar, gap = 480.0, 140.0, 13.0, 9.0
    drawing = ChartDrawing(chart.title, chart.about or f"{len(chart.groups)} bars, longer is more.", width)
    figures = [figure for series in chart.series for figure in series.figures]
    marks = ticks(*(chart.limits or range_of(figures, 0.0)))
    top = 4 + drawing.legend([series.name for series in chart.series], labels, 4)
    row = bar * len(chart.series) + gap
    bottom = top + row * len(chart.groups)
    drawing.height = bottom + (40 if chart.axis else 24)

    def across(value: float) -> float:
        share = (min(max(value, marks[0]), marks[-1]) - marks[0]) / (marks[-1] - marks[0])
        return labels + share * (width - labels - 14)

    for mark in marks:
        drawing.line(across(mark), top, across(mark), bottom)
        drawing.text(across(mark), bottom + 14, tick_text(figures[0], mark) if figures else "", "soft middle")
    if chart.axis:
        drawing.text((labels + width) / 2, bottom + 32, chart.axis, "soft middle")
    for index, group in enumerate(chart.groups):
        above = top + row * index + gap / 2
        drawing.text(labels - 8, above + bar * len(chart.series) / 2 + 4, group, "end", labels - 12)
        for order, series in enumerate(chart.series):
            figure, high = series.figures[index], above + bar * order
            if not figure.known or figure.value is None:
                continue
            start, end = sorted((across(0.0), across(figure.value)))
            drawing.add(f'<g class="{series_class(order, series.name)}">')
            drawing.rectangle(start, high, end - start, bar - 2, "bar", f"{group}, {series.name}: {figure}")
            drawing.add("</g>")
            if figure.bounded:
                drawing.interval(across(figure.low), across(figure.high), high + bar / 2 - 1)
        if chart.mark is not None and (value := chart.mark.figures[index].value) is not None and math.isfinite(value):
            drawing.line(across(value), above - 2, across(value), above + bar * len(chart.series), "mark")
    return drawing


@draw.register
def _shares(chart: Shares) -> ChartDrawing:
    strip, high, gap, opacities = 392.0, 24.0, 10.0, (1.0, 0.5, 0.36, 0.22, 0.1)
    alone = len(chart.groups) == 1  # its title says whose it is
    labels = 8.0 if alone else 12 + max(60.0, widest(chart.groups, 240.0))
    alt = chart.about or f"From left to right the shares of {chart.noun}: {', '.join(chart.levels)}."
    drawing = ChartDrawing(chart.title, alt, labels + strip + 8, 26 + (high + gap) * len(chart.groups))
    looks = [
        (f"strip {series_class(0, level)}", 1.0)
        if level in LEVEL_COLOURS
        else ("strip", opacities[min(index, len(opacities) - 1)])
        for index, level in enumerate(chart.levels)
    ]
    x, rooms = labels, [30 + widest((level,), strip) for level in chart.levels]
    for level, (look, shade), room in zip(chart.levels, looks, rooms, strict=True):
        drawing.rectangle(x, 4, 10, 10, look, level, fill_opacity=shade)
        room *= min(1.0, strip / sum(rooms))
        drawing.text(x + 14, 13.5, level, "soft", room - 16)
        x += room
    for row, (group, counts) in enumerate(zip(chart.groups, chart.counts, strict=True)):
        y, x, total = 26 + (high + gap) * row, labels, sum(counts) or 1
        if not alone:
            drawing.text(labels - 8, y + high / 2 + 4, group, "end", labels - 12)
        for level, (look, shade), count in zip(chart.levels, looks, counts, strict=True):
            wide, percent = strip * count / total, 100 * count / total
            drawing.rectangle(
                x, y, wide, high, look, f"{group}, {level}: {count:,g} of {total:,g} ({percent:.1f} %)",
                fill_opacity=shade,
            )  # fmt: skip
            if wide >= 30:  # a narrower one has its share only in the table
                kind = "on-level" if level in LEVEL_COLOURS else "" if shade <= 0.5 else "over"
                drawing.text(x + wide / 2, y + high / 2 + 4, fitting(f"{percent:.0f} %", wide), f"middle {kind}")
            x += wide
    return drawing


@draw.register
def _lines(chart: Lines) -> ChartDrawing:
    drawing = ChartDrawing(chart.title, chart.about or f"{len(chart.across)} points from left to right.", Plane.width)
    near = not chart.across or 2 * min(chart.across) <= max(chart.across)  # others have an axis of their own
    zero = [0.0] if near else []
    columns = powers(chart.across) if chart.logarithmic else ticks(*finite_range([*zero, *chart.across]))
    figures = [figure for series in chart.series for figure in series.figures]
    rows = ticks(*(chart.limits or range_of(figures)))
    above = drawing.legend([series.name for series in chart.series], Plane.left, 4)
    plane = Plane(drawing, columns, rows, above=above, logarithmic=chart.logarithmic)
    if chart.band is not None:
        start, end, words = chart.band
        (x1, top), (x2, bottom) = plane.position(start, rows[-1]), plane.position(end, rows[0])
        drawing.rectangle(x1, top, x2 - x1, bottom - top, "zone", words)
    unit = figures[0] if figures else Figure(None)
    plane.axes(chart.axis, lambda value: tick_text(unit, value))
    for order, series in enumerate(chart.series):
        drawing.add(f'<g class="{series_class(order, series.name)}">')
        _line(plane, chart, series)
        drawing.add("</g>")
    if chart.marked is not None and (value := chart.series[0].figures[chart.marked].value) is not None:
        x, y = plane.position(chart.across[chart.marked], value)
        drawing.line(
            x, plane.position(x=columns[0], y=rows[-1])[1], x, plane.position(columns[0], rows[0])[1], "best-line"
        )
        drawing.dot(x, y, "best", radius=5)
    return drawing


def _line(plane: Plane, chart: Lines, series: Series) -> None:
    """One line: the band of its intervals, its measured and its extrapolated part, its dots."""
    end = chart.measured.get(series.name, math.inf)
    defined = [
        (index, x, figure.value, figure)
        for index, (x, figure) in enumerate(zip(chart.across, series.figures, strict=True))
        if figure.value is not None and figure.known
    ]
    bounded = [(x, figure) for _, x, _, figure in defined if figure.bounded]
    if bounded:
        edge = [plane.position(x, figure.high) for x, figure in bounded]
        plane.drawing.path(
            edge + [plane.position(x, figure.low) for x, figure in reversed(bounded)], "band", closed=True
        )
    points = [(x, plane.position(x, value)) for _, x, value, _ in defined]
    inside = [point for x, point in points if x <= end]
    outside = [*inside[-1:], *(point for x, point in points if x > end)]
    plane.drawing.path(inside, "curve")
    if len(outside) > len(inside[-1:]):
        plane.drawing.path(outside, "curve beyond")
    if len(chart.across) <= _MOST_POINTS:
        name = "" if len(chart.series) == 1 else f"{series.name}, "
        for index, x, value, _ in defined:
            tooltip = f"{name}{chart.axis} {x:,.10g}: {chart.words(series, index)}"
            plane.drawing.dot(*plane.position(x, value), "point" if x <= end else "point beyond", tooltip)


@draw.register
def _heat(chart: Heat) -> ChartDrawing:
    labels, high, longest = 150.0, 26.0, widest(chart.columns, 190.0)
    cell = 24 + widest((figure.number for row in chart.cells for figure in row), 60.0)
    tilt, deepest = math.radians(35), 0.5  # the number in the deepest cell must stay readable
    head = 20 + longest * math.sin(tilt)
    beyond = max(8.0, longest * math.cos(tilt) - cell / 2)  # the last name reaches past its column
    alt = chart.about or f"{len(chart.rows)} rows, {len(chart.columns)} columns; a deeper colour is a larger value."
    drawing = ChartDrawing(
        chart.title, alt, labels + cell * len(chart.columns) + beyond, head + high * len(chart.rows) + 6
    )
    drawing.natural = True
    values = [figure.value for row in chart.cells for figure in row if figure.value is not None and figure.known]
    largest = max(map(abs, values), default=0.0)
    for index, name in enumerate(chart.columns):
        x, y = labels + cell * (index + 0.5), head - 8
        drawing.add(f'<g transform="rotate(-35 {x:.1f} {y:.1f})">')
        drawing.text(x - 4, y, name, "soft", 190.0)
        drawing.add("</g>")
    for index, name in enumerate(chart.rows):
        y = head + high * index
        drawing.text(labels - 8, y + high / 2 + 4, name, "end", labels - 12)
        for column, figure in enumerate(chart.cells[index]):
            if figure.value is None or not figure.known:
                continue
            kind, unsure = "cell", False
            if chart.worse is not None:
                kind += " worse" if (figure.value > 0) == chart.worse else " better"
                unsure = figure.bounded and figure.low <= 0 <= figure.high
            share = abs(figure.value) / largest if largest else 0.0
            words = f"{name}, {chart.columns[column]}: {figure}"
            x = labels + cell * column
            drawing.rectangle(x, y, cell, high, kind, words, fill_opacity=deepest * share)
            number = f"({figure.number})" if unsure else figure.number
            drawing.text(x + cell / 2, y + high / 2 + 4, number, "middle")
    return drawing


@draw.register
def _intervals(chart: Intervals) -> ChartDrawing:
    rows = [("", row.name, [row]) for row in chart.rows]
    return _panels(chart.title, chart.about, [""], rows, chart.limits, [chart.mark], chart.axis, 300.0)


@draw.register
def _multiples(chart: SmallMultiples) -> ChartDrawing:
    rows = [(row.group, row.name, list(row.cells)) for row in chart.rows]
    means = [mean.value for mean in chart.means] or [None] * len(chart.columns)
    return _panels(chart.title, chart.about, chart.columns, rows, chart.limits, means, chart.axis, 180.0)


def _panels(
    title: str,
    alt: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, str, Sequence[Interval | None]]],
    limits: tuple[float, float] | None,
    references: Sequence[float | None],
    axis: str,
    wide: float,
) -> ChartDrawing:
    """Rows of dots with their intervals, a panel per column, all on one scale."""
    cells = [cell for _, _, row_cells in rows for cell in row_cells if cell is not None]
    reference_figures = [Figure(value) for value in references if value is not None]
    marks = ticks(*(limits or range_of([*(cell.figure for cell in cells), *reference_figures])))
    labels, number, high = 14 + max(60.0, widest([name for _, name, _ in rows], 190.0)), 110.0, 20.0
    panel = wide + (number if len(columns) == 1 else 26.0)
    head, groups = (22.0 if any(columns) else 6.0), len({group for group, _, _ in rows if group})
    alt = alt or f"{len(rows)} rows on a scale from {marks[0]:g} to {marks[-1]:g}."
    drawing = ChartDrawing(title, alt, labels + panel * len(columns), head + high * (len(rows) + groups) + 38)
    bottom = drawing.height - 36

    def across(column: int, value: float) -> float:
        share = (min(max(value, marks[0]), marks[-1]) - marks[0]) / (marks[-1] - marks[0])
        return labels + panel * column + share * wide

    unit = cells[0].figure if cells else Figure(None)
    for column, (name, reference) in enumerate(zip(columns, references, strict=True)):
        drawing.text(across(column, marks[0]), 14, name, "", wide)
        for mark in marks:
            drawing.line(across(column, mark), head, across(column, mark), bottom)
        for mark in (marks[0], marks[-1]):
            drawing.text(across(column, mark), bottom + 14, tick_text(unit, mark), "soft middle")
        if reference is not None:
            drawing.line(across(column, reference), head, across(column, reference), bottom, "reference")
    drawing.text(labels + wide / 2, bottom + 30, axis, "soft middle")
    y, before = head, ""
    for group, name, row_cells in rows:
        if group != before:
            drawing.text(8, y + 15, group, "soft", labels - 16)
            y, before = y + high, group
        drawing.text(labels - 8, y + high / 2 + 4, name, "end", labels - 12)
        for column, cell in enumerate(row_cells):
            if cell is None or cell.figure.value is None or not cell.figure.known:
                continue
            figure, middle = cell.figure, y + high / 2
            drawing.add(f'<g class="{cell.tone or "plain"}">')
            if figure.bounded:
                start, end = across(column, figure.low), across(column, figure.high)
                drawing.rectangle(start, middle - 3, end - start, 6, "range", f"{name}: {figure}")
            drawing.dot(across(column, cell.figure.value), middle, "dot", f"{name}: {figure}", 5)
            drawing.add("</g>")
            if len(columns) == 1:
                drawing.text(across(column, marks[-1]) + 8, middle + 4, str(figure), "", number)
        y += high
    return drawing


@draw.register
def _paired_bars(chart: PairedBars) -> ChartDrawing:
    wide, high, gap = 392.0, 22.0, 8.0
    labels = 14 + max(60.0, widest([row.name for row in chart.rows], 200.0))
    alt = chart.about or f"From left to right: {', '.join(name for name, _ in chart.levels)}."
    drawing = ChartDrawing(chart.title, alt, labels + wide + 120)
    looks = [f"piece {tone}" for _, tone in chart.levels]
    top = 4 + drawing.legend([name for name, _ in chart.levels], labels, 4, [f"of-{look}" for look in looks])
    drawing.height = top + (high + gap) * len(chart.rows) + 6
    for number, row in enumerate(chart.rows):
        y, x, total = top + (high + gap) * number, labels, sum(row.counts) or 1
        drawing.text(labels - 8, y + high / 2 + 4, row.name, "end", labels - 12)
        for (name, _), look, count in zip(chart.levels, looks, row.counts, strict=True):
            size = wide * count / total
            drawing.rectangle(x, y, size, high, look, f"{row.name}, {name}: {count:,} of {total:,}")
            if size >= 30:
                drawing.text(x + size / 2, y + high / 2 + 4, f"{count:,}", "middle over")
            x += size
        if row.figure is not None:
            drawing.text(labels + wide + 8, y + high / 2 + 4, str(row.figure))
            if row.figure.bounded:
                low, end = (labels + wide * edge for edge in (row.figure.low, row.figure.high))
                drawing.rectangle(low, y + high - 4, end - low, 4, "span")
    if chart.chance is not None:
        x_chance = labels + wide * chart.chance
        drawing.line(x_chance, top - 3, x_chance, drawing.height - 6, "reference")
    return drawing


@draw.register
def _histogram(chart: Histogram) -> ChartDrawing:
    kind = "whole numbers" if chart.whole else "intervals"
    alt = chart.about or f"{sum(chart.counts):,g} {chart.noun} in {len(chart.counts)} {kind}."
    drawing = ChartDrawing(chart.title, alt, Plane.width)
    plane = Plane(drawing, (0.0, float(max(1, len(chart.counts)))), ticks(*finite_range([0.0, *chart.counts])))
    if chart.band is not None:
        start, end = np.interp(chart.band[:2], chart.edges, range(len(chart.edges))).tolist()
        (x1, top), (x2, bottom) = plane.position(start, plane.rows[-1]), plane.position(end, 0.0)
        drawing.rectangle(x1, top, x2 - x1, bottom - top, "zone", chart.band[2])
    plane.axes(chart.axis, lambda count: f"{count:,g}", numbered=())
    drawing.add('<g class="s1">')
    for index, (name, count) in enumerate(zip(chart.names, chart.counts, strict=True)):
        (x, y), (end, bottom) = plane.position(index, count), plane.position(index + 1, 0.0)
        drawing.rectangle(x + 0.5, y, end - x - 1, bottom - y, "bar", f"{name}: {count:,g} {chart.noun}")
    drawing.add("</g>")
    labelled = chart.edges[:-1] if chart.whole else chart.edges
    every = -(-len(labelled) // 8)
    for index in range(0, len(labelled), every):
        x, bottom = plane.position(index + (0.5 if chart.whole else 0.0), 0.0)
        drawing.text(x, bottom + 16, tick_text(chart.unit, labelled[index]), "soft middle")
    return drawing


@draw.register
def _scatter(chart: Scatter) -> ChartDrawing:
    drawing = ChartDrawing(chart.title, chart.about or f"{chart.up} against {chart.axis}.", Plane.width)
    points = [point for cloud in (*chart.clouds, *chart.trends) for point in cloud.points]
    across, (low, high) = (finite_range([point[axis] for point in points]) for axis in (0, 1))
    classes = [cloud.look or series_class(order, cloud.name) for order, cloud in enumerate(chart.clouds)]
    above = drawing.legend([cloud.name for cloud in chart.clouds], Plane.left, 4, classes)
    plane = Plane(drawing, ticks(*across), ticks(low - chart.spread, high + chart.spread), above=above)
    numbers: Callable[[float], str] = Figure(None, digits=4, plain=True).write
    plane.axes(chart.axis, None if chart.bare else lambda value: f"{float(numbers(value).replace(',', '')):,g}")
    drawing.text(Plane.left, Plane.top + above - 4, chart.up, "soft")
    colours = {cloud.name: look for cloud, look in zip(chart.clouds, classes, strict=True)}

    def join(trend: Cloud, kind: str) -> tuple[float, float]:
        line = [plane.position(*point) for point in trend.points]
        drawing.path(line, kind)
        return line[-1]

    for trend in chart.trends:
        if trend.name in colours:
            drawing.add(f'<g class="{colours[trend.name]}">')
            join(trend, "curve")
            drawing.add("</g>")
    few = sum(len(cloud.points) for cloud in chart.clouds) <= _MOST_POINTS
    kind, radius = ("point", 4.5) if few else ("point faint", 2.5)
    for cloud in sorted(chart.clouds, key=lambda cloud: ("rest", "", "ring").index(cloud.look)):
        drawing.add(f'<g class="{colours[cloud.name]}">')
        for index, (x, y) in enumerate(cloud.points):
            offset = chart.spread * (2 * (index * _GOLDEN % 1) - 1)
            tooltip = cloud.labels[index] if cloud.labels else ""
            drawing.dot(*plane.position(x, y + offset), kind, tooltip, radius + 3 * (cloud.look == "ring"))
        drawing.add("</g>")
    for trend in chart.trends:
        if trend.name not in colours:
            x, y = join(trend, "trend")
            for point in trend.points:
                drawing.dot(*plane.position(*point), "trend", f"{point[0]:.4g}: {point[1]:.4g}")
            drawing.text(x, y - 6, trend.name, "end")
    return drawing


FORMS.register("chart")(draw)
