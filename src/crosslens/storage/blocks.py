"""Vectors a block at a time: in memory, in a memory-mapped file, in many shards. Their readers need not know which.

A matrix of ten million vectors fits no memory, and nothing needs all of it at once. So whatever goes through vectors
(checks, hashes, ranking, neighbours) asks a :class:`VectorBlocks` for some rows, uses them, and asks for the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from crosslens.core import InputError
from crosslens.storage.arrays import Array, frozen

BLOCK_BYTES = 1 << 24
"""About how much :func:`each_block` reads at a time."""


_OPEN_SHARDS = 256


class VectorBlocks(Protocol):
    """One vector per row (n×d), or several per row (n×k×d); several threads may read at the same time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """n×d or n×k×d."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers as they are stored: ``float16`` stays ``float16``."""

    def block(self, start: int, stop: int) -> Array:
        """The rows from ``start`` to ``stop``, cut at the end as a slice is; read-only, perhaps a view."""

    def rows(self, rows: Array) -> Array:
        """Single rows, in this order, as a copy."""

    def location(self, row: int) -> tuple[str | None, int]:
        """The file that holds a row, where it is known, and the number of the row in that file."""


class ArrayBlocks:
    """An array, in memory or memory-mapped."""

    def __init__(self, array: Array, file: str | None = None) -> None:
        self.array = frozen(array)
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype
        self._file = file

    def block(self, start: int, stop: int) -> Array:
        return self.array[start:stop]

    def rows(self, rows: Array) -> Array:
        return np.asarray(self.array[rows])

    def location(self, row: int) -> tuple[str | None, int]:
        return self._file, row


class ShardedBlocks:
    """Arrays one after the other, as if they were one: each usually a memory-mapped file of its own.

    ``open_shard`` opens a shard by its number. Some hundreds stay open: a process may have about a thousand files.
    """

    def __init__(self, open_shard: Callable[[int], Array], names: Sequence[str]) -> None:
        self._open, self._names = lru_cache(_OPEN_SHARDS)(open_shard), list(names)
        facts = [(shard.shape, shard.dtype) for shard in map(self._open, range(len(names)))]
        # Raise unless all shards hold vectors of numbers, of the same width.
        again = "write the shard again, with one vector per row"
        first = facts[0][0]
        for (shape, kind), name in zip(facts, self._names, strict=True):
            if kind.kind not in "fiu":
                raise InputError(f"an array of type {kind}", file=name, expected="real numbers", fix=again)
            if len(shape) not in (2, 3) or 0 in shape[1:]:
                expected = "n×d numbers, or n×k×d for several vectors per item"
                raise InputError(f"an array of shape {shape}", file=name, expected=expected, fix=again)
            if shape[1:] != first[1:]:
                width, other = ("×".join(map(str, size[1:])) for size in (shape, first))
                raise InputError(
                    f"vectors of {width} numbers, and of {other} in {self._names[0]}", file=name,
                    expected="shards of the same width", fix="encode all shards with the same model",
                )  # fmt: skip
        self._starts = np.concatenate([[0], np.cumsum([shape[0] for shape, _ in facts])])
        self.shape: tuple[int, ...] = (int(self._starts[-1]), *facts[0][0][1:])
        self.dtype = np.result_type(*(dtype for _, dtype in facts))

    @staticmethod
    def of(arrays: Sequence[Array], names: Sequence[str] | None = None) -> ShardedBlocks:
        """Arrays that are open already."""
        return ShardedBlocks(arrays.__getitem__, names or [f"shard {number}" for number in range(len(arrays))])

    def block(self, start: int, stop: int) -> Array:
        """These rows: a view where one shard holds them all."""
        stop = max(start, min(stop, self.shape[0]))
        first, last = self._shard_of(start), self._shard_of(max(start, stop - 1))
        parts = [
            self._open(number)[max(start - offset, 0) : stop - offset]
            for number, offset in zip(range(first, last + 1), self._starts[first:], strict=False)
        ]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(self.dtype, copy=False)

    def rows(self, rows: Array) -> Array:
        """A copy of these rows, gathered shard by shard."""
        rows = np.asarray(rows, np.int64)
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        gathered = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for number in np.unique(owner):
            here = owner == number
            gathered[here] = self._open(int(number))[rows[here] - self._starts[number]]
        return gathered

    @property
    def shard_rows(self) -> list[int]:
        return [int(rows) for rows in np.diff(self._starts)]

    def location(self, row: int) -> tuple[str | None, int]:
        number = self._shard_of(row)
        return self._names[number], row - int(self._starts[number])

    def _shard_of(self, row: int) -> int:
        # Of shards without rows, which begin where the next one does, the last is taken: it has some.
        return min(int(np.searchsorted(self._starts, row, side="right")) - 1, len(self._names) - 1)


class SelectedBlocks:
    """Some rows of others, in any order; they are gathered when they are read."""

    def __init__(self, source: VectorBlocks, rows: Array) -> None:
        self._source, self._rows = source, np.asarray(rows, np.int64)
        self.shape: tuple[int, ...] = (len(self._rows), *source.shape[1:])
        self.dtype = source.dtype

    def block(self, start: int, stop: int) -> Array:
        """These rows; consecutive ones are read as a block."""
        rows = self._rows[start:stop]
        if len(rows) and rows[0] + len(rows) - 1 == rows[-1] and (np.diff(rows) == 1).all():
            return self._source.block(int(rows[0]), int(rows[-1]) + 1)
        return self._source.rows(rows)

    def rows(self, rows: Array) -> Array:
        return self._source.rows(self._rows[rows])

    def location(self, row: int) -> tuple[str | None, int]:
        return self._source.location(int(self._rows[row]))


class FlatBlocks:
    """The vectors of items that have several each (n×k×d), one per row (nk×d)."""

    def __init__(self, source: VectorBlocks) -> None:
        items, self._each, width = source.shape
        self._source, self.shape, self.dtype = source, (items * self._each, width), source.dtype

    def block(self, start: int, stop: int) -> Array:
        """These rows: a view where the items are."""
        stop = max(start, min(stop, self.shape[0]))
        first = start // self._each
        block = self._source.block(first, -(-stop // self._each)).reshape(-1, self.shape[1])
        return block[start - first * self._each : stop - first * self._each]

    def rows(self, rows: Array) -> Array:
        rows = np.asarray(rows, np.int64)
        gathered: Array = self._source.rows(rows // self._each)[np.arange(len(rows)), rows % self._each]
        return gathered

    def location(self, row: int) -> tuple[str | None, int]:
        return self._source.location(row // self._each)


class PatchedBlocks:
    """Vectors of which some rows have other values: the variants of a study differ in a few captions."""

    def __init__(self, source: VectorBlocks, rows: Sequence[int] | Array, values: Array) -> None:
        order = np.argsort(np.asarray(rows, np.int64), kind="stable")
        self._source, self._rows, self._values = source, np.asarray(rows, np.int64)[order], values[order]
        self._values = self._values.astype(source.dtype, copy=False)
        self.shape: tuple[int, ...] = source.shape
        self.dtype = source.dtype

    def block(self, start: int, stop: int) -> Array:
        first, last = np.searchsorted(self._rows, (start, stop))
        block = self._source.block(start, stop)
        if first == last:
            return block
        block = block.copy()
        block[self._rows[first:last] - start] = self._values[first:last]
        return block

    def rows(self, rows: Array) -> Array:
        gathered = self._source.rows(rows)
        at = np.minimum(np.searchsorted(self._rows, rows), max(len(self._rows) - 1, 0))
        changed = self._rows[at] == rows if len(self._rows) else np.zeros(len(rows), bool)
        gathered[changed] = self._values[at[changed]]
        return gathered

    def location(self, row: int) -> tuple[str | None, int]:
        return self._source.location(row)


def as_blocks(values: Array | VectorBlocks) -> VectorBlocks:
    """An array as blocks; blocks as they are."""
    return ArrayBlocks(values) if isinstance(values, np.ndarray) else values


def select_rows(source: VectorBlocks, rows: Array | slice) -> VectorBlocks:
    """Some rows; of an array, a slice stays a view of it."""
    if isinstance(rows, slice):
        if isinstance(source, ArrayBlocks):
            return ArrayBlocks(source.array[rows])
        return SelectedBlocks(source, np.arange(source.shape[0])[rows])
    return SelectedBlocks(source, rows)


def each_block(source: VectorBlocks) -> Iterator[tuple[int, Array]]:
    """All rows, a block of moderate size at a time, with the number of its first row."""
    for part in block_parts(source):
        yield part.start, source.block(part.start, part.stop)


def block_parts(source: VectorBlocks, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """The rows of every block of :func:`each_block`, for those who read them in threads of their own."""
    width = math.prod(source.shape[1:]) * source.dtype.itemsize
    size = max(1, block_bytes // max(1, width))
    for start in range(0, source.shape[0], size):
        yield slice(start, min(start + size, source.shape[0]))


def check_blocks(source: VectorBlocks, what: str) -> None:
    """Raise unless vectors are finite real numbers of two or three axes; the error names the first bad row."""
    if source.dtype.kind not in "fiu":
        fix = "convert with .astype('float32')"
        raise InputError(f"{what} of type {source.dtype}", expected="real numbers", fix=fix)
    if len(source.shape) not in (2, 3) or 0 in source.shape[1:]:
        raise InputError(f"{what} of shape {source.shape}", expected="n×d, or n×k×d for several vectors per item")
    if source.dtype.kind != "f":
        return
    for start, block in each_block(source):
        finite = np.isfinite(block)
        if not finite.all():
            row = int(np.argmax(~finite.reshape(len(block), -1).all(axis=1)))
            value = "NaN" if np.isnan(block[row]).any() else "infinity"
            file, number = source.location(start + row)
            fix = "encode that item again, or drop it"
            raise InputError(f"{value} in {what}", file=file, row=number, expected="finite numbers", fix=fix)
