"""What is ranked on devices: inner products of vectors, in both directions or for the queries of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import Relevance, VectorBlocks, select_rows
from crosslens.rank.gpu.blocks import Blocks, bytes_of_query

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Products:
    """The vectors of rows and columns, what is relevant to each, and how many items a list keeps.

    ``wanted`` are the directions that are asked for: 0, whose queries are the rows, and 1, whose queries are columns.
    """

    vectors: tuple[VectorBlocks, VectorBlocks]
    relevant: tuple[Relevance, Relevance]
    depth: int
    tile: int | None = None
    wanted: tuple[int, ...] = (0, 1)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns."""
        return self.vectors[0].shape[0], self.vectors[1].shape[0]

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return self.vectors[0].shape[1]

    @property
    def work(self) -> int:
        """Multiplications."""
        return self.shape[0] * self.shape[1] * self.dimension

    @property
    def item_bytes(self) -> list[int]:
        """What a row and a column take on a device."""
        return [bytes_of_query(self.dimension, self.depth_of(axis), self.relevant[axis]) for axis in (0, 1)]

    def depth_of(self, axis: int) -> int:
        """The length of a list: as short as can be where nobody asks for it."""
        return self.depth if axis in self.wanted else 1

    def keep(self, axis: int) -> int:
        """How many items a list of this direction has."""
        return min(self.depth_of(axis), self.shape[1 - axis])


@dataclass(frozen=True)
class ProductPart:
    """A block of rows and a block of columns, with what is relevant to their queries.

    ``items`` are the relevant items of each direction, counted from the first of their block: those outside lie before
    0 or past the end. ``scores`` are the exact scores of the relevant pairs.
    """

    blocks: tuple[slice, slice]
    offsets: tuple[Array, Array]
    items: tuple[Array, Array]
    scores: tuple[Array, Array]

    @staticmethod
    def of(products: Products, targets: tuple[Array, Array], blocks: tuple[slice, slice]) -> ProductPart:
        """The part of these blocks; ``targets`` are the scores of all relevant pairs."""
        offsets, items, scores = [], [], []
        for axis, (queries, gallery) in enumerate((blocks, blocks[::-1])):
            relevance = products.relevant[axis]
            first, last = relevance.offsets[[queries.start, queries.stop]]
            offsets.append(relevance.offsets[queries.start : queries.stop + 1] - first)
            items.append(relevance.items[first:last] - gallery.start)
            scores.append(targets[axis][first:last])
        return ProductPart(blocks, (offsets[0], offsets[1]), (items[0], items[1]), (scores[0], scores[1]))

    def products(self, vectors: tuple[VectorBlocks, VectorBlocks], depth: int, tile: int | None,
                 wanted: tuple[int, ...]) -> Products:  # fmt: skip
        """The part as a ranking of its own, of queries without names: ids would take longer to travel than vectors."""
        rows, columns = (select_rows(side, block) for side, block in zip(vectors, self.blocks, strict=True))
        nameless = [
            Relevance(("",) * (len(offsets) - 1), (), offsets, items, np.ones(len(items), np.float32))
            for offsets, items in zip(self.offsets, self.items, strict=True)
        ]
        return Products((rows, columns), (nameless[0], nameless[1]), depth, tile, wanted)


def result_bytes(products: Products, blocks: Blocks) -> int:
    """About how much the keys and counts of a pair of blocks take, at most."""
    size = 0
    for axis in products.wanted:
        pairs = len(products.relevant[axis].items)
        size += blocks.size[axis] * (8 * products.keep(axis) + 24 * -(-pairs // products.shape[axis]))
    return size
