"""A small line chart as SVG inside a page: no script, a few kilobytes, colours from the page's style.

For pages that are written in great numbers, one beside every trained model, where a figure's script would weigh
thousands of times what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

_WIDTH, _HEIGHT = 400, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 14, 40
_TICKS = 5

CHART_STYLE = """
.chart { width: 100%; height: auto; display: block; }
.chart text { fill: var(--soft); font-size: 12px; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .curve { fill: none; stroke: var(--curve); stroke-width: 2; stroke-linejoin: round; }
.chart .point { fill: var(--curve); }
.chart .best { fill: var(--paper); stroke: var(--mark); stroke-width: 3; }
.chart .best-line { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 4 3; }
"""


def line_chart(
    title: str,
    across: Sequence[float],
    up: Sequence[float],
    *,
    axis: str,
    number: Callable[[float], str],
    marked: int | None = None,
) -> str:
    """A line through points; ``marked`` is a point with a ring. ``number`` writes a value, on the axis and on hover."""
    points = [(x, y) for x, y in zip(across, up, strict=True) if math.isfinite(y)]
    columns, rows = _ticks(0, max(across, default=1)), _ticks(*_range([y for _, y in points]))

    def position(x: float, y: float) -> tuple[float, float]:
        share = (y - rows[0]) / (rows[-1] - rows[0])
        inside = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + inside[0] * (x - columns[0]) / (columns[-1] - columns[0]), _HEIGHT - _BOTTOM - inside[1] * share

    parts = [*_axes(columns, rows, position, axis, number)]
    path = " ".join("{:.1f},{:.1f}".format(*position(x, y)) for x, y in points)
    parts.append(f'<polyline class="curve" points="{path}"/>')
    if marked is not None:
        x, y = position(across[marked], up[marked])
        ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"'
        parts.append(f'<line class="best-line" {ends}/><circle class="best" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
    for x, y in points:
        left, top = position(x, y)
        told = f"<title>step {x:,.0f}: {escape(number(y))}</title>"
        parts.append(f'<circle class="point" cx="{left:.1f}" cy="{top:.1f}" r="2.5">{told}</circle>')
    inside = "\n".join(parts)
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escape(title)}">\n{inside}\n</svg>'


def _axes(
    columns: Sequence[float], rows: Sequence[float], position: Callable[[float, float], tuple[float, float]],
    axis: str, number: Callable[[float], str],
) -> list[str]:  # fmt: skip
    parts = []
    for y in rows:
        top = position(columns[0], y)[1]
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{top:.1f}" y2="{top:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{top + 4:.1f}" text-anchor="end">{escape(number(y).removesuffix(".0"))}</text>'
        )
    for x in columns:
        left = position(x, rows[0])[0]
        end = "end" if x == columns[-1] else "middle"
        parts.append(f'<text x="{left:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="{end}">{x:,.0f}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(axis)}</text>']


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The least and the largest value, apart even where all are equal."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = min(0.0, 2 * low), max(0.0, 2 * high)
    return (low, high) if low < high else (0.0, 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, from one at or below ``low`` to one at or above ``high``."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]
