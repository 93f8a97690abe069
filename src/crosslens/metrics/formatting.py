"""Figures formatted for people: a share in percent with its interval, a rank as a plain number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from crosslens.core import ASSUMED_FACTS, BOTH, Figure, MetricFacts, Unit, UsageError, decimal, split_name, stored_facts
from crosslens.metrics.family import METRICS, MetricSpec, family_of, read_spec

_UNITS: Mapping[Unit, str] = {
    "rank": "as a rank",
    "points": "as a sum of percentages",
    "number": "as a plain number",
}
_FINER = 3
"""Decimals that a plain number has beyond a percentage: the papers print four."""
_MISSING = "–"


def spec_of(name: str) -> MetricSpec | None:
    """The metric behind the name of a result (``t2i/Hit@5``); None if it is from a plug-in that is not installed."""
    try:
        spec = read_spec(split_name(name)[1])
    except UsageError:
        return None
    return spec if spec.family in METRICS else None


def facts_of(name: str) -> MetricFacts:
    """What is known of the metric ``name``: from its registration, else from a run that was loaded, else assumed."""
    spec = spec_of(name)
    return family_of(spec).facts(spec) if spec is not None else stored_facts(name) or ASSUMED_FACTS


def bounds_of(name: str) -> tuple[float, float] | None:
    """Between which values a query's lies; None where there is no such bound, or the metric is not registered."""
    spec = spec_of(name)
    return None if spec is None else family_of(spec).bounds(one_direction=split_name(name)[0] != BOTH)


def unit_of(name: str) -> Unit:
    """How people read a metric: a ``share`` in percent, a ``rank``, ``points`` of a sum, or a plain ``number``."""
    return facts_of(name).unit


def format_figure(name: str, value: float, decimals: int = 1, *, signed: bool = False) -> str:
    """One number of the metric ``name``: a share in percent, anything else as it is; ``signed`` for a difference."""
    if not math.isfinite(value):
        return _MISSING
    kind = unit_of(name)
    decimals += _FINER if kind == "number" else 0
    text = decimal(100 * value if kind == "share" else value, decimals, signed=signed)
    return text.removesuffix("." + "0" * decimals) if kind == "rank" else text


def metric_figure(
    name: str, value: float | None, low: float = math.nan, high: float = math.nan, *, signed: bool = False
) -> Figure:
    """A value of the metric ``name`` with its interval: a share in percent, anything else as it is."""
    kind = unit_of(name)
    digits = 1 + (_FINER if kind == "number" else 0)
    return Figure(
        value, low, high, 100.0 if kind == "share" else 1.0, digits=digits, signed=signed, plain=kind == "rank"
    )


def format_interval(name: str, low: float, high: float, decimals: int = 1, *, signed: bool = False) -> str:
    """The interval of a metric, ``[56.9, 59.7]``; nothing where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    bounds = (format_figure(name, bound, decimals, signed=signed) for bound in (low, high))
    return f"[{', '.join(bounds)}]"


def unit_sentence(names: Iterable[str]) -> str:
    """In what these metrics are given: ``In percent, MedR as a rank.``"""
    named: dict[Unit, dict[str, None]] = {}
    for name in names:
        named.setdefault(unit_of(name), {})[split_name(name)[1]] = None
    parts = ["in percent"] if "share" in named else []
    parts += [f"{', '.join(named[kind])} {_UNITS[kind]}" for kind in _UNITS if kind in named]
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def format_count(number: int, noun: str) -> str:
    """``1 query``, ``5,000 images``: a count that agrees with its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
