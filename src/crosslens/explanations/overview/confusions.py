"""Confused concepts: which ones the retrieved images show instead of the expected, over all failures of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from crosslens.explanations.concepts.comparison import most_similar
from crosslens.explanations.concepts.lexicon import Array, ancestor_at
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.language import load_wordnet

_PAIR: dict[str, Any] = {"expected": pl.String, "shown": pl.String}
PAIR_COLUMNS: dict[str, Any] = {"failure": pl.Int64, **_PAIR, "similarity": pl.Float64}
ATLAS_COLUMNS: dict[str, Any] = {
    **_PAIR,
    "count": pl.Int64,
    **dict.fromkeys(("share", "share_of_expected", "lift", "similarity"), pl.Float64),
    "examples": pl.List(pl.String),
}
EXAMPLES = 3
"""Queries that each confusion names."""


def concept_pairs(
    objects: ImageObjects,
    ground_truth_rows: Sequence[int] | Array,
    retrieved_rows: Sequence[int] | Array,
    *,
    mentioned: Sequence[Collection[str]] | None = None,
) -> pl.DataFrame:
    """The matched pairs of every failure: a concept of the right image that the retrieved one lacks, and what it has.

    The matching is the one behind ``NonCommonSimilarity``. With ``mentioned`` (per failure the synsets that its query
    mentions) only what was asked for counts as missing, and only what was not asked for as shown instead.
    """
    concepts = [
        frozenset(objects.concepts[objects.offsets[image] : objects.offsets[image + 1]].tolist()) - {-1}
        for image in range(objects.images)
    ]
    row_of = {name: row for row, name in enumerate(objects.synsets)}
    match = _matcher(objects.synsets)
    rows: list[tuple[int, str, str, float]] = []
    for failure, (right, wrong) in enumerate(zip(ground_truth_rows, retrieved_rows, strict=True)):
        missing = concepts[int(right)] - concepts[int(wrong)]
        extra = concepts[int(wrong)] - concepts[int(right)]
        if mentioned is not None:
            asked = {row_of[name] for name in mentioned[failure] if name in row_of}
            missing, extra = missing & asked, extra - asked
        if missing and extra:
            matched = match(tuple(sorted(missing)), tuple(sorted(extra)))
            rows += [(failure, objects.synsets[row], objects.synsets[other], value) for row, other, value in matched]
    return pl.DataFrame(rows, schema=PAIR_COLUMNS, orient="row")


def confusion_atlas(pairs: pl.DataFrame, queries: Sequence[str], *, depth: int | None = None) -> pl.DataFrame:
    """Count the pairs of :func:`concept_pairs`: one row per expected and shown concept, the most frequent first.

    ``depth`` replaces both by their hypernyms that many steps below the root of WordNet; a pair with the same hypernym
    then has it on both sides. ``count`` is in how many failures the pair occurs, each once. ``share`` is of failures
    that have any pair, ``share_of_expected`` of those that have one for the same expected concept. ``lift`` is how much
    more often the two co-occur than if they were independent. ``examples`` are the first queries, the most similar
    concepts first.
    """
    names = {synset: ancestor_at(synset, depth) for synset in sorted({*pairs["expected"], *pairs["shown"]})}
    ends = [pl.col(side).replace(names).alias(side) for side in ("expected", "shown")]
    once = pairs.with_columns(ends).group_by("failure", "expected", "shown", maintain_order=True)
    table = once.agg(pl.col("similarity").max()).with_columns(
        pl.col("failure").n_unique().over(side).alias(f"of_{side}") for side in ("expected", "shown")
    )
    whole = table["failure"].n_unique()
    ordered = table.sort(["similarity", "failure"], descending=[True, False], maintain_order=True)
    counted = ordered.group_by("expected", "shown", "of_expected", "of_shown", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("similarity").mean(),
        pl.col("failure").head(EXAMPLES).alias("examples"),
    )
    examples = [[queries[row] for row in rows] for rows in counted["examples"].to_list()]
    count, expected, shown = (pl.col(name).cast(pl.Float64) for name in ("count", "of_expected", "of_shown"))
    return (
        counted.with_columns(
            pl.Series("examples", examples, dtype=pl.List(pl.String)),
            (count / whole).alias("share"),
            (count / expected).alias("share_of_expected"),
            (count * whole / (expected * shown)).alias("lift"),
        )
        .select(pl.col(name).cast(kind) for name, kind in ATLAS_COLUMNS.items())
        .sort(["count", "expected", "shown"], descending=[True, False, False])
    )


def _matcher(synsets: tuple[str, ...]) -> Callable[[tuple[int, ...], tuple[int, ...]], list[tuple[int, int, float]]]:
    """Matches missing concepts with extra ones, numbered as in ``synsets``; many failures lack and have the same."""
    ids = load_wordnet().ids(synsets) if synsets else np.empty(0, np.int64)

    @cache
    def similarities(concept: int) -> Array:
        row: Array = load_wordnet().path_similarities(ids[[concept]], ids)[0]
        return row

    @cache
    def matched(missing: tuple[int, ...], extra: tuple[int, ...]) -> list[tuple[int, int, float]]:
        weights = np.stack([similarities(concept)[list(extra)] for concept in missing])
        return [(missing[row], extra[column], float(weights[row, column])) for row, column in most_similar(weights)]

    return matched
