"""The ranking pass on torch: the same questions, asked of whole tiles at once, on a CPU or a GPU.

Doubtful pairs and the final order of the top lists are settled by the scorer's exact scores, as everywhere else; so
the result equals that of the numpy backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core.errors import MissingExtraError, UsageError
from crosslens.core.progress import Progress, stage
from crosslens.core.ranking import Ranking
from crosslens.rank.finish import finish
from crosslens.rank.scorers import InnerProduct, Scorer
from crosslens.rank.side import Side, Tally
from crosslens.rank.tiles import Direction, Doubts

_TILE = {"cpu": 1_024, "cuda": 8_192}
_OTHER_TILE = 4_096


def rank_with_torch(
    scorer: Scorer,
    row_side: Side,
    column_side: Side,
    names: tuple[str, str],
    device: str | None,
    tile: int | None,
    progress: Progress,
) -> dict[str, Ranking]:
    """Rank both directions, tile by tile, on ``device`` (default: a GPU if there is one)."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("the torch backend", "torch", "torch") from error
    try:
        where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=where)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"cannot use the device {device!r}: {error}", fix="leave --device out, or use 'cpu'"
        ) from error
    size = tile or _TILE.get(where.type, _OTHER_TILE)
    rows = _Gatherer(Direction(row_side, scorer, True), where)
    columns = _Gatherer(Direction(column_side, scorer, False), where)
    product = _products(scorer, where)
    starts = range(0, scorer.shape[0], size)
    with stage(progress, "ranking", len(starts)), torch.inference_mode():
        for top in starts:
            for left in range(0, scorer.shape[1], size):
                block = product(
                    slice(top, min(top + size, scorer.shape[0])), slice(left, min(left + size, scorer.shape[1]))
                )
                rows.consume(block, top, left)
                columns.consume(block.T, left, top)
            progress.advance()
    return {
        names[0]: finish(rows.direction, names[0], [rows.finished()]),
        names[1]: finish(columns.direction, names[1], [columns.finished()]),
    }


def _products(scorer: Scorer, where: Any) -> Any:
    """How tiles are made: inner products on the device, anything else by the scorer itself."""
    import torch

    if not isinstance(scorer, InnerProduct):
        return lambda rows, columns: torch.from_numpy(scorer.tile(rows, columns)).to(where)
    left, right = (torch.tensor(vectors, device=where) for vectors in (scorer.rows, scorer.columns))

    def product(rows: slice, columns: slice) -> Any:
        # The bound on a tile's error holds for true float32 products only.
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            return left[rows] @ right[columns].T
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed

    return product


class _Gatherer:
    """Counts and collects for one direction; the counterpart of the compiled ``scan``."""

    def __init__(self, direction: Direction, where: Any) -> None:
        import torch

        side = direction.side
        self.direction, self.where = direction, where
        self.tally = Tally.of(side)
        self.low, self.high = (torch.tensor(bound, device=where) for bound in (side.low, side.high))
        shape = (side.queries, min(side.capacity, side.gallery))
        self.scores = torch.full(shape, -torch.inf, device=where)
        self.items = torch.full(shape, -1, dtype=torch.int64, device=where)

    def consume(self, tile: Any, query: int, item: int) -> None:
        """A tile of queries × items that begins at ``query`` and ``item``."""
        self._count(tile, query, item)
        self._collect(tile, query, item)

    def _count(self, tile: Any, query: int, item: int) -> None:
        import torch

        begins = self.direction.side.offsets[query : query + len(tile)]
        counts = self.direction.side.offsets[query + 1 : query + 1 + len(tile)] - begins
        for nth in range(int(counts.max(initial=0))):  # the nth relevant item of every query that has so many
            rows = np.flatnonzero(counts > nth)
            pairs = begins[rows] + nth
            on_device = torch.from_numpy(pairs).to(self.where)
            scores = tile if len(rows) == len(tile) else tile[torch.from_numpy(rows).to(self.where)]
            low, high = self.low[on_device, None], self.high[on_device, None]
            surely = scores > high
            self.tally.above[pairs] += surely.sum(dim=1).cpu().numpy()
            which, where = torch.nonzero((scores >= low) & ~surely, as_tuple=True)
            if len(which):
                doubts = Doubts(pairs[which.cpu().numpy()], where.cpu().numpy() + item, len(which))
                self.direction.resolve(self.tally, doubts)

    def _collect(self, tile: Any, query: int, item: int) -> None:
        import torch

        mine = slice(query, query + len(tile))
        width = self.scores.shape[1]
        scores, items = torch.topk(tile, min(width, tile.shape[1]), dim=1)
        scores = torch.cat([self.scores[mine], scores], dim=1)
        items = torch.cat([self.items[mine], items + item], dim=1)
        self.scores[mine], best = torch.topk(scores, width, dim=1)
        self.items[mine] = torch.gather(items, 1, best)

    def finished(self) -> Tally:
        """The tally, with the candidates; a query whose near-ties may go on past them is given up."""
        side, width = self.direction.side, self.scores.shape[1]
        scores = self.scores.cpu().numpy()
        self.tally.candidate_score[:, :width] = scores
        self.tally.candidate_item[:, :width] = self.items.cpu().numpy()
        self.tally.fill[:] = width
        if width < side.gallery:
            self.tally.fill[scores[:, -1] >= scores[:, side.keep - 1] - 2 * side.slack] = -1
        return self.tally
