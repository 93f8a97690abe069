"""What the fused kernels multiply scores by before they compare them, and the floors they begin with."""

from __future__ import annotations

from typing import Any

from crosslens.rank.gpu.rounded import Rounded, float32_slack, product_slack
from crosslens.rank.gpu.side import Side

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

    def first_floors(self, side: Side, axis: int) -> None:
        """Floors from a look at part of the gallery: the ``keep``-th largest of the maxima of some tiles.

        That many items reach it, so nothing below can be in the list.
        """
        import torch

        from crosslens.rank.gpu.fused.kernels import maxima, nth_best

        queries, gallery = self.vectors[axis], self.vectors[1 - axis]
        tile_rows, tile_columns = TILE["height"], TILE["width"]
        count, whole = len(side.queries), len(side.gallery) // tile_columns  # a tile past the end would hold zeros
        across = min(whole, max(_SAMPLE // tile_columns, 2 * side.keep))
        if across < side.keep:
            return
        out = torch.empty((count, across), dtype=torch.float32, device=queries.values.device)
        down = -(-count // tile_rows)
        maxima[(down * across,)](
            described(queries, tile_rows), described(gallery, tile_columns), (1 / gallery.units).float(), out, count,
            whole // across, down, across, dimension=queries.values.shape[1], equal=self.equal, **TILE,
        )  # fmt: skip
        best = torch.empty(count, device=out.device)
        nth_best[(count,)](out, best, across, side.keep - 1, width=1 << (across - 1).bit_length(), num_warps=1)
        units = queries.units * gallery.units[0] if self.equal else queries.units
        floor = (best.double() / units - self.slack[axis]).float()
        torch.maximum(side.floor, floor, out=side.floor)  # of other blocks, it may be higher


def described(vectors: Rounded, rows: int) -> Any:
    """The vectors as the copying engine of a GPU reads them: a tile's rows, some dimensions at a time."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(vectors.values, [rows, STEP])
