"""The confusion atlas: which concepts are taken for which, over all failures of a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.explain.concepts.matching import most_similar
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.overview.kinds import lifted
from crosslens.language.wordnet import wordnet

Array = np.ndarray[Any, Any]

PAIR_COLUMNS: dict[str, Any] = {
    "failure": pl.Int64,
    "expected": pl.String,
    "shown": pl.String,
    "similarity": pl.Float64,
}
ATLAS_COLUMNS: dict[str, Any] = {
    "expected": pl.String,
    "shown": pl.String,
    "count": pl.Int64,
    "share": pl.Float64,
    "share_of_expected": pl.Float64,
    "lift": pl.Float64,
    "similarity": pl.Float64,
    "examples": pl.List(pl.String),
}
EXAMPLES = 3
"""Queries that each entry of an atlas names."""


def concept_pairs(
    objects: ImageObjects,
    ground_truth_rows: Sequence[int] | Array,
    retrieved_rows: Sequence[int] | Array,
    *,
    mentioned: Sequence[Collection[str]] | None = None,
) -> pl.DataFrame:
    """The matched pairs of every failure: a concept of the right image that the retrieved one lacks, and what it has.

    The matching is the one behind ``NonCommonSimilarity``. With ``mentioned`` (per failure the synsets that its query
    mentions) only what was asked for counts as missing, and only what was not asked for as shown in its place.
    """
    inside = [frozenset(_concepts(objects, image)) for image in range(objects.images)]
    row_of = {name: row for row, name in enumerate(objects.synsets)}
    similarities = _Similarities(objects.synsets)
    found: list[tuple[int, int, int, float]] = []
    for failure, (right, wrong) in enumerate(zip(ground_truth_rows, retrieved_rows, strict=True)):
        missing, extra = inside[int(right)] - inside[int(wrong)], inside[int(wrong)] - inside[int(right)]
        if mentioned is not None:
            asked = {row_of[name] for name in mentioned[failure] if name in row_of}
            missing, extra = missing & asked, extra - asked
        if missing and extra:
            found += [(failure, *pair) for pair in similarities.matched(sorted(missing), sorted(extra))]
    names = np.array(objects.synsets, dtype=object)
    columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
    return pl.DataFrame(
        {
            "failure": list(columns[0]),
            "expected": names[list(columns[1])].tolist() if found else [],
            "shown": names[list(columns[2])].tolist() if found else [],
            "similarity": list(columns[3]),
        },
        schema=PAIR_COLUMNS,
    )


def confusion_atlas(pairs: pl.DataFrame, queries: Sequence[str], *, depth: int | None = None) -> pl.DataFrame:
    """Count the pairs of :func:`concept_pairs`: one row per expected and shown concept, the most frequent first.

    ``depth`` lifts both to the kinds that many steps below the top of WordNet's tree; a pair within one kind then has
    it on both sides. ``count`` is in how many failures the pair occurs, each once. ``share`` is of all failures that
    have a pair, ``share_of_expected`` of those that have one for the same expected concept. ``lift`` says how much more
    often the two meet than the frequency of each would have it. ``examples`` are the first queries, the most similar
    concepts first.
    """
    names = {one: lifted(one, depth) for one in sorted({*pairs["expected"], *pairs["shown"]})}
    ends = [pl.col(side).replace(names).alias(side) for side in ("expected", "shown")]
    once = (
        pairs.with_columns(ends)
        .group_by("failure", "expected", "shown", maintain_order=True)
        .agg(pl.col("similarity").max())
    )
    whole = once["failure"].n_unique()
    by_expected = once.group_by("expected").agg(pl.col("failure").n_unique().alias("of_expected"))
    by_shown = once.group_by("shown").agg(pl.col("failure").n_unique().alias("of_shown"))
    ordered = once.sort(["similarity", "failure"], descending=[True, False], maintain_order=True)
    counted = ordered.group_by("expected", "shown", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("similarity").mean(),
        pl.col("failure").head(EXAMPLES).alias("examples"),
    )
    named = pl.Series("examples", [[queries[row] for row in some] for some in counted["examples"].to_list()],
                      dtype=pl.List(pl.String))  # fmt: skip
    return (
        counted.with_columns(named)
        .join(by_expected, on="expected", how="left")
        .join(by_shown, on="shown", how="left")
        .with_columns(
            (pl.col("count") / whole).alias("share"),
            (pl.col("count") / pl.col("of_expected")).alias("share_of_expected"),
            (pl.col("count").cast(pl.Float64) * whole / (pl.col("of_expected") * pl.col("of_shown"))).alias("lift"),
        )
        .select(pl.col(name).cast(kind) for name, kind in ATLAS_COLUMNS.items())
        .sort(["count", "expected", "shown"], descending=[True, False, False])
    )


def _concepts(objects: ImageObjects, image: int) -> list[int]:
    some = objects.concepts[objects.offsets[image] : objects.offsets[image + 1]]
    return [int(one) for one in np.unique(some) if one >= 0]


class _Similarities:
    """Path similarities between the concepts of a dataset, rows of them as they are asked for."""

    def __init__(self, synsets: tuple[str, ...]) -> None:
        self._ids = wordnet().ids(synsets) if synsets else np.empty(0, np.int64)
        self._rows: dict[int, Array] = {}
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, int, float]]] = {}

    def matched(self, missing: list[int], extra: list[int]) -> list[tuple[int, int, float]]:
        """The matched pairs of one failure; many failures lack and have the same."""
        key = tuple(missing), tuple(extra)
        if key not in self._known:
            weights = np.stack([self._row(one)[extra] for one in missing])
            self._known[key] = [(missing[row], extra[at], float(weights[row, at])) for row, at in most_similar(weights)]
        return self._known[key]

    def _row(self, concept: int) -> Array:
        if concept not in self._rows:
            self._rows[concept] = wordnet().path_similarities(self._ids[[concept]], self._ids)[0]
        return self._rows[concept]
