"""The captions that break most easily, and queries that rise although their own similarity falls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.relevance import IMAGE_TO_TEXT
from crosslens.pipeline.robustness.changes import surprising, touched
from crosslens.pipeline.robustness.outcome import Outcome
from crosslens.pipeline.robustness.variants import Variant

BRITTLE_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "place": pl.Int64, "query": pl.String, "mean_drop": pl.Float64, "rank_before": pl.Float64,
    "original": pl.String, "perturbation": pl.String, "rank_after": pl.Float64, "drop": pl.Float64, "text": pl.String,
}  # fmt: skip
"""``drop`` is in hits (0 to 3); ``mean_drop`` is its mean over all variants, unchanged captions counting as 0."""

QUERY_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "query": pl.String, "applied": pl.Boolean,
    "rank_before": pl.Float64, "rank_after": pl.Float64, "hits_before": pl.Float64, "hits_after": pl.Float64,
    "own_score_before": pl.Float64, "own_score_after": pl.Float64, "up_while_similarity_down": pl.Boolean,
}  # fmt: skip


def brittle_rows(
    model: str, before: Outcome, outcomes: Mapping[str, Outcome], variants: Mapping[str, Variant], most: int
) -> list[dict[str, Any]]:
    """The queries with the largest mean drop of hits; among equals, those whose places fall furthest."""
    labels = list(outcomes)
    drops = np.array([before.hits - outcomes[label].hits for label in labels])
    falls = np.log2([outcomes[label].rank / before.rank for label in labels]).mean(axis=0)
    means = drops.mean(axis=0)
    # The order is by figures and then by id, so that it does not depend on the order of the dataset.
    order = sorted(np.flatnonzero(means > 0), key=lambda row: (-means[row], -falls[row], before.query_ids[row]))
    rows = []
    for place, row in enumerate(order[:most], start=1):
        for number, label in enumerate(labels):
            if touched(before, variants[label])[row]:
                rows.append(
                    {"model": model, "place": place, "query": before.query_ids[row], "mean_drop": float(means[row]),
                     "rank_before": float(before.rank[row]), "perturbation": variants[label].perturbation,
                     "rank_after": float(outcomes[label].rank[row]), "drop": float(drops[number][row]),
                     **_texts(before, variants[label], int(row))}
                )  # fmt: skip
    return rows


def _texts(before: Outcome, variant: Variant, row: int) -> dict[str, str | None]:
    """A caption before and after; none where images ask, and the same where pictures changed."""
    if before.direction == IMAGE_TO_TEXT:
        return {"original": None, "text": None}
    if variant.captions is None:
        return dict.fromkeys(("original", "text"), variant.dataset.texts[row])
    return {"original": variant.captions[row].original, "text": variant.captions[row].text}


def query_table(model: str, variant: Variant, before: Outcome, after: Outcome) -> pl.DataFrame:
    """Every query before and after."""
    count = len(before.query_ids)
    return pl.DataFrame(
        {
            "model": [model] * count, "perturbation": [variant.perturbation] * count, "seed": [variant.seed] * count,
            "query": before.query_ids, "applied": touched(before, variant),
            "rank_before": before.rank, "rank_after": after.rank,
            "hits_before": before.hits, "hits_after": after.hits,
            "own_score_before": before.own, "own_score_after": after.own,
            "up_while_similarity_down": surprising(variant, before, after),
        },
        schema=dict(QUERY_COLUMNS),
    )  # fmt: skip
