"""Ranks of the relevant items and their reciprocals."""

from __future__ import annotations

from math import inf

from crosslens.metrics.coverage import FloatArray
from crosslens.metrics.family import MetricSpec, Option, metric
from crosslens.metrics.relevant_ranks import RelevantRanks

_ALL = Option("all", "over every (query, relevant item) pair, not only the best-ranked one of each query", pooled=True)
_FLOOR = Option(
    "floor", "floor(median of 0-based ranks) + 1, as VSE++ and its successors print it", statistic="floor-median"
)


@metric(
    "MRR",
    cutoff="optional",
    definition="1 / rank of the first relevant item; with a cutoff, 0 if that rank is past k",
    source="Voorhees, The TREC-8 Question Answering Track Report (1999)",
)
def reciprocal_rank(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The mean of 1 / rank of the first relevant item."""
    return ranks.reciprocal(spec.cutoff)


@metric(
    "MedR",
    options=(_FLOOR, _ALL),
    statistic="median",
    higher_is_better=False,
    range=(1, inf),
    definition="the median, over queries, of the rank of the best-ranked relevant item",
    source="Faghri et al., VSE++ (BMVC 2018)",
)
def median_rank(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The median rank of the best-ranked relevant item."""
    return ranks.each() if spec.has("all") else ranks.first()


@metric(
    "MeanR",
    options=(_ALL,),
    higher_is_better=False,
    range=(1, inf),
    definition="the mean, over queries, of the rank of the best-ranked relevant item",
    source="Faghri et al., VSE++ (BMVC 2018)",
)
def mean_rank(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The mean rank of the best-ranked relevant item."""
    return ranks.each() if spec.has("all") else ranks.first()
