"""Rsum: one number for both directions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosslens.metrics.coverage import FloatArray
from crosslens.metrics.families.recall import capped_recall, hit
from crosslens.metrics.family import MetricSpec, Option, metric
from crosslens.metrics.relevant_ranks import RelevantRanks

RSUM_CUTOFFS = (1, 5, 10)


@metric(
    "Rsum",
    options=(Option("capped", "sums CappedRecall instead of Hit"),),
    range=(0, 600),
    across=True,
    definition="the sum of the six Hit@1, Hit@5 and Hit@10 of both directions, in percent",
    source="in common use, for instance Chen et al., VSE∞ (CVPR 2021)",
)
def rsum(ranks: Mapping[str, RelevantRanks], spec: MetricSpec) -> Mapping[str, FloatArray]:
    """The sum of Hit@1, Hit@5 and Hit@10 of both directions, in percent (0 to 600)."""
    part = capped_recall if spec.has("capped") else hit
    family = "CappedRecall" if spec.has("capped") else "Hit"
    return {
        direction: 100 * np.sum([part(own, MetricSpec(family, cutoff=k)) for k in RSUM_CUTOFFS], axis=0)
        for direction, own in ranks.items()
    }
