"""One direction of a pass over tiles: what scores mean for its relevant items and its lists."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from crosslens.engine import Progress, stage
from crosslens.rank.gpu.blocks import buffer_bytes
from crosslens.rank.gpu.direction import LAST, DeviceDirection, best_items, orderable
from crosslens.rank.gpu.tile_levels import (
    WORD,
    Entries,
    FlagBuffers,
    HalfLevel,
    Level,
    count,
    joined,
    marked_pairs,
    product_levels,
    rounded_down,
    words_of,
)
from crosslens.rank.scorers import Scorer
from crosslens.storage import DEVICE_BYTES
from crosslens.values import Ranking, Relevance

Tensor = Any

_GROUPS = 64
_PENDING = 1 << 24
"""Undecided pairs that wait at most before they are decided; candidates before they are cut back."""


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
    """The relevant pairs of a direction sorted by query and score, and the candidates for its lists.

    ``axis`` is 0 where the queries are the rows of the ranking, 1 where they are its columns. ``density`` is the share
    of scores that may be those of relevant pairs themselves, which only exact ones can decide.
    """

    def __init__(self, counted: DeviceDirection, axis: int) -> None:
        import torch

        self.counted, self.axis = counted, axis
        self.count, where = len(counted.floor), counted.floor.device
        offsets = counted.offsets.cpu().numpy()
        self.offsets, self.lengths = offsets, np.diff(offsets)
        self.density: float = 2 * len(counted.owners) / (self.count * len(counted.gallery))
        by_score = torch.argsort(counted.scores, stable=True)
        self.order = by_score[torch.argsort(counted.owners[by_score], stable=True)]
        self.owners, self.starts = counted.owners[self.order].long(), counted.offsets.long()
        scores = counted.scores[self.order].double()
        self.keys_below = _keys(self.owners, -rounded_down(-scores, 24))
        self.keys_upto = _keys(self.owners, rounded_down(scores, 24))
        self.above = torch.zeros(max(1, len(self.order)), dtype=torch.int64, device=where)
        self.lowest = torch.full((self.count,), torch.inf, dtype=torch.float64, device=where)
        self.lowest.scatter_reduce_(0, self.owners, scores, "amin")
        self.full = counted.full.clone()
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
            self._floor = torch.minimum(self.lowest, self.counted.floor.double())
        return self._floor

    def compare(self, entries: Entries) -> Compared:
        """What entries mean for relevant items and lists; nothing is counted yet."""
        import torch

        below = torch.searchsorted(self.keys_below, _keys(entries.queries, entries.lowest), out_int32=True)
        upto = torch.searchsorted(self.keys_upto, _keys(entries.queries, entries.highest), out_int32=True, right=True)
        return Compared(below, upto, entries.highest >= self.counted.floor.index_select(0, entries.queries))

    def note(self, entries: Entries, compared: Compared, undecided: int) -> None:
        """Count and collect entries; so many pairs are undecided."""
        import torch

        below, upto, listed = compared
        sure = (below - 1)[below > self.counted.offsets.index_select(0, entries.queries)]
        self.above.index_add_(0, sure, torch.ones((), dtype=torch.int64, device=sure.device).expand(len(sure)))
        self.list_candidates(entries.part(torch.nonzero(listed)[:, 0]))
        if undecided:
            undecided_rows = torch.nonzero(upto > below)[:, 0]
            below, lengths = below[undecided_rows].long(), (upto - below)[undecided_rows].long()
            first = torch.repeat_interleave(below + lengths - torch.cumsum(lengths, 0), lengths, output_size=undecided)
            pairs = self.order[first + torch.arange(undecided, device=first.device)]
            self.wait(pairs, torch.repeat_interleave(entries.items[undecided_rows], lengths, output_size=undecided))

    def wait(self, pairs: Tensor, items: Tensor) -> None:
        """Keep undecided pairs, and items to compare them with, until there are many of them."""
        self._undecided.append((pairs.int(), items.int()))
        self._waiting += len(pairs)
        if self._waiting > _PENDING:
            self._decide_waiting()

    def list_candidates(self, entries: Entries) -> None:
        """Note candidates for lists; those that are too low are dropped later."""
        self._candidates.append(entries)
        if sum(len(part) for part in self._candidates) > 2 * self._kept + _PENDING:
            self.cut_back()

    def _decide_waiting(self) -> None:
        """Have the undecided pairs decided by exact scores."""
        import torch

        if self._undecided:
            pairs, items = (torch.cat(parts) for parts in zip(*self._undecided, strict=True))
            self._undecided, self._waiting = [], 0
            self.counted.count_exactly(pairs, items)

    def first_floors(self, level: Level, queries: slice, items: slice) -> None:
        """Floors from a tile: the ``keep``-th largest of the maxima of some parts of it."""
        import torch

        keep, width = self.counted.keep, items.stop - items.start
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

        higher = floor > self.counted.floor[queries]
        self.full[queries] &= ~higher
        self.counted.floor[queries] = torch.maximum(self.counted.floor[queries], floor)
        self._floor = None

    def cut_back(self) -> None:
        """Raise floors by the candidates, and drop those that cannot be listed any more."""
        import torch

        if not self._candidates:
            return
        entries = joined(self._candidates)
        entries = entries.part(torch.argsort(_keys(entries.queries, -entries.lowest)))
        counts = torch.bincount(entries.queries, minlength=self.count)
        last = (torch.cumsum(counts, 0) - counts + self.counted.keep - 1)[counts >= self.counted.keep]
        self.raise_floors(entries.lowest[last], entries.queries[last].long())
        rows = torch.nonzero(entries.highest >= self.counted.floor.index_select(0, entries.queries))[:, 0]
        self._candidates = [entries.part(rows)]
        self._kept = len(self._candidates[0])

    def give_candidates(self) -> None:
        """Cut candidates back and have those that are left scored exactly."""
        self.cut_back()
        for entries in self._candidates:
            self.counted.collect(entries.queries, entries.items)
        self._candidates, self._kept = [], 0

    def finish(self) -> None:
        """Give everything that was counted and collected to the direction."""
        import torch

        self.give_candidates()
        self._decide_waiting()
        if len(self.order):
            # An entry counted at a pair is above it and all of its query before it: sum from behind.
            behind = torch.cat([torch.cumsum(self.above.flip(0), 0).flip(0), self.above.new_zeros(1)])
            self.counted.above[self.order] += behind[:-1] - behind[self.starts[1:]][self.owners]


def _keys(queries: Tensor, values: Tensor) -> Tensor:
    """Integers that sort by query, then by value."""
    return (queries.long() << 32) + (orderable(values + 0.0).long() + LAST + 1)


_QUERIES = 2_048
"""Queries whose scores are sorted at a time."""
_MANY = 1 / 128
"""From this share of candidates on only the best of each query are collected."""


def decide(direction: TileDirection, level: Level, part: slice, items: slice, buffers: FlagBuffers) -> None:
    """Count and collect a tile of exact scores for the queries ``part`` of a direction."""
    import torch

    scores, _ = level.tile(direction.axis, part, items)
    # Relevant pairs get the scores that they are compared by: sums of another order can differ in the last bit.
    counted = direction.counted
    pairs = torch.arange(*direction.offsets[[part.start, part.stop]].tolist(), device=scores.device)
    pairs = pairs[(counted.places[pairs] >= items.start) & (counted.places[pairs] < items.stop)]
    slots = counted.owners[pairs].long() - part.start, counted.places[pairs].long() - items.start
    scores[slots if direction.axis == 0 else slots[::-1]] = counted.scores[pairs]
    counted.tied[pairs] -= 1  # each will be counted as a tie with itself
    for nth in range(direction.widest(part)):
        _count(direction, scores, nth, part, items.start, buffers)
    _collect(direction, scores, part, items.start, buffers)


def _count(direction: TileDirection, exact: Tensor, nth: int, part: slice, start: int, buffers: FlagBuffers) -> None:
    """Count a tile of exact scores, which begins at item ``start``, against the nth relevant item of each query."""
    import torch

    counted, other, width = direction.counted, 1 - direction.axis, exact.shape[1]
    active = counted.offsets[part.start + 1 : part.stop + 1] - counted.offsets[part] > nth
    pairs = (counted.offsets[part] + nth)[active].long()
    target = counted.targets[nth, part].unsqueeze(other)  # infinite for queries that have fewer
    numbers = torch.zeros(len(active), dtype=torch.int32, device=exact.device)
    numbers[active] = counted.items[pairs]
    items = counted.numbers[start : start + exact.shape[other]].unsqueeze(direction.axis)
    compared, earlier = buffers.of(0, exact), buffers.of(1, exact)
    torch.gt(exact, target, out=compared[:, :width])
    counted.above[pairs] += count(compared, direction.axis)[: len(active)][active]
    torch.eq(exact, target, out=compared[:, :width])
    counted.tied[pairs] += count(compared, direction.axis)[: len(active)][active]
    torch.lt(items, numbers.unsqueeze(other), out=earlier[:, :width])
    words_of(earlier).bitwise_and_(words_of(compared))
    counted.before[pairs] += count(earlier, direction.axis)[: len(active)][active]


def _collect(direction: TileDirection, exact: Tensor, part: slice, start: int, buffers: FlagBuffers) -> None:
    """Collect candidates of a tile of exact scores, which begins at item ``start``.

    Of many, the best of every query by score and index, and floors are raised to the last of them.
    """
    import torch

    floor = direction.counted.floor[part]
    # Items come in ascending order: one that equals the last of a full list cannot enter it any more.
    floor = torch.where(direction.full[part], torch.nextafter(floor, torch.full_like(floor, torch.inf)), floor)
    flags = buffers.of(0, exact)
    torch.ge(exact, floor.unsqueeze(1 - direction.axis), out=flags[:, : exact.shape[1]])
    if int(flags.sum()) <= max(_MANY * exact.numel(), 2 * direction.counted.keep * len(floor)):
        slots = torch.nonzero(flags, as_tuple=True)
        rows, columns = slots if direction.axis == 0 else slots[::-1]
        scores = exact[slots]
        direction.list_candidates(Entries((rows + part.start).int(), (columns + start).int(), scores, scores))
        return
    exact = exact if direction.axis == 0 else exact.T
    keep = min(direction.counted.keep, exact.shape[1])
    for begin in range(0, len(exact), _QUERIES):
        scores = exact[begin : begin + _QUERIES]
        queries = slice(part.start + begin, part.start + begin + len(scores))
        items = best_items(scores, keep)
        values = torch.gather(scores, 1, items)
        rows = torch.arange(queries.start, queries.stop, dtype=torch.int32, device=exact.device)
        flat = values.reshape(-1)
        direction.list_candidates(Entries(rows.repeat_interleave(keep), (items.reshape(-1) + start).int(), flat, flat))
        if keep == direction.counted.keep:
            direction.raise_floors(values[:, -1], queries)
            direction.full[queries] |= values[:, -1] == direction.counted.floor[queries]


_LARGEST_TILE, _SMALLEST_TILE, _OTHER_TILE = 16_384, 2_048, 1_024
_BYTES = 12
"""Memory that a score of a tile may need: as a half and as a float32, three comparisons, and what is made of them."""
_ENTRIES = 1 << 24
"""Entries of a tile that are compared at most."""
_FEW_RELEVANT = 32
"""With more relevant items of a query than these, entries are compared one by one however many they are."""
_SPARSE = 1 / 4
"""Up to this share of words of eight bytes with an entry, entries are compared one by one."""
_UNDECIDED = 1 / 128
"""From this share of undecided pairs or candidates on a tile is made again more precisely."""
_QUEUE = 1 << 24
"""Entries that are kept at most before they are compared."""
_RETRY = 8
"""After so many tiles a less precise level is tried again."""


def tile_pass(
    rows: DeviceDirection,
    columns: DeviceDirection,
    progress: Progress,
    *,
    half: bool,
    tile: int | None = None,
    blocks: Sequence[tuple[slice, slice]] | None = None,
) -> None:
    """Count and collect all inner products, or those of ``blocks``; ``half`` for devices with tensor cores."""
    left, right = rows.queries, columns.queries
    flags = FlagBuffers(left.device)
    levels = product_levels(left, right, flags)
    if half:
        levels = [HalfLevel(left, right, flags), *levels]
    _pass_over(rows, columns, levels, flags, progress, tile, blocks)


def _pass_over(
    rows: DeviceDirection,
    columns: DeviceDirection,
    levels: Sequence[Level],
    flags: FlagBuffers,
    progress: Progress,
    tile: int | None = None,
    blocks: Sequence[tuple[slice, slice]] | None = None,
) -> None:
    """Count and collect scores, tile by tile, each at the first of the levels that can decide it."""
    by_row, by_column = (
        _DirectionPass(TileDirection(counted, axis), levels, flags) for axis, counted in enumerate((rows, columns))
    )
    size = tile or _tile_size(rows.floor.device, max(rows.keep, columns.keep))
    if blocks is None:
        blocks = [(slice(0, len(rows.queries)), slice(0, len(columns.queries)))]
    stripes = [(down, across) for block, across in blocks for down in _parts(block, size)]
    with full_precision(), stage(progress, "ranking", len(stripes)):
        for number, (down, across) in enumerate(stripes, 1):
            for nth, part in enumerate(_parts(across, size), 1):
                by_row.look_at(down, part)
                by_column.look_at(part, down)
                if _is_turn(nth) and part.stop < across.stop:
                    by_row.cut_back()
            by_row.flush()
            by_row.direction.give_candidates()
            if _is_turn(number):
                by_column.cut_back()
            progress.advance()
    for each in (by_row, by_column):
        each.flush()
        each.direction.finish()


def _parts(whole: slice, size: int) -> list[slice]:
    return [slice(start, min(start + size, whole.stop)) for start in range(whole.start, whole.stop, size)]


def _is_turn(number: int) -> bool:
    """After tiles 4, 16, 64 …: floors rise less and less."""
    return number > 1 and number & (number - 1) == 0 and number.bit_length() % 2 == 1


def _tile_size(device: Any, keep: int) -> int:
    """Large tiles make the most of the device; but entries that are compared one by one need memory."""
    import torch

    if device.type != "cuda":
        return _OTHER_TILE
    total = torch.cuda.get_device_properties(device).total_memory
    size, memory = _LARGEST_TILE, buffer_bytes(min(total, DEVICE_BYTES.value))
    while size > _SMALLEST_TILE and (size * size * _BYTES > memory or 4 * keep * size > _ENTRIES):
        size //= 2
    return size


class _DirectionPass:
    """How tiles are looked at for one direction: the level that the last one needed, and entries that wait."""

    def __init__(self, direction: TileDirection, levels: Sequence[Level], flags: FlagBuffers) -> None:
        self.direction, self.levels, self.flags = direction, levels, flags
        self.start = self.seen = 0
        self.dense = False
        self.queue: list[Entries] = []

    def look_at(self, queries: slice, items: slice) -> None:
        """Count and collect a tile, at the level that the last one needed or a finer one."""
        self.seen += 1
        if self.seen % _RETRY == 0:
            self.start, self.dense = max(0, self.start - 1), False
        wide = self.direction.widest(queries) > _FEW_RELEVANT
        large = max(queries.stop - queries.start, items.stop - items.start) > _SMALLEST_TILE
        for number in range(self.start, len(self.levels)):
            if self.dense and wide and large:
                break
            level = self.levels[number]
            if items.start == 0:
                self.direction.first_floors(level, queries, items)
            if self._looked_at(level, queries, items, wide=wide, large=large):
                self.start = number
                return
        for some in _parts(queries, _SMALLEST_TILE):
            for others in _parts(items, _SMALLEST_TILE):
                self.look_at(some, others)

    def _looked_at(self, level: Level, queries: slice, items: slice, *, wide: bool, large: bool) -> bool:
        """Whether the level could decide the tile.

        Queries with many relevant items are never compared with whole tiles: where entries are many, a large tile is
        divided, and a small one compared entry by entry.
        """
        direction, entries = self.direction, None
        if not self.dense or (wide and not large):
            share = 1.0 if wide and not large else _SPARSE
            entries = level.find(direction.axis, queries, items, direction.floor(), share)
            self.dense = entries is None
        if entries is not None and self._note_soon(entries, queries, items):
            return True
        if entries is None and wide and large:
            self.dense = True
            return False
        if level.exact:
            decide(direction, level, queries, items, self.flags)
            return True
        return entries is None and not wide and self._count_all(level, queries, items)

    def _note_soon(self, entries: Entries, queries: slice, items: slice) -> bool:
        """Compare what was found, later if it is little: most of the time is spent on starting small operations."""
        area = (queries.stop - queries.start) * (items.stop - items.start)
        if len(entries) > min(_QUEUE, _UNDECIDED * area):
            compared = self.direction.compare(entries)
            undecided, listed = compared.totals()
            if max(undecided, listed) > self._most(queries, items):
                return False
            self.direction.note(entries, compared, undecided)
            return True
        self.queue.append(entries)
        if sum(len(part) for part in self.queue) > _QUEUE:
            self.flush()
        return True

    def flush(self) -> None:
        """Compare what was kept."""
        if self.queue:
            entries, self.queue = joined(self.queue), []
            compared = self.direction.compare(entries)
            self.direction.note(entries, compared, compared.totals()[0])

    def cut_back(self) -> None:
        """Raise floors by what was seen so far."""
        self.flush()
        self.direction.cut_back()

    def _most(self, queries: slice, items: slice) -> float:
        """How many pairs of a tile may be undecided, or candidates."""
        height, width = queries.stop - queries.start, items.stop - items.start
        many: float = max(_UNDECIDED * height * width, 2 * self.direction.counted.keep * height)
        many += self.direction.density * height * width
        return many

    def _count_all(self, level: Level, queries: slice, items: slice) -> bool:
        """Compare the whole tile with every relevant item, and one by one only what is undecided or may be listed."""
        import torch

        direction, size = self.direction, queries.stop - queries.start
        tile = level.tile(direction.axis, queries, items)
        scores, axis = tile
        width, across = scores.shape[1], 1 - axis
        share = WORD * self._most(queries, items) / scores.numel()
        reached, above = self.flags.of(0, scores), self.flags.of(1, scores)

        low, _ = level.bounds(direction.counted.floor[queries], direction.axis, queries)
        torch.ge(scores, low.unsqueeze(across), out=reached[:, :width])
        listed = marked_pairs(reached, share, axis)
        if listed is None:
            return False
        counted = []
        for nth in range(direction.widest(queries)):
            low, high = level.bounds(direction.counted.targets[nth, queries], direction.axis, queries)
            torch.gt(scores, high.unsqueeze(across), out=above[:, :width])
            torch.ge(scores, low.unsqueeze(across), out=reached[:, :width])
            words_of(reached).bitwise_xor_(words_of(above))
            undecided = marked_pairs(reached, share, axis)
            if undecided is None:
                return False
            counted.append((count(above, axis)[:size], undecided))
        query, item = listed
        values = tile.by_query[query, item]
        direction.list_candidates(level.around(values, direction.axis, query + queries.start, item + items.start))
        for nth, (more, (query, item)) in enumerate(counted):
            direction.counted.coarse[nth, queries] += more
            direction.wait(direction.counted.offsets[query + queries.start] + nth, item + items.start)
        return True


class _Precision:
    """The settings of products, which all threads of a process share: changed by the first, restored by the last."""

    names = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0
        self.before: dict[str, Any] = {}

    def enter(self) -> None:
        import torch

        matmul = torch.backends.cuda.matmul
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = {name: getattr(matmul, name) for name in self.names if hasattr(matmul, name)}
                for name in self.before:
                    setattr(matmul, name, False)

    def leave(self) -> None:
        import torch

        with self.lock:
            self.users -= 1
            if self.users == 0:
                for name, value in self.before.items():
                    setattr(torch.backends.cuda.matmul, name, value)


_precision = _Precision()


@contextmanager
def full_precision() -> Iterator[None]:
    """Inside, products are summed in float32 and float32 inputs are not shortened: the bounds count on it."""
    _precision.enter()
    try:
        yield
    finally:
        _precision.leave()


def rank_scores(
    scorer: Scorer,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    device: Any,
    tile: int | None,
    progress: Progress,
) -> dict[str, Ranking]:
    """Rank the scores of any scorer in both directions, whatever the ``device``: on the cores that make them.

    Cores compare a score sooner than it would reach a device.
    """
    from crosslens.rank.direction_state import Direction  # compiled code: slow to import
    from crosslens.rank.parts import rank_in_parts

    rows, columns = (Direction.of(part, scorer, depth, as_rows=axis == 0) for axis, part in enumerate(relevant))
    return rank_in_parts(scorer, (rows, columns), names, tile=tile, threads=None, progress=progress, checkpoint=None)
