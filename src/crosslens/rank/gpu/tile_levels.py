"""Single scores of tiles: whose they are, and between which numbers the exact ones lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any, NamedTuple

from crosslens.rank.gpu.direction import float32_slack, halves, lengths_of, product_slack

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

    def part(self, rows: Tensor) -> Entries:
        """Those of these numbers."""
        return Entries(*(part.index_select(0, rows) for part in (self.queries, self.items, self.lowest, self.highest)))


def joined(parts: Sequence[Entries]) -> Entries:
    """All of them, one after the other."""
    import torch

    if len(parts) == 1:
        return parts[0]
    return Entries(
        torch.cat([part.queries for part in parts]), torch.cat([part.items for part in parts]),
        torch.cat([part.lowest for part in parts]), torch.cat([part.highest for part in parts]),
    )  # fmt: skip


def marked_pairs(marks: Tensor, share: float, axis: int) -> tuple[Tensor, Tensor] | None:
    """The queries and items of a tile of flags that are set, from the tile's first; None if those are too many.

    They are where more than a ``share`` of the words, of which a row has whole ones, has any. ``axis`` is 0 where the
    queries are the rows of the tile, 1 where they are its columns.
    """
    import torch

    words = words_of(marks)
    where = torch.nonzero(words)[:, 0]
    if len(where) > share * len(words):
        return None
    which, offset = torch.nonzero(words[where].view(marks.dtype).view(-1, WORD), as_tuple=True)
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


_SINGLE_BITS, _HALF_BITS = 24, 11
_LARGEST = 14
"""Tiles in half precision stay below 2 to this power, and so do floors: their differences fit float16, to 2¹⁶."""
_NOTHING = 2.0**15
"""A floor that no score reaches."""
_ALIGNED = 8
_ROUNDED, _LAST = 2.0**-11, 2.0**-25
"""How far rounding to float16 may be off: of a number, and of the smallest ones."""
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


class Level:
    """Tiles of rows × columns in one precision, which both directions look at, and how far they may be off.

    ``make`` (axis, rows, columns) gives a tile. Its numbers are scores times ``units`` of the queries of an axis, 0
    where these are the rows of the ranking and 1 where its columns, and ``slack`` bounds their errors by query. Without
    units, which are those of half precision, numbers are the scores themselves. Tiles of both axes are the same if
    ``common``. ``last`` is what the other direction, which looks at the same tile next, finds again.
    """

    def __init__(
        self,
        make: Callable[[int, slice, slice], Tensor],
        slack: tuple[Tensor, Tensor],
        flags: FlagBuffers,
        last: LastTile,
        *,
        exact: bool = False,
        units: tuple[Tensor, Tensor] | None = None,
        common: bool = True,
    ) -> None:
        self.make, self.slack, self.flags, self.last = make, slack, flags, last
        self.exact, self.units, self.common = exact, units, common

    def tile(self, axis: int, queries: slice, items: slice) -> Tile:
        """Scores of these queries, perhaps times their units."""
        rows, columns = (queries, items) if axis == 0 else (items, queries)
        key = (self.exact, self.common or axis, rows, columns)
        return Tile(self.last.of(key, lambda: self.make(axis, rows, columns)), axis)

    def bounds(self, scores: Tensor, axis: int, queries: slice) -> tuple[Tensor, Tensor]:
        """What a tile holds at least where exact scores reach ``scores``, one per query; at most where they do not
        exceed them."""
        import torch

        slack = self.slack[axis][queries]
        low, high = scores.double() - slack, scores.double() + slack
        if self.units is None:
            return rounded_down(low, _SINGLE_BITS), -rounded_down(-high, _SINGLE_BITS)
        units = self.units[axis][queries]
        # Rounding a tile keeps its order, so it needs no bound of its own.
        low, high = rounded_down(low * units, _HALF_BITS), -rounded_down(-high * units, _HALF_BITS)
        return low.to(torch.float16), high.to(torch.float16)

    def lowest(self, values: Tensor, axis: int, queries: slice | Tensor) -> Tensor:
        """What exact scores are at least where a tile holds ``values``, one per query."""
        values = values.double()
        if self.units is not None:
            values = (values - values.abs() * 2 * _ROUNDED - 2 * _LAST) / self.units[axis][queries]
        return rounded_down(values - self.slack[axis][queries], _SINGLE_BITS)

    def around(self, values: Tensor, axis: int, queries: Tensor, items: Tensor) -> Entries:
        """Scores that a tile holds as ``values``."""
        queries, items = queries.int(), items.int()
        if self.exact:
            return Entries(queries, items, values, values)
        return Entries(queries, items, self.lowest(values, axis, queries), -self.lowest(-values, axis, queries))

    def find(self, axis: int, queries: slice, items: slice, floor: Tensor, share: float) -> Entries | None:
        """All scores of a tile that may reach the ``floor`` of their query; None if they are too many: in more than a
        ``share`` of the words of a tile. ``floor`` is a new tensor whenever it has changed."""
        import torch

        tile = self.tile(axis, queries, items)
        low, _ = self.bounds(floor[queries], axis, queries)
        flags, width = self.flags.of(0, tile.scores), tile.scores.shape[1]
        torch.ge(tile.scores, low.unsqueeze(1 - axis), out=flags[:, :width])
        pairs = marked_pairs(flags, share, axis)
        if pairs is None:
            return None
        query, item = pairs
        return self.around(tile.by_query[query, item], axis, query + queries.start, item + items.start)


class LastTile:
    """The tile that was made last: the other direction looks at it, too."""

    def __init__(self) -> None:
        self._key: Any = None
        self._scores: Tensor = None

    def forget(self) -> None:
        """The next tile may take the memory."""
        self._key = self._scores = None

    def of(self, key: Any, make: Callable[[], Tensor]) -> Tensor:
        """The tile of this key."""
        if key != self._key:
            self.forget()
            self._scores = make()
            self._key = key
        return self._scores


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

    def single(axis: int, rows: slice, columns: slice) -> Tensor:
        a, b = left[rows], right[columns]
        return torch.mm(a, b.T, out=buffer.of(len(a), len(b)))

    def in_double(axis: int, rows: slice, columns: slice) -> Tensor:
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
    return [Level(single, slack, flags, last), Level(in_double, none, flags, last, exact=True)]


class HalfLevel(Level):
    """Inner products of float32 vectors on tensor cores.

    The vectors of queries are multiplied each by a power of two of its own, those of the gallery all by the same. Where
    all lengths are about the same, so are the powers, and one tile serves both directions.
    """

    def __init__(self, left: Tensor, right: Tensor, flags: FlagBuffers) -> None:
        import torch

        vectors = left, right
        each = [halves(part, _ALIGNED, _ALIGNED, each=True, spare=_ALIGNED) for part in vectors]
        alike = [
            part if part.shared else halves(whole, _ALIGNED, _ALIGNED, each=False, spare=_ALIGNED)
            for part, whole in zip(each, vectors, strict=True)
        ]
        self.queries, self.gallery = each, alike[::-1]
        self.factors: list[float] = []
        slack, units = [], []
        for queries, gallery in zip(self.queries, self.gallery, strict=True):
            longest = 1.0
            for part in (queries, gallery):
                longest *= float(((part.lengths + part.errors) * part.units).max())
            self.factors.append(2.0 ** (_LARGEST - frexp(longest)[1]) if longest > 0 else 1.0)
            units.append(queries.units * gallery.units[0] * self.factors[-1])
            slack.append(product_slack(queries, gallery, queries.values.shape[1]))
        self.buffer = Buffer(torch.float16, left.device)
        # In float32, rounded up, and what brings a tile's numbers back to scores: both of every query.
        self.single = [
            (-rounded_down(-reach, _SINGLE_BITS), (1 / unit).float()) for reach, unit in zip(slack, units, strict=True)
        ]
        self._biases: dict[int, tuple[Tensor, Tensor]] = {}
        common = all(part.shared for part in each)
        super().__init__(
            self._product, (slack[0], slack[1]), flags, LastTile(), units=(units[0], units[1]), common=common
        )

    def _product(self, axis: int, rows: slice, columns: slice) -> Tensor:
        left, right = self.queries[axis].values, self.gallery[axis].values
        if axis == 1:
            left, right = right, left
        a, b = left[rows], right[_aligned(columns)]
        scores = self.buffer.of(len(a), len(b)).addmm_(a, b.T, beta=0, alpha=self.factors[axis])
        return scores[:, : columns.stop - columns.start]

    def find(self, axis: int, queries: slice, items: slice, floor: Tensor, share: float) -> Entries | None:
        """As every level, by the signs of products less their floors: faster than comparisons with a row of bounds."""
        import torch

        part, count = _aligned(queries), queries.stop - queries.start
        bias = torch.full((part.stop - part.start,), -_NOTHING, dtype=torch.float16, device=floor.device)
        bias[:count] = self._bias(axis, floor)[queries]
        a, b = self.gallery[axis].values[items], self.queries[axis].values[part]
        self.last.forget()  # its buffer is written to
        tile = torch.addmm(bias, a, b.T, alpha=self.factors[axis], out=self.buffer.of(len(a), len(b)))
        pairs = marked_pairs(torch.gt(tile, 0, out=self.flags.of(0, tile)), share, 1)
        if pairs is None:
            return None
        query, item = pairs
        more = tile[item, query].float()
        value, off = more - bias[query], more * _ROUNDED + _LAST
        query, item = (query + queries.start).int(), (item + items.start).int()
        slack, back = (part.index_select(0, query) for part in self.single[axis])
        return Entries(query, item, (value - off) * back - slack, (value + off) * back + slack)

    def _bias(self, axis: int, floor: Tensor) -> Tensor:
        """What is added to the products of each query: all that is below its floor becomes negative, and no more."""
        import torch

        cached = self._biases.get(axis)
        if cached is None or cached[0] is not floor:
            assert self.units is not None
            largest = 2.0**_LARGEST
            scaled = torch.clamp((floor.double() - self.slack[axis]) * self.units[axis], -largest, largest)
            lower = rounded_down(scaled, _HALF_BITS).double()
            # A score that equals its floor must leave more than 0.
            lower = rounded_down(lower - lower.abs() * 2 * _ROUNDED - 2 * _LAST, _HALF_BITS)
            cached = floor, -torch.where(floor == torch.inf, _NOTHING, lower).to(torch.float16)
            self._biases[axis] = cached
        return cached[1]


def _aligned(part: slice) -> slice:
    """A whole number of words more, where vectors are padded with zeros."""
    return slice(part.start, part.start + -(-(part.stop - part.start) // _ALIGNED) * _ALIGNED)
