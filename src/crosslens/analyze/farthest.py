"""Farthest-point sampling: rows that cover a set of vectors evenly, each as far as possible from the others.

The first pick is drawn with the seed. Each further one is the row whose nearest pick is farthest away; of rows equally
far the lowest. This is the greedy choice itself, not an approximation: a plain loop in float64 gives the same result.
"""

from __future__ import annotations

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, argument
from crosslens.engine import Progress, one_blas_thread, shown_progress, stage
from crosslens.rank import ScaledRows, inverse_lengths, rounding_bound
from crosslens.storage import Array, random_stream
from crosslens.values import Embeddings, check_vectors

METRICS = ("cosine", "euclidean")
_BATCH = 256
"""Picks between two passes over all rows, at most."""
_FEW_DIMENSIONS = 16
"""Up to here exact distances cost no more than products."""


def farthest_points(
    vectors: Embeddings | Array,
    count: int,
    *,
    seed: int = 0,
    metric: str = "cosine",
    progress: Progress | None = None,
) -> Array:
    """Positions of ``count`` rows in the order of choice, each the farthest from all rows before it.

    The first is drawn with the ``seed``. A vector of zeros has the cosine 0 with everything. Rows equally far away are
    taken in ascending order, so copies of rows that are chosen already come last. Neither memory mapping nor the number
    of threads changes the result.
    """
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError("vectors are distributions", fix="pass their means as plain vectors")
        array = vectors.vectors
    else:
        array = check_vectors(vectors, "vectors")
    if array.ndim != 2:
        raise InputError(f"vectors of shape {array.shape}", expected="one vector per item (n×d)")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if not 1 <= count <= len(array):
        most = len(array)
        problem = f"{argument('count', count)}, but there are {most:,} vectors"
        raise UsageError(problem, fix=f"choose {argument('count')} from 1 to {most:,}", option="count")
    first = int(random_stream(seed, "farthest points").integers(len(array)))
    search = _Search(ScaledRows(array, one_scale=metric == "euclidean"), metric == "cosine", first, count)
    with stage(shown_progress(progress), "farthest points", count) as bar:
        bar.advance()
        while search.number < count:
            bar.advance(search.step())
    return search.order


class _Search:
    """The state of a search: the picks so far, and an upper bound of every row's distance to the nearest of them.

    Distances to the nearest pick only fall, so an old one is a bound of the present one. The bounds of all rows are
    lowered a batch of picks at a time, by fast float32 products and a proven bound of their error; in between, only
    rows whose bound is the largest are looked at, by exact distances (:func:`choose`). So the products, which are
    inexact, save work and decide nothing.
    """

    def __init__(self, rows: ScaledRows, cosine: bool, first: int, count: int) -> None:
        n, d = rows.vectors.shape
        self.rows, self.cosine = rows, cosine
        self.order, self.picks, self.squares = np.empty(count, np.int64), np.empty((d, count)), np.empty(count)
        self.bounds, self.included, self.exact = np.full(n, np.inf), np.zeros(n, np.int32), np.ones(n, np.bool_)
        self.heap = np.arange(n)
        self.order[0], self.picks[:, 0], self.squares[0] = first, rows.exact(np.array([first]))[0], rows.squares[first]
        self.bounds[first] = -np.inf
        self.number, self.accounted = 1, 0

    def step(self) -> int:
        """Lower all bounds by the latest picks, choose the next ones; returns how many."""
        from crosslens.analyze.kernels import build_heap, choose

        rows, before = self.rows, self.number
        with one_blas_thread():
            rows.for_each_part(self._lower)
        self.accounted = before
        build_heap(self.heap, self.bounds)
        self.number = choose(
            rows.vectors, rows.scale, rows.squares, self.cosine, self.heap, self.bounds, self.included, self.exact,
            self.order, self.picks, self.squares, before, min(before + _BATCH, len(self.order)), rows.vectors.size,
        )  # fmt: skip
        return self.number - before

    def _lower(self, part: slice) -> None:
        from crosslens.analyze.kernels import lower_bounds, lower_exactly

        rows, new = self.rows, slice(self.accounted, self.number)
        if len(self.picks) <= _FEW_DIMENSIONS:
            lower_exactly(
                rows.vectors[part], rows.scale[part], rows.squares[part], self.picks, self.squares,
                self.accounted, self.number, self.cosine, self.bounds[part], self.included[part],
            )  # fmt: skip
            return
        picks, squares, row_squares = self.picks[:, new], self.squares[new], rows.squares[part]
        if self.cosine:
            products = rows.unit(part) @ (picks * inverse_lengths(squares)).astype(np.float32)
        else:
            products = rows.rounded(part, rows.scale[part]) @ picks.astype(np.float32)
        # How far a distance from these products may be off: both vectors are rounded to float32, then every product and
        # every sum; float64 rounds as well, far less.
        bound = rounding_bound(len(self.picks) + 4)
        slack: Array = np.full(len(row_squares), bound)
        if not self.cosine:
            lengths, farthest = np.sqrt(row_squares), np.sqrt(float(squares.max()))
            slack = 2 * bound * lengths * farthest + bound * 2**-26 * (lengths + farthest) ** 2 + 2.0**-100
        lower_bounds(
            products, row_squares, squares, slack, self.cosine, self.number,
            self.bounds[part], self.included[part], self.exact[part],
        )  # fmt: skip
