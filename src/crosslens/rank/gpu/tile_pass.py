"""The ranking pass by plain tensor operations: tiles of products, compared as a whole.

It serves where the fused kernels cannot: without Triton, for small galleries, and where too many scores lie too close
together. On a GPU products are made in TF32, which rounds inputs to 11 bits, or in float32; a tile with many undecided
pairs is made again in float64, where nothing is undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from crosslens.core import Progress, stage
from crosslens.rank.gpu.exact import orderable
from crosslens.rank.gpu.rounded import Rounded, float32_slack, largest_length, product_slack, tensor_float32
from crosslens.rank.gpu.side import LAST, Side

Tensor = Any

_TILE = {"cuda": 8_192}
_OTHER_TILE = 1_024
_DENSE = 1 / 128
"""From this share of undecided pairs or candidates on a tile is made again in float64."""
_GROUPS = 64


def tile_pass(rows: Side, columns: Side, progress: Progress, *, tf32: bool, tile: int | None = None) -> None:
    """Count and collect all pairs, tile by tile; ``tf32`` for devices whose tensor cores make such products."""
    size = tile or _TILE.get(rows.queries.device.type, _OTHER_TILE)
    product, slack = _products(rows.queries, columns.queries, tf32)
    height, width = len(rows.queries), len(columns.queries)
    starts = range(0, height, size)
    with stage(progress, "ranking", len(starts)):
        for top in starts:
            for begin in range(0, width, size):
                down, across = slice(top, min(top + size, height)), slice(begin, min(begin + size, width))
                scores = product(down, across)
                exact = _float64_tile(rows.queries[down], columns.queries[across])
                _look(rows, scores, top, begin, slack, exact)
                _look(columns, scores.T, begin, top, slack, _turned(exact))
            progress.advance()


def _products(left: Tensor, right: Tensor, tf32: bool) -> tuple[Callable[[slice, slice], Tensor], float]:
    """How tiles are made, and how far their scores may be off."""
    import torch

    dimension = left.shape[1]
    if tf32:
        first, second = tensor_float32(left), tensor_float32(right)
        slack = product_slack(first, second, dimension)
    else:
        first, second = (Rounded(vectors, 1.0, largest_length(vectors), 0.0) for vectors in (left, right))
        slack = float32_slack(first, second, dimension)

    def product(rows: slice, columns: slice) -> Tensor:
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        try:
            return first.values[rows] @ second.values[columns].T
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed

    return product, slack


def _float64_tile(left: Tensor, right: Tensor) -> Callable[[], Tensor]:
    """The exact scores of a tile, made when first asked for."""

    @cache
    def scores() -> Tensor:
        return (left.double() @ right.double().T).float()

    return scores


def _turned(exact: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """The same seen from the columns."""
    return lambda: exact().T


def _look(side: Side, scores: Tensor, query: int, item: int, slack: float, exact: Callable[[], Tensor]) -> None:
    """Count and collect a tile of queries × items that begins at ``query`` and ``item``."""
    import torch

    part = slice(query, query + len(scores))
    counts = side.offsets[query + 1 : query + 1 + len(scores)] - side.offsets[part]
    for nth in range(int(counts.max())):
        target = side.targets[nth, part, None]
        surely = scores > target + slack
        doubtful = (scores >= target - slack) & ~surely
        undecided = int(doubtful.sum())
        pairs = side.offsets[part] + nth
        if undecided > _DENSE * scores.numel():
            _count_exactly(side, exact(), target, pairs, counts > nth, item)
            continue
        side.coarse[nth, part] += surely.sum(dim=1, dtype=torch.int32)
        if undecided:
            which, columns = torch.nonzero(doubtful, as_tuple=True)
            side.settle(pairs[which], (columns + item).int())
    _collect(side, scores, query, item, slack, exact)


def _count_exactly(side: Side, exact: Tensor, target: Tensor, pairs: Tensor, active: Tensor, item: int) -> None:
    """Count a tile of exact scores against one relevant item of each active query."""
    import torch

    pairs = pairs[active].long()
    exact, target = exact[active], target[active]
    items = torch.arange(item, item + exact.shape[1], device=exact.device)
    own = side.items[pairs, None]
    tie = (exact == target) & (items != own)
    side.above[pairs] += (exact > target).sum(dim=1)
    side.tied[pairs] += tie.sum(dim=1)
    side.before[pairs] += (tie & (items < own)).sum(dim=1)


def _collect(side: Side, scores: Tensor, query: int, item: int, slack: float, exact: Callable[[], Tensor]) -> None:
    import torch

    part = slice(query, query + len(scores))
    _raise_floors(side, scores, part, slack)
    hits = scores >= side.floor[part, None] - slack
    if int(hits.sum()) <= max(_DENSE * scores.numel(), 2 * side.keep * len(scores)):
        which, columns = torch.nonzero(hits, as_tuple=True)
        side.collect(which + query, columns + item)
        return
    best, floor = exact(), side.floor[part, None]
    # Items come in ascending order: one that equals the last of a full list cannot enter it any more.
    hits = (best > floor) | ((best == floor) & ~side.full[part, None])
    if int(hits.sum()) <= max(_DENSE * scores.numel(), 2 * side.keep * len(scores)):
        which, columns = torch.nonzero(hits, as_tuple=True)
        side.collect(which + query, columns + item)
        return
    # Still many: the best of the tile, by exact score and index.
    keys = (orderable(best).long() << 32) | (LAST - torch.arange(item, item + best.shape[1], device=best.device))
    top = torch.topk(keys, min(side.keep, best.shape[1]), dim=1).values
    items = LAST - (top & 0xFFFFFFFF)
    rows = torch.arange(query, query + len(best), device=best.device)[:, None].expand_as(items)
    side.collect(rows.reshape(-1), items.reshape(-1))
    if top.shape[1] == side.keep:
        last = torch.gather(best, 1, items[:, -1:] - item)[:, 0]
        side.full[part] = last >= side.floor[part]
        side.floor[part] = torch.maximum(side.floor[part], last)


def _raise_floors(side: Side, scores: Tensor, part: slice, slack: float) -> None:
    """A first floor: the ``keep``-th largest of the maxima of a few dozen parts of the tile."""
    import torch

    if not bool(torch.isneginf(side.floor[part]).any()):
        return
    groups = max(_GROUPS, 2 * side.keep)
    length = scores.shape[1] // groups
    if length < 2:
        return
    maxima = scores[:, : groups * length].reshape(len(scores), groups, length).amax(dim=2)
    floor = torch.topk(maxima, side.keep, dim=1).values[:, -1] - slack
    side.floor[part] = torch.maximum(side.floor[part], floor)
