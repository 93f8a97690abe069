"""The ranking pass by plain tensor operations: a few comparisons of whole tiles, the rest by the scores that pass them.

It serves where the fused kernels cannot: without Triton, for small galleries, for scores that are no inner product,
and where too many scores lie too close together. Every score of a tile is compared with one threshold of its row and
one of its column. The few entries that reach either are compared with relevant items and floors one by one. Where they
are many (vectors without any relation), whole tiles are compared with every relevant item; where too much is undecided,
the tile is made again more precisely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crosslens.core import DEVICE_BYTES, Progress, stage
from crosslens.rank.gpu.blocks import buffer_bytes
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.tiles.exact_tile import decide
from crosslens.rank.gpu.tiles.flags import WORD, FlagBuffers, count, join, words_of
from crosslens.rank.gpu.tiles.levels import Level, full_precision, product_levels
from crosslens.rank.gpu.tiles.tile_direction import TileDirection

Tensor = Any

_LARGEST_TILE, _SMALLEST_TILE, _OTHER_TILE = 16_384, 2_048, 1_024
_BYTES = 16
"""Memory that a score of a tile may need: as a half and as a float32, three comparisons, and what is made of them."""
_ENTRIES = 1 << 24
"""Entries of a tile that are compared at most."""
_FEW_RELEVANT = 32
"""With more relevant items of a query than these, entries are compared one by one however many they are."""
_SPARSE = 1 / 2
"""Up to this share of words of eight scores with an entry, entries are compared one by one."""
_UNDECIDED = 1 / 128
"""From this share of undecided pairs or candidates on a tile is made again more precisely."""
_QUEUE = 1 << 21
"""Entries that are kept at most before they are compared."""
_RETRY = 8
"""After so many tiles a less precise level is tried again."""
_KEY_BYTES = 4
"""Entries are sorted by float32 values: a tile of float64 ones is counted as a whole."""


def tile_pass(rows: Side, columns: Side, progress: Progress, *, half: bool, tile: int | None = None) -> None:
    """Count and collect all inner products, tile by tile; ``half`` for devices with tensor cores."""
    look_through(rows, columns, product_levels(rows.queries, columns.queries, half=half), progress, tile)


def look_through(
    rows: Side, columns: Side, levels: Sequence[Level], progress: Progress, tile: int | None = None
) -> None:
    """Count and collect all scores, tile by tile, each at the first of the levels that can decide it."""
    work = _TilePass(rows, columns, levels)
    height, width = len(rows.queries), len(columns.queries)
    size = tile or work.tile_size()
    starts = range(0, height, size)
    with full_precision(), stage(progress, "ranking", len(starts)):
        for number, top in enumerate(starts, 1):
            down = slice(top, min(top + size, height))
            for begin in range(0, width, size):
                work.look_at(down, slice(begin, min(begin + size, width)))
                if _is_turn(begin // size + 1) and begin + size < width:
                    work.flush()
                    work.rows.cut_back()
            work.flush()
            work.rows.hand_over()
            if _is_turn(number):
                work.columns.cut_back()
            progress.advance()
    work.rows.finish()
    work.columns.finish()


def _is_turn(number: int) -> bool:
    """After tiles 2, 4, 8 …: floors rise less and less."""
    return number > 1 and number & (number - 1) == 0


class _Entries(NamedTuple):
    """Some scores of a tile, numbered by the whole gallery; and how many relevant items its queries have at most."""

    rows: Tensor
    columns: Tensor
    values: Tensor
    widest: tuple[int, int]


class _Way(NamedTuple):
    """How a tile may be looked at where thresholds leave many entries."""

    wide: bool
    large: bool

    @property
    def one_by_one(self) -> bool:
        """A small tile with many relevant items per query: compare all entries, however many."""
        return self.wide and not self.large

    @property
    def in_pieces(self) -> bool:
        """A large one: make small ones of it."""
        return self.wide and self.large


class _TilePass:
    """The two directions, the levels, and memory for comparisons of tiles."""

    def __init__(self, rows: Side, columns: Side, levels: Sequence[Level]) -> None:
        self.levels = levels
        self.rows, self.columns = (TileDirection(side, axis, levels[0]) for axis, side in enumerate((rows, columns)))
        self.keep, self.device = max(rows.keep, columns.keep), rows.floor.device
        self.start = self.seen = 0
        self.dense = False
        self.queue: list[tuple[Level, _Entries]] = []
        self.flags = FlagBuffers(self.device)

    def tile_size(self) -> int:
        """Large tiles make the most of the device; but entries that are compared one by one need memory."""
        import torch

        if self.device.type != "cuda":
            return _OTHER_TILE
        total = torch.cuda.get_device_properties(self.device).total_memory
        size, memory = _LARGEST_TILE, buffer_bytes(min(total, DEVICE_BYTES.value))
        while size > _SMALLEST_TILE and (size * size * _BYTES > memory or 4 * self.keep * size > _ENTRIES):
            size //= 2
        return size

    def look_at(self, down: slice, across: slice) -> None:
        """Count and collect a tile, at the level that the last one needed or a finer one."""
        self.seen += 1
        if self.seen % _RETRY == 0:
            self.start, self.dense = max(0, self.start - 1), False
        most = max(self.rows.widest(down), self.columns.widest(across))
        way = _Way(most > _FEW_RELEVANT, max(down.stop - down.start, across.stop - across.start) > _SMALLEST_TILE)
        for number in range(self.start, len(self.levels)):
            if self.dense and way.in_pieces:
                break
            level = self.levels[number]
            scores = level.tile(down, across)
            if across.start == 0:
                self.rows.first_floors(level, scores, down)
            if down.start == 0:
                self.columns.first_floors(level, scores.T, across)
            if self._looked_at(level, scores, down, across, way):
                self.start = number
                return
        for top in range(down.start, down.stop, _SMALLEST_TILE):
            for begin in range(across.start, across.stop, _SMALLEST_TILE):
                self.look_at(
                    slice(top, min(top + _SMALLEST_TILE, down.stop)),
                    slice(begin, min(begin + _SMALLEST_TILE, across.stop)),
                )

    def _looked_at(self, level: Level, scores: Tensor, down: slice, across: slice, way: _Way) -> bool:
        """Whether the level could decide the tile."""
        entries = None
        if (way.one_by_one or not self.dense) and scores.dtype.itemsize <= _KEY_BYTES:
            flags = self._flagged(scores, self.rows.lows(level)[0][down], self.columns.lows(level)[0][across])
            entries = self._entries(scores, flags, down, across, 1.0 if way.one_by_one else _SPARSE)
            self.dense = entries is None
        if entries is not None and self._note_soon(level, entries, scores):
            return True
        if entries is None and way.in_pieces:
            self.dense = True
            return False
        if level.exact:
            decide(self.rows, level, scores, down, across, self.flags)
            decide(self.columns, level, scores, across, down, self.flags)
            return True
        return entries is None and not way.wide and self._count_all(level, scores, down, across)

    def _flagged(self, scores: Tensor, row_low: Tensor, column_low: Tensor) -> Tensor:
        """Which scores reach the threshold of their row or of their column."""
        import torch

        flags, other = self.flags.of(0, scores), self.flags.of(1, scores)
        width = scores.shape[1]
        torch.ge(scores, row_low.to(scores.dtype)[:, None], out=flags[:, :width])
        torch.ge(scores, column_low.to(scores.dtype)[None], out=other[:, :width])
        join(flags, other)
        return flags

    def _entries(self, scores: Tensor, flags: Tensor, down: slice, across: slice, share: float) -> _Entries | None:
        """The flagged scores; None if a larger share of words has any."""
        import torch

        words = words_of(flags)
        where = torch.nonzero(words)[:, 0]
        if len(where) > max(share * len(words), 2 * self.keep * sum(scores.shape)):
            return None
        which, offset = torch.nonzero(words[where].view(torch.uint8).view(-1, WORD), as_tuple=True)
        position = where[which] * WORD + offset
        row = torch.div(position, flags.shape[1], rounding_mode="floor")
        column = position - row * flags.shape[1]
        widest = self.rows.widest(down), self.columns.widest(across)
        return _Entries(row + down.start, column + across.start, scores[row, column].float(), widest)

    def _note_soon(self, level: Level, entries: _Entries, scores: Tensor) -> bool:
        """Keep entries for a while, if they are few: most of the time is spent on starting small operations."""
        if len(entries.rows) > min(_QUEUE, _UNDECIDED / 2 * scores.numel()):
            return self._note(level, entries, scores, counted=False)
        if self.queue and (self.queue[0][0] is not level or sum(len(part.rows) for _, part in self.queue) > _QUEUE):
            self.flush()
        self.queue.append((level, entries))
        return True

    def flush(self) -> None:
        """Note the entries that were kept."""
        import torch

        if self.queue:
            level = self.queue[0][0]
            rows, columns, values, widest = zip(*(part for _, part in self.queue), strict=True)
            most = max(row for row, _ in widest), max(column for _, column in widest)
            entries = _Entries(torch.cat(rows), torch.cat(columns), torch.cat(values), most)
            self.queue = []
            self._note(level, entries, None, counted=False)

    def _note(self, level: Level, entries: _Entries, scores: Tensor | None, *, counted: bool) -> bool:
        """Compare entries in both directions; False, with nothing noted, where too much of a tile is undecided."""
        import torch

        rows, columns, values, (by_row, by_column) = entries
        compared = (
            self.rows.compare(level, rows, columns, values, by_row),
            self.columns.compare(level, columns, rows, values, by_column),
        )
        totals = torch.stack([part.totals for part in compared]).tolist()
        both = (self.rows, self.columns)
        if scores is not None and any(
            max(total) > _most(direction, scores) for direction, total in zip(both, totals, strict=True)
        ):
            return False
        for direction, part, (undecided, _) in zip(both, compared, totals, strict=True):
            direction.note(level, part, undecided, counted=counted)
        return True

    def _count_all(self, level: Level, scores: Tensor, down: slice, across: slice) -> bool:
        """Compare the whole tile with every relevant item, and one by one only what is undecided or may be listed."""
        flags = self._flagged(scores, self.rows.lows(level)[1][down], self.columns.lows(level)[1][across])
        counts = [
            (direction, nth, part, self._compare(level, scores, direction, nth, part, flags))
            for direction, part in ((self.rows, down), (self.columns, across))
            for nth in range(direction.widest(part))
        ]
        entries = self._entries(scores, flags, down, across, WORD * _UNDECIDED)
        if entries is None or not self._note(level, entries, scores, counted=True):
            return False
        for direction, nth, part, above in counts:
            direction.side.coarse[nth, part] += above
        return True

    def _compare(
        self, level: Level, scores: Tensor, direction: TileDirection, nth: int, part: slice, flags: Tensor
    ) -> Tensor:
        """How many scores are surely above the nth relevant item of each query; the undecided ones are flagged."""
        import torch

        width, axis = scores.shape[1], direction.axis
        targets = direction.side.targets[nth, part]
        low, high = (
            bound(targets, axis, part).to(scores.dtype).unsqueeze(1 - axis) for bound in (level.at_least, level.at_most)
        )
        above, reached = self.flags.of(1, scores), self.flags.of(2, scores)
        torch.gt(scores, high, out=above[:, :width])
        torch.ge(scores, low, out=reached[:, :width])
        words_of(reached).bitwise_xor_(words_of(above))
        join(flags, reached)
        return count(above, axis)[: len(targets)]


def _most(direction: TileDirection, scores: Tensor) -> float:
    """How many pairs of a tile may be undecided, or candidates."""
    many: float = max(_UNDECIDED * scores.numel(), 2 * direction.side.keep * scores.shape[direction.axis])
    return many + direction.density * float(scores.numel())
