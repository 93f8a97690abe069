"""Vectors that occur very often in a block, zeros for instance: each is ranked once, for all of its copies.

All copies of a vector tie with each other, and a vector of zeros ties with everything: a pass would have to decide each
of these pairs by exact scores. So frequent vectors are left out of the pass. As queries, they are ranked by the sorted
exact scores of the whole gallery; as items, their one exact score with each query counts for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crosslens.rank.gpu.direction import LAST, DeviceDirection, items_of, keys_of
from crosslens.storage import Array

Tensor = Any

_SHARE, _FEWEST = 1 / 256, 8
"""A vector is frequent if it makes up this share of a block, and has at least so many copies."""
_SAMPLE = 4_096
"""Vectors that are looked at first: most blocks have no frequent ones."""
_AT_ONCE = 1 << 15


def frequent_vectors(vectors: Tensor) -> list[Tensor]:
    """The members of each frequent vector, bit for bit the same, in ascending order."""
    import torch

    count = len(vectors)
    if count < _FEWEST or vectors.shape[1] == 0:
        return []
    sampled = torch.linspace(0, count - 1, min(count, _SAMPLE), dtype=torch.float64, device=vectors.device).long()
    # By chance, a frequent vector may be in the sample only half as often as in the block.
    distinct, number = torch.unique(_hashes(vectors[sampled]), return_counts=True)
    suspects = distinct[number >= max(2, int(_SHARE / 2 * len(sampled)))].tolist()
    if not suspects:
        return []
    hashes = torch.cat([_hashes(part) for part in vectors.split(_AT_ONCE)])
    groups = []
    for suspect in suspects:
        members = torch.nonzero(hashes == suspect)[:, 0]
        bits = vectors[members].view(torch.int32)
        members = members[(bits == bits[0]).all(dim=1)]
        if len(members) >= max(_FEWEST, _SHARE * count):
            groups.append(members)
    return groups


def _hashes(vectors: Tensor) -> Tensor:
    """A number for each vector, which is the same for the same bits."""
    import torch

    weights = torch.arange(1, 2 * vectors.shape[1], 2, device=vectors.device) * 0x9E3779B97F4A7C1
    return (vectors.contiguous().view(torch.int32) * weights).sum(dim=1)


class WithoutFrequent:
    """Both directions of a pair of blocks without frequent vectors, whose ranks are added in the end."""

    def __init__(self, both: Sequence[DeviceDirection], groups: Sequence[list[Tensor]]) -> None:
        """``groups`` are the members of each frequent vector of the rows and of the columns."""
        self.both, self.groups = both, groups
        # Of every query, and of every relevant pair: the group it is in, or -1.
        self.group_of = [np.full(len(whole.queries), -1) for whole in both]
        for group_of, frequent in zip(self.group_of, groups, strict=True):
            for number, members in enumerate(frequent):
                group_of[members.cpu().numpy()] = number
        self.group_of_pair = [
            group_of[whole.relevance.rows] for whole, group_of in zip(both, self.group_of, strict=True)
        ]
        self.left = [self._of_group(group_of, -1) for group_of in self.group_of]

    def _of_group(self, group_of: Array, number: int) -> Tensor:
        import torch

        return torch.from_numpy(np.flatnonzero(group_of == number)).to(self.both[0].queries.device)

    @property
    def empty(self) -> bool:
        """Whether nothing is left for a pass."""
        return min(map(len, self.left)) == 0

    def directions(self) -> tuple[DeviceDirection, DeviceDirection]:
        """What is left, with nothing counted."""
        vectors = [whole.queries.index_select(0, rows) for whole, rows in zip(self.both, self.left, strict=True)]
        return self._direction(0, vectors), self._direction(1, vectors)

    def _direction(self, axis: int, vectors: list[Tensor]) -> DeviceDirection:
        whole, ungrouped = self.both[axis], self.group_of_pair[axis] == -1
        lengths = np.diff(whole.relevance.offsets)[self.group_of[axis] == -1]
        relevance = replace(
            whole.relevance,
            query_ids=("",) * len(lengths),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            items=whole.relevance.items[ungrouped],
            grades=whole.relevance.grades[ungrouped],
        )
        part = DeviceDirection.of(
            relevance, vectors[axis], vectors[1 - axis], whole.keep, start=whole.start,
            scores=whole.scores[self._of_group(self.group_of_pair[axis], -1)], numbers=self.left[1 - axis].int(),
        )  # fmt: skip
        part.floor, part.full = whole.floor[self.left[axis]], whole.full[self.left[axis]]
        return part

    def finish(self, ranked: Sequence[DeviceDirection] | None) -> None:
        """Count and collect what a pass has, and what frequent vectors add."""
        for axis, whole in enumerate(self.both):
            remaining, others, groups = self.left[axis], self.left[1 - axis], self.group_of_pair[axis]
            floor, pairs = whole.floor[remaining], self._of_group(groups, -1)
            if ranked is not None:
                part = ranked[axis]
                if part.keep == whole.keep:  # else lists are longer than what is left
                    floor = part.floor
                for counts, more in zip((whole.above, whole.tied, whole.before), part.counts(), strict=True):
                    counts.index_add_(0, pairs, more)
                for queries, places in part.candidates:
                    whole.collect(remaining.index_select(0, queries), others.index_select(0, places))
            for members in self.groups[1 - axis]:
                _count_items(whole, members, remaining, pairs, floor)
            for number, members in enumerate(self.groups[axis]):
                _rank_queries(whole, members, self._of_group(groups, number))


def _count_items(whole: DeviceDirection, members: Tensor, queries: Tensor, pairs: Tensor, floor: Tensor) -> None:
    """Count and collect the copies of an item for some queries, whose relevant ``pairs`` these are."""
    import torch

    exact = whole.exact(queries.int(), members[:1].int().expand(len(queries)))
    scores = torch.empty(len(whole.queries), dtype=exact.dtype, device=exact.device)
    scores[queries] = exact
    score, target, item = scores[whole.owners[pairs].long()], whole.scores[pairs], whole.items[pairs].long()
    tie, earlier = score == target, torch.searchsorted(members, item)
    itself = members[earlier.clamp(max=len(members) - 1)] == item
    whole.above.index_add_(0, pairs, len(members) * (score > target))
    whole.tied.index_add_(0, pairs, tie * (len(members) - itself.long()))
    whole.before.index_add_(0, pairs, tie * earlier)
    listed = queries[exact >= floor]
    first = members[: whole.keep]
    whole.collect(listed.repeat_interleave(len(first)), first.repeat(len(listed)))


def _rank_queries(whole: DeviceDirection, members: Tensor, pairs: Tensor) -> None:
    """Rank the copies of a query, whose relevant ``pairs`` these are, by the exact scores of the whole gallery."""
    import torch

    count = len(whole.gallery)
    items = torch.arange(count, dtype=torch.int32, device=members.device)
    scores = whole.exact(members[:1].int().expand(count), items)
    keys = torch.sort(keys_of(scores, items)).values
    best = items_of(keys[-whole.keep :].flip(0))
    whole.collect(members.repeat_interleave(len(best)), best.repeat(len(members)))
    item = whole.items[pairs].long()
    item_keys = keys_of(whole.scores[pairs], item)
    lowest = item_keys - (LAST - item)  # of all keys of this score
    # How many keys are above a score, from it on, and above the item itself.
    above, reached, better = count - torch.searchsorted(keys, torch.stack([lowest + (1 << 32), lowest, item_keys + 1]))
    whole.above[pairs] = above
    whole.tied[pairs] = reached - above - ((item >= 0) & (item < count)).long()
    whole.before[pairs] = better - above
