"""One metric of one run: a value per query, and the figure with its interval that stands for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crosslens.core.ids import Ids, frozen
from crosslens.core.json_form import json_form

Statistic = Literal["mean", "median", "floor-median"]


@dataclass(frozen=True, eq=False)
class MetricValues:
    """``values`` holds one number per query (NaN: the query has no relevant item and is excluded).

    ``clusters`` names the image each query belongs to: intervals and tests resample images, not queries.
    ``mean`` is the headline figure; where the metric is a median (``MedR``) it is that median: see ``statistic``.
    """

    name: str
    query_ids: Ids
    values: np.ndarray[Any, np.dtype[np.float64]]
    clusters: np.ndarray[Any, np.dtype[np.int64]]
    mean: float
    low: float
    high: float
    statistic: Statistic = "mean"
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "clusters", frozen(self.clusters))

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def n(self) -> int:
        """How many queries count."""
        return int(np.isfinite(self.values).sum())

    @property
    def excluded(self) -> int:
        """How many queries have no relevant item, or (graded metrics) nothing to compare with."""
        return len(self.values) - self.n

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        return {
            "mean": json_form(self.mean),
            "low": json_form(self.low),
            "high": json_form(self.high),
            "n": self.n,
            "excluded": self.excluded,
            "statistic": self.statistic,
            "level": self.level,
        }

    def __repr__(self) -> str:
        return f"MetricValues({self.name}: {self.mean:.4f} [{self.low:.4f}, {self.high:.4f}], n={self.n})"
