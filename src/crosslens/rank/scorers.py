"""What a score is: fast in tiles, exact for single pairs.

A tile comes from a matrix product, whose last bits depend on the tile's shape, the number of threads and the device.
So that ranks depend on none of these, every scorer also gives the *exact* score of single pairs, and bounds how far a
tile may be off (``slack``). The ranking pass decides almost everything from tiles and computes exact scores only
where two items are closer than the slack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from crosslens.core import InputError, argument, available_cores
from crosslens.engine import wait_for_all
from crosslens.storage import Array, ArrayBlocks, VectorBlocks, as_blocks
from crosslens.values import first_inexact, inexact_score

_BLOCK_NUMBERS = 1 << 19
"""Numbers of the vectors that are converted or multiplied pair by pair at a time: 4 MB in float64."""
_UNIT = 2.0**-24
"""Half the distance from 1 to the next float32: the relative error of one rounding."""
_SMALLEST = 2.0**-149
"""The smallest float32 above 0: near it a rounding can be off by half of that, however small the number."""


class Scorer(Protocol):
    """Scores of rows against columns, as float32."""

    shape: tuple[int, int]
    row_slack: Array
    column_slack: Array
    work: int
    """Multiplications per pair: tells how long a pass takes."""
    precision: type[np.floating[Any]]
    """The type of exact scores."""

    def tile(self, rows: slice, columns: slice) -> Array:
        """Scores of a block of rows and columns, each within the slack of the exact one.

        They may share a buffer that the same thread's next call overwrites.
        """

    def exact(self, rows: Array, columns: Array) -> Array:
        """The scores that count, one per (row, column) pair: the same on every machine, in every tile."""


class InnerProduct:
    """The float32 nearest to the inner product of two vectors.

    ``rows`` and ``columns`` give float32 vectors in blocks: from memory, or converted from their files as they are
    read (:class:`crosslens.rank.score_functions.FloatBlocks`).
    """

    precision = np.float32

    def __init__(self, rows: Array | VectorBlocks, columns: Array | VectorBlocks, *, unit: bool = False) -> None:
        self.rows, self.columns = as_blocks(rows), as_blocks(columns)
        check_dimensions(self.rows, self.columns)
        self.shape = (self.rows.shape[0], self.columns.shape[0])
        self.work = self.rows.shape[1]
        self._buffer = threading.local()
        # Unit vectors were rounded to float32: their length is 1 but for that.
        row_norm = np.full(self.shape[0], 1 + 1e-6) if unit else norms(self.rows)
        column_norm = np.full(self.shape[1], 1 + 1e-6) if unit else norms(self.columns)
        largest = row_norm.max(initial=0.0) * column_norm.max(initial=0.0)
        if not largest < np.finfo(np.float32).max / 2:
            fix = f"scale them down, or use {argument('score', 'cosine')}"
            raise InputError("the scores of vectors this long overflow", fix=fix)
        self.row_slack = self._slack(row_norm, column_norm)
        self.column_slack = self._slack(column_norm, row_norm)

    @property
    def arrays(self) -> tuple[Array, Array] | None:
        """Both sides as arrays, where they are in memory; None where one is read from its files."""
        if isinstance(self.rows, ArrayBlocks) and isinstance(self.columns, ArrayBlocks):
            return self.rows.array, self.columns.array
        return None

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product."""
        left, right = self.rows.block(rows.start, rows.stop), self.columns.block(columns.start, columns.stop)
        return buffered_product(left, right, self._buffer)

    def exact(self, rows: Array, columns: Array) -> Array:
        """Products summed in float64, then rounded once."""
        from crosslens.rank.kernels import pair_products

        out = np.empty(len(rows), np.float32)
        if self.arrays is not None:
            pair_products(*self.arrays, rows, columns, out)
            return out
        size = _rows_at_once(self.work)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            left, right = self.rows.rows(rows[part]), self.columns.rows(columns[part])
            pairs = np.arange(len(left))
            pair_products(left, right, pairs, pairs, out[part])
        return out

    def _slack(self, norms: Array, others: Array) -> Array:
        """How far a product with any of the others can be off; products with zeros are exact."""
        size = norms * others.max(initial=0.0)
        slack = rounding_bound(self.work) * size + (self.work + 4) * _SMALLEST
        return np.where(size > 0, slack, 0.0).astype(np.float32)


class ScoreMatrix:
    """Precomputed scores: in memory, or memory-mapped and read tile by tile.

    They are ranked in the precision they come in: tiles are float32, and where those cannot tell two scores apart, the
    stored numbers do.
    """

    work = 1

    def __init__(self, scores: Array) -> None:
        if scores.ndim != 2 or scores.dtype.kind not in "fiu":
            raise InputError(
                f"score matrix of shape {scores.shape} and type {scores.dtype}", expected="images × captions numbers"
            )
        self.scores = scores
        self.shape = (scores.shape[0], scores.shape[1])
        self.row_slack = np.zeros(self.shape[0], np.float32)
        self.column_slack = np.zeros(self.shape[1], np.float32)
        self.precision = np.float32 if np.can_cast(scores.dtype, np.float32) else np.float64
        if self.precision is np.float32 or 0 in self.shape:
            return
        # The slack is the rounding error of the largest score, found in a pass of its own.
        largest = 0.0
        for start in range(0, self.shape[0], 512):
            rows = slice(start, min(start + 512, self.shape[0]))
            self.tile(rows, slice(0, self.shape[1]))  # checks that all scores are finite
            first = first_inexact(scores[rows])
            if first is not None:  # float64 would round it: it could tie with another, or change places with it
                row, column = rows.start + first // self.shape[1], first % self.shape[1]
                raise inexact_score(scores[row, column], row, f"in column {column}")
            largest = max(largest, float(np.abs(np.asarray(scores[rows], np.float64)).max()))
        if largest > np.finfo(np.float32).max:
            raise InputError(f"a score of size {largest:g}", expected="scores below 3e38", fix="scale them down")
        self.row_slack[:] = self.column_slack[:] = np.float32(largest * 2 * _UNIT)

    def tile(self, rows: slice, columns: slice) -> Array:
        """The block itself; a NaN or infinite score raises, naming its row and column."""
        block = self.scores[rows, columns]
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"score {block[row, column]} in column {columns.start + int(column)}",
                row=rows.start + int(row),
                expected="finite scores",
                fix="find out why the model gave NaN or infinity for this pair",
            )
        return np.ascontiguousarray(block, np.float32)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The stored scores."""
        return np.asarray(self.scores[rows, columns], self.precision)


class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


def buffered_product(left: Array, right: Array, buffer: threading.local) -> Array:
    """One matrix product, into a buffer that the thread's next tile takes over: fresh memory is slow."""
    shape = (len(left), len(right))
    if getattr(buffer, "shape", None) != shape:
        buffer.shape, buffer.tile = shape, np.empty(shape, np.float32)
    product: Array = np.matmul(left, right.T, out=buffer.tile)
    return product


def check_dimensions(rows: _Shaped, columns: _Shaped) -> None:
    """Raise unless image and caption vectors have the same number of dimensions."""
    if rows.shape[-1] != columns.shape[-1]:
        raise InputError(
            f"vectors of {rows.shape[-1]} and of {columns.shape[-1]} dimensions",
            expected="image and caption vectors from the same model",
            fix="check that the two files belong together",
        )


def rounding_bound(terms: int) -> float:
    """How far a float32 sum of ``terms`` products, in any order, can be from the exact one, per unit of |a|·|b|."""
    steps = (terms + 4) * _UNIT
    return steps / (1 - steps)


def _rows_at_once(width: int) -> int:
    return max(1, _BLOCK_NUMBERS // width)


def norms(vectors: Array | VectorBlocks) -> Array:
    """Euclidean lengths in float64, a block at a time."""
    source, out = as_blocks(vectors), np.empty(vectors.shape[0])
    size = _rows_at_once(vectors.shape[1])
    for start in range(0, len(out), size):
        block = np.asarray(source.block(start, start + size), np.float64)
        out[start : start + len(block)] = np.sqrt(np.einsum("nd,nd->n", block, block))
    return out


def unit_rows(vectors: Array, threads: int | None = None) -> Array:
    """Vectors scaled to length 1 along the last axis (in float64, rounded once, so multiples of a vector agree)."""
    scale_to_unit: Callable[[Array, Array], int]
    try:
        from crosslens.rank.kernels import scale_to_unit
    except ImportError:  # on many GPU machines there is no numba
        scale_to_unit = _scale_to_unit
    flat = vectors.reshape(-1, vectors.shape[-1])
    out = np.empty(vectors.shape, np.float32)
    flat_out, size = out.reshape(flat.shape), _rows_at_once(flat.shape[1])

    def scale(start: int) -> int:
        block = np.ascontiguousarray(flat[start : start + size])
        if block.dtype == np.float64:  # squares of very large or small numbers would leave its range
            largest = np.abs(block).max(axis=1, keepdims=True)
            block = block / np.where(largest > 0, largest, 1)
        elif block.dtype != np.float32:
            block = block.astype(np.float32)
        bad = scale_to_unit(block, flat_out[start : start + size])
        return -1 if bad < 0 else start + bad

    starts, threads = range(0, len(flat), size), threads or available_cores()
    if len(starts) == 1 or threads == 1:
        rows = list(map(scale, starts))
    else:
        with ThreadPoolExecutor(threads) as pool:
            rows = list(pool.map(scale, starts))
    bad = next((row for row in rows if row >= 0), -1)
    if bad >= 0:
        raise InputError(
            "a vector of zeros has no direction",
            row=bad * len(vectors) // len(flat),
            expected="non-zero vectors for cosine scores",
            fix=f"encode that item again, or use {argument('score', 'dot')}",
            code="zero-vector",
        )
    return out


def _scale_to_unit(vectors: Array, out: Array) -> int:
    """As the compiled loop does; sums of another order round alike to float32 but for one number in many millions."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    if not lengths.all():
        return int(np.argmin(lengths != 0))
    out[:] = wide / lengths[:, None]
    return -1


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
