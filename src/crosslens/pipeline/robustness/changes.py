"""Which queries change, and how: places lower or higher, groups by score, and whether variants hit the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.pipeline.robustness.outcome import FloatArray, Outcome
from crosslens.pipeline.robustness.variants import BoolArray, Variant

GROUPS = ("decreased", "increased", "unchanged")
FIGURES = ("Hit@1", "Hit@10", "MRR@10", "MRR", "Fails")


def change_row(model: str, variant: Variant, before: Outcome, after: Outcome) -> dict[str, Any]:
    """EXPL's Tables 4 and 5 for one variant: changed queries, where they went, figures before and after.

    A query is ranked lower where its relevant item has a larger place than before. Shares are of changed queries that
    have something to find; figures are over all queries, and (``changed_…``) over the changed ones.
    """
    counted = np.isfinite(before.rank)
    changed = touched(before, variant) & counted
    lower, higher = after.rank > before.rank, after.rank < before.rank
    share = _shares(changed)
    score = after.hits - before.hits
    up = surprising(variant, before, after)
    row: dict[str, Any] = {
        "model": model, "perturbation": variant.perturbation, "seed": variant.seed,
        "queries": int(counted.sum()), "changed": int(changed.sum()),
        "changed_share": float(changed.sum() / counted.sum()) if counted.any() else float("nan"),
        "lower": share(lower), "higher": share(higher), "same": share(~lower & ~higher),
        "decreased": int((score[counted] < 0).sum()), "increased": int((score[counted] > 0).sum()),
        "unchanged": int((score[counted] == 0).sum()),
        "up_while_similarity_down": int(up.sum()),
    }  # fmt: skip
    for name, over in (("", counted), ("changed_", changed)):
        for when, outcome in (("before", before), ("after", after)):
            for figure, value in _figures(outcome.rank[over]).items():
                row[f"{name}{figure} {when}"] = value
    return row


def touched(outcome: Outcome, variant: Variant) -> BoolArray:
    """Per query of the tables' direction, whether it changed; an image changed where one of its captions did."""
    if outcome.direction != "i2t":
        return variant.applied
    if variant.captions is None:
        return np.ones(len(outcome.query_ids), np.bool_)
    changed = np.zeros(len(outcome.query_ids), np.bool_)
    changed[variant.dataset.caption_image[variant.applied]] = True
    return changed


def surprising(variant: Variant, before: Outcome, after: Outcome) -> BoolArray:
    """Changed queries whose relevant item moved up although its own similarity went down."""
    return touched(before, variant) & (after.rank < before.rank) & (after.own < before.own)


def group_of(before: Outcome, after: Outcome) -> dict[str, BoolArray]:
    """Queries by what happened to their score, which is Hit@1 + Hit@5 + Hit@10."""
    score = after.hits - before.hits
    return {"decreased": score < 0, "increased": score > 0, "unchanged": score == 0}


def overlap_rows(
    model: str, before: Outcome, outcomes: Mapping[str, Outcome], variants: Mapping[str, Variant]
) -> list[dict[str, Any]]:
    """BRIT's Table 5 for one model, and the pairs of variants that it averages.

    The definition is ours: the Jaccard similarity of two variants' sets of queries, for each group, averaged over all
    pairs of variants. ``among_changed`` looks only at queries that both variants changed. A pair whose sets are both
    empty does not count.
    """
    rows = []
    members = {label: group_of(before, one) for label, one in outcomes.items()}
    for first, second in combinations(outcomes, 2):
        both = touched(before, variants[first]) & touched(before, variants[second])
        for group in GROUPS:
            left, right = members[first][group], members[second][group]
            rows.append(
                {"model": model, "first": variants[first].perturbation, "second": variants[second].perturbation,
                 "group": group, "jaccard": jaccard(left, right), "among_changed": jaccard(left & both, right & both)}
            )  # fmt: skip
    return rows


def jaccard(left: BoolArray, right: BoolArray) -> float:
    """Common members / members of either; NaN for two empty sets."""
    either = int((left | right).sum())
    return int((left & right).sum()) / either if either else float("nan")


def mean_overlap(pairs: pl.DataFrame) -> pl.DataFrame:
    """Per model and group, the mean over pairs of variants."""
    return pairs.group_by("model", "group", maintain_order=True).agg(
        pl.col("jaccard", "among_changed").fill_nan(None).mean(),
        pl.col("jaccard").fill_nan(None).count().alias("pairs"),
    )


def _shares(of: BoolArray) -> Any:
    return lambda part: float((part & of).sum() / of.sum()) if of.any() else float("nan")


def _figures(rank: FloatArray) -> dict[str, float]:
    if not len(rank):
        return dict.fromkeys(FIGURES, float("nan"))
    return {
        "Hit@1": float((rank <= 1).mean()),
        "Hit@10": float((rank <= 10).mean()),
        "MRR@10": float(np.where(rank <= 10, 1 / rank, 0).mean()),
        "MRR": float((1 / rank).mean()),
        "Fails": float((rank > 1).mean()),
    }
