"""How one figure is written for people: percent with its interval, ranks as plain numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from crosslens.core.errors import CrosslensError, UnknownNameError
from crosslens.core.metric_values import MetricValues
from crosslens.core.run import BOTH, Run

Unit = Literal["share", "places", "points"]

DIRECTION_LABELS = {"i2t": "image → text", "t2i": "text → image", BOTH: "both directions"}

_WORD = re.compile(r"(?:[^\s,\[]|\[[^\]]*\])+")
_MISSING = "–"


def split_name(name: str) -> tuple[str, str]:
    """``t2i/Hit@5`` is the metric ``Hit@5`` of the direction ``t2i``; without a direction it spans both."""
    direction, _, metric = name.rpartition("/")
    return direction or BOTH, metric


def unit(name: str) -> Unit:
    """How people read a metric: a ``share`` in percent, ``places`` in a list, or points of a sum such as ``Rsum``."""
    from crosslens.metrics import METRICS
    from crosslens.metrics.spec import read_spec

    try:
        family = METRICS[read_spec(split_name(name)[1]).family].value
    except CrosslensError:  # from a plug-in that is not installed here: nearly all metrics are shares
        return "share"
    if family.is_fraction:
        return "share"
    return "points" if math.isfinite(family.range[1]) else "places"


def figure(name: str, value: float, decimals: int = 1) -> str:
    """One number of the metric ``name``: a share in percent, anything else as it is."""
    if not math.isfinite(value):
        return _MISSING
    kind = unit(name)
    text = f"{100 * value if kind == 'share' else value:.{decimals}f}"
    return text.removesuffix("." + "0" * decimals) if kind == "places" else text


def interval(name: str, values: MetricValues, decimals: int = 1) -> str:
    """The interval of a metric, ``[56.9, 59.7]``; nothing where there is none."""
    if not (math.isfinite(values.low) and math.isfinite(values.high)):
        return ""
    return f"[{figure(name, values.low, decimals)}, {figure(name, values.high, decimals)}]"


def count(number: int, noun: str) -> str:
    """``1 query``, ``5,000 images``: a count that agrees with its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def words(metrics: str | Iterable[str]) -> list[str]:
    """Metric names written as one text, apart: ``"Hit@1, SR[spice, m=20]@5"`` holds two."""
    return _WORD.findall(metrics) if isinstance(metrics, str) else [str(one) for one in metrics]


def select(run: Run, metrics: str | Sequence[str] | None = None) -> list[str]:
    """The full names of the asked metrics in a run; a name without a direction means every direction that has it."""
    if metrics is None:
        return list(run)
    chosen: dict[str, None] = {}
    for wanted in words(metrics):
        same = {wanted, _canonical(wanted)}
        matching = [name for name in run if same & {name, split_name(name)[1]}]
        if not matching:
            raise UnknownNameError("metric in this run", wanted, {*run, *(split_name(name)[1] for name in run)})
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def _canonical(metric: str) -> str:
    """The name a metric has in results: ``R@5`` is ``Hit@5`` there."""
    from crosslens.metrics import parse_metric

    try:
        return str(parse_metric(metric))
    except CrosslensError:
        return metric
