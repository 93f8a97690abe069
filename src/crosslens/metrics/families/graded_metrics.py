"""Graded metrics: every item has a gain, its grade, its score or its similarity φ, whether it is annotated or not."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from crosslens.metrics.family import RSUM_CUTOFFS, MetricSpec, Option, metric
from crosslens.metrics.graded import GradedRanking
from crosslens.storage import BoolArray, FloatArray, IntArray

OWN_SCORES = "own"
"""The relevance encoder that is the evaluated model itself."""

_PHI_VALUES = Option("φ", "the value of an item is its similarity by φ, instead of its grade in the judgements", "name")
FIVE = "Biten et al., Is an Image Worth Five Sentences? (WACV 2022)"

PHI = Option(
    "φ",
    "how similar a caption is to an image's captions, by name (crosslens similarity --list), or one of your own",
    "name",
    default="cider",
)
NON_GT = Option("non-gt", "ground-truth items are removed from the retrieved and from the ideal list")
EQ5 = Option("eq5", "as equation 5 of the paper prints it: of the top k only items among the m most similar count")
ZERO = Option("zero", "a query with nothing to compare with counts as 0 instead of being skipped, as in FIVE's code")
BY_IMAGE = Option(
    "by-image",
    "m images instead of m items, as in FIVE's code: in both directions the captions of the query's image vote for the "
    "images of largest mean φ; i2t: all captions of those are relevant; with non-gt, without the query's own image",
)
M = Option("m", "how many of the most similar items count as relevant; equal ones in gallery order", "setting",
           default="20", whole_number=True)  # fmt: skip


@metric(
    "DCGcm",
    cutoff="required",
    options=(
        Option(
            "scores_from",
            "whose scores say how relevant an unlabelled item is: own (the evaluated model's), a name of "
            "scores_from (--scores-from), or an encoder",
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
    options=(_PHI_VALUES, Option("exp", "gains are 2^value - 1 instead of the values themselves")),
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
    return np.where(most > 0, retrieved / most, np.nan)


def _discounted(values: FloatArray) -> FloatArray:
    return np.asarray((values / np.log2(np.arange(values.shape[1]) + 2)).sum(axis=1))


@metric(
    "NCS",
    cutoff="required",
    options=(
        PHI,
        EQ5,
        Option("m", "for eq5: how many of the most similar items count (as many as k unless given)", "setting",
               whole_number=True, needs="eq5"),
        NON_GT,
        ZERO,
    ),
    graded=True,
    definition="Σ φ over the retrieved top k / Σ φ over the k largest φ of the query; no rank discount; "
    "skipped where the latter is not above 0",
    source=FIVE,
)  # fmt: skip
def ncs(graded: GradedRanking, spec: MetricSpec) -> FloatArray:
    """Normalised cumulative semantic score: φ of what was retrieved, against the most that could have been."""
    phi, non_gt, count = _arguments(spec)
    ideal = graded.best(phi, count, non_gt=non_gt).values.sum(axis=1)
    values = graded.values(phi, non_gt=non_gt)
    if spec.has("eq5"):
        values = values * (graded.ideal_ranks(phi, count, non_gt=non_gt) < count)
    retrieved = graded.top_k(non_gt=non_gt).arranged(values, spec.k).sum(axis=1)
    return np.where(ideal > 0, retrieved / ideal, 0.0 if spec.has("zero") else np.nan)


@metric(
    "Nsum",
    options=(PHI, EQ5, NON_GT, ZERO),
    range=(0, 600),
    across=True,
    graded=True,
    definition="the sum of the six NCS@1, NCS@5 and NCS@10 of both directions, in percent; t2i/Nsum and i2t/Nsum: of "
    "the three of one direction",
    source=FIVE,
)
def nsum(graded: Mapping[str, GradedRanking], spec: MetricSpec) -> Mapping[str, FloatArray]:
    """The sum of NCS@1, NCS@5 and NCS@10 of both directions, in percent (0 to 600), or of one of them (0 to 300)."""
    sums = {}
    for direction, ranking in graded.items():
        # One value per query, whose mean is the sum of the parts' means; each part may skip other queries.
        parts = np.stack([ncs(ranking, MetricSpec("NCS", spec.options, k)) for k in RSUM_CUTOFFS])
        valid = np.isfinite(parts) & (ranking.ranking.relevant_counts > 0)
        sizes, queries = valid.sum(axis=1), valid.any(axis=0) & valid.any(axis=1).all()
        scaled = np.where(valid, parts, 0) * (queries.sum() / np.maximum(sizes, 1))[:, None]
        sums[direction] = np.where(queries, 100 * scaled.sum(axis=0), np.nan)
    return sums


@metric(
    "SR",
    cutoff="required",
    options=(PHI, M, NON_GT, BY_IMAGE),
    graded=True,
    definition="of the m items most similar to the query by φ, the share that is among the retrieved top k",
    source=FIVE,
)
def semantic_recall(graded: GradedRanking, spec: MetricSpec) -> FloatArray:
    """Semantic recall: the share of the m most similar items, annotated or not, that is in the top k."""
    members, sizes = _most_similar(graded, spec)
    top_k = graded.top_k(non_gt=spec.has("non-gt"))
    retrieved = top_k.arranged(members.astype(np.float64), spec.k).sum(axis=1)
    return np.where(sizes > 0, retrieved / sizes, np.nan)


@metric(
    "SRhit",
    cutoff="required",
    options=(PHI, M, NON_GT, BY_IMAGE),
    graded=True,
    definition="1 if any of the m items most similar to the query by φ is among the retrieved top k, else 0",
    source=f"{FIVE}, the “Recall” of its Figure 3",
)
def semantic_hit(graded: GradedRanking, spec: MetricSpec) -> FloatArray:
    """Whether any of the m most similar items, annotated or not, is in the top k."""
    members, sizes = _most_similar(graded, spec)
    return np.where(sizes > 0, graded.top_k(non_gt=spec.has("non-gt")).chance(members, spec.k), np.nan)


def _most_similar(graded: GradedRanking, spec: MetricSpec) -> tuple[BoolArray, IntArray]:
    """Which listed items are of the m most similar (or of the m most similar images), and how many items are."""
    phi, non_gt, count = _arguments(spec)
    if spec.has("by-image"):
        return graded.of_best_images(phi, count, non_gt=non_gt)
    sizes = (graded.best(phi, count, non_gt=non_gt).items >= 0).sum(axis=1)
    return graded.ideal_ranks(phi, count, non_gt=non_gt) < count, sizes


def _arguments(spec: MetricSpec) -> tuple[str, bool, int]:
    """The name of φ (the first option, always there), whether the ground truth is removed, and how many items count."""
    return spec.options[0], spec.has("non-gt"), int(spec.setting("m") or spec.k)
