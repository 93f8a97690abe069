"""Figures inside sentences: percent, points, and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Payload = Mapping[str, Any]


class Statement(NamedTuple):
    """A sentence, and how important it is: 0–1."""

    text: str
    importance: float


Statements = Iterable[Statement]


def percent(figure: Payload, mean: str = "mean") -> str:
    """``43 % [41, 46]``; with a decimal where a whole number would say nothing: ``0.4 % [0.2, 0.7]``."""
    decimals = _decimals(figure[mean])
    return f"{_number(figure[mean], decimals)} %{interval(figure, decimals)}"


def share(part: int, whole: int) -> str:
    """``12 %``, of counts."""
    return percent({"mean": part / whole})


def points(value: float, figure: Payload | None = None) -> str:
    """``18 points [15, 21]``: a difference of shares, with the interval of a figure."""
    decimals = _decimals(value)
    number = _number(value, decimals)
    return f"{number} point{'' if number == '1' else 's'}{interval(figure or {}, decimals)}"


def interval(figure: Payload, decimals: int = 0) -> str:
    """`` [41, 46]`` in percent; nothing where there is none."""
    low, high = figure.get("low"), figure.get("high")
    return "" if low is None or high is None else f" [{_number(low, decimals)}, {_number(high, decimals)}]"


def surely_above(figure: Payload, limit: float = 0.0) -> bool:
    """Whether the whole interval lies above a limit."""
    low = figure.get("low")
    return low is not None and low > limit


def surprise(lost: float, whole: float) -> float:
    """The importance of a loss, in a group or by a change, by its share: half of a figure is 0.85, a quarter 0.75.

    Of a loss that has an interval, its sure part counts. What is said of every run, such as its mean, is below these.
    """
    return round(0.5 + 0.5 * min(1.0, max(0.0, lost / whole) ** 0.5), 4) if whole > 0 else 0.5


def _decimals(value: float) -> int:
    """None, unless rounding would make a small share, or what is missing from all, vanish."""
    return 1 if 0 < abs(value) < 0.05 or 0.95 < abs(value) < 1 else 0


def _number(value: float, decimals: int) -> str:
    return f"{100 * value + 0.0:.{decimals}f}"
