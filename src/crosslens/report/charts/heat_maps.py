"""Heat maps: a cell per row and column, its number in it and its colour by how large it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosslens.core import Grid
from crosslens.report.charts.drawing import ChartHtml, Number, Point, SvgDrawing, widest

_LABELS, _CELL, _HIGH = 150.0, 62.0, 26.0
_MOST, _TILT = 190.0, math.radians(35)
"""How long the name of a column may be, and by how much it is turned."""
_DEEPEST = 0.5
"""Opacity of the largest value: the number in the cell must stay readable."""


def heat_map(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Point]],
    *,
    number: Number,
    about: str = "",
    heading: str = "",
    worse: bool | None = None,
) -> ChartHtml:
    """``cells[row][column]``; a cell without a value is empty.

    ``worse``: None where larger is simply more; True where positive values are losses and negative ones gains, which
    have two colours; False for the reverse. A number whose interval includes 0 is then in brackets.
    """
    told = about or f"{len(rows)} rows, {len(columns)} columns; a deeper colour is a larger value."
    longest = widest(columns, _MOST)
    head = 20 + longest * math.sin(_TILT)
    beyond = max(8.0, longest * math.cos(_TILT) - _CELL / 2)  # the last name reaches past its column
    drawing = SvgDrawing(title, told, _LABELS + _CELL * len(columns) + beyond, head + _HIGH * len(rows) + 6)
    largest = max((abs(point.value) for row in cells for point in row if math.isfinite(point.value)), default=0.0)
    for index, name in enumerate(columns):
        x, y = _LABELS + _CELL * (index + 0.5), head - 8
        drawing.add(f'<g transform="rotate(-35 {x:.1f} {y:.1f})">')
        drawing.text(x - 4, y, name, "soft", _MOST)
        drawing.add("</g>")
    for index, name in enumerate(rows):
        y = head + _HIGH * index
        drawing.text(_LABELS - 8, y + _HIGH / 2 + 4, name, "end", _LABELS - 12)
        for column, point in enumerate(cells[index]):
            if math.isfinite(point.value):
                words = f"{name}, {columns[column]}: {point.words(number)}"
                _cell(drawing, _LABELS + _CELL * column, y, point, words, number, largest, worse)
    table = tuple((name, *(point.words(number) for point in row)) for name, row in zip(rows, cells, strict=True))
    return ChartHtml(title, drawing, Grid((heading, *columns), table, "l" + "r" * len(columns)), natural=True)


def _cell(
    drawing: SvgDrawing, x: float, y: float, point: Point, told: str, number: Number, largest: float, worse: bool | None
) -> None:
    kind = "cell"
    if worse is not None:
        kind += " worse" if (point.value > 0) == worse else " better"
    share = abs(point.value) / largest if largest else 0.0
    drawing.rectangle(x, y, _CELL, _HIGH, kind, told, fill_opacity=_DEEPEST * share)
    unsure = worse is not None and point.bounded and point.low <= 0 <= point.high
    words = f"({number(point.value)})" if unsure else number(point.value)
    drawing.text(x + _CELL / 2, y + _HIGH / 2 + 4, words, "middle")
