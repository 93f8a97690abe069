"""Concept metrics of many failures: assignment problems set up and summed by compiled loops, solved by scipy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crosslens.explanations.concepts.comparison import SizeComparison
from crosslens.explanations.concepts.kernel_arrays import (
    Assignments,
    FailureRows,
    MetricSums,
    ObjectIndex,
    Weights,
    empty_assignments,
    index_objects,
    path_steps,
)
from crosslens.explanations.concepts.kernels import choose_nearest, count_concepts, fill_costs, sum_matched
from crosslens.explanations.concepts.lexicon import canonical_synset
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.similarity import in_parallel, thread_count

Array = np.ndarray[Any, Any]
Mentions = Sequence[Iterable[str]]

_BATCH = 1024
"""Failures whose assignment problems are held in memory at the same time."""
_SIMILARITIES = 1.0 / np.arange(1, 257)
_FLOATS = ("relation_sum", "concept_sum", "size_sum", "attribute_sum")


def concept_sums(
    objects: ImageObjects,
    ground_truth: Array,
    retrieved: Array,
    mentioned: Mentions | None,
    sizes: SizeComparison,
    threads: int | None,
) -> MetricSums:
    """Per failure the sums and counts that the columns of the table are made of."""
    count = ground_truth.size
    sums = MetricSums(*(np.zeros(count, np.float64 if name in _FLOATS else np.int64) for name in MetricSums._fields))
    images, rows = np.unique(np.concatenate([ground_truth, retrieved]), return_inverse=True)
    index = index_objects(objects, images)
    used, concepts = np.unique(index.concepts, return_inverse=True)
    index = index._replace(concepts=concepts.astype(np.int64))
    synsets = [objects.synsets[row] for row in used]
    row_of = {synset: row for row, synset in enumerate(synsets)}
    failures = FailureRows(rows[:count], rows[count:], mentioned is not None, *_mention_rows(mentioned, row_of))
    weights = Weights(path_steps(synsets), _SIMILARITIES, sizes.threshold, sizes.base == "min")
    in_parallel(partial(_solve_range, index, failures, weights, sums), count, thread_count(threads))
    return sums


def _mention_rows(mentioned: Mentions | None, row_of: dict[str, int]) -> tuple[Array, Array]:
    """Offsets and sorted rows of the concepts that each query mentions."""
    if mentioned is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    known = [sorted({row_of[name] for name in map(canonical_synset, names) if name in row_of}) for names in mentioned]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in known])]).astype(np.int64)
    return offsets, np.array([row for rows in known for row in rows], dtype=np.int64)


def _solve_range(
    index: ObjectIndex, failures: FailureRows, weights: Weights, sums: MetricSums, start: int, stop: int
) -> None:
    for first in range(start, stop, _BATCH):
        _solve_batch(index, failures, weights, sums, first, min(first + _BATCH, stop))


def _solve_batch(
    index: ObjectIndex, failures: FailureRows, weights: Weights, sums: MetricSums, start: int, stop: int
) -> None:
    most = int(np.diff(index.run_offsets).max(initial=0))
    sizes = np.zeros((stop - start, 2), dtype=np.int64)
    count_concepts(index, failures, start, stop, most, sums, sizes)
    problems = empty_assignments(*(int(total) for total in sizes.sum(axis=0)))
    fill_costs(index, failures, weights, start, stop, most, np.cumsum(sizes, axis=0) - sizes, problems)
    firsts = np.cumsum(problems.rows) - problems.rows
    chosen = np.empty(int(problems.rows.sum()), dtype=np.int64)
    choose_nearest(problems, chosen, firsts)
    _assign_rows(problems, chosen, firsts)
    sum_matched(problems, chosen, firsts, weights.threshold, sums)


def _assign_rows(problems: Assignments, chosen: Array, firsts: Array) -> None:
    """Solve the problems of two rows and more."""
    from scipy.optimize import linear_sum_assignment

    large = np.flatnonzero(problems.rows > 1)
    parts = (problems.rows[large], problems.columns[large], problems.cells[large], firsts[large])
    for rows, columns, cell, first in zip(*(part.tolist() for part in parts), strict=True):
        costs = problems.costs[cell : cell + rows * columns].reshape(rows, columns)
        chosen[first : first + rows] = linear_sum_assignment(costs)[1]


def metric_columns(sums: MetricSums) -> dict[str, pl.Series]:
    """The columns of the table, floats and integers."""
    synsets = sums.common + sums.missing
    floats = {
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
    integers = {
        "synsets_ground_truth": synsets,
        "synsets_retrieved": sums.common + sums.extra,
        "common": sums.common,
        "missing": sums.missing,
        "extra": sums.extra,
        "concept_pairs": sums.concept_pairs,
        "wrong_counts": sums.wrong,
        "box_pairs": sums.box_pairs,
        "box_pairs_over": sums.box_over,
        "attribute_pairs": sums.attribute_pairs,
        "relation_pairs": sums.relation_pairs,
    }
    return floats | {name: pl.Series(values, dtype=pl.Int64) for name, values in integers.items()}


def _shares(part: Array, whole: Array) -> pl.Series:
    """``part / whole``, null where ``whole`` is 0."""
    return pl.Series(part / np.maximum(whole, 1), dtype=pl.Float64).set(pl.Series(whole == 0), None)
