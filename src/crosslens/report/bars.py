"""Groups as bars of a terminal: figures, intervals, and a line as long as the figure is high."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.metric_values import MetricValues
from crosslens.core.run import split_name
from crosslens.metrics.figures import unit
from crosslens.report.table import cells

_PARTS = " ▏▎▍▌▋▊▉█"
_LONGEST, _SHORTEST = 30, 8


def terminal_bars(column: str, groups: Mapping[str, MetricValues], width: int | None = None) -> str:
    """A row per group of a share, in the order given: its queries, its figure, and a bar (full at 100 %)."""
    values = list(groups.values())
    assert values
    assert unit(values[0].name) == "share"
    header = (column, "queries", split_name(values[0].name)[1], "")
    counts = [f"{one.n:,}" for one in values]
    figures = cells(values)
    bare = Grid(header, tuple((*row, "") for row in zip(groups, counts, figures, strict=True)), "lrll")
    room = max(_SHORTEST, min(_LONGEST, (width or PAGE_WIDTH) - bare.width))
    rows = tuple((*row[:3], bar(one.mean, room)) for row, one in zip(bare.rows, values, strict=True))
    return Grid(header, rows, "lrll").text()


def bar(share: float, room: int) -> str:
    """A bar of eighths of a character; a share above nothing shows at least one."""
    if not isfinite(share) or share <= 0:
        return ""
    eighths = max(1, round(8 * room * min(share, 1.0)))
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
