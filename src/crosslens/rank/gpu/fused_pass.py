"""What the fused kernels multiply scores by before they compare them, and the floors they begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosslens.engine import Progress, stage
from crosslens.rank.gpu.direction import DeviceDirection, Rounded, float32_slack, halves, lanes, product_slack

TILE = {"height": 128, "width": 128, "num_warps": 4, "num_stages": 3}
STEP = 64
_SAMPLE = 8_192
"""Items that the first floors are looked for in."""
_UP = 1 + 2.0**-22
"""A float64 number times this, rounded to float32, is not smaller."""


class Scales:
    """Powers of two of rounded vectors, and bounds of errors, as kernels need them.

    A tile holds the score of a query and an item times both powers of two. For the query, divided by the item's, it is
    off by the query's slack times its own power, which is about the same for all queries, however long they are: so
    the ramp that tells whether it is above a relevant item is as steep for all queries, and depends on the item.
    """

    def __init__(self, left: Rounded, right: Rounded) -> None:
        import torch

        self.vectors, dimension = (left, right), left.values.shape[1]
        self.slack = product_slack(left, right, dimension), product_slack(right, left, dimension)
        self.fine = tuple(
            (float32_slack(queries.lengths, gallery.lengths, dimension) * _UP).float()
            for queries, gallery in ((left, right), (right, left))
        )
        self.equal = left.shared and right.shared
        largest = [float((slack * part.units).max()) for slack, part in zip(self.slack, self.vectors, strict=True)]
        both = max(float(slack.max()) for slack in self.slack)
        # Where all powers are equal, numbers serve, the same for both directions.
        self.scale = 0.5 / both
        self.steep = self.scale / float(left.units[0] * right.units[0])
        self.rows, self.columns = (
            torch.stack([0.5 / largest[axis] * part.units, 0.5 / largest[1 - axis] / part.units]).float()
            for axis, part in enumerate(self.vectors)
        )

    def first_floors(self, direction: DeviceDirection, axis: int) -> None:
        """Floors from a look at part of the gallery: the ``keep``-th largest of the maxima of some tiles.

        That many items reach it, so nothing below can be in the list.
        """
        import torch

        from crosslens.rank.gpu.fused_kernels import maxima, nth_best

        queries, gallery = self.vectors[axis], self.vectors[1 - axis]
        tile_rows, tile_columns = TILE["height"], TILE["width"]
        # A tile past the end would hold zeros.
        count, whole = len(direction.queries), len(direction.gallery) // tile_columns
        across = min(whole, max(_SAMPLE // tile_columns, 2 * direction.keep))
        if across < direction.keep:
            return
        out = torch.empty((count, across), dtype=torch.float32, device=queries.values.device)
        down = -(-count // tile_rows)
        maxima[(down * across,)](
            described(queries, tile_rows), described(gallery, tile_columns), (1 / gallery.units).float(), out, count,
            whole // across, down, across, dimension=queries.values.shape[1], equal=self.equal, **TILE,
        )  # fmt: skip
        best = torch.empty(count, device=out.device)
        nth_best[(count,)](out, best, across, direction.keep - 1, width=1 << (across - 1).bit_length(), num_warps=1)
        units = queries.units * gallery.units[0] if self.equal else queries.units
        floor = (best.double() / units - self.slack[axis]).float()
        torch.maximum(direction.floor, floor, out=direction.floor)  # of other blocks, it may be higher


def described(vectors: Rounded, rows: int) -> Any:
    """The vectors as the copying engine of a GPU reads them: a tile's rows, some dimensions at a time."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(vectors.values, [rows, STEP])


Tensor = Any

SMALLEST = 8_192
"""From so many rows and columns on the kernels are worth their start; floors need enough tiles to be looked at."""
MOST_RELEVANT = 64
"""Each relevant item of a query is compared with every score; with more of them, other ways are faster."""

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
_ROOM = 1 << 26
"""Pairs that float32 may leave undecided before they are decided."""
_PAIRS = 16
_UNROLLED = {"row": (0, 1, 2, 5, 8), "column": (0, 1, 2)}
"""Relevant items that are compared in unrolled loops: a thread holds 4 rows of a tile, but 32 columns. Each number is a
kernel of its own, which takes seconds to compile."""


@dataclass
class _Collected:
    """What kernels write for one direction: candidates as sortable keys, and pairs that float32 leaves undecided."""

    counted: DeviceDirection
    coarse: Tensor
    widths: Tensor
    keys: Tensor
    fill: Tensor
    above: Tensor
    pairs: Tensor
    items: Tensor
    length: Tensor

    @staticmethod
    def of(direction: DeviceDirection, block: int, room: int, width: int) -> _Collected:
        import torch

        where, count = direction.queries.device, len(direction.queries)

        counts = {"dtype": torch.int32, "device": where}
        return _Collected(
            direction, torch.zeros_like(direction.coarse), direction.widths(block),
            torch.empty((count, width), dtype=torch.int64, device=where),
            torch.zeros(count, **counts), torch.zeros(max(1, len(direction.owners)), **counts),
            torch.empty(room, **counts), torch.empty(room, **counts), torch.zeros(1, **counts),
        )  # fmt: skip

    def loops(self, queries: slice, name: str) -> dict[str, int | bool]:
        """How many relevant items of these queries are compared in unrolled loops, and whether there are more."""
        offsets = self.counted.relevance.offsets[queries.start : queries.stop + 1]
        most = int((offsets[1:] - offsets[:-1]).max(initial=0))
        return {f"{name}_common": _unrolled(most, name), f"{name}_more": most > _unrolled(most, name)}

    def decide(self) -> bool:
        """Decide the pairs that are noted so far; False if some are lost, as there was no room."""
        length = int(self.length)
        self.counted.count_exactly(self.pairs[:length], self.items[:length])
        self.length.zero_()
        return length <= len(self.pairs)

    def crowded(self) -> Tensor:
        """Which queries have had more candidates than there is room for."""
        return self.fill > self.keys.shape[1]

    def finish(self) -> bool:
        """Give everything that was counted and collected to the direction; False if something is lost."""
        import torch

        complete = self.decide()
        self.counted.above += self.above[: len(self.counted.owners)]
        crowded = self.crowded()
        fill = torch.where(crowded, 0, self.fill)
        most = int(fill.max())
        listed = torch.arange(most, device=fill.device) < fill[:, None]
        queries = torch.nonzero(listed)[:, 0]
        self.counted.collect(queries, (self.keys[:, :most][listed] & 0xFFFFFFFF).int())
        self.counted.collect_from_all(torch.nonzero(crowded)[:, 0])
        return complete


def _unrolled(number: int, name: str) -> int:
    """The number of unrolled loops for so many relevant items."""
    return next((loops for loops in _UNROLLED[name] if loops >= number), _UNROLLED[name][-1])


def _room_for_loops(direction: DeviceDirection, name: str) -> None:
    """Unrolled loops may read and write past the last relevant item of any query."""
    from torch.nn.functional import pad

    missing = max(0, _unrolled(len(direction.targets), name) - len(direction.targets))
    direction.targets = pad(direction.targets, (0, 0, 0, missing), value=float("inf"))
    direction.coarse = pad(direction.coarse, (0, 0, 0, missing))


def fused_pass(rows: DeviceDirection, columns: DeviceDirection, progress: Progress) -> list[tuple[slice, slice]] | None:
    """Count and collect all pairs but those of some blocks, in which too many are too close to tell apart: these.

    None, with nothing usable counted, where they are too many in all.
    """
    work = _FusedPass(rows, columns)
    height, width = len(rows.queries), len(columns.queries)
    with stage(progress, "ranking", -(-width // _PANEL) * -(-height // _PANEL)):
        for begin in range(0, width, _PANEL):
            for top in range(0, height, _PANEL):
                work.look_at(slice(top, min(top + _PANEL, height)), slice(begin, min(begin + _PANEL, width)))
                progress.advance()
            if work.overflows():
                return None
    # The first call asks about the last blocks, and the second one waits for the answer.
    if work.overflows() or work.overflows() or not (work.by_row.finish() and work.by_column.finish()):
        return None
    return work.uncounted()


class _FusedPass:
    """The rounded vectors, bounds and buffers of a pass."""

    def __init__(self, rows: DeviceDirection, columns: DeviceDirection) -> None:
        import torch

        self.rows, self.columns, where = rows, columns, rows.queries.device
        _room_for_loops(rows, "row")
        _room_for_loops(columns, "column")
        tile_rows, tile_columns = TILE["height"], TILE["width"]
        both = max(tile_rows, tile_columns)  # powers of two: a multiple of either
        left, right = (halves(direction.queries, both, STEP, each=True) for direction in (rows, columns))
        self.left, self.right = left.values, right.values
        self.scales = Scales(left, right)
        self.scales.first_floors(rows, 0)
        self.scales.first_floors(columns, 1)
        self.room = min(_ROOM, 64 * max(len(rows.queries), len(columns.queries), 1 << 14))
        # Candidates of a query there is room for: a power of two.
        self.width = max(_WIDTH, 1 << (8 * max(rows.keep, columns.keep) - 1).bit_length())
        self.by_row = _Collected.of(rows, tile_rows, self.room, self.width)
        self.by_column = _Collected.of(columns, tile_columns, self.room, self.width)
        self.bits = torch.empty((_PANEL, _PANEL // 32), dtype=torch.int32, device=where)
        self.noted = torch.empty(_PANEL * _NOTED, dtype=torch.int32, device=where)
        self.scores = torch.empty(_PANEL * _NOTED, dtype=torch.float32, device=where)
        self.length = torch.zeros(1, dtype=torch.int32, device=where)
        self.starts, self.counts = (torch.empty(_PANEL, dtype=torch.int32, device=where) for _ in range(2))
        self.blocks: list[tuple[slice, slice]] = []
        number = -(-len(rows.queries) // _PANEL) * -(-len(columns.queries) // _PANEL)
        self.full = torch.zeros(number, dtype=torch.int32, device=where)
        self.described = [described(vectors, TILE[side]) for vectors, side in ((left, "height"), (right, "width"))]
        self.asked: tuple[Tensor, Any] | None = None
        self.native = where.type == "cuda"
        # Two programs fit a multiprocessor: one multiplies while the other compares.
        self.programs = 2 * torch.cuda.get_device_properties(where).multi_processor_count if self.native else 2

    def look_at(self, rows: slice, columns: slice) -> None:
        """Count a block, score again what is noted in it, and cut lists back."""
        self.blocks.append((rows, columns))
        self._scan(rows, columns)
        # Count what is surely above; if a block has too many other pairs, nothing of it is counted.
        fits = 1 - self.full[len(self.blocks) - 1]
        self.counts *= fits
        for collected, part in ((self.by_row, rows), (self.by_column, columns)):
            collected.counted.coarse[:, part] += collected.coarse[:, part] * fits
            collected.coarse[:, part] = 0
        self._rescore(rows)
        self._cut_back(self.by_row, 0, rows, columns.start // _PANEL + 1, columns.stop == len(self.columns.queries))
        self._cut_back(self.by_column, 1, columns, rows.start // _PANEL + 1, rows.stop == len(self.rows.queries))

    def _scan(self, rows: slice, columns: slice) -> None:
        import torch

        from crosslens.rank.gpu.fused_kernels import scan, unpack

        by_row, by_column, scales, words = self.by_row, self.by_column, self.scales, _PANEL // 32
        height, width = rows.stop - rows.start, columns.stop - columns.start
        down, across = -(-height // TILE["height"]), -(-width // TILE["width"])
        programs = min(down * across, self.programs)
        scan[(programs,)](
            *self.described, rows.start, rows.stop, columns.start, columns.stop, down, across,
            self.rows.targets, by_row.widths, self.rows.floor, by_row.coarse, len(self.rows.queries), scales.rows,
            self.columns.targets, by_column.widths, self.columns.floor, by_column.coarse, len(self.columns.queries),
            scales.columns, scales.scale, scales.steep, self.bits.view(torch.int16), words, programs,
            dimension=self.left.shape[1], **by_row.loops(rows, "row"), **by_column.loops(columns, "column"),
            whole=height % TILE["height"] == 0 and width % TILE["width"] == 0, equal=scales.equal, native=self.native,
            **TILE,
        )  # fmt: skip
        used = across * TILE["width"] // 32
        self.length.zero_()
        unpack[(height,)](
            self.bits, words, used, columns.start, self.noted, self.starts, self.counts, self.length,
            len(self.noted), self.full[len(self.blocks) - 1 :], size=words,
        )  # fmt: skip

    def uncounted(self) -> list[tuple[slice, slice]]:
        """The blocks that are not counted."""
        return [block for block, full in zip(self.blocks, self.full.tolist(), strict=True) if full]

    def _rescore(self, rows: slice) -> None:
        from crosslens.rank.gpu.fused_kernels import decide, rescore

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
            by_column.length, self.room, self.width, *self.scales.fine, size=64, num_warps=1,
        )  # fmt: skip

    def _cut_back(self, collected: _Collected, axis: int, queries: slice, number: int, last: bool) -> None:
        """Drop candidates that cannot be listed; after blocks 1, 2, 4 … of the gallery, as lists grow less and less."""
        from crosslens.rank.gpu.fused_kernels import keep_best

        if number & (number - 1) == 0 or last:
            direction = collected.counted
            keep_best[(queries.stop - queries.start,)](
                collected.keys, collected.fill, direction.floor, queries.start, direction.keep, self.scales.fine[axis],
                width=self.width, num_warps=1,
            )  # fmt: skip

    def overflows(self) -> bool:
        """Whether too much was undecided or too many queries crowded when this was last asked; decides pairs in time.

        The device does not wait for this answer: it is asked once per panel of columns, and read after the next one.
        """
        asked, self.asked = self.asked, self._ask()
        if asked is None:
            return False
        numbers, ready = asked
        if ready is not None:
            ready.synchronize()
        *lengths, by_row, by_column = numbers.tolist()
        if max(by_row / len(self.rows.queries), by_column / len(self.columns.queries)) > _CROWDED:
            return True
        both = zip((self.by_row, self.by_column), lengths, strict=True)
        return not all(length <= self.room // 8 or collected.decide() for collected, length in both)

    def _ask(self) -> tuple[Tensor, Any]:
        """Undecided pairs and crowded queries of both directions, on their way to the host; and when they are there."""
        import torch

        both = (self.by_row, self.by_column)
        crowded = [collected.crowded().sum(dtype=torch.int32)[None] for collected in both]
        numbers = torch.cat([self.by_row.length, self.by_column.length, *crowded])
        if not self.native:
            return numbers, None
        host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        host.copy_(numbers, non_blocking=True)
        return host, torch.cuda.current_stream(numbers.device).record_event()
