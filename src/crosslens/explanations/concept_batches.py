"""Concept metrics of many failures: assignment problems set up and summed by compiled loops, solved by scipy."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from functools import partial

import numba
import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.explanations.concepts import RELATIONS, TALLIES, TIE, SizeComparison, relation_number
from crosslens.explanations.lexicon import attribute_bits, canonical_synset
from crosslens.explanations.objects import ImageObjects
from crosslens.language import load_wordnet
from crosslens.similarity import in_parallel, thread_count
from crosslens.storage import Array

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
_relation = compiled(relation_number)
_RELATIONS = len(RELATIONS)
_NONE = 1 << 60
"""Above all concepts."""

CONCEPTS, BOXES, ATTRIBUTES = 0, 1, 2
"""What an assignment problem matches."""

ObjectIndex = namedtuple("ObjectIndex", "synsets run_offsets concepts starts sized described areas boxes bits")
"""Objects in runs of one image and one concept: by image, then concept, then size.

``synsets``      how many concepts are synsets; those from this number on are names without one
``run_offsets``  the runs of image i are ``run_offsets[i]:run_offsets[i + 1]``, by concept
``concepts``     per run
``starts``       the objects of run j are ``starts[j]:starts[j + 1]``, those with an area first, smallest first
``sized``        per run, how many have an area; ``described``: a colour, size or material
``areas``, ``boxes``, ``bits``  per object (bits: see ``attribute_bits``)
"""
FailureRows = namedtuple("FailureRows", "ground_truth retrieved restricted mention_offsets mentions")
"""Rows of the index, and per failure the sorted concepts that its query mentions, if only these count."""
Weights = namedtuple("Weights", "steps threshold by_smaller")
"""The distance of every two concepts in steps, and how boxes are compared."""
Assignments = namedtuple("Assignments", "costs values comparable failure kind rows columns cells")
"""Assignment problems, one after the other; the cells of problem p start at ``cells[p]``, rows ≤ columns."""
MetricSums = namedtuple(
    "MetricSums",
    """common missing extra hit miss more count_error wrong_counts concept_pairs concept_sum box_pairs box_pairs_over
    size_sum attribute_pairs attribute_sum relation_pairs relation_sum""",
)
"""Counts and sums per failure."""


@compiled
def _is_mentioned(failures: FailureRows, failure: int, concept: int) -> bool:
    if not failures.restricted:
        return True
    start, stop = failures.mention_offsets[failure], failures.mention_offsets[failure + 1]
    position = start + np.searchsorted(failures.mentions[start:stop], concept)
    return bool(position < stop and failures.mentions[position] == concept)


@compiled
def _split(
    index: ObjectIndex, failures: FailureRows, failure: int, limit: int, missing: Array, extra: Array, common: Array
) -> tuple[int, int, int]:
    """Merge the concepts below ``limit``: runs of either image, and of both in pairs; how many of each."""
    image, other = failures.ground_truth[failure], failures.retrieved[failure]
    mine, left_end = index.run_offsets[image], index.run_offsets[image + 1]
    theirs, right_end = index.run_offsets[other], index.run_offsets[other + 1]
    lost, added, shared = 0, 0, 0
    while mine < left_end or theirs < right_end:
        left = index.concepts[mine] if mine < left_end else _NONE
        right = index.concepts[theirs] if theirs < right_end else _NONE
        if min(left, right) >= limit:
            break
        is_mentioned = _is_mentioned(failures, failure, min(left, right))
        if left == right:
            if is_mentioned:
                common[shared, 0], common[shared, 1] = mine, theirs
                shared += 1
            mine, theirs = mine + 1, theirs + 1
        elif left < right:
            if is_mentioned:
                missing[lost] = mine
                lost += 1
            mine += 1
        else:
            if is_mentioned:
                extra[added] = theirs
                added += 1
            theirs += 1
    return lost, added, shared


@compiled
def count_concepts(
    index: ObjectIndex, failures: FailureRows, start: int, stop: int, most: int, sums: MetricSums, sizes: Array
) -> None:
    """What needs no matching; and in ``sizes`` per failure the number of its assignment problems and their cells."""
    missing, extra, common = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 2), np.int64)
    for failure in range(start, stop):
        miss, more, hit = _split(index, failures, failure, _NONE, missing, extra, common)
        sums.miss[failure], sums.more[failure], sums.hit[failure] = miss, more, hit
        lost, added, shared = _split(index, failures, failure, index.synsets, missing, extra, common)
        sums.missing[failure], sums.extra[failure], sums.common[failure] = lost, added, shared
        problems, cells = 0, 0
        if lost > 0 and added > 0:
            problems, cells = 1, lost * added
        for pair in range(shared):
            mine, theirs = common[pair, 0], common[pair, 1]
            count, other = index.starts[mine + 1] - index.starts[mine], index.starts[theirs + 1] - index.starts[theirs]
            sums.count_error[failure] += abs(count - other)
            sums.wrong_counts[failure] += count != other
            for counts in (index.sized, index.described):
                if counts[mine] > 0 and counts[theirs] > 0:
                    problems, cells = problems + 1, cells + counts[mine] * counts[theirs]
        sizes[failure - start, 0], sizes[failure - start, 1] = problems, cells
        _add_relations(index, failure, common, shared, sums)


@compiled
def _add_relations(index: ObjectIndex, failure: int, common: Array, shared: int, sums: MetricSums) -> None:
    shares = np.empty((2, _RELATIONS))
    for first in range(shared):
        for second in range(first + 1, shared):
            has_boxes = True
            for side in range(2):
                has_boxes = has_boxes and _relation_shares(
                    index, common[first, side], common[second, side], shares[side]
                )
            if has_boxes:
                agreement = 0.0
                for relation in range(_RELATIONS):
                    agreement += min(shares[0, relation], shares[1, relation])
                sums.relation_pairs[failure] += 1
                sums.relation_sum[failure] += agreement


@compiled
def _relation_shares(index: ObjectIndex, mine: int, theirs: int, shares: Array) -> bool:
    """Of all pairs of boxes of two runs, the share in each relation; False where a run has no box."""
    pairs = 0
    shares[:] = 0.0
    for left in range(index.starts[mine], index.starts[mine + 1]):
        if not np.isnan(index.boxes[left, 0]):
            for right in range(index.starts[theirs], index.starts[theirs + 1]):
                if not np.isnan(index.boxes[right, 0]):
                    shares[_relation(index.boxes[left], index.boxes[right])] += 1
                    pairs += 1
    if pairs > 0:
        shares /= pairs
    return pairs > 0


@compiled
def fill_costs(
    index: ObjectIndex,
    failures: FailureRows,
    weights: Weights,
    start: int,
    stop: int,
    most: int,
    firsts: Array,
    problems: Assignments,
) -> None:
    """Write the problems of each failure from ``firsts`` on (number of the first problem, its first cell)."""
    missing, extra, common = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 2), np.int64)
    for failure in range(start, stop):
        at, cell = firsts[failure - start, 0], firsts[failure - start, 1]
        lost, added, shared = _split(index, failures, failure, index.synsets, missing, extra, common)
        if lost > 0 and added > 0:
            _add_assignment(problems, at, failure, CONCEPTS, lost, added, cell)
            _concepts(index, weights, missing[:lost], extra[:added], cell, problems)
            at, cell = at + 1, cell + lost * added
        for pair in range(shared):
            mine, theirs = common[pair, 0], common[pair, 1]
            if index.sized[mine] > 0 and index.sized[theirs] > 0:
                _add_assignment(problems, at, failure, BOXES, index.sized[mine], index.sized[theirs], cell)
                _boxes(index, weights, mine, theirs, cell, problems)
                at, cell = at + 1, cell + index.sized[mine] * index.sized[theirs]
            if index.described[mine] > 0 and index.described[theirs] > 0:
                _add_assignment(problems, at, failure, ATTRIBUTES, index.described[mine], index.described[theirs], cell)
                _attributes(index, mine, theirs, cell, problems)
                at, cell = at + 1, cell + index.described[mine] * index.described[theirs]


@compiled
def _add_assignment(
    problems: Assignments, at: int, failure: int, kind: int, rows: int, columns: int, cell: int
) -> None:
    problems.failure[at], problems.kind[at], problems.cells[at] = failure, kind, cell
    problems.rows[at], problems.columns[at] = min(rows, columns), max(rows, columns)


@compiled
def _cell(first: int, row: int, column: int, rows: int, columns: int) -> int:
    """The index of a cell: the smaller side is the rows, whichever image that is."""
    return first + (row * columns + column if rows <= columns else column * rows + row)


@compiled
def _concepts(
    index: ObjectIndex, weights: Weights, missing: Array, extra: Array, first: int, problems: Assignments
) -> None:
    for row in range(missing.size):
        for column in range(extra.size):
            steps = weights.steps[index.concepts[missing[row]], index.concepts[extra[column]]]
            similarity = 1.0 / (1.0 + steps)
            cell = _cell(first, row, column, missing.size, extra.size)
            problems.values[cell] = similarity
            problems.costs[cell] = -similarity


@compiled
def _boxes(index: ObjectIndex, weights: Weights, mine: int, theirs: int, first: int, problems: Assignments) -> None:
    rows, columns = index.sized[mine], index.sized[theirs]
    for row in range(rows):
        for column in range(columns):
            area, other = index.areas[index.starts[mine] + row], index.areas[index.starts[theirs] + column]
            difference = abs(area - other) / (min(area, other) if weights.by_smaller else area)
            cell = _cell(first, row, column, rows, columns)
            problems.values[cell] = difference
            problems.costs[cell] = difference + (TIE if difference >= weights.threshold else 0.0)


@compiled
def _attributes(index: ObjectIndex, mine: int, theirs: int, first: int, problems: Assignments) -> None:
    rows, columns = index.described[mine], index.described[theirs]
    worth = 3.0 * min(rows, columns) + 1.0
    row = 0
    for left in range(index.starts[mine], index.starts[mine + 1]):
        if not index.bits[left].any():
            continue
        column = 0
        for right in range(index.starts[theirs], index.starts[theirs + 1]):
            if not index.bits[right].any():
                continue
            comparable, agreement = _agreement(index.bits[left], index.bits[right])
            cell = _cell(first, row, column, rows, columns)
            problems.values[cell], problems.comparable[cell] = agreement, comparable
            problems.costs[cell] = -(worth * comparable + agreement)
            column += 1
        row += 1


@compiled
def _agreement(bits: Array, other: Array) -> tuple[int, float]:
    comparable, agreement = 0, 0.0
    for family in range(bits.size):
        if bits[family] != 0 and other[family] != 0:
            comparable += 1
            agreement += _bit_count(bits[family] & other[family]) / _bit_count(bits[family] | other[family])
    return comparable, agreement


@compiled
def _bit_count(bits: np.uint64) -> int:
    count = 0
    while bits != np.uint64(0):
        bits &= bits - np.uint64(1)
        count += 1
    return count


@compiled
def sum_matched(problems: Assignments, matched: Array, firsts: Array, threshold: float, sums: MetricSums) -> None:
    """Add the matched values to each failure's sums.

    ``matched[firsts[p] + row]`` is the column of a row; a problem with a single row takes its cheapest column.
    """
    for at in range(problems.rows.size):
        failure, kind, rows = problems.failure[at], problems.kind[at], problems.rows[at]
        total, pairs, over = 0.0, 0, 0
        first, columns = problems.cells[at], problems.columns[at]
        for row in range(rows):
            column = matched[firsts[at] + row] if rows > 1 else np.argmin(problems.costs[first : first + columns])
            cell = first + row * columns + column
            value = problems.values[cell]
            total += value
            pairs += problems.comparable[cell] if kind == ATTRIBUTES else 1
            over += kind == BOXES and value >= threshold
        if kind == CONCEPTS:
            sums.concept_pairs[failure], sums.concept_sum[failure] = pairs, total
        elif kind == BOXES:
            sums.box_pairs[failure] += pairs
            sums.box_pairs_over[failure] += over
            sums.size_sum[failure] += total / pairs
        else:
            sums.attribute_pairs[failure] += pairs
            sums.attribute_sum[failure] += total


_BATCH = 1024
"""Failures whose assignment problems are held in memory at the same time."""
_ROWS_AT_ONCE = 512
_SUMS = ("concept_sum", "size_sum", "attribute_sum", "relation_sum")


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
    """One row per failure with the columns ``METRICS`` (null where undefined) and ``TALLIES``.

    ``mentioned``: per failure the synsets that its query mentions, which restricts every column to them.
    """
    rows = _checked_rows(ground_truth_rows, objects, "ground_truth_rows")
    retrieved = _checked_rows(retrieved_rows, objects, "retrieved_rows")
    lengths = {"retrieved_rows": retrieved.size, "mentioned": rows.size if mentioned is None else len(mentioned)}
    for name, length in lengths.items():
        if length != rows.size:
            fix = "pass one of each per failure"
            raise UsageError(f"{rows.size} ground_truth_rows, but {length} {name}", fix=fix, option=name)
    sizes = SizeComparison(threshold, base)
    sums = MetricSums(*(np.zeros(rows.size, np.float64 if name in _SUMS else np.int64) for name in MetricSums._fields))
    images, positions = np.unique(np.concatenate([rows, retrieved]), return_inverse=True)
    index, synsets = index_objects(objects, images)
    offsets, mentions = np.zeros((2, 0), np.int64)
    if mentioned is not None:  # per query the sorted rows of the concepts that it mentions
        row_of = {synset: row for row, synset in enumerate(synsets)}
        mentioned_rows = [
            sorted({row_of[name] for name in map(canonical_synset, names) if name in row_of}) for names in mentioned
        ]
        offsets = np.concatenate([[0], np.cumsum([len(members) for members in mentioned_rows])]).astype(np.int64)
        mentions = np.array([row for members in mentioned_rows for row in members], dtype=np.int64)
    failures = FailureRows(positions[: rows.size], positions[rows.size :], mentioned is not None, offsets, mentions)
    # Steps between every two synsets, as bytes: a matrix of similarities is eight times as large. There always is a
    # path: nouns share a root, and for other words one is simulated.
    wordnet = load_wordnet()
    ids = wordnet.ids(synsets)
    steps = np.empty((ids.size, ids.size), dtype=np.uint8)
    for start in range(0, ids.size, _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        steps[block] = np.rint(1.0 / wordnet.path_similarities(ids[block], ids) - 1.0)
    weights = Weights(steps, sizes.threshold, sizes.base == "min")
    in_parallel(partial(_solve, index, failures, weights, sums), rows.size, thread_count(threads))
    whole = sums.common + sums.missing
    columns = {
        "CA": _shares(sums.common, whole),
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
    tallies = {**sums._asdict(), "synsets_ground_truth": whole, "synsets_retrieved": sums.common + sums.extra}
    return pl.DataFrame(columns | {name: pl.Series(tallies[name], dtype=pl.Int64) for name in TALLIES})


def _checked_rows(rows: Sequence[int] | Array, objects: ImageObjects, name: str) -> Array:
    array = np.asarray(rows)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        problem = f"{name} are {array.dtype} of shape {array.shape}"
        raise UsageError(problem, fix="pass a list of the row numbers of images", option=name)
    bad = np.flatnonzero((array < 0) | (array >= objects.images))
    if bad.size:
        raise InputError(
            f"no image has the row {int(array[bad[0]])}",
            row=int(bad[0]),
            expected=f"0 to {objects.images - 1}",
            fix="objects.rows(ids) finds the rows of images",
        )
    return array.astype(np.int64)


def index_objects(objects: ImageObjects, images: Array) -> tuple[ObjectIndex, list[str]]:
    """The index over the images of these rows, numbered by their position in ``images``, and its synsets."""
    counts = objects.offsets[images + 1] - objects.offsets[images]
    image = np.repeat(np.arange(images.size), counts)
    rows = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + objects.offsets[images][image]
    keys, concepts = np.unique(objects.keys[rows], return_inverse=True)
    bits = attribute_bits([objects.attributes[row] for row in rows])
    areas, boxes = objects.areas[rows], objects.boxes[rows]
    # All that tells objects apart is in the order: that of the annotation must not matter, not even for rounding.
    order = np.lexsort((*boxes.T[::-1], *bits.T[::-1], areas, concepts, image))
    image, concepts, areas, boxes, bits = (column[order] for column in (image, concepts, areas, boxes, bits))
    _, firsts, run = np.unique(image * keys.size + concepts, return_index=True, return_inverse=True)
    synsets = [objects.synsets[row] for row in keys if row < len(objects.synsets)]
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


def _solve(
    index: ObjectIndex, failures: FailureRows, weights: Weights, sums: MetricSums, start: int, stop: int
) -> None:
    from scipy.optimize import linear_sum_assignment

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
        # The problems of two rows and more: the column of each row.
        matched = np.empty(int(problems.rows.sum()), dtype=np.int64)
        large = np.flatnonzero(problems.rows > 1)
        parts = (problems.rows[large], problems.columns[large], problems.cells[large], firsts[large])
        for rows, columns, cell, at in zip(*(part.tolist() for part in parts), strict=True):
            costs = problems.costs[cell : cell + rows * columns].reshape(rows, columns)
            matched[at : at + rows] = linear_sum_assignment(costs)[1]
        sum_matched(problems, matched, firsts, weights.threshold, sums)


def _shares(part: Array, whole: Array) -> pl.Series:
    """``part / whole``, null where ``whole`` is 0."""
    return pl.Series(part / np.maximum(whole, 1), dtype=pl.Float64).set(pl.Series(whole == 0), None)
