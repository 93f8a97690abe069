"""Vectors that occur more than once: each is ranked once, and counts for all of its copies.

Copies of a vector have the same score with everything, so the ranking pass needs to look at one of them. What a copy
adds is known without a score: it is above the same relevant items, it is tied with its fellows, and in a top list they
stand together, lowest index first. Without this, a model that gives one vector to many items would make every pair of
them a near-tie, which only exact scores decide.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from crosslens.rank.kernels import compiled
from crosslens.rank.scorers import InnerProduct, Scorer, buffered_product
from crosslens.storage import Array

_SAMPLED = 8
"""Numbers of a vector that are looked at first: where they differ, the vectors do."""


@dataclass(frozen=True)
class Copies:
    """Which of some vectors are the same, bit for bit. A *group* is a vector with all its copies.

    Groups are numbered by their first members, and ``members[offsets[g] : offsets[g + 1]]`` is group ``g`` in ascending
    order. So an order by group is an order by first member.
    """

    group: Array
    members: Array
    offsets: Array

    @staticmethod
    def of(vectors: Array) -> Copies | None:
        """The groups of float32 vectors; None if no vector occurs twice."""
        bits = vectors.view(np.uint32)
        sample = np.linspace(0, bits.shape[1] - 1, _SAMPLED).astype(np.int64)
        keys = _hashes(bits, np.arange(len(bits)), sample)
        order = np.argsort(keys, kind="stable")
        same = keys[order[1:]] == keys[order[:-1]]
        suspect = np.zeros(len(keys), bool)
        suspect[order[1:][same]] = suspect[order[:-1][same]] = True
        suspects = np.flatnonzero(suspect)
        if len(suspects) == 0:
            return None
        hashes = _hashes(bits, suspects, np.arange(bits.shape[1]))
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        earliest = np.arange(len(bits))
        earliest[suspects] = suspects[first[inverse]]
        _undo_different(bits, suspects, earliest)
        is_first = earliest == np.arange(len(bits))
        if is_first.all():
            return None
        group = (np.cumsum(is_first) - 1)[earliest]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(group))])
        return Copies(group, np.argsort(group, kind="stable"), offsets)

    @property
    def first(self) -> Array:
        """The first member of every group, ascending."""
        return self.members[self.offsets[:-1]]

    @property
    def sizes(self) -> Array:
        return np.diff(self.offsets)


def without_copies(scorer: Scorer) -> tuple[Scorer, Copies | None, Copies | None]:
    """A scorer of the distinct vectors, and the copies among its rows and columns; the scorer itself without copies."""
    if not isinstance(scorer, InnerProduct) or scorer.arrays is None:  # vectors in files would have to be read for it
        return scorer, None, None
    rows, columns = map(Copies.of, scorer.arrays)
    if rows is None and columns is None:
        return scorer, None, None
    return DistinctProduct(scorer, rows, columns), rows, columns


class DistinctProduct:
    """Inner products of the first members of all groups; the vectors are not copied."""

    precision = np.float32

    def __init__(self, scorer: InnerProduct, rows: Copies | None, columns: Copies | None) -> None:
        assert scorer.arrays is not None
        self._scorer, self.work, self._buffer = scorer, scorer.work, threading.local()
        self._left, self._right = scorer.arrays
        self._rows = np.arange(scorer.shape[0]) if rows is None else rows.first
        self._columns = np.arange(scorer.shape[1]) if columns is None else columns.first
        self.shape = (len(self._rows), len(self._columns))
        self.row_slack, self.column_slack = scorer.row_slack[self._rows], scorer.column_slack[self._columns]

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product."""
        left = _rows_of(self._left, self._rows[rows])
        right = _rows_of(self._right, self._columns[columns])
        return buffered_product(left, right, self._buffer)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The exact scores of the first members, which are those of all members."""
        return self._scorer.exact(self._rows[rows], self._columns[columns])


def _rows_of(vectors: Array, rows: Array) -> Array:
    """The vectors of these rows, in ascending order; not copied where none is left out."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return vectors[rows[0] : rows[-1] + 1]
    return vectors[rows]


@compiled
def _hashes(bits: Array, rows: Array, columns: Array) -> Array:
    """A 64-bit number for each row's values in these columns (FNV-1a over 32-bit words)."""
    out = np.empty(rows.size, np.uint64)
    for r in range(rows.size):
        row, value = bits[rows[r]], np.uint64(0xCBF29CE484222325)
        for c in range(columns.size):
            value = (value ^ np.uint64(row[columns[c]])) * np.uint64(0x100000001B3)
        out[r] = value
    return out


@compiled
def _undo_different(bits: Array, rows: Array, earliest: Array) -> None:
    """Rows of equal hashes that are not equal: each its own first one."""
    for r in range(rows.size):
        row, other = bits[rows[r]], bits[earliest[rows[r]]]
        different = np.uint32(0)
        for c in range(row.size):
            different |= row[c] ^ other[c]
        if different:
            earliest[rows[r]] = rows[r]


@compiled
def count_groups_exactly(
    pairs: Array, groups: Array, scores: Array, targets: Array, relevant: Array, relevant_items: Array,
    members: Array, offsets: Array, above: Array, tied: Array, before: Array,
) -> None:  # fmt: skip
    """Count undecided pairs by exact scores, each group with all its members: above, tied, or tied with a lower index.

    ``relevant`` and ``relevant_items`` are the group and the index of every pair's relevant item.
    """
    for d in range(pairs.size):
        p, group = pairs[d], groups[d]
        first, end = offsets[group], offsets[group + 1]
        if scores[d] > targets[p]:
            above[p] += end - first
        elif scores[d] == targets[p]:
            tied[p] += end - first - np.int64(group == relevant[p])
            before[p] += np.searchsorted(members[first:end], relevant_items[p])


@compiled
def list_members(
    top_groups: Array, top_scores: Array, members: Array, offsets: Array, items: Array, scores: Array
) -> None:
    """From lists of groups to lists of items: best first, equal scores by index, whichever group they are of."""
    depth = items.shape[1]
    for query in range(items.shape[0]):
        count, rank = 0, 0
        while rank < top_groups.shape[1] and top_groups[query, rank] >= 0 and count < depth:
            start, tie = count, top_scores[query, rank]
            while rank < top_groups.shape[1] and top_groups[query, rank] >= 0 and top_scores[query, rank] == tie:
                group, score = top_groups[query, rank], top_scores[query, rank]
                for m in range(offsets[group], offsets[group + 1]):
                    at = min(count, depth)  # insert behind all lower indices of this score
                    while at > start and items[query, at - 1] > members[m]:
                        at -= 1
                    if at == depth:
                        break
                    for j in range(min(count, depth - 1), at, -1):
                        items[query, j], scores[query, j] = items[query, j - 1], scores[query, j - 1]
                    items[query, at], scores[query, at] = members[m], score
                    count = min(count + 1, depth)
                rank += 1
