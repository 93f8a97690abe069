"""The ranking pass by plain tensor operations: most of it by the few scores of a tile that may matter.

It serves where the fused kernels cannot: without Triton, for small galleries, for scores that are no inner product,
and where too many scores lie too close together. Each direction looks at each tile for itself, and takes the fastest
level that can decide it. The few scores that reach the floor of their query are compared with relevant items and lists,
many tiles at a time. Where they are many (vectors without any relation), the whole tile is compared with every relevant
item; where too much is undecided, the tile is made again more precisely.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from crosslens.core import DEVICE_BYTES, Progress, stage
from crosslens.rank.gpu.blocks import buffer_bytes
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.tiles.buffers import FlagBuffers, count, words_of
from crosslens.rank.gpu.tiles.entries import WORD, marked_pairs
from crosslens.rank.gpu.tiles.exact_tile import decide
from crosslens.rank.gpu.tiles.half_level import HalfLevel
from crosslens.rank.gpu.tiles.levels import Level, Marked, product_levels
from crosslens.rank.gpu.tiles.tile_direction import TileDirection

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
    rows: Side,
    columns: Side,
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
        levels = [HalfLevel(left, right), *levels]
    look_through(rows, columns, levels, flags, progress, tile, blocks)


def look_through(
    rows: Side,
    columns: Side,
    levels: Sequence[Level],
    flags: FlagBuffers,
    progress: Progress,
    tile: int | None = None,
    blocks: Sequence[tuple[slice, slice]] | None = None,
) -> None:
    """Count and collect scores, tile by tile, each at the first of the levels that can decide it."""
    by_row, by_column = (
        _DirectionPass(TileDirection(side, axis), levels, flags) for axis, side in enumerate((rows, columns))
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
            by_row.direction.hand_over()
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
        self.level = levels[0]
        self.start = self.seen = 0
        self.dense = False
        self.queue: list[Marked] = []

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
        direction, marked = self.direction, None
        if not self.dense or (wide and not large):
            share = 1.0 if wide and not large else _SPARSE
            marked = level.find(direction.axis, queries, items, direction.floor(), share)
            self.dense = marked is None
        if marked is not None and self._note_soon(level, marked, queries, items):
            return True
        if marked is None and wide and large:
            self.dense = True
            return False
        if level.exact:
            decide(direction, level, queries, items, self.flags)
            return True
        return marked is None and not wide and self._count_all(level, queries, items)

    def _note_soon(self, level: Level, marked: Marked, queries: slice, items: slice) -> bool:
        """Compare what was found, later if it is little: most of the time is spent on starting small operations."""
        area = (queries.stop - queries.start) * (items.stop - items.start)
        if len(marked) > min(_QUEUE, _UNDECIDED * area):
            entries = level.resolve(self.direction.axis, [marked])
            compared = self.direction.compare(entries)
            undecided, listed = compared.totals()
            if max(undecided, listed) > self._most(queries, items):
                return False
            self.direction.note(entries, compared, undecided)
            return True
        if self.queue and (self.level is not level or self.queue[-1].floor is not marked.floor):
            self.flush()
        self.level = level
        self.queue.append(marked)
        if sum(len(part) for part in self.queue) > _QUEUE:
            self.flush()
        return True

    def flush(self) -> None:
        """Compare what was kept."""
        if self.queue:
            entries = self.level.resolve(self.direction.axis, self.queue)
            self.queue = []
            compared = self.direction.compare(entries)
            self.direction.note(entries, compared, compared.totals()[0])

    def cut_back(self) -> None:
        """Raise floors by what was seen so far."""
        self.flush()
        self.direction.cut_back()

    def _most(self, queries: slice, items: slice) -> float:
        """How many pairs of a tile may be undecided, or candidates."""
        height, width = queries.stop - queries.start, items.stop - items.start
        many: float = max(_UNDECIDED * height * width, 2 * self.direction.side.keep * height)
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

        low, _ = level.bounds(direction.side.floor[queries], direction.axis, queries)
        torch.ge(scores, low.unsqueeze(across), out=reached[:, :width])
        listed = marked_pairs(reached, share, axis)
        if listed is None:
            return False
        counted = []
        for nth in range(direction.widest(queries)):
            low, high = level.bounds(direction.side.targets[nth, queries], direction.axis, queries)
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
            direction.side.coarse[nth, queries] += more
            direction.wait(direction.side.offsets[query + queries.start] + nth, item + items.start)
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
