"""A tile of exact scores: nothing is undecided, so whole tiles are counted, however many ties there are."""

from __future__ import annotations

from typing import Any

from crosslens.rank.gpu.exact import orderable
from crosslens.rank.gpu.side import LAST
from crosslens.rank.gpu.tiles.buffers import FlagBuffers, count, words_of
from crosslens.rank.gpu.tiles.entries import Entries
from crosslens.rank.gpu.tiles.levels import Level, rounded_down
from crosslens.rank.gpu.tiles.tile_direction import TileDirection

Tensor = Any

_QUERIES = 2_048
"""Queries whose scores are sorted at a time."""
_MANY = 1 / 128
"""From this share of candidates on only the best of each query are collected."""


def decide(direction: TileDirection, level: Level, part: slice, items: slice, buffers: FlagBuffers) -> None:
    """Count and collect a tile of exact scores for the queries ``part`` of a direction."""
    scores, _ = level.tile(direction.axis, part, items)
    _put_relevant(direction, scores, part, items)
    for nth in range(direction.widest(part)):
        _count(direction, scores, nth, part, items.start, buffers)
    _collect(direction, scores, part, items.start, buffers)


def _count(direction: TileDirection, exact: Tensor, nth: int, part: slice, start: int, buffers: FlagBuffers) -> None:
    """Count a tile of exact scores, which begins at item ``start``, against the nth relevant item of each query."""
    import torch

    side, other, width = direction.side, 1 - direction.axis, exact.shape[1]
    active = side.offsets[part.start + 1 : part.stop + 1] - side.offsets[part] > nth
    pairs = (side.offsets[part] + nth)[active].long()
    target = side.targets[nth, part].unsqueeze(other)  # infinite for queries that have fewer
    own = torch.zeros(len(active), dtype=torch.int32, device=exact.device)
    own[active] = side.items[pairs] - start
    items = torch.arange(exact.shape[other], dtype=torch.int32, device=exact.device).unsqueeze(direction.axis)
    compared, earlier = buffers.of(0, exact), buffers.of(1, exact)
    torch.gt(exact, target, out=compared[:, :width])
    side.above[pairs] += count(compared, direction.axis)[: len(active)][active]
    torch.eq(exact, target, out=compared[:, :width])
    side.tied[pairs] += count(compared, direction.axis)[: len(active)][active]
    torch.lt(items, own.unsqueeze(other), out=earlier[:, :width])
    words_of(earlier).bitwise_and_(words_of(compared))
    side.before[pairs] += count(earlier, direction.axis)[: len(active)][active]


def _collect(direction: TileDirection, exact: Tensor, part: slice, start: int, buffers: FlagBuffers) -> None:
    """Collect candidates of a tile of exact scores, which begins at item ``start``."""
    import torch

    floor = direction.side.floor[part].to(exact.dtype)
    # Items come in ascending order: one that equals the last of a full list cannot enter it any more.
    floor = torch.where(direction.full[part], torch.nextafter(floor, torch.full_like(floor, torch.inf)), floor)
    flags = buffers.of(0, exact)
    torch.ge(exact, floor.unsqueeze(1 - direction.axis), out=flags[:, : exact.shape[1]])
    if int(flags.sum()) > max(_MANY * exact.numel(), 2 * direction.side.keep * len(floor)):
        _collect_best(direction, exact, part, start)
        return
    slots = torch.nonzero(flags, as_tuple=True)
    queries, items = slots if direction.axis == 0 else slots[::-1]
    direction.list_candidates(_entries(queries + part.start, items + start, exact[slots]))


def _put_relevant(direction: TileDirection, exact: Tensor, part: slice, items: slice) -> None:
    """Give relevant pairs the scores that they are compared by: sums of another order can differ in the last bit."""
    import torch

    side = direction.side
    pairs = torch.arange(*direction.offsets[[part.start, part.stop]].tolist(), device=exact.device)
    pairs = pairs[(side.items[pairs] >= items.start) & (side.items[pairs] < items.stop)]
    slots = side.owners[pairs].long() - part.start, side.items[pairs].long() - items.start
    exact[slots if direction.axis == 0 else slots[::-1]] = side.scores[pairs]
    side.tied[pairs] -= 1  # each will be counted as a tie with itself


def _entries(queries: Tensor, items: Tensor, scores: Tensor) -> Entries:
    """Exact scores, which are float64 for some scorers, between float32 ones."""
    scores = scores.double()
    return Entries(queries.int(), items.int(), rounded_down(scores, 24), -rounded_down(-scores, 24))


def _collect_best(direction: TileDirection, exact: Tensor, part: slice, start: int) -> None:
    """Collect the best items of every query of a tile, by score and index, and raise floors to the last of them."""
    import torch

    exact = exact if direction.axis == 0 else exact.T
    keep = min(direction.side.keep, exact.shape[1])
    for begin in range(0, len(exact), _QUERIES):
        scores = exact[begin : begin + _QUERIES]
        queries = slice(part.start + begin, part.start + begin + len(scores))
        if exact.dtype == torch.float64:
            items = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :keep]
        else:
            keys = (orderable(scores + 0.0).long() << 32) | (LAST - torch.arange(exact.shape[1], device=exact.device))
            items = LAST - (torch.topk(keys, keep, dim=1).values & 0xFFFFFFFF)
        values = torch.gather(scores, 1, items)
        rows = torch.arange(queries.start, queries.stop, device=exact.device)[:, None].expand_as(items)
        entries = _entries(rows.reshape(-1), items.reshape(-1) + start, values.reshape(-1))
        direction.list_candidates(entries)
        if keep == direction.side.keep:
            direction.raise_floors(entries.lowest[keep - 1 :: keep], queries)
            direction.full[queries] |= values[:, -1] == direction.side.floor[queries]
