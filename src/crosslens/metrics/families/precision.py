"""Precision metrics, which use every relevant item."""

from __future__ import annotations

from crosslens.metrics.coverage import FloatArray
from crosslens.metrics.family import MetricSpec, metric
from crosslens.metrics.relevant_ranks import RelevantRanks


@metric(
    "mAP@R",
    definition="(1/R) · Σ over r ≤ R of P@r · rel(r), R the number of relevant items",
    source="Musgrave et al., A Metric Learning Reality Check (ECCV 2020); Chun et al., ECCV Caption (ECCV 2022)",
)
def average_precision_at_r(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """Average precision over the top R, R the query's number of relevant items."""
    return ranks.precisions(ranks.relevant) / ranks.relevant


@metric(
    "AP",
    definition="(1/R) · Σ over relevant items of the precision at their rank, over the whole gallery",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008)",
)
def average_precision(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """Average precision over the whole gallery; its mean is the classic MAP."""
    return ranks.precisions() / ranks.relevant


@metric(
    "RPrecision",
    definition="relevant items in the top R / R, R the number of relevant items",
    source="Chun et al., ECCV Caption (ECCV 2022)",
)
def r_precision(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The share of the top R that is relevant, R the query's number of relevant items."""
    return ranks.relevant_retrieved(ranks.relevant) / ranks.relevant
