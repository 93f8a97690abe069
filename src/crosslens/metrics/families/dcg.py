"""Discounted cumulative gain: lower ranks count less."""

from __future__ import annotations

from math import inf

import numpy as np

from crosslens.metrics.coverage import FloatArray
from crosslens.metrics.family import MetricSpec, Option, metric
from crosslens.metrics.graded import GradedRanking

OWN_SCORES = "own"
"""The relevance encoder that is the evaluated model itself."""

PHI = Option("φ", "the value of an item is its similarity by φ, instead of its grade in the judgements", "name")


@metric(
    "DCGcm",
    cutoff="required",
    options=(
        Option(
            "scores_from",
            "whose scores say how relevant an unlabelled item is: own (the evaluated model's), a name given with "
            "--scores-from, or an encoder",
            "setting",
            default=OWN_SCORES,
        ),
    ),
    graded=True,
    range=(-inf, inf),
    unit="number",
    definition="Σ over i ≤ k of rel_i / log2(i + 1); rel is 1 for a ground-truth pair, else the score of query and "
    "item under a relevance encoder; not normalised",
    source="Hendriksen et al., Assessing Brittleness of Image-Text Retrieval Benchmarks",
)
def cross_modal_dcg(graded: GradedRanking, spec: MetricSpec) -> FloatArray:
    """Cross-modal discounted cumulative gain: unlabelled items count by their similarity to the query."""
    source = spec.setting("scores_from") or OWN_SCORES
    similarity = graded.own_scores() if source == OWN_SCORES else graded.values(source)
    relevance = np.where(graded.grades() > 0, 1.0, similarity)
    return _discounted(graded.top_k().arranged(relevance, spec.k))


@metric(
    "nDCG",
    cutoff="required",
    options=(PHI, Option("exp", "gains are 2^value - 1 instead of the values themselves")),
    graded=True,
    definition="Σ over i ≤ k of gain_i / log2(i + 1), divided by the same sum for the best possible order; "
    "the gain of an item is its grade, or its φ",
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques (TOIS 2002)",
)
def normalised_dcg(graded: GradedRanking, spec: MetricSpec) -> FloatArray:
    """Discounted cumulative gain of graded items, against that of the best possible order."""
    names = [option for option in spec.options if option != "exp"]
    values = graded.values(names[0]) if names else graded.grades()
    ideal = graded.best(names[0], spec.k).values if names else graded.best_grades(spec.k)
    if spec.has("exp"):
        values, ideal = np.exp2(values) - 1, np.exp2(ideal) - 1
    retrieved, most = _discounted(graded.top_k().arranged(values, spec.k)), _discounted(ideal)
    return np.where(most > 0, retrieved / np.where(most > 0, most, 1), np.nan)


def _discounted(values: FloatArray) -> FloatArray:
    return np.asarray((values / np.log2(np.arange(values.shape[1]) + 2)).sum(axis=1))
