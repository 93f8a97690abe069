"""Cosines in float64, of vectors that may lie on disk: fast in tiles, exact for single pairs.

The exact cosine of two vectors is Σab / √(Σa² · Σb²), each sum in float64 over the dimensions in ascending order, cut
to [-1, 1]. A vector of zeros has the cosine 0 with everything, and copies of a vector have the cosine 1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from crosslens.core import VectorBlocks, as_blocks, available_cores, wait_for_all
from crosslens.rank.scorers import buffered_product, check_dimensions, rounding_bound

Array = np.ndarray[Any, Any]

_ROW_NUMBERS = 1 << 20
_PAIR_NUMBERS = 1 << 19
"""Numbers of vectors at a time, in passes over all rows and for single pairs."""


class ScaledRows:
    """Vectors (n×d, an array or blocks) and, for each, a power of two that brings it near 1 and its squared length.

    Multiplying with a power of two rounds nothing, and keeps squares of very large and very small numbers in range.
    Beside the vectors, which are neither copied nor loaded, this takes 16 bytes per row.
    """

    def __init__(self, vectors: Array | VectorBlocks, *, one_scale: bool = False) -> None:
        """``one_scale`` multiplies all rows with the same power of two, which keeps distances in proportion."""
        from crosslens.rank.kernels import squared_lengths

        self._source = as_blocks(vectors)
        self.shape = self._source.shape
        self.scale, self.squares = np.ones(self.shape[0]), np.empty(self.shape[0])

        def find_scale(part: slice) -> None:
            block = self._block(part)
            size = np.maximum(block.max(axis=1), -block.min(axis=1))
            exponent = np.clip(np.frexp(size)[1], -1_000, 1_000)
            self.scale[part] = np.where(size > 0, np.exp2(-exponent.astype(np.float64)), np.inf)

        def find_squares(part: slice) -> None:
            squared_lengths(self._block(part), self.scale[part], self.squares[part])

        self.for_each_part(find_scale)
        if one_scale:
            self.scale[:] = self.scale.min(initial=np.inf)
        self.scale[np.isinf(self.scale)] = 1  # zeros
        self.for_each_part(find_squares)

    def for_each_part(self, work: Callable[[slice], None]) -> None:
        """Call ``work`` with slices that cover all rows, on all cores."""
        with ThreadPoolExecutor(available_cores()) as pool:
            size = self._size
            starts = range(0, self.shape[0], size)
            wait_for_all([pool.submit(work, slice(start, start + size)) for start in starts])

    @property
    def _size(self) -> int:
        return max(1, _ROW_NUMBERS // self.shape[1])

    @property
    def vectors(self) -> Array:
        """All vectors as one array, for those who need it whole."""
        return np.asarray(self._source.block(0, self.shape[0]))

    def exact(self, rows: Array) -> Array:
        """Rows in float64, scaled."""
        return np.asarray(self._source.rows(rows), np.float64) * self.scale[rows, None]

    def unit(self, part: slice | Array) -> Array:
        """Rows of length 1, rounded to float32; rows of zeros stay."""
        return self.rounded(part, self.scale[part] * inverse_lengths(self.squares[part]))

    def rounded(self, part: slice | Array, factors: Array) -> Array:
        """Rows times their factors, rounded to float32."""
        from crosslens.rank.kernels import scale_rows

        out = np.empty((len(factors), self.shape[1]), np.float32)
        for start in range(0, len(factors), self._size):  # beside the result, little memory
            some = slice(start, min(start + self._size, len(factors)))
            rows = slice(part.start + some.start, part.start + some.stop) if isinstance(part, slice) else part[some]
            scale_rows(self._block(rows), factors[some], out[some])
        return out

    def _block(self, part: slice | Array) -> Array:
        source = self._source
        block = np.asarray(source.block(part.start, part.stop) if isinstance(part, slice) else source.rows(part))
        return block.astype(np.result_type(block, np.float32), copy=False)  # whole numbers may need float64


def inverse_lengths(squares: Array) -> Array:
    """1 / length by squared length; 0 for vectors of zeros."""
    return np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)


class Cosines:
    """Cosines of the chosen ``rows`` of queries with all items; of an item with ``several`` rows the highest counts."""

    precision: type[np.floating[Any]] = np.float64

    def __init__(self, queries: ScaledRows, rows: Array, items: ScaledRows, *, several: int = 1) -> None:
        check_dimensions(queries, items)
        self._queries, self._rows, self._items, self._several = queries, rows, items, several
        self._units = queries.unit(rows)
        self._buffer = threading.local()
        self.shape = (len(self._units), items.shape[0] // several)
        self.work = self._units.shape[1] * several
        # Both vectors are rounded, then every product and every sum.
        bound = np.float32(rounding_bound(self._units.shape[1] + 4))
        self.row_slack, self.column_slack = (np.full(size, bound, np.float32) for size in self.shape)

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product, into a buffer that the thread's next tile takes over."""
        buffer = self._buffer
        if getattr(buffer, "columns", None) != columns:  # the items of a tile are read once for all tiles of queries
            buffer.columns = columns
            buffer.items = self._items.unit(slice(columns.start * self._several, columns.stop * self._several))
        left = self._units[rows]
        product = buffered_product(left, buffer.items, buffer)
        if self._several > 1:
            product = product.reshape(len(left), -1, self._several).max(axis=2)
        return product

    def exact(self, rows: Array, columns: Array) -> Array:
        """The cosines that count, a bounded number at a time."""
        from crosslens.rank.kernels import pair_cosines

        if self._several > 1:
            every = (columns[:, None] * self._several + np.arange(self._several)).reshape(-1)
            flat = self._pairs(np.repeat(rows, self._several), every, pair_cosines)
            return np.asarray(flat.reshape(-1, self._several).max(axis=1))
        return self._pairs(rows, columns, pair_cosines)

    def _pairs(self, rows: Array, columns: Array, cosines: Any) -> Array:
        out, size = np.empty(len(rows)), max(1, _PAIR_NUMBERS // self._items.shape[1])
        for start in range(0, len(rows), size):
            left, right = self._rows[rows[start : start + size]], columns[start : start + size]
            queries, items = self._queries, self._items
            part = out[start : start + size]
            cosines(queries.exact(left), queries.squares[left], items.exact(right), items.squares[right], part)
        return out
