"""Concept metrics of many failures: assignment problems set up and summed by compiled loops, solved by scipy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import polars as pl

from crosslens.explanations.concepts.comparison import SizeComparison
from crosslens.explanations.concepts.lexicon import Array, attribute_bits, canonical_synset
from crosslens.explanations.concepts.metric_kernels import (
    Assignments,
    FailureRows,
    MetricSums,
    ObjectIndex,
    Weights,
    count_concepts,
    fill_costs,
    sum_matched,
)
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.language import load_wordnet
from crosslens.similarity import in_parallel, thread_count

Mentions = Sequence[Iterable[str]]

_BATCH = 1024
"""Failures whose assignment problems are held in memory at the same time."""
_ROWS_AT_ONCE = 512
_SUMS = ("concept_sum", "size_sum", "attribute_sum", "relation_sum")


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
    sums = MetricSums(*(np.zeros(count, np.float64 if name in _SUMS else np.int64) for name in MetricSums._fields))
    images, rows = np.unique(np.concatenate([ground_truth, retrieved]), return_inverse=True)
    index, synsets = index_objects(objects, images)
    row_of = {synset: row for row, synset in enumerate(synsets)}
    failures = FailureRows(rows[:count], rows[count:], mentioned is not None, *_mention_rows(mentioned, row_of))
    weights = Weights(path_steps(synsets), sizes.threshold, sizes.base == "min")
    in_parallel(partial(_solve, index, failures, weights, sums), count, thread_count(threads))
    return sums


def index_objects(objects: ImageObjects, images: Array) -> tuple[ObjectIndex, list[str]]:
    """The index over the images of these rows, numbered by their position in ``images``, and its synsets."""
    counts = objects.offsets[images + 1] - objects.offsets[images]
    image = np.repeat(np.arange(images.size), counts)
    rows = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + objects.offsets[images][image]
    used, concepts = np.unique(objects.keys[rows], return_inverse=True)
    bits = attribute_bits([objects.attributes[row] for row in rows])
    areas, boxes = objects.areas[rows], objects.boxes[rows]
    # All that tells objects apart is in the order: that of the annotation must not matter, not even for rounding.
    order = np.lexsort((*boxes.T[::-1], *bits.T[::-1], areas, concepts, image))
    image, concepts, areas, boxes, bits = (column[order] for column in (image, concepts, areas, boxes, bits))
    _, firsts, run = np.unique(image * used.size + concepts, return_index=True, return_inverse=True)
    synsets = [objects.synsets[row] for row in used if row < len(objects.synsets)]
    index = ObjectIndex(
        synsets=len(synsets),
        run_offsets=np.searchsorted(image[firsts], np.arange(images.size + 1)),
        concepts=concepts[firsts],
        starts=np.append(firsts, image.size),
        sized=np.bincount(run[areas > 0], minlength=firsts.size),
        described=np.bincount(run[bits.any(axis=1)], minlength=firsts.size),
        areas=areas,
        boxes=boxes,
        bits=bits,
    )
    return index, synsets


def path_steps(synsets: Sequence[str]) -> Array:
    """Steps between every two synsets, as bytes: a matrix of similarities is eight times as large.

    There always is a path: nouns share a root, and for other words one is simulated.
    """
    wn = load_wordnet()
    rows = wn.ids(synsets)
    steps = np.empty((rows.size, rows.size), dtype=np.uint8)
    for start in range(0, rows.size, _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        steps[block] = np.rint(1.0 / wn.path_similarities(rows[block], rows) - 1.0)
    return steps


def _mention_rows(mentioned: Mentions | None, row_of: dict[str, int]) -> tuple[Array, Array]:
    """Offsets and sorted rows of the concepts that each query mentions."""
    if mentioned is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    known = [sorted({row_of[name] for name in map(canonical_synset, names) if name in row_of}) for names in mentioned]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in known])]).astype(np.int64)
    return offsets, np.array([row for rows in known for row in rows], dtype=np.int64)


def _solve(
    index: ObjectIndex, failures: FailureRows, weights: Weights, sums: MetricSums, start: int, stop: int
) -> None:
    most = int(np.diff(index.run_offsets).max(initial=0))
    for first in range(start, stop, _BATCH):
        last = min(first + _BATCH, stop)
        sizes = np.zeros((last - first, 2), dtype=np.int64)
        count_concepts(index, failures, first, last, most, sums, sizes)
        count, cells = sizes.sum(axis=0).tolist()
        numbers = (np.empty(count, np.int64) for _ in range(5))
        problems = Assignments(np.empty(cells), np.empty(cells), np.zeros(cells, np.int8), *numbers)
        fill_costs(index, failures, weights, first, last, most, np.cumsum(sizes, axis=0) - sizes, problems)
        firsts = np.cumsum(problems.rows) - problems.rows
        sum_matched(problems, _assign_rows(problems, firsts), firsts, weights.threshold, sums)


def _assign_rows(problems: Assignments, firsts: Array) -> Array:
    """Solve the problems of two rows and more: the column of each row."""
    from scipy.optimize import linear_sum_assignment

    chosen = np.empty(int(problems.rows.sum()), dtype=np.int64)
    large = np.flatnonzero(problems.rows > 1)
    parts = (problems.rows[large], problems.columns[large], problems.cells[large], firsts[large])
    for rows, columns, cell, first in zip(*(part.tolist() for part in parts), strict=True):
        costs = problems.costs[cell : cell + rows * columns].reshape(rows, columns)
        chosen[first : first + rows] = linear_sum_assignment(costs)[1]
    return chosen


def metric_columns(sums: MetricSums) -> dict[str, pl.Series]:
    """The columns of the table, and more: floats and integers."""
    synsets = sums.common + sums.missing
    floats = {
        "CA": _shares(sums.common, synsets),
        "NonCommonSimilarity": _shares(sums.concept_sum, sums.concept_pairs),
        "CE": pl.Series(sums.count_error, dtype=pl.Float64),
        "SD": pl.Series(sums.size_sum).set(pl.Series(sums.box_pairs == 0), None),
        "SD[binary]": _shares(sums.box_pairs_over, sums.box_pairs),
        "object_hit": pl.Series(sums.hit, dtype=pl.Float64),
        "object_miss": pl.Series(sums.miss, dtype=pl.Float64),
        "object_extra": pl.Series(sums.more, dtype=pl.Float64),
        "matched_synsets": _shares(sums.concept_pairs, sums.missing + sums.extra),
        "wrong_count": _shares(sums.wrong_counts, sums.common),
        "attribute_agreement": _shares(sums.attribute_sum, sums.attribute_pairs),
        "spatial_agreement": _shares(sums.relation_sum, sums.relation_pairs),
    }
    whole = {"synsets_ground_truth": synsets, "synsets_retrieved": sums.common + sums.extra}
    integers = whole | {name: values for name, values in sums._asdict().items() if name not in _SUMS}
    return floats | {name: pl.Series(values, dtype=pl.Int64) for name, values in integers.items()}


def _shares(part: Array, whole: Array) -> pl.Series:
    """``part / whole``, null where ``whole`` is 0."""
    return pl.Series(part / np.maximum(whole, 1), dtype=pl.Float64).set(pl.Series(whole == 0), None)
