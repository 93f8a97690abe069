"""Histograms: how many values are in each interval."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core import Grid
from crosslens.report.charts.drawing import ChartHtml, Number, SvgDrawing, finite_range, tick_words, ticks

_WIDTH, _HEIGHT = 420.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 12.0, 40.0
_MOST_LABELS = 8


def histogram(
    title: str, edges: Sequence[float], counts: Sequence[float], *, axis: str, number: Number, about: str = "",
    noun: str = "queries",
) -> ChartHtml:  # fmt: skip
    """``counts[i]`` values lie from ``edges[i]`` up to ``edges[i + 1]``; the last interval includes its end."""
    assert len(edges) == len(counts) + 1
    drawing = SvgDrawing(title, about or f"{sum(counts):,g} {noun} in {len(counts)} intervals.", _WIDTH, _HEIGHT)
    rows = ticks(*finite_range([0.0, *counts]))
    inside = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    bottom = _HEIGHT - _BOTTOM
    for count in rows:
        y = bottom - inside[1] * count / rows[-1]
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y)
        drawing.text(_LEFT - 6, y + 4, f"{count:,g}", "soft end")
    wide = inside[0] / max(1, len(counts))
    every = -(-len(edges) // _MOST_LABELS)
    drawing.add('<g class="s1">')
    for index, count in enumerate(counts):
        high = inside[1] * count / rows[-1]
        told = f"{number(edges[index])} to {number(edges[index + 1])}: {count:,g} {noun}"
        drawing.rectangle(_LEFT + wide * index + 0.5, bottom - high, wide - 1, high, "bar", told)
    drawing.add("</g>")
    for index, edge in enumerate(edges):
        if index % every == 0:
            drawing.text(_LEFT + wide * index, bottom + 16, tick_words(number, edge), "soft middle")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, axis, "soft middle")
    table = tuple(
        (f"{number(edges[index])} to {number(edges[index + 1])}", f"{count:,g}") for index, count in enumerate(counts)
    )
    return ChartHtml(title, drawing, Grid((axis, noun), table, "lr"))
