"""How rows and columns are cut into blocks: what a device holds at a time fits its memory, and each has its share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.rank.merged import Blocks
from crosslens.storage import DEVICE_BYTES, VECTOR_BYTES, Array, VectorBlocks, select_rows
from crosslens.values import Relevance

_BUFFERS = 4 << 30
"""What a pass takes whatever the blocks are: tiles, and pairs that are not decided yet. At most half of the memory."""
_CANDIDATES = 256 * 8 + 512
"""Of a query, in the buffers of the kernels."""
_CANDIDATE = 160 + 64
"""Of a query that lists one more item: candidates, some times as many as are kept, and again while they are put in
order."""
_RELEVANT, _WIDEST = 44, 12
"""Of a relevant pair: its positions, its score, what is counted; and of its query, in tables of equal width."""
MOST_WORK = {"cuda": 10**16, "cpu": 4 * 10**12}
"""Multiplications of a pair of blocks, at most: a minute of a fast GPU or of some cores, which is what an interruption
may cost."""
LEAST_WORK = {"cuda": 10**14, "cpu": 1 << 33}
"""Multiplications that a further device is worth its start for: about a second of a fast GPU; of a core, less."""
_MOST_TASK_WORK = {"cuda": 5 * 10**16, "cpu": 1 << 38}
"""Multiplications of a task, at most, which is what a lost worker costs: five minutes of a fast GPU, ten seconds of a
core. The larger a task, the fewer lists travel for as much work."""
_TASKS_PER_DEVICE = 4
"""So that devices of unequal speed end at about the same time, and results are merged while others are computed."""


def plan_blocks(
    shape: tuple[int, int], dimension: int, item_bytes: Sequence[int], room: int, most: int, devices: int
) -> Blocks:
    """As few blocks as ``room`` on each device allows, and for each device equally many of the longer axis.

    ``item_bytes`` is what a row and a column take, ``most`` how many multiplications a pair of blocks may need. Blocks
    of the longer axis stay on their device while those of the other axis are read, so they get three quarters of the
    memory.
    """
    outer = 0 if shape[0] > shape[1] else 1
    length, other = shape[outer], shape[1 - outer]
    outer_bytes, inner_bytes = item_bytes[outer], item_bytes[1 - outer]
    height, width = -(-length // devices), other
    if height * outer_bytes + width * inner_bytes > room:
        inner_bytes += 4 * dimension  # the next block is read in the meantime
        width = min(other, max(1, room // 4 // inner_bytes))
        height = min(height, max(1, (room - width * inner_bytes) // outer_bytes))
        width = min(other, max(1, (room - height * outer_bytes) // inner_bytes))
    width = min(width, max(1, most // (height * dimension)))
    down, across = -(-length // height), -(-other // width)
    sizes = -(-length // min(length, -(-down // devices) * devices)), -(-other // across)
    return Blocks(shape, sizes if outer == 0 else (sizes[1], sizes[0]), outer)


def task_blocks(shape: tuple[int, int], dimension: int, devices: int, kind: str) -> Blocks:
    """Blocks whose pairs are the tasks of so many devices of a kind, wherever these are.

    Whoever runs a task cuts it further if its device holds less. Each task reads the vectors of a block of rows and of
    one of columns, and lists of both travel: of all ways to make so many tasks, the one is taken where that is least.
    """
    work = shape[0] * shape[1] * dimension
    number = max(-(-work // _MOST_TASK_WORK[kind]), min(_TASKS_PER_DEVICE * devices, work // LEAST_WORK[kind]), 1)
    if number > devices:
        number = -(-number // devices) * devices
    outer = 0 if shape[0] > shape[1] else 1
    divisors = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    counts = [(rows, number // rows) for rows in (*divisors, *(number // divisor for divisor in divisors))]
    rows, columns = min(counts, key=lambda count: (shape[0] * count[1] + shape[1] * count[0], count))
    return Blocks(shape, (-(-shape[0] // rows), -(-shape[1] // columns)), outer)


def needed_bytes(blocks: Blocks, dimension: int, item_bytes: Sequence[int]) -> int:
    """What a device holds of these blocks."""
    inner = 1 - blocks.outer
    ahead = 4 * dimension * blocks.size[inner] if blocks.size[inner] < blocks.shape[inner] else 0
    return sum(size * bytes_ for size, bytes_ in zip(blocks.size, item_bytes, strict=True)) + ahead


def bytes_of_query(dimension: int, depth: int, relevance: Relevance) -> int:
    """What a query of a direction takes on a device."""
    lengths = np.diff(relevance.offsets)
    return device_item_bytes(
        dimension, depth, -(-int(lengths.sum()) // max(1, len(lengths))), int(lengths.max(initial=1))
    )


def device_item_bytes(dimension: int, depth: int, pairs: int = 1, widest: int = 1) -> int:
    """What an item takes on a device, at most: a vector thrice (as it is, rounded, being rounded), counts and lists.

    ``pairs`` is how many relevant items a query has on average, ``widest`` how many at most.
    """
    return 12 * dimension + _CANDIDATES + _CANDIDATE * depth + _RELEVANT * pairs + _WIDEST * widest


def device_blocks(memory: int, shape: tuple[int, int], dimension: int, depth: int) -> Blocks:
    """The blocks that a device of so much memory ranks rows and columns in, whatever else limits them."""
    size, most = device_item_bytes(dimension, depth), shape[0] * shape[1] * dimension
    return plan_blocks(shape, dimension, (size, size), _without_buffers(memory), most, 1)


def device_memory(device: Any) -> int:
    """How many bytes blocks may take on a device."""
    import torch

    memory = VECTOR_BYTES.value
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        memory = torch.cuda.mem_get_info(device)[0] + unused
    return _without_buffers(min(memory, DEVICE_BYTES.value))


def buffer_bytes(memory: int) -> int:
    """How much of a device's memory the tiles of a pass may take."""
    return min(_BUFFERS, memory // 2)


def _without_buffers(memory: int) -> int:
    return memory - buffer_bytes(memory)


@dataclass(frozen=True)
class Products:
    """The vectors of rows and columns, what is relevant to each, and how many items a list keeps.

    ``axes`` are the directions that are asked for: 0, whose queries are the rows, and 1, whose queries are columns.
    """

    vectors: tuple[VectorBlocks, VectorBlocks]
    relevant: tuple[Relevance, Relevance]
    depth: int
    tile: int | None = None
    axes: tuple[int, ...] = (0, 1)

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
        return self.depth if axis in self.axes else 1

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

    def products(
        self, vectors: tuple[VectorBlocks, VectorBlocks], depth: int, tile: int | None, axes: tuple[int, ...]
    ) -> Products:
        """The part as a ranking of its own, of queries without names: ids would take longer to travel than vectors."""
        rows, columns = (select_rows(stored, block) for stored, block in zip(vectors, self.blocks, strict=True))
        nameless = [
            Relevance(("",) * (len(offsets) - 1), (), offsets, items, np.ones(len(items), np.float32))
            for offsets, items in zip(self.offsets, self.items, strict=True)
        ]
        return Products((rows, columns), (nameless[0], nameless[1]), depth, tile, axes)
