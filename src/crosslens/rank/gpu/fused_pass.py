"""The ranking pass by fused kernels: half-precision products decide almost everything, float32 the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosslens.core import Progress, stage
from crosslens.rank.gpu.exact import lanes
from crosslens.rank.gpu.rounded import float32_slack, halves, product_slack
from crosslens.rank.gpu.side import Side

Tensor = Any

SMALLEST = 8_192
"""From so many rows and columns on the kernels are worth their start; floors need enough tiles to be looked at."""
MOST_RELEVANT = 64
"""Each relevant item of a query is compared with every score; with more of them, other ways are faster."""

TILE = {"height": 128, "width": 128, "num_warps": 4, "num_stages": 3}
"""Two such programs fit a multiprocessor: one multiplies while the other compares."""
_STEP = 64
_PANEL = 32_768
"""Rows and columns of a block; floors rise from block to block."""
_CAPACITY = 1_024
"""Pairs of a row that may be noted in a block: 3 %. Vectors without any relation to each other need more."""
_WIDTH = 256
"""Candidates of a query."""
_SAMPLE = 8_192
"""Items that the first floors are looked for in."""
_ROOM = 1 << 26
"""Pairs that float32 may leave undecided before they are settled."""
_PAIRS = 16
_COMMON = 8


@dataclass
class _Collected:
    """What kernels write for one side: candidates as sortable keys, and pairs that float32 leaves undecided."""

    side: Side
    widths: Tensor
    keys: Tensor
    fill: Tensor
    above: Tensor
    pairs: Tensor
    items: Tensor
    length: Tensor

    @staticmethod
    def of(side: Side, block: int, room: int) -> _Collected:
        import torch

        where, count = side.queries.device, len(side.queries)

        def empty(*shape: int, kind: Any = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=kind, device=where)

        return _Collected(
            side, side.widths(block), empty(count, _WIDTH, kind=torch.int64), empty(count),
            empty(max(1, len(side.owners))), empty(room), empty(room), empty(1),
        )  # fmt: skip

    def common(self, queries: slice) -> int:
        """Relevant items that the kernel compares in one go: as many as any of these queries has, up to a limit."""
        offsets = self.side.relevance.offsets[queries.start : queries.stop + 1]
        return min(_COMMON, int((offsets[1:] - offsets[:-1]).max(initial=0)))

    def settle(self) -> None:
        """Decide the pairs that are noted so far."""
        length = int(self.length)
        self.side.settle(self.pairs[:length], self.items[:length])
        self.length.zero_()

    def finish(self) -> None:
        """Hand everything over to the side."""
        import torch

        self.settle()
        self.side.above += self.above[: len(self.side.owners)]
        most = int(self.fill.max())
        listed = torch.arange(most, device=self.fill.device) < self.fill[:, None]
        queries = torch.nonzero(listed)[:, 0]
        self.side.collect(queries, (self.keys[:, :most][listed] & 0xFFFFFFFF).int())


def fused_pass(rows: Side, columns: Side, progress: Progress) -> bool:
    """Count and collect all pairs; False, with nothing usable counted, where too many are too close to tell apart."""
    work = _FusedPass(rows, columns)
    height, width = len(rows.queries), len(columns.queries)
    with stage(progress, "ranking", -(-width // _PANEL) * -(-height // _PANEL)):
        for begin in range(0, width, _PANEL):
            for top in range(0, height, _PANEL):
                work.look_at(slice(top, min(top + _PANEL, height)), slice(begin, min(begin + _PANEL, width)))
                progress.advance()
            if work.is_full():  # asked once per panel of columns, so that the device never waits for long
                return False
    work.by_row.finish()
    work.by_column.finish()
    return True


class _FusedPass:
    """The rounded vectors, bounds and buffers of a pass."""

    def __init__(self, rows: Side, columns: Side) -> None:
        import torch

        self.rows, self.columns, where = rows, columns, rows.queries.device
        tile_rows, tile_columns = TILE["height"], TILE["width"]
        both = max(tile_rows, tile_columns)  # powers of two: a multiple of either
        left, right = (halves(side.queries, both, _STEP) for side in (rows, columns))
        self.left, self.right, self.unit = left.values, right.values, left.unit * right.unit
        self.slack = product_slack(left, right, self.left.shape[1])
        self.fine = float32_slack(left, right, rows.queries.shape[1])
        first_floors(rows, self.left, self.right, self.unit, self.slack)
        first_floors(columns, self.right, self.left, self.unit, self.slack)
        self.room = min(_ROOM, 64 * max(len(rows.queries), len(columns.queries), 1 << 14))
        self.by_row = _Collected.of(rows, tile_rows, self.room)
        self.by_column = _Collected.of(columns, tile_columns, self.room)
        self.bits = torch.empty((_PANEL, _PANEL // 32), dtype=torch.int32, device=where)
        self.noted = torch.empty((_PANEL, _CAPACITY), dtype=torch.int32, device=where)
        self.counts = torch.empty(_PANEL, dtype=torch.int32, device=where)
        self.overflow = torch.zeros(1, dtype=torch.int32, device=where)

    def look_at(self, rows: slice, columns: slice) -> None:
        """Count a block, score again what is noted in it, and cut lists back."""
        self._scan(rows, columns)
        self._rescore(rows)
        self._cut_back(self.by_row, rows, columns.start, len(self.columns.queries))
        self._cut_back(self.by_column, columns, rows.start, len(self.rows.queries))

    def _scan(self, rows: slice, columns: slice) -> None:
        from crosslens.rank.gpu.kernels import scan, unpack

        by_row, by_column, words = self.by_row, self.by_column, _PANEL // 32
        height, width = rows.stop - rows.start, columns.stop - columns.start
        down, across = -(-height // TILE["height"]), -(-width // TILE["width"])
        scan[(down * across,)](
            self.left, self.right, rows.start, rows.stop, columns.start, columns.stop, down, across,
            self.rows.targets, by_row.widths, self.rows.floor, self.rows.coarse, len(self.rows.queries),
            self.columns.targets, by_column.widths, self.columns.floor, self.columns.coarse, len(self.columns.queries),
            self.unit, self.slack * self.unit, self.bits, words, dimension=self.left.shape[1],
            row_common=by_row.common(rows), column_common=by_column.common(columns), **TILE,
        )  # fmt: skip
        used = across * TILE["width"] // 32
        unpack[(height,)](self.bits, words, used, columns.start, self.noted, self.counts, _CAPACITY, size=words)

    def _rescore(self, rows: slice) -> None:
        from crosslens.rank.gpu.kernels import rescore

        by_row, by_column, size = self.by_row, self.by_column, self.rows.queries.shape[1]
        rescore[(rows.stop - rows.start,)](
            self.rows.queries, self.columns.queries, rows.start, self.noted, self.counts, _CAPACITY, self.overflow,
            self.rows.offsets, self.rows.scores, self.rows.floor, by_row.above, by_row.keys, by_row.fill,
            self.columns.offsets, self.columns.scores, self.columns.floor, by_column.above, by_column.keys,
            by_column.fill, by_row.pairs, by_row.items, by_row.length, by_column.pairs, by_column.items,
            by_column.length, self.room, _WIDTH, self.fine, dimension=size, padded=lanes(size), size=_PAIRS,
        )  # fmt: skip

    def _cut_back(self, collected: _Collected, queries: slice, start: int, gallery: int) -> None:
        """Drop candidates that cannot be listed; after panels 1, 2, 4 … of the gallery, as lists grow less and less."""
        from crosslens.rank.gpu.kernels import keep_best

        number = start // _PANEL + 1
        if number & (number - 1) == 0 or start + _PANEL >= gallery:
            side = collected.side
            keep_best[(queries.stop - queries.start,)](
                collected.keys, collected.fill, side.floor, queries.start, side.keep, side.keep, self.overflow,
                self.fine, width=_WIDTH, num_warps=1,
            )  # fmt: skip

    def is_full(self) -> bool:
        """Whether a buffer was too small; undecided pairs are settled while there is room for them."""
        import torch

        full, *lengths = torch.cat([self.overflow, self.by_row.length, self.by_column.length]).tolist()
        if full or max(lengths) > self.room:
            return True
        for collected, length in zip((self.by_row, self.by_column), lengths, strict=True):
            if length > self.room // 4:
                collected.settle()
        return False


def first_floors(side: Side, queries: Tensor, gallery: Tensor, unit: float, slack: float) -> None:
    """Floors from a look at part of the gallery: the ``keep``-th largest of the maxima of some tiles.

    That many items reach it, so nothing below can be in the list.
    """
    import torch

    from crosslens.rank.gpu import kernels

    tile_rows, tile_columns = TILE["height"], TILE["width"]
    count, whole = len(side.queries), len(side.gallery) // tile_columns  # a tile past the end would hold zeros
    across = min(whole, max(_SAMPLE // tile_columns, 2 * side.keep))
    if across < side.keep:
        return
    out = torch.empty((count, across), dtype=torch.float32, device=queries.device)
    down = -(-count // tile_rows)
    kernels.maxima[(down * across,)](
        queries, gallery, out, count, whole // across, down, across, dimension=queries.shape[1],
        **TILE,
    )  # fmt: skip
    best = torch.topk(out, side.keep, dim=1).values[:, -1]
    side.floor[:] = best / unit - slack
