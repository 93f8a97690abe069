"""One direction of a pass over tiles: what tile values decide about its relevant items and its lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.rank.gpu.exact import orderable
from crosslens.rank.gpu.side import LAST, Side
from crosslens.rank.gpu.tiles.levels import Level

Tensor = Any

_GROUPS = 64
_LOOKED_UP = 8
"""Up to so many relevant items of a query are compared one after the other; with more a binary search is faster."""
_PENDING = 1 << 24
"""Undecided pairs that wait at most before they are settled; candidates before they are cut back."""


@dataclass(frozen=True)
class Compared:
    """What entries of a tile mean for a direction.

    An entry is above the relevant pairs of its query that are sorted before ``below``, for certain, and undecided for
    those from there to ``upto``. ``totals`` counts undecided pairs and candidates for lists.
    """

    queries: Tensor
    items: Tensor
    values: Tensor
    below: Tensor
    upto: Tensor
    listed: Tensor
    totals: Tensor


class TileDirection:
    """The relevant pairs of a side sorted by query and score, and the candidates for its lists.

    ``axis`` is 0 where the queries are the rows of tiles, 1 where they are the columns. ``density`` is the share of
    scores of a tile that may be those of relevant pairs themselves, which no tile can decide.
    """

    def __init__(self, side: Side, axis: int, coarsest: Level) -> None:
        import torch

        self.side, self.axis, self.coarsest = side, axis, coarsest
        self.count, where = len(side.floor), side.floor.device
        offsets = side.offsets.cpu().numpy()
        self.offsets, self.lengths = offsets, np.diff(offsets)
        self.density = 2 * len(side.owners) / (self.count * len(side.gallery))
        by_score = torch.argsort(side.scores, stable=True)
        self.order = by_score[torch.argsort(side.owners[by_score], stable=True)]
        self.owners, self.scores = side.owners[self.order].long(), side.scores[self.order]
        self.starts = side.offsets.long()
        self.above = torch.zeros(max(1, len(self.order)), dtype=torch.int64, device=where)
        self.lowest = torch.full((self.count,), torch.inf, dtype=torch.float64, device=where)
        self.lowest.scatter_reduce_(0, self.owners, self.scores.double(), "amin")
        self.full = side.full.clone()
        self._waiting = self._kept = 0
        self._undecided: list[tuple[Tensor, Tensor, Tensor]] = []
        self._candidates: list[tuple[Tensor, Tensor, Tensor]] = []
        self._relevant_lows: dict[Level, Tensor] = {}
        self._lows: dict[Level, tuple[Tensor, Tensor]] = {}
        self._keys: dict[Level, tuple[Tensor, Tensor]] = {}
        self._bounds: dict[Level, tuple[Tensor, Tensor]] = {}

    def widest(self, part: slice) -> int:
        """The largest number of relevant items of these queries."""
        return int(self.lengths[part].max(initial=0))

    def lows(self, level: Level) -> tuple[Tensor, Tensor]:
        """Per query, the tile values below which nothing matters: for anything at all, and for its list."""
        import torch

        if level not in self._relevant_lows:
            self._relevant_lows[level] = level.at_least(self.lowest, self.axis)
        if level not in self._lows:
            listed = level.at_least(self.side.floor, self.axis)
            self._lows[level] = torch.minimum(self._relevant_lows[level], listed), listed
        return self._lows[level]

    def bounds(self, level: Level) -> tuple[Tensor, Tensor]:
        """For every sorted relevant pair: the tile values from which on an item may be above, and past which it is."""
        return level.at_least(self.scores, self.axis, self.owners), level.at_most(self.scores, self.axis, self.owners)

    def compare(self, level: Level, queries: Tensor, items: Tensor, values: Tensor, widest: int) -> Compared:
        """What entries mean for relevant items, ``widest`` of a query at most, and lists; nothing is counted yet."""
        import torch

        if widest > _LOOKED_UP:
            low, high = self._sorted_keys(level)
            keys = _keys(queries, values)
            below, upto = torch.searchsorted(high, keys), torch.searchsorted(low, keys, right=True)
        else:
            low, high = self._tables(level)
            below = upto = self.starts[queries]
            for nth in range(widest):
                below, upto = below + (values > high[nth][queries]), upto + (values >= low[nth][queries])
        listed = values >= self.lows(level)[1][queries]
        totals = torch.stack([(upto - below).sum(), listed.sum()])
        return Compared(queries, items, values, below, upto, listed, totals)

    def note(self, level: Level, compared: Compared, undecided: int, *, counted: bool) -> None:
        """Count and collect; ``counted`` says that what is surely above has been counted by other means."""
        import torch

        if not counted:
            sure = (compared.below - 1)[compared.below > self.starts[compared.queries]]
            self.above.index_add_(0, sure, torch.ones((), dtype=torch.int64, device=sure.device).expand(len(sure)))
        left = torch.nonzero((compared.upto > compared.below) | compared.listed)[:, 0]
        items = compared.items[left]
        self.list_candidates(level, compared.queries[left], items, compared.values[left])
        self._undecided.append((compared.below[left].int(), compared.upto[left].int(), items.int()))
        self._waiting += undecided
        if max(self._waiting, sum(len(part) for _, _, part in self._undecided)) > _PENDING:
            self._settle()

    def list_candidates(self, level: Level, queries: Tensor, items: Tensor, values: Tensor) -> None:
        """Note candidates for lists, with their tile values; those that are too low are dropped later."""
        values = values * (self.coarsest.unit / level.unit)
        self._candidates.append((queries.int(), items.int(), values.float()))
        if sum(len(part) for part, _, _ in self._candidates) > 2 * self._kept + _PENDING:
            self.cut_back()

    def _settle(self) -> None:
        """Have the undecided pairs decided by exact scores."""
        import torch

        if not self._undecided:
            return
        below, upto, items = (torch.cat(parts) for parts in zip(*self._undecided, strict=True))
        lengths, total = upto - below, self._waiting
        first = torch.repeat_interleave(below + lengths - torch.cumsum(lengths, 0), lengths, output_size=total)
        pairs = self.order[first + torch.arange(total, device=first.device)]
        self._undecided, self._waiting = [], 0
        self.side.settle(pairs, torch.repeat_interleave(items, lengths, output_size=total))

    def first_floors(self, level: Level, scores: Tensor, part: slice) -> None:
        """Floors from a tile of these queries × items: the ``keep``-th largest of the maxima of some parts of it."""
        import torch

        keep, width = self.side.keep, scores.shape[1]
        groups = max(_GROUPS, 2 * keep)
        length = width // groups
        if width < keep:
            return
        maxima = scores[:, : groups * length].unflatten(1, (groups, length)).amax(dim=2) if length > 1 else scores
        last = torch.topk(maxima, keep, dim=1).values[:, -1]
        self.raise_floors(level.surely(last, self.axis, part), part)

    def raise_floors(self, floor: Tensor, queries: Tensor | slice) -> None:
        """Note that lists of these queries end no lower than this."""
        import torch

        higher = floor > self.side.floor[queries]
        self.full[queries] &= ~higher
        self.side.floor[queries] = torch.maximum(self.side.floor[queries], floor)
        self._lows.clear()

    def cut_back(self) -> None:
        """Raise floors by the candidates, and drop those that cannot be listed any more."""
        import torch

        if not self._candidates:
            return
        queries, items, values = (torch.cat(parts) for parts in zip(*self._candidates, strict=True))
        order = torch.argsort(_keys(queries, -values))
        queries, items, values = queries[order].long(), items[order], values[order]
        counts = torch.bincount(queries, minlength=self.count)
        last = (torch.cumsum(counts, 0) - counts + self.side.keep - 1)[counts >= self.side.keep]
        self.raise_floors(self.coarsest.surely(values[last], self.axis, queries[last]), queries[last])
        kept = values >= self.lows(self.coarsest)[1][queries]
        self._candidates = [(queries[kept].int(), items[kept], values[kept])]
        self._kept = len(self._candidates[0][0])

    def hand_over(self) -> None:
        """Cut candidates back and give them to the side."""
        self.cut_back()
        for queries, items, _ in self._candidates:
            self.side.collect(queries, items)
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

    def _tables(self, level: Level) -> tuple[Tensor, Tensor]:
        """The bounds of the lowest, the second lowest … relevant item of every query; infinite where it has fewer."""
        import torch

        if level not in self._bounds:
            nth = torch.arange(len(self.owners), device=self.owners.device) - self.starts[self.owners]
            chosen = nth < _LOOKED_UP
            slots = nth[chosen], self.owners[chosen]
            tables = []
            for bound in self.bounds(level):
                table = torch.full((_LOOKED_UP, self.count), torch.inf, dtype=bound.dtype, device=bound.device)
                table[slots] = bound[chosen]
                tables.append(table)
            self._bounds[level] = tables[0], tables[1]
        return self._bounds[level]

    def _sorted_keys(self, level: Level) -> tuple[Tensor, Tensor]:
        if level not in self._keys:
            low, high = self.bounds(level)
            self._keys[level] = _keys(self.owners, low), _keys(self.owners, high)
        return self._keys[level]


def _keys(queries: Tensor, values: Tensor) -> Tensor:
    """Integers that sort by query, then by value."""
    return (queries.long() << 32) + (orderable(values + 0.0).long() + LAST + 1)
