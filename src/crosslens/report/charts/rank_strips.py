"""Strips of ranks: how many queries have their first relevant item at rank 1, soon after it, or far down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslens.core import UNRANKED, Grid
from crosslens.report.charts.drawing import ChartHtml, SvgDrawing, fitting, widest

_STRIP, _RIGHT, _HIGH, _GAP = 392.0, 8.0, 24.0, 10.0
_LEAST, _MOST = 60.0, 240.0
"""Room for the names, by the longest."""
_LAST_RANKS = (1, 5, 10, 100)
"""The last rank of each band; what is ranked lower, or not listed, is the band behind."""
BANDS = ("rank 1", "2–5", "6–10", "11–100", "below 100")
_OPACITIES = (1.0, 0.5, 0.36, 0.22, 0.1)
_ROOM = 30.0
"""A band narrower than this has its share only in the table."""


def rank_bands(ranks: Sequence[int]) -> list[int]:
    """How many ranks are in each of ``BANDS``; a rank of −1 (not listed) is in the last."""
    counts = [0] * len(BANDS)
    for rank in ranks:
        band = next((index for index, last in enumerate(_LAST_RANKS) if rank <= last), len(_LAST_RANKS))
        counts[len(_LAST_RANKS) if rank == UNRANKED else band] += 1
    return counts


def rank_strip(title: str, series: Mapping[str, Sequence[int]], *, about: str = "") -> ChartHtml:
    """A strip per series: the ranks of the first relevant items, as shares of its queries; one alone has no name."""
    counted = {name: rank_bands(ranks) for name, ranks in series.items()}
    height = 26 + (_HIGH + _GAP) * len(series)
    told = about or "From left to right the shares of queries at rank 1, 2–5, 6–10, 11–100 and below."
    labels = _RIGHT if len(series) == 1 else 12 + max(_LEAST, widest(series, _MOST))
    drawing = SvgDrawing(title, told, labels + _STRIP + _RIGHT, height)
    for index, band in enumerate(BANDS):
        x = labels + _STRIP * index / len(BANDS)
        drawing.rectangle(x, 4, 10, 10, "strip", band, fill_opacity=_OPACITIES[index])
        drawing.text(x + 14, 13.5, band, "soft")
    for row, (name, counts) in enumerate(counted.items()):
        y, x, total = 26 + (_HIGH + _GAP) * row, labels, max(1, sum(counts))
        if len(series) > 1:
            drawing.text(labels - 8, y + _HIGH / 2 + 4, name, "end", labels - 12)
        for band, opacity, count in zip(BANDS, _OPACITIES, counts, strict=True):
            wide = _STRIP * count / total
            words = f"{name}, {band}: {count:,} of {total:,} ({100 * count / total:.1f} %)"
            drawing.rectangle(x, y, wide, _HIGH, "strip", words, fill_opacity=opacity)
            if wide >= _ROOM:
                kind = "middle" if opacity <= 0.5 else "middle over"
                drawing.text(x + wide / 2, y + _HIGH / 2 + 4, fitting(f"{100 * count / total:.0f} %", wide), kind)
            x += wide
    rows = tuple((name, *(f"{count:,}" for count in counts)) for name, counts in counted.items())
    return ChartHtml(title, drawing, Grid(("first relevant item", *BANDS), rows, "l" + "r" * len(BANDS)))
