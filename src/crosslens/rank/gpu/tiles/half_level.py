"""Half precision: products of tensor cores, which also compare.

A direction has products of its own: of its queries, each times a power of two of its own, which changes none of its
ranks, and of the gallery, times a common one. Inputs are rounded to float16, sums are made in float32, and what leaves
the cores is rounded to float16 again.

A tile of scores is not compared with anything, since a pass over a tile takes longer than its product. Cores can add a
number per column to what they multiply and set what is negative to 0, for nothing. With minus the floor of each query,
all that is left is what may reach it, and by how much it does so, which float16 tells the more exactly the less it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any

from crosslens.rank.gpu.rounded import Rounded, halves, product_slack
from crosslens.rank.gpu.tiles.buffers import Buffer
from crosslens.rank.gpu.tiles.entries import Entries, marked_words
from crosslens.rank.gpu.tiles.levels import Level, Marked, Tile, rounded_down

Tensor = Any

_BITS, _SINGLE_BITS = 11, 24
_LARGEST = 14
"""Tiles stay below 2 to this power, and so do floors: their differences fit float16, which ends at 2¹⁶."""
_NOTHING = 2.0**15
"""A floor that no score reaches."""
_ALIGNED = 8
_EACH = 4
"""Numbers of a word."""
_ROUNDED, _LAST = 2.0**-11, 2.0**-25
"""How far rounding to float16 may be off: of a number, and of the smallest ones."""


class _Products:
    """The products of one direction. Tiles hold scores times ``units``, of each query."""

    def __init__(self, queries: Rounded, gallery: Rounded) -> None:
        self.queries, self.gallery = queries.values, gallery.values
        scaled = [float(((part.lengths + part.errors) * part.units).max()) for part in (queries, gallery)]
        longest = scaled[0] * scaled[1]
        self.factor = 2.0 ** (_LARGEST - frexp(longest)[1]) if longest > 0 else 1.0
        self.units = queries.units * gallery.units[0] * self.factor
        self.slack = product_slack(queries, gallery, queries.values.shape[1])
        self._floor: Tensor = None
        self._bias: Tensor = None
        self.single = -rounded_down(-self.slack, _SINGLE_BITS), (1 / self.units).float()

    def bias(self, floor: Tensor) -> Tensor:
        """What is added to the products of each query: all that is below its floor becomes negative, and no more."""
        import torch

        if floor is not self._floor:
            largest = 2.0**_LARGEST
            scaled = torch.clamp((floor.double() - self.slack) * self.units, -largest, largest)
            lower = rounded_down(scaled, _BITS).double()
            # A score that equals its floor must leave more than 0.
            lower = rounded_down(lower - lower.abs() * 2 * _ROUNDED - 2 * _LAST, _BITS)
            lower = torch.where(floor == torch.inf, _NOTHING, lower)
            self._floor, self._bias = floor, -lower.to(torch.float16)
        return self._bias


class HalfLevel(Level):
    """Inner products of float32 vectors on tensor cores."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        import torch

        def rounded(vectors: Tensor, *, each: bool) -> Rounded:
            return halves(vectors, _ALIGNED, _ALIGNED, each=each, spare=_ALIGNED)

        queries = [rounded(vectors, each=True) for vectors in (left, right)]
        gallery = [
            part if part.shared else rounded(vectors, each=False)
            for part, vectors in zip(queries, (left, right), strict=True)
        ]
        self.products = _Products(queries[0], gallery[1]), _Products(queries[1], gallery[0])
        self.buffer = Buffer(torch.float16, left.device)

    def tile(self, axis: int, queries: slice, items: slice) -> Tile:
        products = self.products[axis]
        width = items.stop - items.start
        a, b = products.queries[queries], products.gallery[_padded(items)]
        scores = self.buffer.of(len(a), len(b))
        scores.addmm_(a, b.T, beta=0, alpha=products.factor)
        return Tile(scores[:, :width], 0)

    def bounds(self, scores: Tensor, axis: int, queries: slice) -> tuple[Tensor, Tensor]:
        import torch

        products = self.products[axis]
        slack, units = products.slack[queries], products.units[queries]
        low, high = (scores.double() - slack) * units, (scores.double() + slack) * units
        # Rounding a tile keeps its order, so it needs no bound of its own.
        return rounded_down(low, _BITS).to(torch.float16), (-rounded_down(-high, _BITS)).to(torch.float16)

    def lowest(self, values: Tensor, axis: int, queries: slice | Tensor) -> Tensor:
        products = self.products[axis]
        values = values.double()
        values = values - values.abs() * 2 * _ROUNDED - 2 * _LAST
        return rounded_down(values / products.units[queries] - products.slack[queries], _SINGLE_BITS)

    def find(self, axis: int, queries: slice, items: slice, floor: Tensor, share: float) -> Marked | None:
        import torch

        products, own = self.products[axis], _padded(queries)
        bias = torch.full((own.stop - own.start,), -_NOTHING, dtype=torch.float16, device=floor.device)
        bias[: queries.stop - queries.start] = products.bias(floor)[queries]
        a, b = products.gallery[items], products.queries[own]
        tile = self.buffer.of(len(a), len(b))
        torch._addmm_activation(bias, a, b.T, alpha=products.factor, out=tile)
        marked = marked_words(tile, share)
        if marked is None:
            return None
        where, words = marked
        return _MarkedWords(floor, where.int(), words, (queries.start, items.start, len(b) // _EACH))

    def resolve(self, axis: int, parts: Sequence[_MarkedWords]) -> Entries:
        import torch

        products, device = self.products[axis], parts[0].floor.device
        where = torch.cat([part.where for part in parts])
        more = torch.cat([part.words for part in parts]).view(torch.float16)
        position = torch.nonzero(more)[:, 0].int()
        which, more = position >> 2, more[position].float()
        ends = torch.tensor([len(part) for part in parts], dtype=torch.int32, device=device).cumsum(0)
        part_of = torch.bucketize(which, ends, out_int32=True, right=True)
        query, item, width = (
            torch.tensor(numbers, dtype=torch.int32, device=device).index_select(0, part_of)
            for numbers in zip(*(part.start for part in parts), strict=True)
        )
        local = where.index_select(0, which)
        row = torch.div(local, width, rounding_mode="floor")
        query += (local - row * width << 2) + (position & 3)
        value, off = more - products.bias(parts[0].floor).index_select(0, query), more * _ROUNDED + _LAST
        slack, back = (part.index_select(0, query) for part in products.single)
        return Entries(query, item.add_(row), (value - off) * back - slack, (value + off) * back + slack)


@dataclass(frozen=True)
class _MarkedWords:
    """Words of a tile with any score above its floor; the tile's first query and item, and words of an item."""

    floor: Tensor
    where: Tensor
    words: Tensor
    start: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.where)


def _padded(part: slice) -> slice:
    """A whole number of words more, where vectors are padded with zeros."""
    return slice(part.start, part.start + -(-(part.stop - part.start) // _ALIGNED) * _ALIGNED)
