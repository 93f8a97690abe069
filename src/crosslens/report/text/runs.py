"""Columns of figures as text, and groups as bars of a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from crosslens.core import PAGE_WIDTH, Grid, MetricValues, split_name
from crosslens.metrics import format_figure, format_interval, unit_of, with_intervals


def value_cells(values: Sequence[MetricValues | None]) -> list[str]:
    """One column of figures with intervals; a cell without a value is empty."""
    return with_intervals(
        ["" if metric is None else format_figure(metric.name, metric.mean) for metric in values],
        ["" if metric is None else format_interval(metric.name, metric.low, metric.high) for metric in values],
    )


_PARTS = " ▏▎▍▌▋▊▉█"
_LONGEST, _SHORTEST = 30, 8


def terminal_bars(column: str, groups: Mapping[str, MetricValues], width: int | None = None) -> str:
    """A row per group of a share, in the order given: its queries, its figure, and a bar (full at 100 %)."""
    values = list(groups.values())
    assert values
    assert unit_of(values[0].name) == "share"
    header = (column, "queries", split_name(values[0].name)[1], "")
    counts = [f"{metric.n:,}" for metric in values]
    figures = value_cells(values)
    bare = Grid(header, tuple((*row, "") for row in zip(groups, counts, figures, strict=True)), "lrll")
    room = max(_SHORTEST, min(_LONGEST, (width or PAGE_WIDTH) - bare.width))
    rows = tuple((*row[:3], text_bar(metric.mean, room)) for row, metric in zip(bare.rows, values, strict=True))
    return Grid(header, rows, "lrll").text()


def text_bar(share: float, room: int) -> str:
    """A bar of eighths of a character; a share above nothing shows at least one."""
    if not isfinite(share) or share <= 0:
        return ""
    eighths = max(1, round(8 * room * min(share, 1.0)))
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
