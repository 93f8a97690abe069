"""Concept metrics: what a wrongly retrieved image has and lacks, in objects, counts, sizes, attributes and places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import UsageError
from crosslens.explain.concepts.comparison import Rules, compare_images
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.concepts.plain_objects import Objects, Size, plain_objects
from crosslens.explain.concepts.problems import Sums

Array = np.ndarray[Any, Any]

METRICS = (
    "CA",
    "NonCommonSimilarity",
    "CE",
    "SD",
    "SD[binary]",
    "object_hit",
    "object_miss",
    "object_extra",
    "matched_synsets",
    "wrong_count",
    "attribute_agreement",
    "spatial_agreement",
)
"""The float columns of a table and keys of one comparison; null (None) where a metric is undefined."""

TALLIES = (
    "synsets_ground_truth",
    "synsets_retrieved",
    "common",
    "missing",
    "extra",
    "concept_pairs",
    "wrong_counts",
    "box_pairs",
    "box_pairs_over",
    "attribute_pairs",
    "relation_pairs",
)
"""The integer columns of a table: how many of each lie behind the metrics, for shares over all failures together."""


def concept_metrics(
    ground_truth: Objects,
    retrieved: Objects,
    *,
    threshold: float = 1.0,
    base: str = "ground_truth",
    sizes: tuple[Size, Size] | None = None,
    mentioned: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Every concept metric of one failure, from plain values.

    ``ground_truth`` and ``retrieved`` are lists of objects, each ``{"synset": …}`` or ``{"name": …}``, optionally with
    ``"box": [x, y, w, h]`` and ``"attributes": [word, …]``. ``sizes``, width and height of both pictures, makes the
    areas of boxes shares of the picture; without, boxes are taken as they are. ``threshold`` is the T of
    ``SD[binary]``; ``base`` what a difference of areas is divided by: ``"ground_truth"`` or ``"min"``. ``mentioned``
    restricts everything to these synsets: the query-informed variants.

    Undefined values are None. Beside the metrics: ``common``, ``missing``, ``extra`` (synsets), ``concept_pairs``
    [(missing, extra, similarity)], ``counts`` {synset: (ground truth, retrieved)}, ``box_pairs`` [(synset, object of
    the ground truth, object retrieved, area, area, difference)], ``attributes`` and ``relations``; objects are numbered
    as they were given.
    """
    objects = plain_objects(ground_truth, retrieved, sizes)
    return compare_images(objects, 0, 1, mentioned=mentioned, rules=Rules(threshold, base))


def concept_table(
    objects: ImageObjects,
    ground_truth_rows: Sequence[int] | Array,
    retrieved_rows: Sequence[int] | Array,
    *,
    mentioned: Sequence[Iterable[str]] | None = None,
    threshold: float = 1.0,
    base: str = "ground_truth",
    threads: int | None = None,
) -> pl.DataFrame:
    """One row per failure with the columns ``METRICS`` (Float64, null where undefined) and ``TALLIES`` (Int64).

    ``mentioned``: per failure the synsets that its query mentions, which restricts every column to them.
    """
    from crosslens.explain.concepts.sums import checked_rows, concept_sums

    rules = Rules(threshold, base)
    rows = checked_rows(ground_truth_rows, objects, "ground_truth_rows")
    others = checked_rows(retrieved_rows, objects, "retrieved_rows")
    for what, length in (
        ("retrieved_rows", others.size),
        ("mentioned", rows.size if mentioned is None else len(mentioned)),
    ):
        if length != rows.size:
            raise UsageError(f"{rows.size} ground_truth_rows, but {length} {what}", fix="give one of each per failure")
    sums = concept_sums(objects, rows, others, mentioned, rules, threads)
    return pl.DataFrame(_columns(sums))


def _columns(sums: Sums) -> dict[str, pl.Series]:
    synsets = sums.common + sums.missing
    real = {
        "CA": _shares(sums.common, synsets),
        "NonCommonSimilarity": _shares(sums.concept_sum, sums.concept_pairs),
        "CE": pl.Series(sums.count_error, dtype=pl.Float64),
        "SD": pl.Series(sums.size_sum).set(pl.Series(sums.box_pairs == 0), None),
        "SD[binary]": _shares(sums.box_over, sums.box_pairs),
        "object_hit": pl.Series(sums.hit, dtype=pl.Float64),
        "object_miss": pl.Series(sums.miss, dtype=pl.Float64),
        "object_extra": pl.Series(sums.more, dtype=pl.Float64),
        "matched_synsets": _shares(sums.concept_pairs, sums.missing + sums.extra),
        "wrong_count": _shares(sums.wrong, sums.common),
        "attribute_agreement": _shares(sums.attribute_sum, sums.attribute_pairs),
        "spatial_agreement": _shares(sums.relation_sum, sums.relation_pairs),
    }
    whole = (
        synsets,
        sums.common + sums.extra,
        sums.common,
        sums.missing,
        sums.extra,
        sums.concept_pairs,
        sums.wrong,
        sums.box_pairs,
        sums.box_over,
        sums.attribute_pairs,
        sums.relation_pairs,
    )
    return real | {name: pl.Series(values, dtype=pl.Int64) for name, values in zip(TALLIES, whole, strict=True)}


def _shares(part: Array, whole: Array) -> pl.Series:
    """``part / whole``, null where there is nothing to take a share of."""
    return pl.Series(part / np.maximum(whole, 1), dtype=pl.Float64).set(pl.Series(whole == 0), None)


def tallies(comparison: Mapping[str, Any], threshold: float = 1.0) -> dict[str, int]:
    """The integer columns of one comparison."""
    common, missing, extra = (len(comparison[name]) for name in ("common", "missing", "extra"))
    return {
        "synsets_ground_truth": common + missing,
        "synsets_retrieved": common + extra,
        "common": common,
        "missing": missing,
        "extra": extra,
        "concept_pairs": len(comparison["concept_pairs"]),
        "wrong_counts": sum(one != other for one, other in comparison["counts"].values()),
        "box_pairs": len(comparison["box_pairs"]),
        "box_pairs_over": sum(pair[5] >= threshold for pair in comparison["box_pairs"]),
        "attribute_pairs": len(comparison["attributes"]),
        "relation_pairs": len(comparison["relations"]),
    }
