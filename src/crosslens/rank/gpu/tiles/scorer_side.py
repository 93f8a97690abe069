"""One direction of scores that are no inner product: the exact ones come from the scorer, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import UNRANKED, Progress, Ranking, Relevance, as_top_scores
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.tiles.buffers import FlagBuffers
from crosslens.rank.gpu.tiles.levels import scorer_levels
from crosslens.rank.gpu.tiles.tile_pass import look_through
from crosslens.rank.scorers import Scorer

Tensor = Any

_TILE = 1_024
"""Multi-vector scorers need memory for all products of a tile."""


@dataclass
class ScorerSide(Side):
    """A side whose queries are the rows or the columns of a scorer. Its vectors have no dimensions."""

    scorer: Scorer
    as_rows: bool

    @staticmethod
    def over(relevance: Relevance, scorer: Scorer, depth: int, where: Any, *, as_rows: bool) -> ScorerSide:
        """Nothing counted yet."""
        import torch

        pairs = (relevance.rows, relevance.items) if as_rows else (relevance.items, relevance.rows)
        scores = torch.from_numpy(scorer.exact(*pairs)).to(where)
        queries, gallery = (
            torch.empty((count, 0), device=where) for count in (scorer.shape if as_rows else scorer.shape[::-1])
        )
        side = Side.of(relevance, queries, gallery, depth, scores=scores)
        return ScorerSide(**vars(side), scorer=scorer, as_rows=as_rows)

    def exact(self, queries: Tensor, items: Tensor) -> Tensor:
        """The scorer's exact scores."""
        import torch

        pairs = [part.cpu().numpy().astype(np.int64) for part in (queries, items)]
        return torch.from_numpy(self.scorer.exact(*(pairs if self.as_rows else pairs[::-1]))).to(queries.device)

    def _ordered(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As for vectors, with the scores themselves, which may be float64, for keys."""
        import torch

        queries, items = (torch.cat(parts).long() for parts in zip(*self.candidates, strict=True))
        scores = self.exact(queries, items)
        order = torch.argsort(items, stable=True)
        for part, descending in ((scores, True), (queries, False)):
            order = order[torch.argsort(part[order], stable=True, descending=descending)]
        queries, items, scores = queries[order], items[order], scores[order]
        counts = torch.bincount(queries, minlength=len(self.queries))
        first = torch.cumsum(counts, 0) - counts
        return queries, items, scores, torch.arange(len(queries), device=queries.device) - first[queries]

    def ranking(self, direction: str) -> Ranking:
        """What was counted and collected, as a ranking."""
        queries, items, scores, rank = (part.cpu().numpy() for part in self._ordered())
        kept = rank < self.keep
        shape = (len(self.queries), self.keep)
        top_items, top_scores = np.full(shape, UNRANKED, np.int64), np.full(shape, np.nan, scores.dtype)
        top_items[queries[kept], rank[kept]] = items[kept]
        top_scores[queries[kept], rank[kept]] = scores[kept]
        relevance, counts = self.relevance, self.counts().cpu().numpy()
        return Ranking(
            direction, relevance.query_ids, relevance.item_ids, top_items, as_top_scores(top_scores),
            np.full(shape[0], len(self.gallery), np.int64), relevance.offsets, relevance.items, relevance.grades,
            *counts,
        )  # fmt: skip


def rank_scores(
    scorer: Scorer,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    where: Any,
    tile: int | None,
    progress: Progress,
) -> dict[str, Ranking]:
    """Rank the scores of any scorer in both directions; a device compares them."""
    import torch

    with torch.inference_mode():
        rows, columns = (ScorerSide.over(relevant[axis], scorer, depth, where, as_rows=axis == 0) for axis in (0, 1))
        flags = FlagBuffers(where)
        look_through(rows, columns, scorer_levels(scorer, where, flags), flags, progress, tile or _TILE)
        return {name: side.ranking(name) for name, side in zip(names, (rows, columns), strict=True)}
