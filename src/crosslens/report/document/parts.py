"""What the sections of the report consist of: parts as every result has them, and HTML where pictures need it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from crosslens.core import Chart, Figure, Grid, MetricValues, Part, Row, Series, Table
from crosslens.metrics import metric_figure
from crosslens.report.html import folded

Content = Part | str
"""A part, or HTML."""


class Html(str):
    """HTML with charts in it, which are also written as files."""

    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class ReportSection:
    """A section of the report: its place in the address, its heading, and its content."""

    target: str
    title: str
    parts: tuple[Content, ...]

    def figures(self) -> Iterator[Chart | Table]:
        """Its charts and tables, which are written as files."""
        for part in self.parts:
            if isinstance(part, Row | Html):
                yield from part.charts
            elif isinstance(part, Chart | Table):
                yield part


def table_of(title: str, grid: Grid, *, shown: bool = True) -> Table:
    """A table of texts; not ``shown``, it is folded."""
    return Table(grid.header, grid.rows, grid.align, title=title, folded=not shown)


def notes(lines: Sequence[str], summary: str = "Notes") -> str:
    """Lines that not every reader needs, folded."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return folded(summary, f"<ul>{items}</ul>") if lines else ""


def quote(text: str | None) -> str:
    """A caption, in its own direction of writing."""
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


def side_by_side(charts: Sequence[Chart]) -> Content:
    """Charts in a row where there is room; nothing without any."""
    return Row(tuple(charts)) if charts else ""


def series_of(figures: Mapping[str, Sequence[Figure]]) -> tuple[Series, ...]:
    """The figures of a chart by the names of their series."""
    return tuple(Series(name, tuple(own)) for name, own in figures.items())


def figure_of(values: MetricValues | None, metric: str = "") -> Figure:
    """A metric's value and interval; one that is absent where there are no values."""
    if values is None:
        return metric_figure(metric, None)
    return metric_figure(values.name, values.mean, values.low, values.high)


def stored_figure(figures: Mapping[str, Any] | None, unit: Figure, value: str = "mean") -> Figure:
    """A figure from JSON, where a missing number is None, written as ``unit`` is."""
    number, *ends = ((figures or {}).get(name) for name in (value, "low", "high"))
    low, high = (math.nan if end is None else float(end) for end in ends)
    return replace(unit, value=number, low=low, high=high)
