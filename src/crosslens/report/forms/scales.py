"""Charts that pages lay out as text beside drawings: figures on a common scale, small multiples, paired bars.

The drawings are as wide as their place and have only classes, so that a page may forbid styles inside its markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from crosslens.core import Figure, Interval, Intervals, PairedBar, PairedBars, SmallMultiples
from crosslens.report.forms.drawing import range_of, tick_text, ticks

_LETTER = 0.02
"""Of a bar on a phone: how wide a digit is."""
_QUARTERS = [0.0, 0.25, 0.5, 0.75, 1.0]
_TRACK, _LOW_TRACK, _BAR = 24, 20, 26
"""How high drawings are, in pixels."""


class Scale:
    """An axis that several drawings have: where values are on it, in percent of its width."""

    def __init__(self, figures: Sequence[Figure], limits: tuple[float, float] | None, mark: float | None = None):
        marked = [] if mark is None else [Figure(mark)]
        self.marks = _QUARTERS if limits == (0, 1) else ticks(*(limits or range_of([*figures, *marked])))
        self.unit = figures[0] if figures else Figure(None)

    def at(self, value: float) -> float:
        """Of a value beyond an end, the end."""
        share = (value - self.marks[0]) / (self.marks[-1] - self.marks[0])
        return 100 * min(max(share, 0.0), 1.0)

    def axis(self, words: str = "") -> str:
        """Its numbers: the ends, and 0 or the middle one."""
        zero = (place for place, mark in enumerate(self.marks) if mark == 0 and 15 < self.at(mark) < 85)
        middle = next(zero, len(self.marks) // 2)
        ends = [] if self.at(self.marks[middle]) < 20 else [(0, "start")]  # 0 says more than an end beside it
        labelled = [*ends, *([(middle, "middle")] if len(self.marks) > 2 else []), (len(self.marks) - 1, "end")]
        texts = "".join(
            f'<text class="soft" x="{self.at(self.marks[place]):.4g}%" y="12" text-anchor="{anchor}">'
            f"{escape(tick_text(self.unit, self.marks[place]))}{escape(words) if anchor == 'end' else ''}</text>"
            for place, anchor in labelled
        )
        return f'<svg class="chart axis" height="17" aria-hidden="true">{texts}</svg>'

    def track(self, cell: Interval, reference: float | None, *, high: int = _TRACK, number: bool = False) -> str:
        """A dot with its interval between the lines of the scale; ``reference`` is dashed."""
        figure, middle = cell.figure, high / 2
        label = f"{cell.name}: {figure}" if cell.name else str(figure)
        grid = "".join(
            f'<line class="grid" x1="{self.at(mark):.4g}%" x2="{self.at(mark):.4g}%" y1="0" y2="{high}"/>'
            for mark in self.marks
        )
        marks = ""
        if reference is not None:
            x = f"{self.at(reference):.4g}%"
            marks += f'<line class="reference" x1="{x}" x2="{x}" y1="0" y2="{high}"/>'
        start = end = figure.value if figure.value is not None and figure.known else None
        if start is not None and figure.bounded:
            start, end = figure.low, figure.high
            wide = self.at(end) - self.at(start)
            marks += (
                f'<rect class="range" x="{self.at(start):.4g}%" width="{wide:.4g}%" y="{middle - 3:g}" height="6" '
                'rx="3"/>'
            )
        if figure.value is not None and start is not None and end is not None:
            marks += f'<circle class="dot" cx="{self.at(figure.value):.4g}%" cy="{middle:g}" r="{high / 4:g}"/>'
            if number:
                right = self.at(end) < 80
                place = f'x="{self.at(end if right else start):.4g}%" dx="{7 if right else -7}"'
                anchor = "start" if right else "end"
                marks += (
                    f'<text class="soft value" {place} y="{middle + 4:g}" text-anchor="{anchor}">'
                    f"{escape(figure.number.removesuffix(figure.unit))}</text>"
                )
        tone = f" {cell.tone}" if cell.tone else ""
        drawn = (
            f'<svg class="chart track{tone}" height="{high}" role="img" aria-label="{escape(label)}">'
            f"<title>{escape(label)}</title>{grid}{marks}</svg>"
        )
        return _linked(drawn, cell.address)


def small_interval(figure: Figure) -> str:
    """A share with its interval as a small drawing beside the number; nothing for other figures."""
    if figure.value is None or not figure.known or figure.scale != 100:
        return ""
    low, high = (figure.low, figure.high) if figure.bounded else (figure.value, figure.value)
    return (
        '<svg class="chart small" width="84" height="12" aria-hidden="true">'
        f'<rect class="range" x="{100 * low:.4g}%" width="{100 * (high - low):.4g}%" y="3" height="6"/>'
        f'<rect class="dot" x="{98 * figure.value:.4g}%" width="2" height="12"/></svg>'
    )


def _linked(markup: str, address: str) -> str:
    return f'<a href="{escape(address)}">{markup}</a>' if address else markup


def _label(name: str, subtitle: str) -> str:
    return f'<span class="label">{escape(name)}{f"<small>{escape(subtitle)}</small>" if subtitle else ""}</span>'


def intervals_html(chart: Intervals) -> str:
    """Names, the scale, and what the figures are in numbers."""
    scale = Scale([row.figure for row in chart.rows], chart.limits, chart.mark)
    rows = []
    for row in chart.rows:
        number = _linked(f"<b>{escape(row.figure.number)}</b>", row.address)
        interval = (
            f"{escape(row.change.number)} {row.change.interval}".rstrip()
            if row.change is not None
            else row.figure.interval
        )
        value = f'<span class="value">{number} <small>{interval}</small></span>'
        rows.append(f"<div>{_label(row.name, row.about)}{scale.track(row, chart.mark)}{value}</div>")
    axis = f"<div><span></span>{scale.axis(f' {chart.axis}' if chart.axis else '')}<span></span></div>"
    return f'<div class="intervals">{"".join(rows)}{axis}</div>'


def multiples_html(chart: SmallMultiples) -> str:
    """A column per run or gallery, a row per group, headings between them."""
    cells = [cell for row in chart.rows for cell in row.cells if cell is not None]
    scale = Scale([*(cell.figure for cell in cells), *chart.means], chart.limits)
    abouts = chart.abouts or ("",) * len(chart.columns)
    means = [mean.value for mean in chart.means] or [None] * len(chart.columns)
    heads = "".join(
        f'<div class="head"><b>{escape(name)}</b>{f"<small>{escape(small)}</small>" if small else ""}{scale.axis()}'
        "</div>"
        for name, small in zip(chart.columns, abouts, strict=True)
    )
    rows, before = "", None
    for row in chart.rows:
        if row.group != before:
            rows += f'<div class="group">{escape(row.group)}</div>'
            before = row.group
        tracks = "".join(
            "<div></div>" if cell is None else f"<div>{scale.track(cell, mean, high=_LOW_TRACK, number=True)}</div>"
            for cell, mean in zip(row.cells, means, strict=True)
        )
        rows += f'<div class="line">{_label(row.name, "")}{tracks}</div>'
    columns = min(len(chart.columns), 6)
    return f'<div class="multiples of-{columns}"><div class="line heads"><span></span>{heads}</div>{rows}</div>'


Pictured = Callable[[str, str], str]
"""The markup of an image, given what it shows; empty where there is none."""


def bars_html(chart: PairedBars, pictured: Pictured, inside: Callable[[PairedBar], str]) -> str:
    """A row per bar; where there is something to show of it, it opens."""
    legend = " · ".join(f'<b class="tone {tone}">{escape(name)}</b>' for name, tone in chart.levels)
    rows = [(row, "".join(pictured(image, "") for image in row.pictures)) for row in chart.rows]
    kind = "pairs pictured" if any(pictures for _, pictures in rows) else "pairs"
    head = (
        f'<div class="bar-line bar-head"><span class="pictures"></span><span>{escape(chart.heading)}</span>'
        f'<span>{escape(chart.noun)}: {legend}</span><span class="value">{escape(chart.measure)}</span></div>'
    )
    body = "".join(_bar_row(chart, row, pictures, inside(row)) for row, pictures in rows)
    return f'<div class="{kind}">{head}{body}</div>'


def _bar_row(chart: PairedBars, row: PairedBar, pictures: str, inside: str) -> str:
    changed = " ⇄ ".join(f"<u>{escape(words)}</u>" for words in row.changed)
    small = " · ".join(filter(None, (escape(row.about), changed)))
    figure = "" if row.figure is None else f"<b>{escape(row.figure.number)}</b> <small>{row.figure.interval}</small>"
    cells = (
        f'<span class="pictures">{pictures}</span>'
        f'<span class="label"><b>{escape(row.name)}</b>{f"<small>{small}</small>" if small else ""}</span>'
        f'{_bar(chart, row)}<span class="value">{figure}</span>'
    )
    if not inside:
        return f'<div class="pair-row"><div class="bar-line">{cells}</div></div>'
    return f'<details class="pair-row"><summary class="bar-line">{cells}</summary><div>{inside}</div></details>'


def _bar(chart: PairedBars, row: PairedBar) -> str:
    """A bar of full width, divided; the interval of the row's figure under it, and where chance is."""
    total = sum(row.counts) or 1
    label = f"{row.name}: " + ", ".join(
        f"{name} {count:,}" for (name, _), count in zip(chart.levels, row.counts, strict=True)
    )
    addresses: Iterable[str] = row.addresses or ("",) * len(row.counts)
    parts, x = "", 0.0
    for (name, tone), count, address in zip(chart.levels, row.counts, addresses, strict=True):
        share, words = count / total, f"{name}: {count:,} of {total:,}"
        number = f'<text x="{100 * x:.4g}%" dx="6" y="17">{count:,}</text>' if share >= _LETTER * (
            1 + len(f"{count:,}")
        ) else ""  # fmt: skip
        piece = (
            f'<rect class="piece {tone}" x="{100 * x:.4g}%" width="{100 * share:.4g}%" height="{_BAR}">'
            f"<title>{escape(words)}</title></rect>{number}"
        )
        parts += f'<a href="{escape(address)}" aria-label="{escape(words)}">{piece}</a>' if address and count else piece
        x += share
    figure = row.figure
    if figure is not None and figure.bounded:
        wide = 100 * (figure.high - figure.low)
        parts += f'<rect class="span" x="{100 * figure.low:.4g}%" width="{wide:.4g}%" y="{_BAR - 4}" height="4"/>'
    if chart.chance is not None:
        place = f'x1="{100 * chart.chance:.4g}%" x2="{100 * chart.chance:.4g}%"'
        parts += f'<line class="reference" {place} y1="-2" y2="{_BAR + 2}"/>'
    role = 'role="group"' if row.addresses else 'role="img"'
    return f'<svg class="chart bar-of-pairs" height="{_BAR}" {role} aria-label="{escape(label)}">{parts}</svg>'
