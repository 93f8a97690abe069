"""A drawing as SVG: its elements, scales and axes, and the file it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from crosslens.core import Figure, needs_extra, well_formed
from crosslens.report.export import write_changed
from crosslens.report.forms.theme import LEVEL_COLOURS, PAPER_STYLE, SERIES

_TICKS = 5
_LETTER = 7.4
"""How wide a letter of a chart is, about."""
_SHARPNESS = 2.0
"""Pixels of a picture per unit of the drawing."""


class ChartDrawing:
    """The elements of a drawing, put together into an SVG; notebooks show it, and it is saved by the file's ending."""

    def __init__(self, title: str, about: str, width: float, height: float = 0.0) -> None:
        self.title, self.about, self.width, self.height = title, about, width, height
        self._elements: list[str] = []
        self.natural = False
        """Not scaled to the width of a page, but scrolled where it is wider."""

    def add(self, *elements: str) -> None:
        """Markup, in the order in which it is painted."""
        self._elements += elements

    def text(self, x: float, y: float, text: str, kind: str = "", room: float | None = None) -> None:
        """A text; one that exceeds its ``room`` is cut, and whole under the pointer."""
        fitted = text if room is None else fitting(text, room)
        whole = f"<title>{escape(text)}</title>" if fitted != text else ""
        look = f' class="{kind}"' if kind else ""
        self.add(f'<text{look} x="{x:.1f}" y="{y:.1f}">{whole}{escape(fitted)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> None:
        self.add(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def rectangle(
        self, x: float, y: float, wide: float, high: float, kind: str, tooltip: str = "", **more: float
    ) -> None:
        """A rectangle that says what it is under the pointer; ``more`` are attributes, such as its opacity."""
        extra = "".join(f' {name.replace("_", "-")}="{value:.3f}"' for name, value in more.items())
        box = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, wide):.1f}" height="{high:.1f}"'
        title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
        self.add(f'<rect class="{kind}" {box}{extra}>{title}</rect>')

    def dot(self, x: float, y: float, kind: str, tooltip: str = "", radius: float = 2.5) -> None:
        """A point that says what it is under the pointer."""
        title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
        self.add(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{title}</circle>')

    def path(self, points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        """A line through points, or the area that they surround."""
        listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add(f'<{"polygon" if closed else "polyline"} class="{kind}" points="{listed}"/>')

    def interval(self, low: float, high: float, middle: float) -> None:
        self.line(low, middle, high, middle, "interval")
        for edge in (low, high):
            self.line(edge, middle - 3, edge, middle + 3, "interval")

    def legend(self, names: Sequence[str], left: float, top: float, classes: Sequence[str] = ()) -> float:
        """The keys of several series, in rows; returns how high they are. A single series needs none."""
        if len(names) < 2:
            return 0.0
        x, y = left, top
        for number, name in enumerate(names):
            wide = 22 + _LETTER * len(fitting(name, self.width - left - 24))
            if x > left and x + wide > self.width:
                x, y = left, y + 18
            key = f'<rect class="key" x="{x:.1f}" y="{y:.1f}" width="10" height="10"/>'
            self.add(f'<g class="{classes[number] if classes else series_class(number, name)}">{key}</g>')
            self.text(x + 14, y + 9.5, name, "soft", self.width - left - 24)
            x += wide + 6
        return y - top + 22

    @property
    def svg(self) -> str:
        """The element: an image with a name and a description, coloured by classes."""
        size = f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}"'
        description = f"<title>{escape(self.title)}</title><desc>{escape(self.about)}</desc>"
        inside = "\n".join([description, *self._elements])
        return well_formed(f'<svg class="chart" {size} role="img">\n{inside}\n</svg>')

    def __repr__(self) -> str:
        return f"ChartDrawing({self.title!r})"

    def _repr_svg_(self) -> str:
        return svg_file([self])

    def save(self, file: str | Path, *, overwrite: bool = False) -> Path:
        """Write the drawing as .svg, .png or .pdf."""
        write_changed({Path(file): drawn_file([self], Path(file).suffix.lower())}, overwrite)
        return Path(file)


def svg_file(drawings: Sequence[ChartDrawing]) -> str:
    """Drawings below each other as a file of its own, under their titles and in the colours of paper."""
    width, top, inside = max(drawing.width for drawing in drawings) + 32, 16.0, []
    for drawing in drawings:
        inside.append(f'<text class="title" x="16" y="{top + 14:g}">{escape(drawing.title)}</text>')
        inside.append(drawing.svg.replace("<svg ", f'<svg x="16" y="{top + 26:g}" ', 1))
        top += drawing.height + 50
    size = f'viewBox="0 0 {width:g} {top:g}" width="{width:g}" height="{top:g}"'
    style = f"{PAPER_STYLE}text.title {{ font: 600 14px Helvetica, Arial, sans-serif; }}"
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    body = "\n".join(inside)
    return well_formed(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>{paper}\n{body}\n</svg>\n'
    )


def drawn_file(drawings: Sequence[ChartDrawing], suffix: str) -> bytes:
    """Drawings as the bytes of an .svg, .png or .pdf file."""
    markup = svg_file(drawings)
    if suffix == ".svg":
        return markup.encode()
    with needs_extra(f"writing {suffix} files", "vl-convert-python", "pictures"):
        import vl_convert
    if suffix == ".png":
        picture: bytes = vl_convert.svg_to_png(markup, scale=_SHARPNESS)
        return picture
    document: bytes = vl_convert.svg_to_pdf(markup)
    return document


def series_class(number: int, name: str = "") -> str:
    """The class that gives the series of this number, from 0, its colour; a level of difficulty has its own."""
    return f"level-{name}" if name in LEVEL_COLOURS else f"s{number % SERIES + 1}"


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


def powers(values: Sequence[float]) -> list[float]:
    """1, 10, 100, …, around the values; with 2 and 5 between where there are few."""
    low, high = min(values), max(values)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    marks = [factor * 10.0**power for power in range(first, max(last, first + 1) + 1) for factor in factors]
    start = max((mark for mark in marks if mark <= low), default=marks[0])
    end = min((mark for mark in marks if mark >= high and mark > start), default=marks[-1])
    return [mark for mark in marks if start <= mark <= end]


def finite_range(values: Iterable[float | None]) -> tuple[float, float]:
    """The least and the largest finite value, apart even where all are equal."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low == high:
        low, high = min(0.0, 2 * low), max(0.0, 2 * high)
    return (low, high) if low < high else (0.0, 1.0)


def range_of(figures: Iterable[Figure], *more: float) -> tuple[float, float]:
    """The range of figures with their intervals."""
    return finite_range([*more, *(end for figure in figures for end in (figure.value, figure.low, figure.high))])


def tick_text(unit: Figure, value: float) -> str:
    """A value on an axis: without decimals that say nothing."""
    number = unit.write(value).removesuffix(unit.unit)
    return (number.rstrip("0").rstrip(".") if "." in number else number) + unit.unit


class Plane:
    """A drawing with two axes: where values lie in it, its grid and labels."""

    width, height = 420.0, 250.0
    left, right, top, bottom = 56.0, 14.0, 12.0, 40.0

    def __init__(
        self, drawing: ChartDrawing, columns: Sequence[float], rows: Sequence[float], *, above: float = 0.0,
        logarithmic: bool = False,
    ) -> None:  # fmt: skip
        self.drawing, self.columns, self.rows = drawing, columns, rows
        self._above, self._change = self.top + above, (math.log10 if logarithmic else float)
        drawing.height = self.height + above

    def position(self, x: float, y: float) -> tuple[float, float]:
        start, end = self._change(self.columns[0]), self._change(self.columns[-1])
        share = (self._change(x) - start) / (end - start), (y - self.rows[0]) / (self.rows[-1] - self.rows[0])
        inside = self.width - self.left - self.right, self.height - self.top - self.bottom
        return self.left + inside[0] * share[0], self._above + inside[1] * (1 - share[1])

    def axes(self, across: str, up: Callable[[float], str] | None, numbered: Sequence[float] | None = None) -> None:
        """The grid, the numbers beside it, and what runs across; without ``up``, only the name."""
        bottom = self.position(self.columns[0], self.rows[0])[1]
        self.drawing.text((self.left + self.width - self.right) / 2, bottom + 34, across, "soft middle")
        if up is None:
            return
        for y in self.rows:
            height = self.position(self.columns[0], y)[1]
            self.drawing.line(self.left, height, self.width - self.right, height)
            self.drawing.text(self.left - 6, height + 4, up(y), "soft end")
        for x in self.columns if numbered is None else numbered:
            side = "end" if x == self.columns[-1] else "middle"
            number = f"{x:,.10g}"
            if abs(x) >= 1e6:  # 2·10⁶: digits would run into those of the next
                power = math.floor(math.log10(abs(x)) + 1e-9)
                factor = x / 10.0**power
                digits = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
                number = f"10{digits}" if math.isclose(factor, 1) else f"{factor:g}·10{digits}"
            self.drawing.text(self.position(x, self.rows[0])[0], bottom + 16, number, f"soft {side}")
