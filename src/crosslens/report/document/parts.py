"""What sections consist of: paragraphs, tables and charts as HTML; the last two know their content, too."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from crosslens.core import Grid, MetricValues
from crosslens.metrics import format_figure
from crosslens.report.charts.drawing import Number, Point
from crosslens.report.html import folded, grid_table

_PERCENT = "\u00a0%"
"""The sign stays with its number at the end of a line."""


@dataclass(frozen=True)
class Section:
    """A part of the report: its place in the address, its heading, and its content as HTML."""

    target: str
    title: str
    parts: tuple[str, ...]


class TableHtml(str):
    """A table as HTML; it also has the grid, for other formats."""

    name: str
    grid: Grid

    def __new__(
        cls, title: str, grid: Grid, *, best: Collection[tuple[int, int]] = (), shown: bool = True
    ) -> TableHtml:
        """``best`` are rows and columns of cells that are marked; a table that is not ``shown`` is folded."""
        inside = grid_table(grid, title, best=best)
        framed = f"<h4>{escape(title)}</h4>\n{inside}" if shown else folded(title, inside)
        table = super().__new__(cls, f'<div class="block">{framed}</div>')
        table.name, table.grid = title, grid
        return table


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    look = f' class="{kind}"' if kind else ""
    return f"<p{look}>{escape(text.replace(' %', _PERCENT))}</p>"


def notes(lines: Sequence[str], summary: str = "Notes") -> str:
    """Lines that not every reader needs, folded."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return folded(summary, f"<ul>{items}</ul>") if lines else ""


def quote(text: str | None) -> str:
    """A caption, in its own direction of writing."""
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


class RowHtml(str):
    """Charts among other content; it also has the charts."""

    parts: tuple[str, ...]

    def __new__(cls, html: str, parts: Sequence[str]) -> RowHtml:
        row = super().__new__(cls, html)
        row.parts = tuple(parts)
        return row


def side_by_side(parts: Sequence[str]) -> RowHtml:
    """Charts in a row where there is room; empty without any."""
    return RowHtml(f'<div class="charts">{"".join(parts)}</div>' if parts else "", parts)


def point_of(values: MetricValues) -> Point:
    """A metric's value and interval."""
    return Point(values.mean, values.low, values.high)


def stored_point(figures: Mapping[str, Any], value: str = "mean", low: str = "low", high: str = "high") -> Point:
    """The same from JSON, where a missing number is None."""
    return Point(*(_number(figures.get(name)) for name in (value, low, high)))


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def figure(metric: str) -> Number:
    """How values of a metric are written."""
    return lambda value: format_figure(metric, value)
