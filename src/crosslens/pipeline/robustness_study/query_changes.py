"""Which queries change, and how: by rank and score, across perturbations, and by the edited word's part of speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import IMAGE_TO_TEXT, Dataset, MissingExtraError, Progress
from crosslens.language import parse_texts
from crosslens.metrics import RSUM_CUTOFFS
from crosslens.perturbations import Caption, Edit, Perturbed, Token, perturbations_with
from crosslens.pipeline.options import SignificanceOptions
from crosslens.pipeline.robustness_study.variant_runner import FloatArray, IntArray, QueryResults
from crosslens.pipeline.robustness_study.variants import BoolArray, Variant
from crosslens.statistics import Bootstrap

CHANGE_GROUPS = ("decreased", "increased", "unchanged")
CHANGE_FIGURES = ("Hit@1", "Hit@10", "MRR@10", "MRR", "Fails")

PAIR_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "first": pl.String, "second": pl.String, "group": pl.String,
    "jaccard": pl.Float64, "among_changed": pl.Float64,
}  # fmt: skip

BRITTLE_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "place": pl.Int64, "query": pl.String, "mean_drop": pl.Float64, "rank_before": pl.Float64,
    "original": pl.String, "perturbation": pl.String, "rank_after": pl.Float64, "drop": pl.Float64, "text": pl.String,
}  # fmt: skip
"""``drop`` is in hits (0 to 3); ``mean_drop`` is its mean over all variants, unchanged captions counting as 0."""

QUERY_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "query": pl.String, "cluster": pl.Int64,
    "applied": pl.Boolean,
    "rank_before": pl.Float64, "rank_after": pl.Float64, "hits_before": pl.Float64, "hits_after": pl.Float64,
    "own_score_before": pl.Float64, "own_score_after": pl.Float64, "up_while_similarity_down": pl.Boolean,
}  # fmt: skip
"""A rank is null where the relevant item is not in a ranked list that was given."""

Variants = Mapping[str, Variant]
Results = Mapping[str, QueryResults]


def direction_rsum(direction: str) -> str:
    """The metric ``Rsum`` of one direction. Studies have it whether or not it is among their metrics."""
    return f"{direction}/Rsum"


def change_row(
    model: str, variant: Variant, before: QueryResults, after: QueryResults, same: IntArray | None = None
) -> dict[str, Any]:
    """EXPL's Tables 4 and 5 for one variant: changed queries, how their ranks moved, figures before and after.

    A query is ranked lower where its relevant item has a larger rank than before, or is no longer in its list. Shares
    are of changed queries that have a relevant item; figures are over all queries, and (``changed_…``) over the changed
    ones. ``same`` is that of :func:`change_groups`.
    """
    counted = ~np.isnan(before.rank)
    changed = touched(before, variant) & counted
    lower, higher = after.rank > before.rank, after.rank < before.rank
    groups = {group: int(members.sum()) for group, members in change_groups(before, after, same).items()}
    odd = improved_by_less(variant, before, after)
    row: dict[str, Any] = {
        "model": model, "perturbation": variant.perturbation, "seed": variant.seed,
        "queries": int(counted.sum()), "changed": int(changed.sum()), "changed_share": _share(changed, counted),
        "lower": _share(lower, changed), "higher": _share(higher, changed), "same": _share(~lower & ~higher, changed),
        **groups,
        "up_while_similarity_down": int(odd.sum()) if np.isfinite(before.own).any() else None,
    }  # fmt: skip
    for prefix, queries in (("", counted), ("changed_", changed)):
        for when, results in (("before", before), ("after", after)):
            for figure, value in _figures(results.rank[queries]).items():
                row[f"{prefix}{figure} {when}"] = value
    return row


def touched(results: QueryResults, variant: Variant) -> BoolArray:
    """Per query of the tables' direction, whether it changed."""
    return variant.touched(len(results.query_ids), images=results.direction == IMAGE_TO_TEXT)


def improved_by_less(variant: Variant, before: QueryResults, after: QueryResults) -> BoolArray:
    """Changed queries whose relevant item has a better rank although its own score is lower."""
    return touched(before, variant) & (after.rank < before.rank) & (after.own < before.own)


def change_groups(before: QueryResults, after: QueryResults, same: IntArray | None = None) -> dict[str, BoolArray]:
    """BRIT's groups: queries by the change of their score, which is Hit@1 + Hit@5 + Hit@10.

    Queries that have the same number in ``same`` are one, with the mean of their changes. Those without a relevant item
    are in no group.
    """
    score = after.hits - before.hits
    if same is not None:
        counted = np.isfinite(score)
        sums, counts = (np.bincount(same[counted], weights, same.max() + 1) for weights in (score[counted], None))
        score = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return {"decreased": score < 0, "increased": score > 0, "unchanged": score == 0}


def overlap_rows(
    model: str, before: QueryResults, results: Results, variants: Variants, same: IntArray | None = None
) -> list[dict[str, Any]]:
    """BRIT's Table 5 for one model, and the pairs of variants that it averages.

    The Jaccard similarity of two variants' sets of queries, for each group; which of them the paper averages is not
    published, crosslens takes all pairs of variants. ``among_changed`` is over queries that both variants changed. A
    pair whose sets are both empty does not count.
    """
    rows = []
    members = {label: change_groups(before, after, same) for label, after in results.items()}
    for first, second in combinations(results, 2):
        both = touched(before, variants[first]) & touched(before, variants[second])
        if same is not None:
            both = np.bincount(same, both) > 0
        for group in CHANGE_GROUPS:
            left, right = members[first][group], members[second][group]
            rows.append(
                {"model": model, "first": variants[first].perturbation, "second": variants[second].perturbation,
                 "group": group, "jaccard": jaccard(left, right), "among_changed": jaccard(left & both, right & both)}
            )  # fmt: skip
    return rows


def jaccard(left: BoolArray, right: BoolArray) -> float:
    """Common members / members of either; NaN for two empty sets."""
    return _share(left & right, left | right)


def mean_overlap(pairs: pl.DataFrame) -> pl.DataFrame:
    """Per model and group, the mean over pairs of variants."""
    return pairs.group_by("model", "group", maintain_order=True).agg(
        pl.col("jaccard", "among_changed").fill_nan(None).mean(),
        pl.col("jaccard").fill_nan(None).count().alias("pairs"),
    )


def brittle_rows(
    model: str, before: QueryResults, results: Results, variants: Variants, most: int
) -> list[dict[str, Any]]:
    """The queries with the largest mean drop of hits; among equals, those whose ranks drop furthest."""
    labels = list(results)
    drops = np.array([before.hits - results[label].hits for label in labels])
    rank_drops = np.log2([_shown(results[label].rank) / _shown(before.rank) for label in labels]).mean(axis=0)
    means = drops.mean(axis=0)
    # The order is by figures and then by id, so that it does not depend on the order of the dataset.
    order = sorted(np.flatnonzero(means > 0), key=lambda row: (-means[row], -rank_drops[row], before.query_ids[row]))
    rows = []
    for position, row in enumerate(order[:most], start=1):
        for number, label in enumerate(labels):
            if touched(before, variants[label])[row]:
                rows.append(
                    {"model": model, "place": position, "query": before.query_ids[row], "mean_drop": float(means[row]),
                     "rank_before": _known(before.rank[row]), "perturbation": variants[label].perturbation,
                     "rank_after": _known(results[label].rank[row]), "drop": float(drops[number][row]),
                     **_texts(before, variants[label], int(row))}
                )  # fmt: skip
    return rows


def _known(rank: Any) -> float | None:
    """None where a list ends before the relevant item."""
    return float(rank) if np.isfinite(rank) else None


def _texts(before: QueryResults, variant: Variant, row: int) -> dict[str, str | None]:
    """A caption before and after; none where images are the queries, and the same where pictures changed."""
    if before.direction == IMAGE_TO_TEXT:
        return {"original": None, "text": None}
    if variant.captions is None:
        return dict.fromkeys(("original", "text"), variant.texts[row] if variant.texts else None)
    return {"original": variant.captions[row].original, "text": variant.captions[row].text}


def query_table(model: str, variant: Variant, before: QueryResults, after: QueryResults) -> pl.DataFrame:
    """Every query before and after."""
    count = len(before.query_ids)
    return pl.DataFrame(
        {
            "model": [model] * count, "perturbation": [variant.perturbation] * count, "seed": [variant.seed] * count,
            "query": before.query_ids, "cluster": before.clusters, "applied": touched(before, variant),
            "rank_before": before.rank, "rank_after": after.rank,
            "hits_before": before.hits, "hits_after": after.hits,
            "own_score_before": before.own, "own_score_after": after.own,
            "up_while_similarity_down": improved_by_less(variant, before, after),
        },
        schema=QUERY_COLUMNS,
    ).with_columns(
        pl.when(pl.col(name).is_infinite()).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("rank_before", "rank_after")
    )  # fmt: skip


def _shown(rank: FloatArray) -> FloatArray:
    """Ranks to order by: what its list does not show comes behind all that lists show."""
    shown = np.isfinite(rank)
    return np.where(np.isinf(rank), rank[shown].max(initial=RSUM_CUTOFFS[-1]) + 1, rank)


def _share(part: BoolArray, whole: BoolArray) -> float:
    return float((part & whole).sum() / whole.sum()) if whole.any() else float("nan")


def _figures(rank: FloatArray) -> dict[str, float]:
    if not len(rank):
        return dict.fromkeys(CHANGE_FIGURES, float("nan"))
    # Where a list ends before any relevant item, MRR is not known.
    values = (rank <= 1, rank <= 10, np.where(rank <= 10, 1 / rank, 0), 1 / np.where(np.isinf(rank), np.nan, rank),
              rank > 1)  # fmt: skip
    return {figure: float(value.mean()) for figure, value in zip(CHANGE_FIGURES, values, strict=True)}


POOLED = "typos"
"""The row of the four typos together."""
_EDITED_WORDS = ("word", "adversarial", "beyond")
_ARTICLES = ("a", "an")

WORD_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "part_of_speech": pl.String, "captions": pl.Int64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "decreased": pl.Float64,
}  # fmt: skip
"""``change`` is the mean of 100 × (hits after − hits before): from −300 to 300, in points of one direction's Rsum."""


def edited_parts(
    dataset: Dataset, variants: Sequence[Variant], threads: int | None, progress: Progress | None
) -> tuple[dict[str, dict[str, BoolArray]], str]:
    """Per variant and part of speech, which captions had such a word edited; and a note where that is not known.

    Only for perturbations that change words one by one: a shuffle edits no word in particular.
    """
    chosen = {
        variant.label: variant.captions
        for variant in variants
        if variant.level in _EDITED_WORDS and variant.captions is not None and variant.applied_share > 0
    }
    if not chosen:
        return {}, ""
    try:
        parses = parse_texts(dataset.texts, threads=threads, progress=progress)
    except MissingExtraError as error:
        return {}, f"no table by part of speech: {error.problem}"
    captions = [Caption(text, parse=parse) for text, parse in zip(dataset.texts, parses, strict=True)]
    return {label: _by_part(captions, results) for label, results in chosen.items()}, ""


def word_rows(
    model: str,
    parts: Mapping[str, Mapping[str, BoolArray]],
    before: QueryResults,
    results: Mapping[str, QueryResults],
    options: SignificanceOptions,
) -> list[dict[str, Any]]:
    """A row per variant and part of speech; then the typos together."""
    rows = []
    pooled: dict[str, list[tuple[FloatArray, Any]]] = {}
    typos = perturbations_with("typo")
    for label, by_part in parts.items():
        change = 100 * (results[label].hits - before.hits)
        for part, chosen in by_part.items():
            counted = chosen & np.isfinite(change)
            if counted.any():
                sample = change[counted], before.clusters[counted]
                rows.append(_row(model, label, part, *sample, options))
                if label in typos:
                    pooled.setdefault(part, []).append(sample)
    for part, samples in pooled.items():
        values, clusters = (np.concatenate(arrays) for arrays in zip(*samples, strict=True))
        rows.append(_row(model, POOLED, part, values, clusters, options))
    order = {label: number for number, label in enumerate(parts)}
    return sorted(
        rows, key=lambda row: (row["perturbation"] == POOLED, order.get(row["perturbation"], 0), row["change"])
    )


def _row(
    model: str, name: str, part: str, change: FloatArray, clusters: Any, options: SignificanceOptions
) -> dict[str, Any]:
    most = 100.0 * len(RSUM_CUTOFFS)
    estimate = Bootstrap(clusters, options.resamples, options.seed).estimate(
        change, level=options.level, bounds=(-most, most)
    )
    return {
        "model": model, "perturbation": name, "part_of_speech": part, "captions": len(change),
        "change": estimate.mean, "low": estimate.low, "high": estimate.high, "decreased": float((change < 0).mean()),
    }  # fmt: skip


def _by_part(captions: Sequence[Caption], results: Sequence[Perturbed]) -> dict[str, BoolArray]:
    by_part: dict[str, BoolArray] = {}
    for row, (caption, result) in enumerate(zip(captions, results, strict=True)):
        for part in parts_of(caption, result.edits):
            by_part.setdefault(part, np.zeros(len(captions), np.bool_))[row] = True
    return by_part


def parts_of(caption: Caption, edits: Sequence[Edit]) -> set[str]:
    """The parts of speech of the edited words; an article that only follows another edit (a → an) does not count."""
    words = [edit for edit in edits if len(edits) == 1 or edit.before.lower() not in _ARTICLES]
    return {token.pos for edit in words or edits for token in _edited_tokens(caption.tokens, edit)}


def _edited_tokens(tokens: Sequence[Token], edit: Edit) -> list[Token]:
    """The tokens that an edit overlaps; for an insertion, the token that contains it or ends there."""
    if edit.start < edit.end:
        return [token for token in tokens if token.start < edit.end and edit.start < token.end]
    return [token for token in tokens if token.start < edit.start <= token.end] or [
        token for token in tokens if token.start == edit.start
    ]
