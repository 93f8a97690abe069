"""Vectors as score functions take them (float32, of length 1 or as they are), in memory as far as there is room.

What does not fit is converted from the stored numbers each time a block is read: float16 widens without rounding, and
lengths are computed in float64, so a score has the same bits either way.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from crosslens.core import (
    VECTOR_BYTES,
    ArrayBlocks,
    Embeddings,
    InputError,
    VectorBlocks,
    available_cores,
    block_parts,
    wait_for_all,
)
from crosslens.rank.scorers import unit_rows

Array = np.ndarray[Any, Any]
Convert = Callable[[Array], Array]
"""Stored rows → float32 rows of the same items."""


_SMALL = 1 << 28
_LONGER = 32
"""A side of more bytes than this is not held if it is so many times as long as the other."""

_CACHED = 1 << 21
"""Vectors in memory are converted in blocks of this many bytes, which stay in the cache until they are stored."""


class FloatBlocks:
    """Stored vectors, converted as they are read, in the thread that asks for them.

    Each thread keeps its last block: a pass asks for it many times.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, source: VectorBlocks, convert: Convert) -> None:
        self.source, self._convert = source, convert
        self.shape: tuple[int, ...] = (source.shape[0], *convert(np.ones((1, *source.shape[1:]), np.float32)).shape[1:])
        self._last = threading.local()

    def block(self, start: int, stop: int) -> Array:
        """These rows, converted."""
        if getattr(self._last, "part", None) != (start, stop):
            block = self.source.block(start, stop)
            self._last.block = self._converted(block, lambda row: start + row)
            self._last.part = (start, stop)
        last: Array = self._last.block
        return last

    def rows(self, rows: Array) -> Array:
        """Single rows, converted."""
        return self._converted(self.source.rows(rows), lambda row: int(rows[row]))

    def location(self, row: int) -> tuple[str | None, int]:
        """Where the stored row is."""
        return self.source.location(row)

    @property
    def is_ready(self) -> bool:
        """Whether the stored numbers are what is asked for: nothing is copied, then."""
        if self._convert is not _plain_vector or not isinstance(self.source, ArrayBlocks):
            return False
        return self.source.dtype == np.float32 and bool(self.source.array.flags.c_contiguous)

    def in_memory(self) -> ArrayBlocks:
        """All of them at once, converted on all cores."""
        if self.is_ready:
            return ArrayBlocks(self._convert(self.source.block(0, self.shape[0])))
        out = np.empty(self.shape, np.float32)

        def fill(part: slice) -> None:
            block = self.source.block(part.start, part.stop)
            out[part] = self._converted(block, lambda row: part.start + row)

        in_files = not isinstance(self.source, ArrayBlocks)
        parts = block_parts(self.source) if in_files else block_parts(self.source, _CACHED)
        with ThreadPoolExecutor(available_cores()) as pool:
            wait_for_all([pool.submit(fill, part) for part in parts])
        return ArrayBlocks(out)

    def _converted(self, block: Array, row_of: Callable[[int], int]) -> Array:
        """The converted rows; an error about one of them names the row in its file."""
        try:
            return self._convert(block)
        except InputError as error:
            if isinstance(error.row, int):
                error.file, error.row = self.source.location(row_of(error.row))
            raise


def single_vectors(images: Embeddings, captions: Embeddings, *, unit: bool) -> tuple[VectorBlocks, VectorBlocks]:
    """One float32 vector per item, of length 1 if ``unit``."""
    return _both(images, captions, _unit_vector if unit else _plain_vector)


def unit_sets(images: Embeddings, captions: Embeddings) -> tuple[VectorBlocks, VectorBlocks]:
    """n×k×d float32 vectors of length 1: an item with one vector is a set of one."""
    return _both(images, captions, _unit_set)


def unit_blocks(source: VectorBlocks) -> VectorBlocks:
    """One float32 vector of length 1 per item, held in memory if there is room."""
    blocks = FloatBlocks(source, _unit_vector)
    return blocks.in_memory() if 4 * math.prod(blocks.shape) <= VECTOR_BYTES.value else blocks


def _both(images: Embeddings, captions: Embeddings, convert: Convert) -> tuple[VectorBlocks, VectorBlocks]:
    """Both sides; the smaller one is held in memory first, for a pass reads it again for every block of the other.

    The larger side is read once. To hold it is quicker where many of its vectors are compared exactly; with few queries
    of many items that gains little, and costs all the memory.
    """
    room, sides = VECTOR_BYTES.value, [FloatBlocks(side.source, convert) for side in (images, captions)]
    prepared: list[VectorBlocks] = [*sides]
    sizes = [4 * math.prod(side.shape) for side in sides]
    for number in sorted((0, 1), key=sizes.__getitem__):
        size = sizes[number]
        worthwhile = size <= max(_SMALL, _LONGER * min(sizes))
        if (size <= room and worthwhile) or sides[number].is_ready:
            prepared[number] = sides[number].in_memory()
            room -= size
    return prepared[0], prepared[1]


def _plain_vector(vectors: Array) -> Array:
    return np.ascontiguousarray(_one_each(vectors), np.float32)


def _unit_vector(vectors: Array) -> Array:
    return unit_rows(_one_each(vectors), threads=1)


def _unit_set(vectors: Array) -> Array:
    return unit_rows(vectors if vectors.ndim == 3 else vectors[:, None, :], threads=1)


def _one_each(vectors: Array) -> Array:
    return vectors[:, 0] if vectors.ndim == 3 and vectors.shape[1] == 1 else vectors
