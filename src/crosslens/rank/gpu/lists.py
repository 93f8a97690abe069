"""Top lists and counts of one direction, merged from blocks in any order.

A listed item is one integer, its key: exact score first, then gallery index, so that the best items have the highest
keys and equal scores are in the order of the gallery. Counts add up and the highest keys are kept, so the result does
not depend on which block came first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core import UNRANKED, Ranking, Relevance, as_top_scores
from crosslens.rank.gpu.exact import orderable

Tensor = Any

LAST = 0x7FFFFFFF
NOTHING = -(1 << 63)
"""The key of no item: lower than any other."""


def keys_of(scores: Tensor, items: Tensor) -> Tensor:
    """The keys of items with these exact scores."""
    # -0 + 0 is 0: the two are equal, and must not differ in their keys.
    return (orderable(scores + 0.0).long() << 32) | (LAST - items.long())


def scores_of(keys: Tensor) -> Tensor:
    """The exact scores in keys; of nothing, minus infinity."""
    import torch

    bits = (keys >> 32).int()
    scores = (bits ^ ((bits >> 31) & LAST)).view(torch.float32)
    return torch.where(keys == NOTHING, -torch.inf, scores)


def items_of(keys: Tensor) -> Tensor:
    """The items in keys; those of nothing are UNRANKED."""
    import torch

    return torch.where(keys == NOTHING, UNRANKED, LAST - (keys & 0xFFFFFFFF))


def moved(keys: Tensor, start: int) -> Tensor:
    """The keys of the same items where ``start`` others come before the first."""
    import torch

    return torch.where(keys == NOTHING, NOTHING, keys - start)


def as_ranking(direction: str, relevance: Relevance, keys: Tensor, counts: Tensor) -> Ranking:
    """Keys of the best items of every query and the counts of every relevant pair, as a ranking."""
    import torch

    items, scores = items_of(keys), scores_of(keys)
    scores = torch.where(items == UNRANKED, torch.nan, scores)
    known = np.full(len(relevance.query_ids), len(relevance.item_ids), np.int64)
    return Ranking(
        direction, relevance.query_ids, relevance.item_ids, items.cpu().numpy(), as_top_scores(scores.cpu().numpy()),
        known, relevance.offsets, relevance.items, relevance.grades, *counts.cpu().numpy(),
    )  # fmt: skip


class Lists:
    """What the blocks ranked so far say about all queries of one direction, in this machine's memory."""

    def __init__(self, relevance: Relevance, keep: int) -> None:
        import torch

        self.relevance = relevance
        self.keys = torch.full((len(relevance.query_ids), keep), NOTHING, dtype=torch.int64)
        self.counts = torch.zeros((3, len(relevance.items)), dtype=torch.int64)

    def listed(self, queries: slice, where: Any) -> Tensor | None:
        """The keys of some queries, on a device; None as long as no block was ranked for them."""
        if int(self.keys[queries.start, 0]) == NOTHING:  # a ranked block lists something for every query
            return None
        return self.keys[queries].to(where)

    def add(self, queries: slice, keys: Tensor, counts: Tensor) -> None:
        """Merge what another block of the gallery gave."""
        import torch

        earlier = self.listed(queries, keys.device)
        if earlier is not None:
            keys = torch.topk(torch.cat([earlier, keys], dim=1), earlier.shape[1], dim=1).values
        self.keys[queries, : keys.shape[1]] = keys.to(self.keys.device)
        offsets = self.relevance.offsets
        self.counts[:, offsets[queries.start] : offsets[queries.stop]] += counts.to(self.counts.device)

    def ranking(self, direction: str) -> Ranking:
        """The ranking, once all blocks are merged."""
        return as_ranking(direction, self.relevance, self.keys, self.counts)
