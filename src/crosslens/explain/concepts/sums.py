"""Concept metrics of many failures: matchings laid out and added up by compiled loops, solved by scipy in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.explain.concepts.comparison import Rules
from crosslens.explain.concepts.index import Index, index_of, path_steps
from crosslens.explain.concepts.kernels import add_up, choose_nearest, lay_out, survey
from crosslens.explain.concepts.naming import canonical_synset
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.concepts.problems import Failures, Problems, Sums, Weights, room_for
from crosslens.similarity.threads import in_parallel, thread_count

Array = np.ndarray[Any, Any]
Mentions = Sequence[Iterable[str]]

_TOGETHER = 1024
"""Failures whose matchings are held at once."""
_SIMILARITIES = 1.0 / np.arange(1, 257)
_REAL = ("relation_sum", "concept_sum", "size_sum", "attribute_sum")


def concept_sums(
    objects: ImageObjects,
    ground_truth: Array,
    retrieved: Array,
    mentioned: Mentions | None,
    rules: Rules,
    threads: int | None,
) -> Sums:
    """Per failure what the columns of the table are made of."""
    count = ground_truth.size
    sums = Sums(*(np.zeros(count, np.float64 if name in _REAL else np.int64) for name in Sums._fields))
    images, rows = np.unique(np.concatenate([ground_truth, retrieved]), return_inverse=True)
    index = index_of(objects, images)
    used, concepts = np.unique(index.concepts, return_inverse=True)
    index = index._replace(concepts=concepts.astype(np.int64))
    synsets = [objects.synsets[one] for one in used]
    failures = _failures(rows[:count], rows[count:], mentioned, {one: at for at, one in enumerate(synsets)})
    weights = Weights(path_steps(synsets), _SIMILARITIES, rules.threshold, rules.base == "min")
    work = partial(_several, index, failures, weights, sums)
    in_parallel(work, count, thread_count(threads))
    return sums


def _failures(ground_truth: Array, retrieved: Array, mentioned: Mentions | None, row: dict[str, int]) -> Failures:
    if mentioned is None:
        nothing = np.zeros(0, np.int64)
        return Failures(ground_truth, retrieved, False, nothing, nothing)
    known = [sorted({row[one] for one in map(canonical_synset, some) if one in row}) for some in mentioned]
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in known])]).astype(np.int64)
    return Failures(
        ground_truth, retrieved, True, offsets, np.array([one for some in known for one in some], dtype=np.int64)
    )


def _several(index: Index, failures: Failures, weights: Weights, sums: Sums, start: int, stop: int) -> None:
    for first in range(start, stop, _TOGETHER):
        _together(index, failures, weights, sums, first, min(first + _TOGETHER, stop))


def _together(index: Index, failures: Failures, weights: Weights, sums: Sums, start: int, stop: int) -> None:
    most = int(np.diff(index.run_offsets).max(initial=0))
    sizes = np.zeros((stop - start, 2), dtype=np.int64)
    survey(index, failures, start, stop, most, sums, sizes)
    count, cells = (int(one) for one in sizes.sum(axis=0))
    problems = room_for(count, cells)
    lay_out(index, failures, weights, start, stop, most, np.cumsum(sizes, axis=0) - sizes, problems)
    firsts = np.cumsum(problems.rows) - problems.rows
    chosen = np.empty(int(problems.rows.sum()), dtype=np.int64)
    choose_nearest(problems, chosen, firsts)
    _solve(problems, chosen, firsts)
    add_up(problems, chosen, firsts, weights.threshold, sums)


def _solve(problems: Problems, chosen: Array, firsts: Array) -> None:
    """The matchings of two rows and more."""
    from scipy.optimize import linear_sum_assignment

    large = np.flatnonzero(problems.rows > 1)
    parts = (problems.rows[large], problems.columns[large], problems.cells[large], firsts[large])
    for rows, columns, cell, first in zip(*(part.tolist() for part in parts), strict=True):
        costs = problems.costs[cell : cell + rows * columns].reshape(rows, columns)
        chosen[first : first + rows] = linear_sum_assignment(costs)[1]


def checked_rows(rows: Sequence[int] | Array, objects: ImageObjects, what: str) -> Array:
    """Rows of images as an array."""
    found = np.asarray(rows)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UsageError(f"{what} are {found.dtype} of shape {found.shape}", fix="give the numbers of images in a list")
    bad = np.flatnonzero((found < 0) | (found >= objects.images))
    if bad.size:
        raise InputError(
            f"no image has the row {int(found[bad[0]])}",
            row=int(bad[0]),
            expected=f"0 to {objects.images - 1}",
            fix="objects.rows(ids) finds the rows of images",
        )
    return found.astype(np.int64)
