"""The ranking pass by fused kernels: half-precision products decide almost everything, float32 the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosslens.core import Progress, stage
from crosslens.rank.gpu.exact import lanes
from crosslens.rank.gpu.rounded import Rounded, float32_slack, halves, product_slack
from crosslens.rank.gpu.side import Side

Tensor = Any

SMALLEST = 8_192
"""From so many rows and columns on the kernels are worth their start; floors need enough tiles to be looked at."""
MOST_RELEVANT = 64
"""Each relevant item of a query is compared with every score; with more of them, other ways are faster."""

TILE = {"height": 128, "width": 128, "num_warps": 4, "num_stages": 3}
_STEP = 64
_PANEL = 32_768
"""Rows and columns of a block; floors rise from block to block."""
_NOTED = 2_048
"""Pairs of a row that may be noted in a block, on average: 6 %. Vectors without any relation to each other need 3 %."""
LONGEST_LIST = 128
"""Each candidate of a list is scored again; for longer lists, other ways are faster."""
_WIDTH = 256
"""Candidates of a query, at least. Where it has more at a time, its list is made from all of the gallery."""
_CROWDED = 1 / 64
"""Queries with more candidates, at most: else all are ranked in another way."""
_SAMPLE = 8_192
"""Items that the first floors are looked for in."""
_ROOM = 1 << 26
"""Pairs that float32 may leave undecided before they are settled."""
_PAIRS = 16
_UNROLLED = {"row": (0, 1, 2, 5, 8), "column": (0, 1, 2)}
"""Relevant items that are compared in unrolled loops: a thread holds 4 rows of a tile, but 32 columns. Each number is a
kernel of its own, which takes seconds to compile."""


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
    def of(side: Side, block: int, room: int, width: int) -> _Collected:
        import torch

        where, count = side.queries.device, len(side.queries)

        counts = {"dtype": torch.int32, "device": where}
        return _Collected(
            side, side.widths(block), torch.empty((count, width), dtype=torch.int64, device=where),
            torch.zeros(count, **counts), torch.zeros(max(1, len(side.owners)), **counts),
            torch.empty(room, **counts), torch.empty(room, **counts), torch.zeros(1, **counts),
        )  # fmt: skip

    def loops(self, queries: slice, name: str) -> dict[str, int | bool]:
        """How many relevant items of these queries are compared in unrolled loops, and whether there are more."""
        offsets = self.side.relevance.offsets[queries.start : queries.stop + 1]
        most = int((offsets[1:] - offsets[:-1]).max(initial=0))
        return {f"{name}_common": _unrolled(most, name), f"{name}_more": most > _unrolled(most, name)}

    def settle(self) -> None:
        """Decide the pairs that are noted so far."""
        length = int(self.length)
        self.side.settle(self.pairs[:length], self.items[:length])
        self.length.zero_()

    def crowded(self) -> Tensor:
        """Which queries have had more candidates than there is room for."""
        return self.fill > self.keys.shape[1]

    def finish(self) -> None:
        """Hand everything over to the side."""
        import torch

        self.settle()
        self.side.above += self.above[: len(self.side.owners)]
        crowded = self.crowded()
        fill = torch.where(crowded, 0, self.fill)
        most = int(fill.max())
        listed = torch.arange(most, device=fill.device) < fill[:, None]
        queries = torch.nonzero(listed)[:, 0]
        self.side.collect(queries, (self.keys[:, :most][listed] & 0xFFFFFFFF).int())
        self.side.collect_from_all(torch.nonzero(crowded)[:, 0])


def _unrolled(number: int, name: str) -> int:
    """The number of unrolled loops for so many relevant items."""
    return next((loops for loops in _UNROLLED[name] if loops >= number), _UNROLLED[name][-1])


def _room_for_loops(side: Side, name: str) -> None:
    """Unrolled loops may read and write past the last relevant item of any query."""
    from torch.nn.functional import pad

    missing = max(0, _unrolled(len(side.targets), name) - len(side.targets))
    side.targets = pad(side.targets, (0, 0, 0, missing), value=float("inf"))
    side.coarse = pad(side.coarse, (0, 0, 0, missing))


def fused_pass(rows: Side, columns: Side, progress: Progress) -> bool:
    """Count and collect all pairs; False, with nothing usable counted, where too many are too close to tell apart."""
    work = _FusedPass(rows, columns)
    height, width = len(rows.queries), len(columns.queries)
    with stage(progress, "ranking", -(-width // _PANEL) * -(-height // _PANEL)):
        for begin in range(0, width, _PANEL):
            for top in range(0, height, _PANEL):
                work.look_at(slice(top, min(top + _PANEL, height)), slice(begin, min(begin + _PANEL, width)))
                progress.advance()
            if work.overflows():  # asked once per panel of columns, so that the device never waits for long
                return False
    work.by_row.finish()
    work.by_column.finish()
    return True


class _FusedPass:
    """The rounded vectors, bounds and buffers of a pass."""

    def __init__(self, rows: Side, columns: Side) -> None:
        import torch

        self.rows, self.columns, where = rows, columns, rows.queries.device
        _room_for_loops(rows, "row")
        _room_for_loops(columns, "column")
        tile_rows, tile_columns = TILE["height"], TILE["width"]
        both = max(tile_rows, tile_columns)  # powers of two: a multiple of either
        left, right = (halves(side.queries, both, _STEP) for side in (rows, columns))
        self.left, self.right, self.unit = left.values, right.values, left.unit * right.unit
        self.slack = product_slack(left, right, self.left.shape[1])
        self.fine = float32_slack(left, right, rows.queries.shape[1])
        first_floors(rows, left, right, self.slack)
        first_floors(columns, right, left, self.slack)
        self.room = min(_ROOM, 64 * max(len(rows.queries), len(columns.queries), 1 << 14))
        # Candidates of a query there is room for: a power of two.
        self.width = max(_WIDTH, 1 << (8 * max(rows.keep, columns.keep) - 1).bit_length())
        self.by_row = _Collected.of(rows, tile_rows, self.room, self.width)
        self.by_column = _Collected.of(columns, tile_columns, self.room, self.width)
        self.bits = torch.empty((_PANEL, _PANEL // 32), dtype=torch.int32, device=where)
        self.noted = torch.empty(_PANEL * _NOTED, dtype=torch.int32, device=where)
        self.scores = torch.empty(_PANEL * _NOTED, dtype=torch.float32, device=where)
        self.length, self.overflow = (torch.zeros(1, dtype=torch.int32, device=where) for _ in range(2))
        self.starts, self.counts = (torch.empty(_PANEL, dtype=torch.int32, device=where) for _ in range(2))
        self.described = [_described(vectors, TILE[side]) for vectors, side in ((left, "height"), (right, "width"))]
        self.native = where.type == "cuda"
        # Two programs fit a multiprocessor: one multiplies while the other compares.
        self.programs = 2 * torch.cuda.get_device_properties(where).multi_processor_count if self.native else 2

    def look_at(self, rows: slice, columns: slice) -> None:
        """Count a block, score again what is noted in it, and cut lists back."""
        self._scan(rows, columns)
        self._rescore(rows)
        self._cut_back(self.by_row, rows, columns.start, len(self.columns.queries))
        self._cut_back(self.by_column, columns, rows.start, len(self.rows.queries))

    def _scan(self, rows: slice, columns: slice) -> None:
        import torch

        from crosslens.rank.gpu.kernels import scan, unpack

        by_row, by_column, words = self.by_row, self.by_column, _PANEL // 32
        height, width = rows.stop - rows.start, columns.stop - columns.start
        down, across = -(-height // TILE["height"]), -(-width // TILE["width"])
        programs = min(down * across, self.programs)
        scan[(programs,)](
            *self.described, rows.start, rows.stop, columns.start, columns.stop, down, across,
            self.rows.targets, by_row.widths, self.rows.floor, self.rows.coarse, len(self.rows.queries),
            self.columns.targets, by_column.widths, self.columns.floor, self.columns.coarse, len(self.columns.queries),
            0.5 / self.slack, 0.5 / (self.slack * self.unit), self.bits.view(torch.int16), words, programs,
            dimension=self.left.shape[1], **by_row.loops(rows, "row"), **by_column.loops(columns, "column"),
            whole=height % TILE["height"] == 0 and width % TILE["width"] == 0, native=self.native, **TILE,
        )  # fmt: skip
        used = across * TILE["width"] // 32
        self.length.zero_()
        unpack[(height,)](
            self.bits, words, used, columns.start, self.noted, self.starts, self.counts, self.length,
            len(self.noted), self.overflow, size=words,
        )  # fmt: skip

    def _rescore(self, rows: slice) -> None:
        from crosslens.rank.gpu.kernels import decide, rescore

        by_row, by_column, size = self.by_row, self.by_column, self.rows.queries.shape[1]
        grid = (rows.stop - rows.start,)
        rescore[grid](
            self.rows.queries, self.columns.queries, rows.start, self.noted, self.starts, self.counts, self.scores,
            dimension=size, padded=min(128, lanes(size)), size=_PAIRS,
        )  # fmt: skip
        decide[grid](
            rows.start, self.noted, self.starts, self.counts, self.scores,
            self.rows.offsets, self.rows.scores, self.rows.floor, by_row.above, by_row.keys, by_row.fill,
            self.columns.offsets, self.columns.scores, self.columns.floor, by_column.above, by_column.keys,
            by_column.fill, by_row.pairs, by_row.items, by_row.length, by_column.pairs, by_column.items,
            by_column.length, self.room, self.width, self.fine, size=64, num_warps=1,
        )  # fmt: skip

    def _cut_back(self, collected: _Collected, queries: slice, start: int, gallery: int) -> None:
        """Drop candidates that cannot be listed; after panels 1, 2, 4 … of the gallery, as lists grow less and less."""
        from crosslens.rank.gpu.kernels import keep_best

        number = start // _PANEL + 1
        if number & (number - 1) == 0 or start + _PANEL >= gallery:
            side = collected.side
            keep_best[(queries.stop - queries.start,)](
                collected.keys, collected.fill, side.floor, queries.start, side.keep, self.fine, width=self.width,
                num_warps=1,
            )  # fmt: skip

    def overflows(self) -> bool:
        """Whether too much was noted or too many queries are crowded; settles undecided pairs while there is room."""
        import torch

        both = (self.by_row, self.by_column)
        crowded = [collected.crowded().sum(dtype=torch.int32)[None] for collected in both]
        full, *numbers = torch.cat([self.overflow, self.by_row.length, self.by_column.length, *crowded]).tolist()
        lengths, crowds = numbers[:2], numbers[2:]
        if full or max(lengths) > self.room:
            return True
        if any(crowd > _CROWDED * len(part.fill) for crowd, part in zip(crowds, both, strict=True)):
            return True
        for collected, length in zip(both, lengths, strict=True):
            if length > self.room // 4:
                collected.settle()
        return False


def _described(vectors: Rounded, rows: int) -> Any:
    """The vectors as the copying engine of a GPU reads them: a tile's rows, some dimensions at a time."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(vectors.values, [rows, _STEP])


def first_floors(side: Side, queries: Rounded, gallery: Rounded, slack: float) -> None:
    """Floors from a look at part of the gallery: the ``keep``-th largest of the maxima of some tiles.

    That many items reach it, so nothing below can be in the list.
    """
    import torch

    from crosslens.rank.gpu.kernels import maxima, nth_best

    tile_rows, tile_columns = TILE["height"], TILE["width"]
    count, whole = len(side.queries), len(side.gallery) // tile_columns  # a tile past the end would hold zeros
    across = min(whole, max(_SAMPLE // tile_columns, 2 * side.keep))
    if across < side.keep:
        return
    out = torch.empty((count, across), dtype=torch.float32, device=queries.values.device)
    down = -(-count // tile_rows)
    maxima[(down * across,)](
        _described(queries, tile_rows), _described(gallery, tile_columns), out, count, whole // across, down, across,
        dimension=queries.values.shape[1], **TILE,
    )  # fmt: skip
    best = torch.empty(count, device=out.device)
    nth_best[(count,)](out, best, across, side.keep - 1, width=1 << (across - 1).bit_length(), num_warps=1)
    floor = best / (queries.unit * gallery.unit) - slack
    torch.maximum(side.floor, floor, out=side.floor)  # of other blocks, it may be higher
