"""One direction of a ranking on a device: what its queries look for, and what was counted and collected for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import Ranking, Relevance, as_top_scores
from crosslens.rank.gpu.exact import exact_scores, orderable

Tensor = Any

LAST = 0x7FFFFFFF
_FULL = 1 << 26
"""Undecided pairs and candidates that are kept at most before they are settled."""


@dataclass
class Side:
    """The queries of one direction, on a device.

    ``scores`` are the exact scores of the relevant pairs, ``targets`` the same as a table (most relevant items ×
    queries, infinite where a query has fewer). An item whose exact score is below ``floor`` cannot be in the list.
    ``full`` says that it is the exact score of the last of a whole list of items that come before all later ones.
    ``coarse`` and ``above`` count what is above a relevant item: by the table's and by the pairs' order.
    """

    relevance: Relevance
    queries: Tensor
    gallery: Tensor
    keep: int
    offsets: Tensor
    owners: Tensor
    items: Tensor
    scores: Tensor
    targets: Tensor
    floor: Tensor
    full: Tensor
    coarse: Tensor
    above: Tensor
    tied: Tensor
    before: Tensor
    candidates: list[tuple[Tensor, Tensor]]

    @staticmethod
    def of(relevance: Relevance, queries: Tensor, gallery: Tensor, depth: int) -> Side:
        """Nothing counted yet."""
        import torch

        where, count = queries.device, len(queries)
        lengths = np.diff(relevance.offsets)
        owners, items = (
            torch.from_numpy(np.array(part, np.int32)).to(where) for part in (relevance.rows, relevance.items)
        )
        offsets = torch.from_numpy(np.array(relevance.offsets, np.int32)).to(where)
        scores = exact_scores(queries, gallery, owners, items)
        widest = int(lengths.max(initial=0))
        targets = torch.full((max(widest, 1), count), torch.inf, device=where)
        nth = torch.arange(len(owners), device=where) - offsets[owners.long()]
        targets[nth, owners.long()] = scores
        above, tied, before = (torch.zeros(len(owners), dtype=torch.int64, device=where) for _ in range(3))
        return Side(
            relevance, queries, gallery, min(depth, len(gallery)), offsets, owners, items, scores, targets,
            torch.full((count,), -torch.inf, device=where), torch.zeros(count, dtype=torch.bool, device=where),
            torch.zeros(targets.shape, dtype=torch.int32, device=where), above, tied, before, [],
        )  # fmt: skip

    def widths(self, block: int) -> Tensor:
        """The greatest number of relevant items in each block of queries."""
        import torch

        lengths = np.diff(self.relevance.offsets).astype(np.int32)
        padded = np.zeros(-(-len(lengths) // block) * block, np.int32)
        padded[: len(lengths)] = lengths
        return torch.from_numpy(padded.reshape(-1, block).max(axis=1)).to(self.queries.device)

    def settle(self, pairs: Tensor, items: Tensor) -> None:
        """Count items against relevant pairs by exact scores."""
        import torch

        for start in range(0, len(pairs), _FULL):
            pair, item = pairs[start : start + _FULL].long(), items[start : start + _FULL]
            exact = exact_scores(self.queries, self.gallery, self.owners[pair], item)
            target = self.scores[pair]
            tie = (exact == target) & (item != self.items[pair])
            ones = torch.ones((), dtype=torch.int64, device=pair.device)
            for counts, chosen in (
                (self.above, exact > target), (self.tied, tie), (self.before, tie & (item < self.items[pair])),
            ):  # fmt: skip
                which = pair[chosen]
                counts.index_add_(0, which, ones.expand(len(which)))

    def collect(self, queries: Tensor, items: Tensor) -> None:
        """Note candidates for top lists; many of them are cut back to those that can still be listed."""
        self.candidates.append((queries.int(), items.int()))
        if len(self.candidates) > 1 and sum(len(part) for part, _ in self.candidates) > max(
            _FULL, 4 * self.keep * len(self.queries)
        ):
            queries, items, _, rank = self._ordered()
            kept = rank < self.keep
            self.candidates = [(queries[kept].int(), items[kept].int())]

    def _ordered(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All candidates by query, then exact score, then index: queries, items, scores, rank in the query's list."""
        import torch

        queries, items = (torch.cat(parts) for parts in zip(*self.candidates, strict=True))
        scores = exact_scores(self.queries, self.gallery, queries, items)
        key = (orderable(scores).long() << 32) | (LAST - items.long())
        order = torch.argsort(key, descending=True)
        order = order[torch.argsort(queries[order], stable=True)]
        queries, items, scores = queries[order].long(), items[order].long(), scores[order]
        counts = torch.bincount(queries, minlength=len(self.queries))
        first = torch.cumsum(counts, 0) - counts
        return queries, items, scores, torch.arange(len(queries), device=queries.device) - first[queries]

    def ranking(self, direction: str) -> Ranking:
        """What was counted and collected, as a ranking."""
        import torch

        queries, items, scores, rank = self._ordered()
        kept = rank < self.keep
        shape = (len(self.queries), self.keep)
        top_items = torch.full(shape, -1, dtype=torch.int64, device=queries.device)
        top_scores = torch.full(shape, torch.nan, device=queries.device)
        top_items[queries[kept], rank[kept]] = items[kept]
        top_scores[queries[kept], rank[kept]] = scores[kept]
        owners = self.owners.long()
        nth = torch.arange(len(owners), device=queries.device) - self.offsets[owners]
        above = self.above + self.coarse[nth, owners]
        relevance = self.relevance
        return Ranking(
            direction, relevance.query_ids, relevance.item_ids, top_items.cpu().numpy(),
            as_top_scores(top_scores.cpu().numpy()), np.full(shape[0], len(self.gallery), np.int64), relevance.offsets,
            relevance.items, relevance.grades, *(part.cpu().numpy() for part in (above, self.tied, self.before)),
        )  # fmt: skip
