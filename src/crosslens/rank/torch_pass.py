"""The ranking pass on torch for scores that the scorer itself makes: comparisons of whole tiles, on a CPU or a GPU.

Undecided pairs and the final order of the top lists come from the scorer's exact scores, as everywhere else; so the
result equals that of the numpy backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core import Progress, Ranking, stage
from crosslens.rank.direction_state import Direction, PassTally, assemble

_TILE = {"cpu": 1_024, "cuda": 8_192}
_OTHER_TILE = 4_096


def rank_with_torch(
    rows: Direction,
    columns: Direction,
    names: tuple[str, str],
    where: Any,
    tile: int | None,
    progress: Progress,
) -> dict[str, Ranking]:
    """Rank both directions, tile by tile, on the device ``where``."""
    import torch

    size = tile or _TILE.get(where.type, _OTHER_TILE)
    scorer = rows.scorer
    collectors = _TorchCollector(rows, where), _TorchCollector(columns, where)
    starts = range(0, scorer.shape[0], size)
    with stage(progress, "ranking", len(starts)), torch.inference_mode():
        for top in starts:
            for left in range(0, scorer.shape[1], size):
                rows_part = slice(top, min(top + size, scorer.shape[0]))
                columns_part = slice(left, min(left + size, scorer.shape[1]))
                block = torch.from_numpy(scorer.tile(rows_part, columns_part)).to(where)
                collectors[0].consume(block, top, left)
                collectors[1].consume(block.T, left, top)
            progress.advance()
    return {
        name: assemble(collector.direction, name, [collector.finished()])
        for name, collector in zip(names, collectors, strict=True)
    }


class _TorchCollector:
    """Counts and collects for one direction; the counterpart of :class:`crosslens.rank.tiles.Collector`."""

    def __init__(self, direction: Direction, where: Any) -> None:
        import torch

        self.direction, self.where = direction, where
        self.tally = PassTally.of(direction)
        self.low, self.high = (torch.tensor(bound, device=where) for bound in (direction.low, direction.high))
        shape = (direction.queries, min(direction.capacity, direction.gallery))
        self.scores = torch.full(shape, -torch.inf, device=where)
        self.items = torch.full(shape, -1, dtype=torch.int64, device=where)

    def consume(self, tile: Any, query: int, item: int) -> None:
        """Count and collect a tile of queries × items that begins at ``query`` and ``item``."""
        self._count(tile, query, item)
        self._collect(tile, query, item)

    def _count(self, tile: Any, query: int, item: int) -> None:
        import torch

        begins = self.direction.offsets[query : query + len(tile)]
        counts = self.direction.offsets[query + 1 : query + 1 + len(tile)] - begins
        for nth in range(int(counts.max(initial=0))):  # the nth relevant item of every query that has so many
            rows = np.flatnonzero(counts > nth)
            pairs = begins[rows] + nth
            on_device = torch.from_numpy(pairs).to(self.where)
            scores = tile if len(rows) == len(tile) else tile[torch.from_numpy(rows).to(self.where)]
            low, high = self.low[on_device, None], self.high[on_device, None]
            surely = scores > high
            self.tally.above[pairs] += surely.sum(dim=1).cpu().numpy()
            which, columns = torch.nonzero((scores >= low) & ~surely, as_tuple=True)
            if len(which):
                self.direction.decide(self.tally, pairs[which.cpu().numpy()], columns.cpu().numpy() + item)

    def _collect(self, tile: Any, query: int, item: int) -> None:
        import torch

        part = slice(query, query + len(tile))
        width = self.scores.shape[1]
        scores, items = torch.topk(tile, min(width, tile.shape[1]), dim=1)
        scores = torch.cat([self.scores[part], scores], dim=1)
        items = torch.cat([self.items[part], items + item], dim=1)
        self.scores[part], best = torch.topk(scores, width, dim=1)
        self.items[part] = torch.gather(items, 1, best)

    def finished(self) -> PassTally:
        """The tally with the candidates; a query whose near-ties may continue past them is ranked exactly later."""
        direction, width = self.direction, self.scores.shape[1]
        scores = self.scores.cpu().numpy()
        self.tally.candidate_score[:, :width] = scores
        self.tally.candidate_item[:, :width] = self.items.cpu().numpy()
        self.tally.fill[:] = width
        if width < direction.gallery:
            self.tally.fill[scores[:, -1] >= scores[:, direction.keep - 1] - 2 * direction.slack] = -1
        return self.tally
