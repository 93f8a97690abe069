"""How values are distributed: the same steps for several samples, and the shares of each as a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

import numpy as np

from crosslens.core import Figure, Lines, Series

Array = np.ndarray[Any, Any]

_STEPS = 28
"""Steps that many values are cut into."""
_FEW = 30
"""Whole numbers up to this are shown one by one."""
_OUTER = 0.998
"""The share of values that is drawn: the few beyond would flatten everything else."""


def value_steps(samples: Iterable[Array]) -> Array:
    """The bounds of the steps: around whole numbers where there are few, else equal parts of what there is."""
    together = np.concatenate([values[~np.isnan(values)] for values in samples])
    if not len(together):
        return np.array([-0.5, 0.5])
    low, high = np.quantile(together, [1 - _OUTER, _OUTER])
    if (together == np.round(together)).all():
        low, high = np.floor(low), np.ceil(high)
        step = max(1, ceil((high - low + 1) / _FEW))
        return np.arange(low, high + step + 1, step)[: ceil((high - low + 1) / step) + 1] - 0.5
    return np.linspace(low, high if high > low else low + 1, _STEPS + 1)


def distribution_lines(
    title: str, axis: str, samples: Mapping[str, Array], edges: Array | None = None, **more: Any
) -> Lines:
    """The share of each sample's values in each step, in percent; NaN does not count."""
    edges = value_steps(samples.values()) if edges is None else edges
    series = []
    for name, values in samples.items():
        values = values[~np.isnan(values)]
        shares = np.histogram(values, edges)[0] / max(1, len(values))
        series.append(Series(name, tuple(Figure.percent(share, unit=" %") for share in shares.tolist())))
    top = max((figure.value or 0.0 for own in series for figure in own.figures), default=0.0)
    middles = np.round((edges[1:] + edges[:-1]) / 2, 4).tolist()
    return Lines(title=title, across=tuple(middles), series=tuple(series), axis=axis, limits=(0.0, top or 1.0), **more)
