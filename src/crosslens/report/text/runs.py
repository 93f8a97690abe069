"""Columns of figures as text, and shares as bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from crosslens.core import MetricValues
from crosslens.metrics import format_figure, format_interval, with_intervals


def value_cells(values: Sequence[MetricValues | None]) -> list[str]:
    """One column of figures with intervals; a cell without a value is empty."""
    return with_intervals(
        ["" if metric is None else format_figure(metric.name, metric.mean) for metric in values],
        ["" if metric is None else format_interval(metric.name, metric.low, metric.high) for metric in values],
    )


def difference_cells(changes: Iterable[tuple[str, float, float, float]]) -> list[str]:
    """One column of differences with intervals, from metrics, differences, and their low and high ends."""
    changes = list(changes)
    return with_intervals(
        [format_figure(metric, difference, signed=True) for metric, difference, _, _ in changes],
        [format_interval(metric, low, high, signed=True) for metric, _, low, high in changes],
    )


_PARTS = " ▏▎▍▌▋▊▉█"


def text_bar(share: float, room: int) -> str:
    """A bar of eighths of a character; a share above nothing shows at least one."""
    if not isfinite(share) or share <= 0:
        return ""
    eighths = max(1, round(8 * room * min(share, 1.0)))
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
