"""The compiled loops behind the table of concept metrics: lay out the matchings of many failures, then add them up."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from crosslens.explain.concepts.index import Index
from crosslens.explain.concepts.matching import TIE
from crosslens.explain.concepts.problems import ATTRIBUTES, BOXES, CONCEPTS, Failures, Problems, Sums, Weights
from crosslens.explain.concepts.spatial import RELATIONS, relation_number

Array = np.ndarray[Any, Any]

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
_relation = compiled(relation_number)
_RELATIONS = len(RELATIONS)
_NONE = 1 << 60
"""Above all concepts."""


@compiled
def _counts_here(failures: Failures, failure: int, concept: int) -> bool:
    if not failures.restricted:
        return True
    start, stop = failures.mention_offsets[failure], failures.mention_offsets[failure + 1]
    place = start + np.searchsorted(failures.mentions[start:stop], concept)
    return bool(place < stop and failures.mentions[place] == concept)


@compiled
def _split(
    index: Index, failures: Failures, failure: int, missing: Array, extra: Array, common: Array
) -> tuple[int, int, int]:
    """Merge the concepts of both images: runs of the one, of the other, and of both in pairs; how many of each."""
    one, one_end = (
        index.run_offsets[failures.ground_truth[failure]],
        index.run_offsets[failures.ground_truth[failure] + 1],
    )
    two, two_end = index.run_offsets[failures.retrieved[failure]], index.run_offsets[failures.retrieved[failure] + 1]
    lost, added, both = 0, 0, 0
    while one < one_end or two < two_end:
        left = index.concepts[one] if one < one_end else _NONE
        right = index.concepts[two] if two < two_end else _NONE
        counted = _counts_here(failures, failure, min(left, right))
        if left == right:
            if counted:
                common[both, 0], common[both, 1] = one, two
                both += 1
            one, two = one + 1, two + 1
        elif left < right:
            if counted:
                missing[lost] = one
                lost += 1
            one += 1
        else:
            if counted:
                extra[added] = two
                added += 1
            two += 1
    return lost, added, both


@compiled
def survey(index: Index, failures: Failures, start: int, stop: int, most: int, sums: Sums, sizes: Array) -> None:
    """What needs no matching; and in ``sizes`` per failure how many matchings it needs, and their cells."""
    missing, extra, common = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 2), np.int64)
    for failure in range(start, stop):
        lost, added, both = _split(index, failures, failure, missing, extra, common)
        sums.missing[failure], sums.extra[failure], sums.common[failure] = lost, added, both
        problems, cells = 0, 0
        if lost > 0 and added > 0:
            problems, cells = 1, lost * added
        for place in range(both):
            one, two = common[place, 0], common[place, 1]
            more = (index.starts[one + 1] - index.starts[one]) - (index.starts[two + 1] - index.starts[two])
            sums.count_error[failure] += abs(more)
            sums.wrong[failure] += more != 0
            for some in (index.sized, index.described):
                if some[one] > 0 and some[two] > 0:
                    problems, cells = problems + 1, cells + some[one] * some[two]
        sizes[failure - start, 0], sizes[failure - start, 1] = problems, cells
        _hits(index, failures, failure, sums)
        _relations(index, failure, common, both, sums)


@compiled
def _hits(index: Index, failures: Failures, failure: int, sums: Sums) -> None:
    """Names without a synset count here; a query that only mentions synsets leaves them out."""
    if failures.restricted:
        sums.hit[failure], sums.miss[failure] = sums.common[failure], sums.missing[failure]
        sums.more[failure] = sums.extra[failure]
        return
    image, other = failures.ground_truth[failure], failures.retrieved[failure]
    one, one_end = index.key_offsets[image], index.key_offsets[image + 1]
    two, two_end = index.key_offsets[other], index.key_offsets[other + 1]
    has, has_too, hits = one_end - one, two_end - two, 0
    while one < one_end and two < two_end:
        if index.keys[one] == index.keys[two]:
            hits, one, two = hits + 1, one + 1, two + 1
        elif index.keys[one] < index.keys[two]:
            one += 1
        else:
            two += 1
    sums.hit[failure], sums.miss[failure], sums.more[failure] = hits, has - hits, has_too - hits


@compiled
def _relations(index: Index, failure: int, common: Array, both: int, sums: Sums) -> None:
    shares = np.empty((2, _RELATIONS))
    for first in range(both):
        for second in range(first + 1, both):
            placed = True
            for side in range(2):
                placed = placed and _shares(index, common[first, side], common[second, side], shares[side])
            if placed:
                agreement = 0.0
                for relation in range(_RELATIONS):
                    agreement += min(shares[0, relation], shares[1, relation])
                sums.relation_pairs[failure] += 1
                sums.relation_sum[failure] += agreement


@compiled
def _shares(index: Index, one: int, two: int, shares: Array) -> bool:
    """Of all pairs of a box of one run and of another, the share in each relation; False where a run has no box."""
    pairs = 0
    shares[:] = 0.0
    for left in range(index.starts[one], index.starts[one + 1]):
        if not np.isnan(index.boxes[left, 0]):
            for right in range(index.starts[two], index.starts[two + 1]):
                if not np.isnan(index.boxes[right, 0]):
                    shares[_relation(index.boxes[left], index.boxes[right])] += 1
                    pairs += 1
    if pairs > 0:
        shares /= pairs
    return pairs > 0


@compiled
def lay_out(
    index: Index,
    failures: Failures,
    weights: Weights,
    start: int,
    stop: int,
    most: int,
    firsts: Array,
    problems: Problems,
) -> None:
    """Write the matchings of each failure where ``firsts`` (number of the first matching, its first cell) says."""
    missing, extra, common = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((most, 2), np.int64)
    for failure in range(start, stop):
        at, cell = firsts[failure - start, 0], firsts[failure - start, 1]
        lost, added, both = _split(index, failures, failure, missing, extra, common)
        if lost > 0 and added > 0:
            _open(problems, at, failure, CONCEPTS, lost, added, cell)
            _concepts(index, weights, missing[:lost], extra[:added], cell, problems)
            at, cell = at + 1, cell + lost * added
        for place in range(both):
            one, two = common[place, 0], common[place, 1]
            if index.sized[one] > 0 and index.sized[two] > 0:
                _open(problems, at, failure, BOXES, index.sized[one], index.sized[two], cell)
                _boxes(index, weights, one, two, cell, problems)
                at, cell = at + 1, cell + index.sized[one] * index.sized[two]
            if index.described[one] > 0 and index.described[two] > 0:
                _open(problems, at, failure, ATTRIBUTES, index.described[one], index.described[two], cell)
                _attributes(index, one, two, cell, problems)
                at, cell = at + 1, cell + index.described[one] * index.described[two]


@compiled
def _open(problems: Problems, at: int, failure: int, kind: int, one: int, two: int, cell: int) -> None:
    problems.failure[at], problems.kind[at], problems.cells[at] = failure, kind, cell
    problems.rows[at], problems.columns[at] = min(one, two), max(one, two)


@compiled
def _cell(first: int, row: int, column: int, rows: int, columns: int) -> int:
    """Where a cell lies: the smaller side is the rows, whichever image that is."""
    return first + (row * columns + column if rows <= columns else column * rows + row)


@compiled
def _concepts(index: Index, weights: Weights, missing: Array, extra: Array, first: int, problems: Problems) -> None:
    for row in range(missing.size):
        for column in range(extra.size):
            steps = weights.steps[index.concepts[missing[row]], index.concepts[extra[column]]]
            similarity = weights.similarities[steps]
            cell = _cell(first, row, column, missing.size, extra.size)
            problems.values[cell] = similarity
            problems.costs[cell] = -similarity


@compiled
def _boxes(index: Index, weights: Weights, one: int, two: int, first: int, problems: Problems) -> None:
    rows, columns = index.sized[one], index.sized[two]
    for row in range(rows):
        for column in range(columns):
            area, other = index.areas[index.starts[one] + row], index.areas[index.starts[two] + column]
            difference = abs(area - other) / (min(area, other) if weights.by_smaller else area)
            cell = _cell(first, row, column, rows, columns)
            problems.values[cell] = difference
            problems.costs[cell] = difference + (TIE if difference >= weights.threshold else 0.0)


@compiled
def _attributes(index: Index, one: int, two: int, first: int, problems: Problems) -> None:
    rows, columns = index.described[one], index.described[two]
    worth = 3.0 * min(rows, columns) + 1.0
    row = 0
    for left in range(index.starts[one], index.starts[one + 1]):
        if not index.bits[left].any():
            continue
        column = 0
        for right in range(index.starts[two], index.starts[two + 1]):
            if not index.bits[right].any():
                continue
            comparable, agreement = _agreement(index.bits[left], index.bits[right])
            cell = _cell(first, row, column, rows, columns)
            problems.values[cell], problems.comparable[cell] = agreement, comparable
            problems.costs[cell] = -(worth * comparable + agreement)
            column += 1
        row += 1


@compiled
def _agreement(one: Array, other: Array) -> tuple[int, float]:
    comparable, agreement = 0, 0.0
    for family in range(one.size):
        if one[family] != 0 and other[family] != 0:
            comparable += 1
            agreement += _ones(one[family] & other[family]) / _ones(one[family] | other[family])
    return comparable, agreement


@compiled
def _ones(bits: np.uint64) -> int:
    count = 0
    while bits != np.uint64(0):
        bits &= bits - np.uint64(1)
        count += 1
    return count


@compiled
def choose_nearest(problems: Problems, chosen: Array, firsts: Array) -> None:
    """The matchings with a single row, whose answer is its cheapest column."""
    for at in range(problems.rows.size):
        if problems.rows[at] == 1:
            first = problems.cells[at]
            chosen[firsts[at]] = np.argmin(problems.costs[first : first + problems.columns[at]])


@compiled
def add_up(problems: Problems, chosen: Array, firsts: Array, threshold: float, sums: Sums) -> None:
    """Each matching's values, added to its failure; ``chosen[firsts[p] + row]`` is the column of a row."""
    for at in range(problems.rows.size):
        failure, kind, rows = problems.failure[at], problems.kind[at], problems.rows[at]
        total, pairs, over = 0.0, 0, 0
        for row in range(rows):
            cell = problems.cells[at] + row * problems.columns[at] + chosen[firsts[at] + row]
            value = problems.values[cell]
            total += value
            pairs += problems.comparable[cell] if kind == ATTRIBUTES else 1
            over += kind == BOXES and value >= threshold
        if kind == CONCEPTS:
            sums.concept_pairs[failure], sums.concept_sum[failure] = pairs, total
        elif kind == BOXES:
            sums.box_pairs[failure] += pairs
            sums.box_over[failure] += over
            sums.size_sum[failure] += total / pairs
        else:
            sums.attribute_pairs[failure] += pairs
            sums.attribute_sum[failure] += total
