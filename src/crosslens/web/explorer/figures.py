"""Numbers as pages show them, and the chart of caption lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslens.core import Figure, Histogram, decimal, percent

_LONGEST = 200
"""Characters of a value."""


def shown_figure(value: float | None, unit: str) -> str:
    """A share in percent; a column of anything else has as many digits in every row."""
    return _shown(value, unit, signed=False)


def shown_difference(value: float | None, unit: str) -> str:
    """The same with its sign."""
    return _shown(value, unit, signed=True).replace("-", "−", 1)


def _shown(value: float | None, unit: str, *, signed: bool) -> str:
    if value is None or unit == "share":
        return percent(value, signed=signed)
    text = decimal(value, 4 if unit == "number" else 1, signed=signed)
    return text.removesuffix(".0") if unit == "rank" else text


def shown_value(value: Any) -> str:
    """What a column of a dataset says, in a line."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def shown_p(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def length_chart(counts: Mapping[int, int], longest: int) -> Histogram | None:
    """How many captions have each number of words; those of ``longest`` words and more stand together."""
    if not counts:
        return None
    first, last = min(counts), max(counts)
    lengths = range(first, last + 1)
    return Histogram(
        title="Captions by number of words", edges=(*lengths, last + 1),
        counts=tuple(counts.get(length, 0) for length in lengths), unit=Figure(None, digits=0),
        axis=f"words, {longest} or more together" if last >= longest else "words", noun="captions", whole=True,
    )  # fmt: skip
