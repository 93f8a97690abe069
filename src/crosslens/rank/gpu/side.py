"""One direction of a pair of blocks on a device: what its queries look for, what was counted and collected for them.

Passes number queries and items within their blocks. What leaves a side is numbered by the whole gallery.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core import Ranking, Relevance
from crosslens.rank.gpu.exact import exact_scores, fused
from crosslens.rank.gpu.lists import LAST as LAST, NOTHING, as_ranking, items_of, keys_of, scores_of
from crosslens.rank.gpu.rounded import float32_slack, lengths_of

Tensor = Any

_FULL = 1 << 26
"""Undecided pairs and candidates that are kept at most before they are settled."""
_MANY = 1 << 16
"""Undecided pairs that a sparse product is worth its start for."""
_QUERIES, _ITEMS = 512, 1 << 16
"""Whose exact scores are all made at a time."""


@dataclass
class Side:
    """The queries of one direction, on a device, and a block of their gallery, which begins at item ``start``.

    ``items`` are the relevant items, counted from ``start``: those of other blocks lie before 0 or past the end.
    ``scores`` are the exact scores of the relevant pairs, ``targets`` the same as a table (most relevant items ×
    queries, infinite where a query has fewer). An item whose exact score is below ``floor`` cannot be in the list.
    ``full`` says that it is the exact score of the last of a whole list of items that come before all later ones.
    ``coarse`` and ``above`` count what is above a relevant item: by the table's and by the pairs' order.
    """

    relevance: Relevance
    queries: Tensor
    gallery: Tensor
    start: int
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
    def of(
        relevance: Relevance,
        queries: Tensor,
        gallery: Tensor,
        depth: int,
        *,
        start: int = 0,
        scores: Tensor | None = None,
        listed: Tensor | None = None,
    ) -> Side:
        """Nothing counted yet.

        ``scores`` are those of the relevant pairs, needed where some items are in other blocks; ``listed`` the keys of
        the best items of other blocks.
        """
        import torch

        where, count = queries.device, len(queries)
        items, offsets = (
            torch.from_numpy(part.astype(np.int32)).to(where) for part in (relevance.items, relevance.offsets)
        )
        items -= start
        lengths = offsets.diff()
        owners = torch.repeat_interleave(
            torch.arange(count, dtype=torch.int32, device=where), lengths, output_size=len(items)
        )
        scores = exact_scores(queries, gallery, owners, items) if scores is None else scores.to(where)
        widest = max(1, int(lengths.max())) if count else 1
        targets = torch.full((widest, count), torch.inf, dtype=scores.dtype, device=where)
        nth = torch.arange(len(owners), device=where) - offsets[owners.long()]
        targets[nth, owners.long()] = scores
        above, tied, before = (torch.zeros(len(owners), dtype=torch.int64, device=where) for _ in range(3))
        floor = torch.full((count,), -torch.inf, device=where)
        full = torch.zeros(count, dtype=torch.bool, device=where)
        if listed is not None:
            floor = scores_of(listed[:, -1])
            full = (listed[:, -1] != NOTHING) & (items_of(listed).amax(dim=1) < start)
        return Side(
            relevance, queries, gallery, start, min(depth, len(gallery)), offsets, owners, items, scores, targets,
            floor, full, torch.zeros(targets.shape, dtype=torch.int32, device=where), above, tied, before, [],
        )  # fmt: skip

    def widths(self, block: int) -> Tensor:
        """The greatest number of relevant items in each block of queries."""

        lengths = self.offsets.diff()
        padded = lengths.new_zeros(-(-len(lengths) // block) * block)
        padded[: len(lengths)] = lengths
        return padded.view(-1, block).amax(dim=1)

    def exact(self, queries: Tensor, items: Tensor) -> Tensor:
        """The exact scores of pairs."""
        return exact_scores(self.queries, self.gallery, queries, items)

    def settle(self, pairs: Tensor, items: Tensor) -> None:
        """Count items against relevant pairs by exact scores."""
        import torch

        for start in range(0, len(pairs), _FULL):
            pair, item = self._in_doubt(pairs[start : start + _FULL].long(), items[start : start + _FULL])
            exact = self.exact(self.owners[pair], item)
            target = self.scores[pair]
            tie = (exact == target) & (item != self.items[pair])
            ones = torch.ones((), dtype=torch.int64, device=pair.device)
            for counts, chosen in (
                (self.above, exact > target), (self.tied, tie), (self.before, tie & (item < self.items[pair])),
            ):  # fmt: skip
                which = pair[chosen]
                counts.index_add_(0, which, ones.expand(len(which)))

    def _in_doubt(self, pairs: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Those that only exact scores can decide, of many where these take long; the others are counted."""
        import torch

        if len(pairs) < _MANY or not worthwhile(pairs.device.type):
            return pairs, items
        lowest, highest = self._sampled.around(self.owners[pairs].long(), items)
        targets = self.scores[pairs]
        sure = pairs[lowest > targets]
        self.above.index_add_(0, sure, torch.ones((), dtype=torch.int64, device=pairs.device).expand(len(sure)))
        left = torch.nonzero((lowest <= targets) & (highest >= targets))[:, 0]
        return pairs[left], items[left]

    @cached_property
    def _sampled(self) -> SampledProducts:
        return SampledProducts(self.queries, self.gallery)

    def collect(self, queries: Tensor, items: Tensor) -> None:
        """Note candidates for top lists; many of them are cut back to those that can still be listed."""
        self.candidates.append((queries.int(), items.int()))
        if len(self.candidates) > 1 and sum(len(part) for part, _ in self.candidates) > max(
            _FULL, 4 * self.keep * len(self.queries)
        ):
            queries, items, _, rank = self._ordered()
            kept = rank < self.keep
            self.candidates = [(queries[kept].int(), items[kept].int())]

    def collect_from_all(self, queries: Tensor) -> None:
        """Note the best items of some queries, by the exact scores of the whole gallery."""
        import torch

        for chosen in queries.split(_QUERIES):
            vectors = self.queries[chosen].double()
            best = torch.empty((len(chosen), 0), dtype=torch.int64, device=vectors.device)
            for start in range(0, len(self.gallery), _ITEMS):
                block = self.gallery[start : start + _ITEMS].double()
                items = torch.arange(start, start + len(block), device=block.device)
                keys = torch.cat([best, keys_of((vectors @ block.T).float(), items)], dim=1)
                best = torch.topk(keys, min(self.keep, keys.shape[1]), dim=1).values
            self.collect(chosen[:, None].expand_as(best).reshape(-1), items_of(best).reshape(-1))

    def _ordered(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All candidates by query, then exact score, then index: queries, items, keys, rank in the query's list."""
        import torch

        queries, items = (torch.cat(parts) for parts in zip(*self.candidates, strict=True))
        keys = keys_of(self.exact(queries, items), items.long() + self.start)
        order = torch.argsort(keys, descending=True)
        order = order[torch.argsort(queries[order], stable=True)]
        queries, items, keys = queries[order].long(), items[order], keys[order]
        counts = torch.bincount(queries, minlength=len(self.queries))
        first = torch.cumsum(counts, 0) - counts
        return queries, items, keys, torch.arange(len(queries), device=queries.device) - first[queries]

    def best(self) -> Tensor:
        """The keys of the best candidates of every query, best first."""
        import torch

        queries, _, keys, rank = self._ordered()
        kept = rank < self.keep
        table = torch.full((len(self.queries), self.keep), NOTHING, dtype=torch.int64, device=keys.device)
        table[queries[kept], rank[kept]] = keys[kept]
        return table

    def counts(self) -> Tensor:
        """How many items of the block are above each relevant pair, tied with it, and tied before it."""
        import torch

        owners = self.owners.long()
        nth = torch.arange(len(owners), device=owners.device) - self.offsets[owners]
        return torch.stack([self.above + self.coarse[nth, owners], self.tied, self.before])

    def ranking(self, direction: str) -> Ranking:
        """What was counted and collected, as a ranking of the block."""
        return as_ranking(direction, self.relevance, self.best(), self.counts())


def worthwhile(device: str) -> bool:
    """Whether sparse products are fast and exact scores are not: these would be gathered, a vector per pair."""
    return device == "cuda" and not fused(device)


class SampledProducts:
    """Inner products of some pairs of queries and items."""

    def __init__(self, queries: Tensor, gallery: Tensor) -> None:
        self.queries, self.gallery = queries, gallery

    @cached_property
    def slack(self) -> Tensor:
        """How far the scores of each query may be off."""
        return float32_slack(lengths_of(self.queries), lengths_of(self.gallery), self.queries.shape[1])

    def around(self, queries: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """What the exact scores of pairs are at least and at most, in float64."""
        import torch

        count, width = len(self.queries), len(self.gallery)
        # Several relevant items of a query may have to be compared with the same item: patterns hold it once.
        keys, inverse = torch.unique(queries * width + items, return_inverse=True)
        rows = torch.div(keys, width, rounding_mode="floor")
        offsets = torch.searchsorted(rows, torch.arange(count + 1, device=rows.device))
        nothing = torch.zeros(len(keys), device=rows.device)
        pattern = _sparse(offsets.int(), (keys - rows * width).int(), nothing, (count, width))
        products = torch.sparse.sampled_addmm(pattern, self.queries, self.gallery.T, beta=0.0).values()
        scores, slack = products[inverse].double(), self.slack[queries]
        return scores - slack, scores + slack


def _sparse(offsets: Tensor, items: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse (CSR tensor support is in beta|invariant checks are implicitly dis)")
        return torch.sparse_csr_tensor(offsets, items, values, shape, check_invariants=False)
