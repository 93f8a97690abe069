"""Whether anything relevant is in the top k, and how much of it: hits, and two definitions of recall."""

from __future__ import annotations

import numpy as np

from crosslens.metrics.coverage import FloatArray
from crosslens.metrics.family import MetricSpec, metric
from crosslens.metrics.relevant_ranks import RelevantRanks


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
