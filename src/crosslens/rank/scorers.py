"""What a score is: fast in tiles, exact for single pairs.

A tile comes from a matrix product, whose last bits depend on the tile's shape, the number of threads and the device.
So that ranks depend on none of these, every scorer also gives the *exact* score of single pairs, and bounds how far a
tile may be off (``slack``). The ranking pass decides almost everything from tiles and computes exact scores only
where two items are closer than the slack.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from crosslens.core import Embeddings, InputError, argument, available_cores, first_inexact, inexact_score

Array = np.ndarray[Any, Any]

_BLOCK = 4_096
_UNIT = 2.0**-24
"""Half the distance from 1 to the next float32: the relative error of one rounding."""


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
    """The float32 nearest to the inner product of two vectors."""

    precision = np.float32

    def __init__(self, rows: Array, columns: Array, *, unit: bool = False) -> None:
        check_dimensions(rows, columns)
        self.rows, self.columns = rows, columns
        self.shape = (len(rows), len(columns))
        self.work = rows.shape[1]
        self._buffer = threading.local()
        # Unit vectors were rounded to float32: their length is 1 but for that.
        row_norm = np.full(len(rows), 1 + 1e-6) if unit else norms(rows)
        column_norm = np.full(len(columns), 1 + 1e-6) if unit else norms(columns)
        largest = row_norm.max(initial=0.0) * column_norm.max(initial=0.0)
        if not largest < np.finfo(np.float32).max / 2:
            fix = f"scale them down, or use {argument('score', 'cosine')}"
            raise InputError("the scores of vectors this long overflow", fix=fix)
        bound = rounding_bound(self.work)
        self.row_slack = (bound * row_norm * column_norm.max(initial=0.0)).astype(np.float32)
        self.column_slack = (bound * column_norm * row_norm.max(initial=0.0)).astype(np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product, into a buffer that the thread's next tile takes over: fresh memory is slow."""
        left, right = self.rows[rows], self.columns[columns]
        shape = (len(left), len(right))
        if getattr(self._buffer, "shape", None) != shape:
            self._buffer.shape, self._buffer.tile = shape, np.empty(shape, np.float32)
        product: Array = np.matmul(left, right.T, out=self._buffer.tile)
        return product

    def exact(self, rows: Array, columns: Array) -> Array:
        """Products summed in float64, then rounded once."""
        from crosslens.rank.kernels import pair_products

        out = np.empty(len(rows), np.float32)
        pair_products(self.rows, self.columns, rows, columns, out)
        return out


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
        if self.precision is np.float64 and 0 not in self.shape:
            self._allow_for_rounding()

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

    def _allow_for_rounding(self) -> None:
        """Set the slack to the rounding error of the largest score, found in a pass of its own."""
        largest = 0.0
        for start in range(0, self.shape[0], 512):
            rows = slice(start, min(start + 512, self.shape[0]))
            self.tile(rows, slice(0, self.shape[1]))  # checks that all scores are finite
            self._refuse_inexact(rows)
            largest = max(largest, float(np.abs(np.asarray(self.scores[rows], np.float64)).max()))
        if largest > np.finfo(np.float32).max:
            raise InputError(f"a score of size {largest:g}", expected="scores below 3e38", fix="scale them down")
        slack = np.float32(largest * 2 * _UNIT)
        self.row_slack[:] = slack
        self.column_slack[:] = slack

    def _refuse_inexact(self, rows: slice) -> None:
        """Raise for a score that float64 would round: it could tie with another, or change places with it."""
        first = first_inexact(self.scores[rows])
        if first is not None:
            row, column = rows.start + first // self.shape[1], first % self.shape[1]
            raise inexact_score(self.scores[row, column], row, f"in column {column}")


def check_dimensions(rows: Array, columns: Array) -> None:
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


def norms(vectors: Array) -> Array:
    """Euclidean lengths in float64, a block at a time."""
    out = np.empty(len(vectors))
    for start in range(0, len(vectors), _BLOCK):
        block = np.asarray(vectors[start : start + _BLOCK], np.float64)
        out[start : start + len(block)] = np.sqrt(np.einsum("nd,nd->n", block, block))
    return out


def single_vectors(embeddings: Embeddings, *, unit: bool) -> Array:
    """One float32 vector per item, of length 1 if ``unit``; contiguous, copied only where it must be."""
    vectors = embeddings.vectors
    if vectors.ndim == 3 and vectors.shape[1] == 1:
        vectors = vectors[:, 0]
    if not unit:
        return np.ascontiguousarray(vectors, np.float32)
    return unit_rows(vectors)


def unit_rows(vectors: Array) -> Array:
    """Vectors scaled to length 1 along the last axis (in float64, rounded once, so multiples of a vector agree)."""
    from crosslens.rank.kernels import scale_to_unit

    flat = vectors.reshape(-1, vectors.shape[-1])
    out = np.empty(vectors.shape, np.float32)
    flat_out = out.reshape(flat.shape)

    def scale(start: int) -> int:
        block = np.ascontiguousarray(flat[start : start + _BLOCK])
        if block.dtype == np.float64:  # squares of very large or small numbers would leave its range
            size = np.abs(block).max(axis=1, keepdims=True)
            block = block / np.where(size > 0, size, 1)
        elif block.dtype != np.float32:
            block = block.astype(np.float32)
        bad = scale_to_unit(block, flat_out[start : start + _BLOCK])
        return -1 if bad < 0 else start + bad

    with ThreadPoolExecutor(available_cores()) as pool:
        for bad in pool.map(scale, range(0, len(flat), _BLOCK)):
            if bad >= 0:
                raise InputError(
                    "a vector of zeros has no direction",
                    row=bad * len(vectors) // len(flat),
                    expected="non-zero vectors for cosine scores",
                    fix=f"encode that item again, or use {argument('score', 'dot')}",
                    code="zero-vector",
                )
    return out
