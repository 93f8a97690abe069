"""Metrics of the ranks of relevant items: hits and recall, precision, the ranks themselves, and their sum Rsum."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from crosslens.metrics.family import RSUM_CUTOFFS, MetricSpec, Option, metric
from crosslens.metrics.relevant_ranks import RelevantRanks
from crosslens.storage import FloatArray

_ALL = Option("all", "over every (query, relevant item) pair, not only the best-ranked one of each query", pooled=True)
_FLOOR = Option(
    "floor", "floor(median of 0-based ranks) + 1, as VSE++ and its successors print it", statistic="floor-median"
)


@metric(
    "Hit",
    cutoff="required",
    definition="1 if any relevant item is among the top k, else 0",
    source="Faghri et al., VSE++ (BMVC 2018), and most of image-text matching since (their R@K)",
)
def hit(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """Whether any relevant item is in the top k: the "R@K" of the image-text matching literature."""
    return ranks.hit(spec.k)


@metric(
    "Recall",
    cutoff="required",
    definition="relevant items in the top k / all relevant items",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008)",
)
def recall(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The share of the relevant items that is in the top k: recall as information retrieval defines it."""
    return ranks.relevant_retrieved(spec.k) / ranks.relevant


@metric(
    "CappedRecall",
    cutoff="required",
    definition="relevant items in the top k / min(k, number of relevant items)",
    source="Hendriksen et al., Assessing Brittleness of Image-Text Retrieval Benchmarks (its R@k)",
)
def capped_recall(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """Recall in the top k against the most that fits in there, so that a perfect ranking scores 1 at every k."""
    return np.asarray(ranks.relevant_retrieved(spec.k) / ranks.relevant.clip(max=spec.k))


@metric(
    "Fails",
    higher_is_better=False,
    definition="1 if the top item is not relevant, else 0; the share of such queries",
    source="Lymperaiou et al., Towards Explainable Evaluation of Language Models (COLING 2022)",
)
def fails(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The share of queries whose top item is not relevant."""
    return 1 - ranks.hit(1)


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
    cutoff="optional",
    definition="(1/R) · Σ over relevant items (with a cutoff: those in the top k) of the precision at their rank",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008); AP@k as trec_eval's map_cut",
)
def average_precision(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """Average precision over the whole gallery, or over the top k; its mean is the classic MAP."""
    return ranks.precisions(spec.cutoff) / ranks.relevant


@metric(
    "Precision",
    cutoff="required",
    definition="relevant items in the top k / k",
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008)",
)
def precision(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The share of the top k that is relevant; at most R / k, R the number of relevant items."""
    return ranks.relevant_retrieved(spec.k) / spec.k


@metric(
    "RPrecision",
    definition="relevant items in the top R / R, R the number of relevant items",
    source="Chun et al., ECCV Caption (ECCV 2022)",
)
def r_precision(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
    """The share of the top R that is relevant, R the query's number of relevant items."""
    return ranks.relevant_retrieved(ranks.relevant) / ranks.relevant


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


@metric(
    "Rsum",
    options=(Option("capped", "sums CappedRecall instead of Hit"),),
    range=(0, 600),
    across=True,
    definition="the sum of the six Hit@1, Hit@5 and Hit@10 of both directions, in percent; t2i/Rsum and i2t/Rsum: of "
    "the three of one direction",
    source="in common use, for instance Chen et al., VSE∞ (CVPR 2021)",
)
def rsum(ranks: Mapping[str, RelevantRanks], spec: MetricSpec) -> Mapping[str, FloatArray]:
    """The sum of Hit@1, Hit@5 and Hit@10 of both directions, in percent (0 to 600), or of one of them (0 to 300)."""
    part, family = (capped_recall, "CappedRecall") if spec.has("capped") else (hit, "Hit")
    return {
        direction: 100 * np.sum([part(relevant, MetricSpec(family, cutoff=k)) for k in RSUM_CUTOFFS], axis=0)
        for direction, relevant in ranks.items()
    }
