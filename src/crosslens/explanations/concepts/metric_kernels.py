"""The compiled loops behind the table of concept metrics: set up assignment problems, then sum their solutions."""

from __future__ import annotations

from collections import namedtuple

import numba
import numpy as np

from crosslens.explanations.concepts.comparison import RELATIONS, TIE, relation_number
from crosslens.explanations.concepts.lexicon import Array

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
    lost, added, both = 0, 0, 0
    while mine < left_end or theirs < right_end:
        left = index.concepts[mine] if mine < left_end else _NONE
        right = index.concepts[theirs] if theirs < right_end else _NONE
        if min(left, right) >= limit:
            break
        counted = _is_mentioned(failures, failure, min(left, right))
        if left == right:
            if counted:
                common[both, 0], common[both, 1] = mine, theirs
                both += 1
            mine, theirs = mine + 1, theirs + 1
        elif left < right:
            if counted:
                missing[lost] = mine
                lost += 1
            mine += 1
        else:
            if counted:
                extra[added] = theirs
                added += 1
            theirs += 1
    return lost, added, both


@compiled
def count_concepts(
    index: ObjectIndex, failures: FailureRows, start: int, stop: int, most: int, sums: MetricSums, sizes: Array
) -> None:
    """What needs no matching; and in ``sizes`` per failure the number of its assignment problems and their cells."""
    missing, extra, common = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 2), np.int64)
    for failure in range(start, stop):
        miss, more, hit = _split(index, failures, failure, _NONE, missing, extra, common)
        sums.miss[failure], sums.more[failure], sums.hit[failure] = miss, more, hit
        lost, added, both = _split(index, failures, failure, index.synsets, missing, extra, common)
        sums.missing[failure], sums.extra[failure], sums.common[failure] = lost, added, both
        problems, cells = 0, 0
        if lost > 0 and added > 0:
            problems, cells = 1, lost * added
        for pair in range(both):
            mine, theirs = common[pair, 0], common[pair, 1]
            count, other = index.starts[mine + 1] - index.starts[mine], index.starts[theirs + 1] - index.starts[theirs]
            sums.count_error[failure] += abs(count - other)
            sums.wrong_counts[failure] += count != other
            for counts in (index.sized, index.described):
                if counts[mine] > 0 and counts[theirs] > 0:
                    problems, cells = problems + 1, cells + counts[mine] * counts[theirs]
        sizes[failure - start, 0], sizes[failure - start, 1] = problems, cells
        _relations(index, failure, common, both, sums)


@compiled
def _relations(index: ObjectIndex, failure: int, common: Array, both: int, sums: MetricSums) -> None:
    shares = np.empty((2, _RELATIONS))
    for first in range(both):
        for second in range(first + 1, both):
            has_boxes = True
            for side in range(2):
                has_boxes = has_boxes and _shares(index, common[first, side], common[second, side], shares[side])
            if has_boxes:
                agreement = 0.0
                for relation in range(_RELATIONS):
                    agreement += min(shares[0, relation], shares[1, relation])
                sums.relation_pairs[failure] += 1
                sums.relation_sum[failure] += agreement


@compiled
def _shares(index: ObjectIndex, mine: int, theirs: int, shares: Array) -> bool:
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
        lost, added, both = _split(index, failures, failure, index.synsets, missing, extra, common)
        if lost > 0 and added > 0:
            _add_assignment(problems, at, failure, CONCEPTS, lost, added, cell)
            _concepts(index, weights, missing[:lost], extra[:added], cell, problems)
            at, cell = at + 1, cell + lost * added
        for pair in range(both):
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
def sum_matched(problems: Assignments, chosen: Array, firsts: Array, threshold: float, sums: MetricSums) -> None:
    """Add the matched values to each failure's sums.

    ``chosen[firsts[p] + row]`` is the column of a row; a problem with a single row takes its cheapest column.
    """
    for at in range(problems.rows.size):
        failure, kind, rows = problems.failure[at], problems.kind[at], problems.rows[at]
        total, pairs, over = 0.0, 0, 0
        first, columns = problems.cells[at], problems.columns[at]
        for row in range(rows):
            column = chosen[firsts[at] + row] if rows > 1 else np.argmin(problems.costs[first : first + columns])
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
