"""One direction of a pass over tiles: what scores mean for its relevant items and its lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crosslens.rank.gpu.exact import orderable
from crosslens.rank.gpu.side import LAST, Side
from crosslens.rank.gpu.tiles.entries import Entries, joined
from crosslens.rank.gpu.tiles.levels import Level, rounded_down

Tensor = Any

_GROUPS = 64
_PENDING = 1 << 24
"""Undecided pairs that wait at most before they are settled; candidates before they are cut back."""


class Compared(NamedTuple):
    """What entries mean for a direction.

    An entry is above the relevant pairs of its query that are sorted before ``below``, for certain, and undecided for
    those from there to ``upto``. ``listed`` says which are candidates for lists.
    """

    below: Tensor
    upto: Tensor
    listed: Tensor

    def totals(self) -> tuple[int, int]:
        """How many pairs are undecided, and how many entries are candidates."""
        import torch

        undecided, listed = torch.stack([(self.upto - self.below).sum(), self.listed.sum()]).tolist()
        return undecided, listed


class TileDirection:
    """The relevant pairs of a side sorted by query and score, and the candidates for its lists.

    ``axis`` is 0 where the queries are the rows of the ranking, 1 where they are its columns. ``density`` is the share
    of scores that may be those of relevant pairs themselves, which only exact ones can decide.
    """

    def __init__(self, side: Side, axis: int) -> None:
        import torch

        self.side, self.axis = side, axis
        self.count, where = len(side.floor), side.floor.device
        offsets = side.offsets.cpu().numpy()
        self.offsets, self.lengths = offsets, np.diff(offsets)
        self.density: float = 2 * len(side.owners) / (self.count * len(side.gallery))
        by_score = torch.argsort(side.scores, stable=True)
        self.order = by_score[torch.argsort(side.owners[by_score], stable=True)]
        self.owners, self.starts = side.owners[self.order].long(), side.offsets.long()
        scores = side.scores[self.order].double()
        self.keys_below = _keys(self.owners, -rounded_down(-scores, 24))
        self.keys_upto = _keys(self.owners, rounded_down(scores, 24))
        self.above = torch.zeros(max(1, len(self.order)), dtype=torch.int64, device=where)
        self.lowest = torch.full((self.count,), torch.inf, dtype=torch.float64, device=where)
        self.lowest.scatter_reduce_(0, self.owners, scores, "amin")
        self.full = side.full.clone()
        self._floor: Tensor | None = None
        self._waiting = self._kept = 0
        self._undecided: list[tuple[Tensor, Tensor]] = []
        self._candidates: list[Entries] = []

    def widest(self, part: slice) -> int:
        """The largest number of relevant items of these queries."""
        return int(self.lengths[part].max(initial=0))

    def floor(self) -> Tensor:
        """Per query, the score below which nothing matters; the same tensor until it changes."""
        import torch

        if self._floor is None:
            self._floor = torch.minimum(self.lowest, self.side.floor.double())
        return self._floor

    def compare(self, entries: Entries) -> Compared:
        """What entries mean for relevant items and lists; nothing is counted yet."""
        import torch

        below = torch.searchsorted(self.keys_below, _keys(entries.queries, entries.lowest), out_int32=True)
        upto = torch.searchsorted(self.keys_upto, _keys(entries.queries, entries.highest), out_int32=True, right=True)
        return Compared(below, upto, entries.highest >= self.side.floor.index_select(0, entries.queries))

    def note(self, entries: Entries, compared: Compared, undecided: int) -> None:
        """Count and collect entries; so many pairs are undecided."""
        import torch

        below, upto, listed = compared
        sure = (below - 1)[below > self.side.offsets.index_select(0, entries.queries)]
        self.above.index_add_(0, sure, torch.ones((), dtype=torch.int64, device=sure.device).expand(len(sure)))
        self.list_candidates(entries.part(torch.nonzero(listed)[:, 0]))
        if undecided:
            left = torch.nonzero(upto > below)[:, 0]
            below, lengths = below[left].long(), (upto - below)[left].long()
            first = torch.repeat_interleave(below + lengths - torch.cumsum(lengths, 0), lengths, output_size=undecided)
            pairs = self.order[first + torch.arange(undecided, device=first.device)]
            self.wait(pairs, torch.repeat_interleave(entries.items[left], lengths, output_size=undecided))

    def wait(self, pairs: Tensor, items: Tensor) -> None:
        """Keep undecided pairs, and items to compare them with, until there are many of them."""
        self._undecided.append((pairs.int(), items.int()))
        self._waiting += len(pairs)
        if self._waiting > _PENDING:
            self._settle()

    def list_candidates(self, entries: Entries) -> None:
        """Note candidates for lists; those that are too low are dropped later."""
        self._candidates.append(entries)
        if sum(len(part) for part in self._candidates) > 2 * self._kept + _PENDING:
            self.cut_back()

    def _settle(self) -> None:
        """Have the undecided pairs decided by exact scores."""
        import torch

        if self._undecided:
            pairs, items = (torch.cat(parts) for parts in zip(*self._undecided, strict=True))
            self._undecided, self._waiting = [], 0
            self.side.settle(pairs, items)

    def first_floors(self, level: Level, queries: slice, items: slice) -> None:
        """Floors from a tile: the ``keep``-th largest of the maxima of some parts of it."""
        import torch

        keep, width = self.side.keep, items.stop - items.start
        groups = max(_GROUPS, 2 * keep)
        length = width // groups
        if width < keep:
            return
        scores = level.tile(self.axis, queries, items).by_query
        maxima = scores[:, : groups * length].unflatten(1, (groups, length)).amax(dim=2) if length > 1 else scores
        last = torch.topk(maxima, keep, dim=1).values[:, -1]
        self.raise_floors(level.lowest(last, self.axis, queries), queries)

    def raise_floors(self, floor: Tensor, queries: Tensor | slice) -> None:
        """Note that lists of these queries end no lower than this."""
        import torch

        higher = floor > self.side.floor[queries]
        self.full[queries] &= ~higher
        self.side.floor[queries] = torch.maximum(self.side.floor[queries], floor)
        self._floor = None

    def cut_back(self) -> None:
        """Raise floors by the candidates, and drop those that cannot be listed any more."""
        import torch

        if not self._candidates:
            return
        entries = joined(self._candidates)
        entries = entries.part(torch.argsort(_keys(entries.queries, -entries.lowest)))
        counts = torch.bincount(entries.queries, minlength=self.count)
        last = (torch.cumsum(counts, 0) - counts + self.side.keep - 1)[counts >= self.side.keep]
        self.raise_floors(entries.lowest[last], entries.queries[last].long())
        kept = torch.nonzero(entries.highest >= self.side.floor.index_select(0, entries.queries))[:, 0]
        self._candidates = [entries.part(kept)]
        self._kept = len(self._candidates[0])

    def hand_over(self) -> None:
        """Cut candidates back and give them to the side."""
        self.cut_back()
        for entries in self._candidates:
            self.side.collect(entries.queries, entries.items)
        self._candidates, self._kept = [], 0

    def finish(self) -> None:
        """Hand everything over to the side."""
        import torch

        self.hand_over()
        self._settle()
        if len(self.order):
            # An entry counted at a pair is above it and all of its query before it: sum from behind.
            behind = torch.cat([torch.cumsum(self.above.flip(0), 0).flip(0), self.above.new_zeros(1)])
            self.side.above[self.order] += behind[:-1] - behind[self.starts[1:]][self.owners]


def _keys(queries: Tensor, values: Tensor) -> Tensor:
    """Integers that sort by query, then by value."""
    return (queries.long() << 32) + (orderable(values + 0.0).long() + LAST + 1)
