"""Vectors as score functions take them (float32, of length 1 or as they are), in memory as far as there is room.

What does not fit is converted from the stored numbers each time a block is read: float16 widens without rounding, and
lengths are computed in float64, so a score has the same bits either way.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from crosslens.core import VECTOR_BYTES, ArrayBlocks, Embeddings, InputError, VectorBlocks, each_block
from crosslens.rank.scorers import unit_rows

Array = np.ndarray[Any, Any]
Convert = Callable[[Array], Array]
"""Stored rows → float32 rows of the same items."""


class FloatBlocks:
    """Stored vectors, converted as they are read. Each thread keeps its last block: a pass asks for it many times."""

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

    def in_memory(self) -> ArrayBlocks:
        """All of them at once."""
        if isinstance(self.source, ArrayBlocks):
            return ArrayBlocks(self._convert(self.source.array))
        out = np.empty(self.shape, np.float32)
        for start, block in each_block(self.source):
            out[start : start + len(block)] = self._converted(block, lambda row, start=start: start + row)  # type: ignore[misc]
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


def _both(images: Embeddings, captions: Embeddings, convert: Convert) -> tuple[VectorBlocks, VectorBlocks]:
    """Both sides; the smaller one is held in memory first, for a pass reads it again for every block of the other."""
    room, sides = VECTOR_BYTES.value, [FloatBlocks(side.source, convert) for side in (images, captions)]
    prepared: list[VectorBlocks] = [*sides]
    for number in sorted((0, 1), key=lambda number: math.prod(sides[number].shape)):
        source, size = (images, captions)[number].source, 4 * math.prod(sides[number].shape)
        if size <= room or (convert is _plain_vector and _is_ready(source)):
            prepared[number] = sides[number].in_memory()
            room -= size
    return prepared[0], prepared[1]


def _is_ready(source: VectorBlocks) -> bool:
    """Whether the stored numbers are what is asked for: nothing is copied, then."""
    return isinstance(source, ArrayBlocks) and source.dtype == np.float32 and source.array.flags.c_contiguous


def _plain_vector(vectors: Array) -> Array:
    return np.ascontiguousarray(_one_each(vectors), np.float32)


def _unit_vector(vectors: Array) -> Array:
    return unit_rows(_one_each(vectors))


def _unit_set(vectors: Array) -> Array:
    return unit_rows(vectors if vectors.ndim == 3 else vectors[:, None, :])


def _one_each(vectors: Array) -> Array:
    return vectors[:, 0] if vectors.ndim == 3 and vectors.shape[1] == 1 else vectors
