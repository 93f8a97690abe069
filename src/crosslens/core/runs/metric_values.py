"""The values of a metric, one per query, and what a reader of them has to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from crosslens.core.ids import Ids, frozen
from crosslens.core.storage import json_form

Statistic = Literal["mean", "median", "floor-median"]
Unit = Literal["share", "rank", "points", "number"]


@dataclass(frozen=True)
class MetricFacts:
    """What a reader of a metric's values has to know: its direction, its unit, whether it is taken over pairs.

    Stored with every run, for a run may be read where the metric itself is not installed.
    """

    higher_is_better: bool = True
    unit: Unit = "share"
    pooled: bool = False


ASSUMED_FACTS = MetricFacts()
"""Those of a metric that nobody knows, neither this crosslens nor the run: nearly all metrics are shares."""

_STORED_FACTS: dict[str, MetricFacts] = {}


def stored_facts(name: str) -> MetricFacts | None:
    """What the runs and studies that were loaded say about a metric."""
    return _STORED_FACTS.get(name)


@dataclass(frozen=True, eq=False)
class MetricValues:
    """One metric of one run: one number per query (NaN: excluded, as it has no relevant item), and its figure.

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
    facts: MetricFacts | None = None
    """None in a run of a version that did not store them."""

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
        names = ("mean", "low", "high", "n", "excluded", "statistic", "level")
        return {name: json_form(getattr(self, name)) for name in names} | (asdict(self.facts) if self.facts else {})

    def __repr__(self) -> str:
        return f"MetricValues({self.name}: {self.mean:.4f} [{self.low:.4f}, {self.high:.4f}], n={self.n})"


BOTH = "both"
"""The direction of a metric that sums over both, such as ``Rsum``; its queries are the images."""
DIRECTION_LABELS = {"i2t": "image → text", "t2i": "text → image", BOTH: "both directions"}


def split_name(name: str) -> tuple[str, str]:
    """``t2i/Hit@5`` is the metric ``Hit@5`` of the direction ``t2i``; without a direction it spans both."""
    direction, slash, metric = name.partition("/")
    # An option may hold a slash of its own: NCS[embed:some/model]@10.
    return (direction, metric) if slash and "[" not in direction else (BOTH, name)


def read_facts(name: str, figures: Mapping[str, Any]) -> MetricFacts | None:
    """The facts of a metric among its stored figures, if they are there; from then on :func:`stored_facts` has them."""
    values = {entry.name: figures[entry.name] for entry in fields(MetricFacts) if entry.name in figures}
    if values.get("unit", "share") not in get_args(Unit):
        del values["unit"]  # of a later version
    if not values:
        return None
    _STORED_FACTS[name] = MetricFacts(**values)
    return _STORED_FACTS[name]
