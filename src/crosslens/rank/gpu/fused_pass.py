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

_PANEL = 32_768
_CAPACITY = 1_024
"""Pairs of a row and a panel that may be noted: about 3 %. Random vectors need 2 %."""
_WIDTH = 256
"""Candidates of a query."""
_SAMPLE = 8_192
TILE = {"height": 128, "width": 128, "num_warps": 4, "num_stages": 3}
_ROOM = 1 << 26
_PAIRS = 16
_STEP = 64
_COMMON = 8


@dataclass
class _Collected:
    """What kernels write for one side: candidates as sortable keys, and pairs that float32 leaves undecided."""

    side: Side
    block: int
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
            side, block, side.widths(block), empty(count, _WIDTH, kind=torch.int64), empty(count),
            empty(max(1, len(side.owners))), empty(room), empty(room), empty(1),
        )  # fmt: skip

    def common(self, begin: int, end: int) -> int:
        """Relevant items that the kernel compares in one go for these queries: as many as one has, up to a limit."""
        offsets = self.side.relevance.offsets[begin : end + 1]
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
    import torch

    from crosslens.rank.gpu import kernels

    tile_rows, tile_columns = TILE["height"], TILE["width"]
    both = max(tile_rows, tile_columns)  # powers of two: a multiple of either
    left, right = (halves(side.queries, both, _STEP) for side in (rows, columns))
    dimension = left.values.shape[1]
    unit = left.unit * right.unit
    true_slack = product_slack(left, right, dimension)
    fine = float32_slack(left, right, rows.queries.shape[1])
    for side, first, second in ((rows, left, right), (columns, right, left)):
        first_floors(side, first.values, second.values, unit, true_slack)
    room = min(_ROOM, 64 * max(len(rows.queries), len(columns.queries), 1 << 14))
    by_row, by_column = _Collected.of(rows, tile_rows, room), _Collected.of(columns, tile_columns, room)
    where = rows.queries.device
    bits = torch.empty((_PANEL, _PANEL // 32), dtype=torch.int32, device=where)
    noted = torch.empty((_PANEL, _CAPACITY), dtype=torch.int32, device=where)
    counts = torch.empty(_PANEL, dtype=torch.int32, device=where)
    overflow = torch.zeros(1, dtype=torch.int32, device=where)
    height, width, size = len(rows.queries), len(columns.queries), rows.queries.shape[1]
    with stage(progress, "ranking", -(-width // _PANEL) * -(-height // _PANEL)):
        for begin in range(0, width, _PANEL):
            end = min(begin + _PANEL, width)
            for top in range(0, height, _PANEL):
                bottom = min(top + _PANEL, height)
                down, across = -(-(bottom - top) // tile_rows), -(-(end - begin) // tile_columns)
                kernels.scan[(down * across,)](
                    left.values, right.values, top, bottom, begin, end, down, across,
                    rows.targets, by_row.widths, rows.floor, rows.coarse, height,
                    columns.targets, by_column.widths, columns.floor, columns.coarse, width,
                    unit, true_slack * unit, bits, _PANEL // 32, dimension=dimension,
                    row_common=by_row.common(top, bottom), column_common=by_column.common(begin, end), **TILE,
                )  # fmt: skip
                kernels.unpack[(bottom - top,)](
                    bits, _PANEL // 32, across * tile_columns // 32, begin, noted, counts, _CAPACITY, size=_PANEL // 32
                )
                kernels.rescore[(bottom - top,)](
                    rows.queries, columns.queries, top, noted, counts, _CAPACITY, overflow,
                    rows.offsets, rows.scores, rows.floor, by_row.above, by_row.keys, by_row.fill,
                    columns.offsets, columns.scores, columns.floor, by_column.above, by_column.keys, by_column.fill,
                    by_row.pairs, by_row.items, by_row.length, by_column.pairs, by_column.items, by_column.length, room,
                    _WIDTH, fine, dimension=size, padded=lanes(size), size=_PAIRS,
                )  # fmt: skip
                # Lists grow by a tenth, then a twentieth … of themselves: cutting them back is worth it less and less.
                for collected, first, last, done, of in (
                    (by_row, top, bottom, begin, width), (by_column, begin, end, top, height),
                ):  # fmt: skip
                    number = done // _PANEL + 1
                    if number & (number - 1) == 0 or done + _PANEL >= of:
                        side = collected.side
                        kernels.keep_best[(last - first,)](
                            collected.keys, collected.fill, side.floor, first, side.keep, side.keep, overflow, fine,
                            width=_WIDTH, num_warps=1,
                        )  # fmt: skip
                progress.advance()
            # Looked at once per panel of columns, so that the device never waits for long.
            lengths = torch.cat([overflow, by_row.length, by_column.length]).tolist()
            if lengths[0] or max(lengths[1:]) > room:
                return False
            for collected, length in ((by_row, lengths[1]), (by_column, lengths[2])):
                if length > room // 4:
                    collected.settle()
    by_row.finish()
    by_column.finish()
    return True


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
