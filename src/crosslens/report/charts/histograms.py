"""Histograms: how many values are in each interval."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from crosslens.core import Grid
from crosslens.report.charts.drawing import ChartHtml, Number, SvgDrawing, finite_range, tick_words, ticks

_WIDTH, _HEIGHT = 420.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 12.0, 40.0
_MOST_LABELS = 8


def histogram(
    title: str, edges: Sequence[float], counts: Sequence[float], *, axis: str, number: Number, about: str = "",
    noun: str = "queries", whole: bool = False,
) -> ChartHtml:  # fmt: skip
    """``counts[i]`` values lie from ``edges[i]`` up to ``edges[i + 1]``; the last interval includes its end.

    With ``whole``, the values are whole numbers and interval i holds ``edges[i]`` alone.
    """
    assert len(edges) == len(counts) + 1
    names = [number(low) if whole else f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    kind = "whole numbers" if whole else "intervals"
    drawing = SvgDrawing(title, about or f"{sum(counts):,g} {noun} in {len(counts)} {kind}.", _WIDTH, _HEIGHT)
    rows = ticks(*finite_range([0.0, *counts]))
    inside = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    bottom = _HEIGHT - _BOTTOM
    for count in rows:
        y = bottom - inside[1] * count / rows[-1]
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y)
        drawing.text(_LEFT - 6, y + 4, f"{count:,g}", "soft end")
    wide = inside[0] / max(1, len(counts))
    drawing.add('<g class="s1">')
    for index, (name, count) in enumerate(zip(names, counts, strict=True)):
        high = inside[1] * count / rows[-1]
        told = f"{name}: {count:,g} {noun}"
        drawing.rectangle(_LEFT + wide * index + 0.5, bottom - high, wide - 1, high, "bar", told)
    drawing.add("</g>")
    labelled = edges[:-1] if whole else edges
    every = -(-len(labelled) // _MOST_LABELS)
    for index, edge in enumerate(labelled):
        if index % every == 0:
            x = _LEFT + wide * (index + (0.5 if whole else 0))
            drawing.text(x, bottom + 16, tick_words(number, edge), "soft middle")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, axis, "soft middle")
    table = tuple((name, f"{count:,g}") for name, count in zip(names, counts, strict=True))
    return ChartHtml(title, drawing, Grid((axis, noun), table, "lr"))
