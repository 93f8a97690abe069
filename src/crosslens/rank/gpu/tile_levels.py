"""Single scores of tiles: whose they are, and between which numbers the exact ones lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any, NamedTuple, Protocol

import numpy as np

from crosslens.rank.gpu.side import Rounded, float32_slack, halves, lengths_of, product_slack
from crosslens.rank.scorers import Scorer

Tensor = Any

WORD = 8
"""Bytes that are looked at together."""


@dataclass(frozen=True)
class Entries:
    """Scores of one direction: int32 numbers and float32 scores, which are the same where they are exact."""

    queries: Tensor
    items: Tensor
    lowest: Tensor
    highest: Tensor

    def __len__(self) -> int:
        return len(self.queries)

    def part(self, chosen: Tensor) -> Entries:
        """Those of these numbers."""
        return Entries(
            *(part.index_select(0, chosen) for part in (self.queries, self.items, self.lowest, self.highest))
        )


def joined(parts: Sequence[Entries]) -> Entries:
    """All of them, one after the other."""
    import torch

    if len(parts) == 1:
        return parts[0]
    return Entries(
        torch.cat([part.queries for part in parts]), torch.cat([part.items for part in parts]),
        torch.cat([part.lowest for part in parts]), torch.cat([part.highest for part in parts]),
    )  # fmt: skip


def marked_words(marks: Tensor, share: float) -> tuple[Tensor, Tensor] | None:
    """The words of a matrix, whose rows are whole ones, that are not 0: numbers and contents; None if too many are."""
    import torch

    words = marks.view(-1).view(torch.int64)
    where = torch.nonzero(words)[:, 0]
    if len(where) > share * len(words):
        return None
    return where, words[where]


def marked_pairs(marks: Tensor, share: float, axis: int) -> tuple[Tensor, Tensor] | None:
    """The queries and items of a tile of bytes that are not 0, from the tile's first; None if that are too many words.

    ``axis`` is 0 where the queries are the rows of the tile, 1 where they are its columns.
    """
    import torch

    marked = marked_words(marks, share)
    if marked is None:
        return None
    where, words = marked
    which, offset = torch.nonzero(words.view(marks.dtype).view(-1, WORD), as_tuple=True)
    position = where[which] * WORD + offset
    row = torch.div(position, marks.shape[1], rounding_mode="floor")
    column = position - row * marks.shape[1]
    return (row, column) if axis == 0 else (column, row)


_ADDED = 128


class Buffer:
    """Memory for one tile of numbers."""

    def __init__(self, kind: Any, device: Any) -> None:
        import torch

        self.values = torch.empty(0, dtype=kind, device=device)

    def of(self, height: int, width: int) -> Tensor:
        """Memory for a tile of this size."""
        import torch

        if len(self.values) < height * width:
            self.values = torch.empty(height * width, dtype=self.values.dtype, device=self.values.device)
        return self.values[: height * width].view(height, width)


class FlagBuffers:
    """Memory for some comparisons of a tile: a byte per score, whole words per row."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._buffers: list[Buffer] = []

    def of(self, number: int, scores: Tensor) -> Tensor:
        """Memory for a comparison of a tile; what is past the end of a row is False."""
        import torch

        height, width = scores.shape
        padded = -(-width // WORD) * WORD
        while len(self._buffers) <= number:
            self._buffers.append(Buffer(torch.bool, self.device))
        flags = self._buffers[number].of(height, padded)
        if padded > width:
            flags[:, width:] = False
        return flags


def words_of(flags: Tensor) -> Tensor:
    """Eight flags at a time."""
    import torch

    return flags.view(-1).view(torch.int64)


def count(flags: Tensor, axis: int) -> Tensor:
    """How many flags are set in each row (axis 0) or column (1).

    Up to 255 words are added as they are, so that a flag is read once, as a byte; torch would make four of it first.
    """
    import torch

    words = words_of(flags).view(len(flags), -1)
    if axis == 0:
        whole = words.shape[1] // _ADDED * _ADDED
        sums = words[:, :whole].unflatten(1, (-1, _ADDED)).sum(dim=2).view(torch.uint8).sum(dim=1, dtype=torch.int32)
        rest = words[:, whole:].sum(dim=1, keepdim=True).view(torch.uint8).sum(dim=1, dtype=torch.int32)
    else:
        whole = len(words) // _ADDED * _ADDED
        sums = words[:whole].unflatten(0, (-1, _ADDED)).sum(dim=1).view(torch.uint8).sum(dim=0, dtype=torch.int32)
        rest = words[whole:].sum(dim=0, keepdim=True).view(torch.uint8).sum(dim=0, dtype=torch.int32)
    return sums + rest


_SINGLE_BITS = 24
_SINGLE_BYTES = 4
_DOUBLE_ROWS = 2_048
"""Rows of a tile that are made in float64 at a time."""


class Tile(NamedTuple):
    """Scores of some queries, which are its rows (``axis`` 0) or its columns (1)."""

    scores: Tensor
    axis: int

    @property
    def by_query(self) -> Tensor:
        """A row per query."""
        return self.scores if self.axis == 0 else self.scores.T


class Marked(Protocol):
    """What a level has found in a tile."""

    @property
    def floor(self) -> Tensor:
        """The floor it was found with."""

    def __len__(self) -> int: ...


class Level(ABC):
    """Tiles for queries of either direction: ``axis`` 0 where they are the rows of the ranking, 1 where its columns."""

    exact = False

    @abstractmethod
    def tile(self, axis: int, queries: slice, items: slice) -> Tile:
        """Scores of these queries, perhaps times a power of two that is a query's own."""

    @abstractmethod
    def bounds(self, scores: Tensor, axis: int, queries: slice) -> tuple[Tensor, Tensor]:
        """What a tile holds at least where exact scores reach ``scores``, one per query; at most where they do not
        exceed them."""

    @abstractmethod
    def lowest(self, values: Tensor, axis: int, queries: slice | Tensor) -> Tensor:
        """What exact scores are at least where a tile holds ``values``, one per query."""

    def around(self, values: Tensor, axis: int, queries: Tensor, items: Tensor) -> Entries:
        """Scores that a tile holds as ``values``."""
        queries, items = queries.int(), items.int()
        if self.exact:
            return Entries(queries, items, values, values)
        return Entries(queries, items, self.lowest(values, axis, queries), -self.lowest(-values, axis, queries))

    @abstractmethod
    def find(self, axis: int, queries: slice, items: slice, floor: Tensor, share: float) -> Marked | None:
        """All scores of a tile that may reach the ``floor`` of their query, and some others; None if they are too many.

        They are where more than a ``share`` of the words of a tile have any. ``floor`` is that of all queries of the
        direction, and a new tensor whenever it has changed.
        """

    @abstractmethod
    def resolve(self, axis: int, parts: Sequence[Any]) -> Entries:
        """What was found in some tiles, with the same floors."""


class LastTile:
    """The tile that was made last: the other direction looks at it, too."""

    def __init__(self) -> None:
        self._key: Any = None
        self._scores: Tensor = None

    def of(self, key: Any, make: Callable[[], Tensor]) -> Tensor:
        """The tile of this key."""
        if key != self._key:
            self._key = self._scores = None  # the next tile may take its memory
            self._scores = make()
            self._key = key
        return self._scores


class PlainLevel(Level):
    """Tiles of rows × columns that both directions look at; ``slack`` bounds their errors by row and by column."""

    def __init__(
        self,
        make: Callable[[slice, slice], Tensor],
        slack: tuple[Tensor, Tensor],
        flags: FlagBuffers,
        last: LastTile,
        *,
        exact: bool,
    ) -> None:
        self.make, self.slack, self.flags, self.last, self.exact = make, slack, flags, last, exact

    def tile(self, axis: int, queries: slice, items: slice) -> Tile:
        rows, columns = (queries, items) if axis == 0 else (items, queries)
        return Tile(self.last.of((self.exact, rows, columns), lambda: self.make(rows, columns)), axis)

    def bounds(self, scores: Tensor, axis: int, queries: slice) -> tuple[Tensor, Tensor]:
        slack = self.slack[axis][queries]
        low, high = scores.double() - slack, scores.double() + slack
        return rounded_down(low, _SINGLE_BITS), -rounded_down(-high, _SINGLE_BITS)

    def lowest(self, values: Tensor, axis: int, queries: slice | Tensor) -> Tensor:
        return rounded_down(values.double() - self.slack[axis][queries], _SINGLE_BITS)

    def find(self, axis: int, queries: slice, items: slice, floor: Tensor, share: float) -> Marked | None:
        import torch

        tile = self.tile(axis, queries, items)
        if tile.scores.element_size() > _SINGLE_BYTES:
            return None  # float64 scores are compared as whole tiles
        low, _ = self.bounds(floor[queries], axis, queries)
        flags, width = self.flags.of(0, tile.scores), tile.scores.shape[1]
        torch.ge(tile.scores, low.unsqueeze(1 - axis), out=flags[:, :width])
        pairs = marked_pairs(flags, share, axis)
        if pairs is None:
            return None
        query, item = pairs
        values = tile.by_query[query, item]
        return _MarkedEntries(floor, self.around(values, axis, query + queries.start, item + items.start))

    def resolve(self, axis: int, parts: Sequence[_MarkedEntries]) -> Entries:
        return joined([part.entries for part in parts])


@dataclass(frozen=True)
class _MarkedEntries:
    floor: Tensor
    entries: Entries

    def __len__(self) -> int:
        return len(self.entries)


def rounded_down(values: Tensor, bits: int) -> Tensor:
    """The largest numbers of so many significant bits that are not above the float64 ``values``, as float32."""
    import torch

    half = bits < _SINGLE_BITS
    kind = torch.float16 if half else torch.float32
    nearest = values.to(kind)
    _, exponents = torch.frexp(values)
    # Half of what the last bit is worth: an exact power of two, made of bits, since other ways may round it.
    exponents = torch.clamp(exponents.long() - bits - 1, min=-25 if half else -150)
    step = ((exponents + 1023) << 52).view(torch.float64)
    lower = torch.where(nearest.double() <= values, nearest, (values - step).to(kind))
    return lower.float()


def product_levels(left: Tensor, right: Tensor, flags: FlagBuffers) -> list[Level]:
    """Inner products of float32 vectors: in float32 and in float64."""
    import torch

    buffer = Buffer(torch.float32, left.device)  # one for both: of a tile, only the last level is looked at

    def single(rows: slice, columns: slice) -> Tensor:
        a, b = left[rows], right[columns]
        return torch.mm(a, b.T, out=buffer.of(len(a), len(b)))

    def in_double(rows: slice, columns: slice) -> Tensor:
        a, b = left[rows], right[columns].double().T
        scores = buffer.of(len(a), b.shape[1])
        for start in range(0, len(a), _DOUBLE_ROWS):
            part = slice(start, start + _DOUBLE_ROWS)
            scores[part] = a[part].double() @ b
        return scores

    lengths = lengths_of(left), lengths_of(right)
    slack = float32_slack(*lengths, left.shape[1]), float32_slack(*lengths[::-1], left.shape[1])
    none = torch.zeros_like(slack[0]), torch.zeros_like(slack[1])
    last = LastTile()
    return [
        PlainLevel(single, slack, flags, last, exact=False), PlainLevel(in_double, none, flags, last, exact=True),
    ]  # fmt: skip


def scorer_levels(scorer: Scorer, where: Any, flags: FlagBuffers) -> list[Level]:
    """Tiles that a scorer makes on the host, moved to a device; exact ones where those cannot decide."""
    import torch

    def tile(rows: slice, columns: slice) -> Tensor:
        return torch.from_numpy(scorer.tile(rows, columns)).to(where, copy=True)

    def exact(rows: slice, columns: slice) -> Tensor:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        pairs = (
            np.repeat(np.arange(rows.start, rows.stop), width),
            np.tile(np.arange(columns.start, columns.stop), height),
        )
        return torch.from_numpy(scorer.exact(*pairs).reshape(height, width)).to(where)

    slack = tuple(
        torch.from_numpy(np.array(part, np.float64)).to(where) for part in (scorer.row_slack, scorer.column_slack)
    )
    none, last = (torch.zeros_like(slack[0]), torch.zeros_like(slack[1])), LastTile()
    if scorer.precision is np.float32 and not (scorer.row_slack.any() or scorer.column_slack.any()):
        return [PlainLevel(tile, none, flags, last, exact=True)]
    return [
        PlainLevel(tile, (slack[0], slack[1]), flags, last, exact=False),
        PlainLevel(exact, none, flags, last, exact=True),
    ]


_HALF_BITS = 11
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
            lower = rounded_down(scaled, _HALF_BITS).double()
            # A score that equals its floor must leave more than 0.
            lower = rounded_down(lower - lower.abs() * 2 * _ROUNDED - 2 * _LAST, _HALF_BITS)
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
        return rounded_down(low, _HALF_BITS).to(torch.float16), (-rounded_down(-high, _HALF_BITS)).to(torch.float16)

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
