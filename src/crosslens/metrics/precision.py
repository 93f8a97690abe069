"""How clean is the list where the relevant items should be? Metrics that use every relevant item."""

from __future__ import annotations

from crosslens.metrics.family import metric
from crosslens.metrics.places import FloatArray, Places
from crosslens.metrics.spec import MetricSpec


@metric(
    "mAP@R",
    definition="(1/R) · Σ over r ≤ R of P@r · rel(r), R the number of relevant items",
    source="Musgrave et al., A Metric Learning Reality Check (ECCV 2020); Chun et al., ECCV Caption (ECCV 2022)",
)
def average_precision_at_r(places: Places, spec: MetricSpec) -> FloatArray:
    """Average precision over the top R places, R the query's number of relevant items."""
    return places.precisions(places.relevant) / places.relevant


@metric(
    "AP",
    definition="(1/R) · Σ over relevant items of the precision at their rank, over the whole gallery",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008)",
)
def average_precision(places: Places, spec: MetricSpec) -> FloatArray:
    """Average precision over the whole gallery; its mean is the classic MAP."""
    return places.precisions() / places.relevant


@metric(
    "RPrecision",
    definition="relevant items in the top R / R, R the number of relevant items",
    source="Chun et al., ECCV Caption (ECCV 2022)",
)
def r_precision(places: Places, spec: MetricSpec) -> FloatArray:
    """The share of the top R places that is relevant, R the query's number of relevant items."""
    return places.found(places.relevant) / places.relevant
