"""Ways to make tiles of scores, from the fastest to the exact one, and how far each may be off."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from crosslens.rank.gpu.rounded import float32_slack, lengths_of
from crosslens.rank.gpu.tiles.buffers import Buffer, FlagBuffers
from crosslens.rank.gpu.tiles.entries import Entries, joined, marked_pairs
from crosslens.rank.scorers import Scorer

Tensor = Any

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
