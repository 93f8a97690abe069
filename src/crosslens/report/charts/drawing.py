"""What all charts have: the drawing with its title and description, and the table behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from crosslens.core import Grid
from crosslens.report.charts.theme import PAPER_STYLE, SERIES
from crosslens.report.html import folded, grid_table

Number = Callable[[float], str]
"""Writes a value: on the axis, in the table and under the pointer."""

_TICKS = 5
_LETTER = 7.4
"""How wide a letter of a chart is, about."""


class Point(NamedTuple):
    """A value with its interval, if it has one."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def words(self, number: Number) -> str:
        """``58.3 [56.9, 59.7]``; a dash where there is no value."""
        if not math.isfinite(self.value):
            return "–"
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]" if self.bounded else number(self.value)


class ChartHtml(str):
    """A chart as HTML, safe to put into a page; it also has the drawing alone and the table, for other formats."""

    name: str
    svg: str
    grid: Grid
    size: tuple[float, float]

    def __new__(cls, title: str, drawing: SvgDrawing, grid: Grid, *, natural: bool = False) -> ChartHtml:
        """``natural``: not scaled to the width of the page, but scrolled where it is wider."""
        table = folded(f"Table: {title}", grid_table(grid, f"{title}, as a table"))
        svg = drawing.svg
        if natural:
            svg = f'<div class="chart-scroll" tabindex="0" role="group" aria-label="{escape(title)}">{svg}</div>'
        kind = "chart-figure natural" if natural else "chart-figure"
        chart = super().__new__(
            cls, f'<figure class="{kind}"><figcaption>{escape(title)}</figcaption>\n{svg}\n{table}</figure>'
        )
        chart.name, chart.svg, chart.grid, chart.size = title, drawing.svg, grid, (drawing.width, drawing.height)
        return chart

    def __html__(self) -> str:
        """So that templates do not escape it."""
        return str(self)

    def file(self) -> str:
        """The drawing as a file of its own, in the colours of paper."""
        style = f"<style>{PAPER_STYLE}</style>"
        start, _, rest = self.svg.partition(">")
        return f'<svg xmlns="http://www.w3.org/2000/svg"{start.removeprefix("<svg")}>{style}{rest}\n'


class SvgDrawing:
    """The parts of a drawing, put together into an SVG element."""

    def __init__(self, title: str, about: str, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._about = f"<title>{escape(title)}</title><desc>{escape(about)}</desc>"
        self._parts: list[str] = []

    def add(self, *parts: str) -> None:
        """Markup, in the order in which it is painted."""
        self._parts += parts

    def text(self, x: float, y: float, text: str, kind: str = "", room: float | None = None) -> None:
        """A text; one that exceeds its ``room`` is cut, and whole under the pointer."""
        shown = text if room is None else fitting(text, room)
        whole = f"<title>{escape(text)}</title>" if shown != text else ""
        look = f' class="{kind}"' if kind else ""
        self.add(f'<text{look} x="{x:.1f}" y="{y:.1f}">{whole}{escape(shown)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> None:
        """A straight line."""
        self.add(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def rectangle(self, x: float, y: float, wide: float, high: float, kind: str, told: str, **more: float) -> None:
        """A rectangle that says what it is under the pointer; ``more`` are attributes, such as its opacity."""
        extra = "".join(f' {name.replace("_", "-")}="{value:.3f}"' for name, value in more.items())
        box = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, wide):.1f}" height="{high:.1f}"'
        self.add(f'<rect class="{kind}" {box}{extra}><title>{escape(told)}</title></rect>')

    @property
    def svg(self) -> str:
        """The element: an image with a name and a description."""
        size = f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}"'
        inside = "\n".join([self._about, *self._parts])
        return f'<svg class="chart" {size} role="img">\n{inside}\n</svg>'


def series_class(number: int) -> str:
    """The class that gives the series of this number, from 0, its colour."""
    return f"s{number % SERIES + 1}"


def legend(drawing: SvgDrawing, names: Sequence[str], left: float, top: float) -> float:
    """The keys of several series, in rows; returns how high they are. A single series needs none."""
    if len(names) < 2:
        return 0.0
    x, y = left, top
    for number, name in enumerate(names):
        shown = fitting(name, drawing.width - left - 24)
        wide = 22 + _LETTER * len(shown)
        if x > left and x + wide > drawing.width:
            x, y = left, y + 18
        drawing.add(f'<g class="{series_class(number)}"><rect class="key" x="{x:.1f}" y="{y:.1f}" width="10" '
                    f'height="10"/></g>')  # fmt: skip
        drawing.text(x + 14, y + 9.5, name, "soft", drawing.width - left - 24)
        x += wide + 6
    return y - top + 22


def widest(names: Iterable[str], most: float) -> float:
    """About how wide the longest of some names is, at most ``most``."""
    return min(most, max((_LETTER * len(name) for name in names), default=0.0))


def fitting(text: str, room: float) -> str:
    """The text, cut to about this many units; in its middle, as names often differ at their end."""
    letters = max(2, int(room / _LETTER))
    if len(text) <= letters:
        return text
    end = (letters - 1) // 2
    return f"{text[: letters - 1 - end].rstrip()}…{text[len(text) - end :].lstrip()}"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers, from one at or below ``low`` to one at or above ``high``."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def finite_range(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest finite value, apart even where all are equal."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low == high:
        low, high = min(0.0, 2 * low), max(0.0, 2 * high)
    return (low, high) if low < high else (0.0, 1.0)


def tick_words(number: Number, value: float) -> str:
    """A value on an axis: without a decimal that says nothing."""
    return number(value).removesuffix(".0")
