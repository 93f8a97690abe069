"""Numbers as pages show them, and the bars of a histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 200
"""Characters of a value."""


def shown_figure(value: float | None, unit: str) -> str:
    """A share in percent, anything else as a plain number."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if unit == "share" else f"{value:.4g}"


def shown_difference(value: float | None, unit: str) -> str:
    """The same with its sign."""
    text = shown_figure(value, unit)
    if value is None or not text.strip("-0."):
        return text.removeprefix("-")
    return text.replace("-", "−", 1) if text.startswith("-") else f"+{text}"


def shown_value(value: Any) -> str:
    """What a column of a dataset says, in a line."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def shown_p(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


@dataclass(frozen=True)
class HistogramBar:
    """A bar of a histogram, in the units of its picture."""

    label: int
    count: int
    x: float
    y: float
    width: float
    height: float


def histogram_bars(counts: Mapping[int, int], width: float = 600, height: float = 120) -> list[HistogramBar]:
    """A bar for every whole number from the smallest to the largest."""
    if not counts:
        return []
    first, last, most = min(counts), max(counts), max(counts.values())
    step = width / (last - first + 1)
    return [
        HistogramBar(
            label,
            count,
            (label - first) * step + 0.5,
            height * (1 - count / most),
            max(step - 1, 1),
            height * count / most,
        )
        for label, count in sorted(counts.items())
    ]
