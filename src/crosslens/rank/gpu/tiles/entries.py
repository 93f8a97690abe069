"""Single scores of tiles: whose they are, and between which numbers the exact ones lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
