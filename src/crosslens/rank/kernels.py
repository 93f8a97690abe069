"""Small compiled loops. All release the GIL, so that one Python thread per core can run them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]
Number = Any  # a machine number of the width the loop needs

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
# Sums of float64 products may be reordered for speed: the result is rounded to float32 afterwards.
_reassociated = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_reassociated
def pair_products(left: Array, right: Array, rows: Array, columns: Array, out: Array) -> None:
    """``out[p]`` = inner product of ``left[rows[p]]`` and ``right[columns[p]]``, summed in float64, as float32.

    Four at a time: the vectors are anywhere in memory, and waiting for several at once takes hardly longer than for
    one. Where fewer are left, the last pair is repeated, so that all sums are computed by the same loop and a pair's
    does not depend on its position.
    """
    last = rows.size - 1
    for p in range(0, rows.size, 4):
        q, r, s = min(p + 1, last), min(p + 2, last), min(p + 3, last)
        a, b, c, d = left[rows[p]], left[rows[q]], left[rows[r]], left[rows[s]]
        e, f, g, h = right[columns[p]], right[columns[q]], right[columns[r]], right[columns[s]]
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(a.size):
            first += np.float64(a[j]) * np.float64(e[j])
            second += np.float64(b[j]) * np.float64(f[j])
            third += np.float64(c[j]) * np.float64(g[j])
            fourth += np.float64(d[j]) * np.float64(h[j])
        out[p], out[q], out[r], out[s] = (np.float32(first), np.float32(second), np.float32(third), np.float32(fourth))


@_reassociated
def scale_to_unit(vectors: Array, out: Array) -> int:
    """Scale every vector to length 1, rounded once from float64; returns the first row of zeros, or -1."""
    for i in range(vectors.shape[0]):
        vector, unit = vectors[i], out[i]
        total = 0.0
        for j in range(vector.size):
            total += np.float64(vector[j]) * np.float64(vector[j])
        if total == 0.0:
            return i
        length = np.sqrt(total)
        for j in range(vector.size):
            unit[j] = np.float32(np.float64(vector[j]) / length)
    return -1


@compiled
def squared_lengths(vectors: Array, scale: Array, out: Array) -> None:
    """The sum of squares of every row, each number times its row's ``scale``, in ascending order of the dimensions."""
    for i in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            value = np.float64(vectors[i, j]) * scale[i]
            total += value * value
        out[i] = total


@compiled
def scale_rows(vectors: Array, factors: Array, out: Array) -> None:
    """Rows times their factors, rounded once to float32."""
    for i in range(vectors.shape[0]):
        row, rounded, factor = vectors[i], out[i], factors[i]
        for j in range(row.size):
            rounded[j] = np.float32(np.float64(row[j]) * factor)


@compiled
def cosine_of(product: float, left_square: float, right_square: float) -> float:
    """The cosine of two vectors by their inner product and squared lengths; 0 where a vector is zeros."""
    square = left_square * right_square
    # The root of a squared number is that number: copies of a vector have the cosine 1, to the bit.
    return max(-1.0, min(1.0, product / np.sqrt(square))) if square > 0 else 0.0


@compiled
def pair_cosines(left: Array, left_squares: Array, right: Array, right_squares: Array, out: Array) -> None:
    """``out[p]`` = cosine of ``left[p]`` and ``right[p]``, summed in float64 in ascending order of the dimensions."""
    for p in range(out.size):
        total = 0.0
        for j in range(left.shape[1]):
            total += left[p, j] * right[p, j]
        out[p] = cosine_of(total, left_squares[p], right_squares[p])


@compiled
def count_exactly(
    pairs: Array, items: Array, scores: Array, targets: Array, relevant: Array, above: Array, tied: Array, before: Array
) -> None:
    """Count undecided pairs by exact scores: above, tied, or tied with a lower index."""
    for d in range(pairs.size):
        p = pairs[d]
        if scores[d] > targets[p]:
            above[p] += 1
        elif scores[d] == targets[p] and items[d] != relevant[p]:
            tied[p] += 1
            before[p] += np.int64(items[d] < relevant[p])


@compiled
def put_in_order(rows: Array, items: Array, scores: Array, top_items: Array, top_scores: Array) -> None:
    """Sort candidates, those of a row together, into its top list: best first, equal scores by index."""
    depth, start = top_items.shape[1], 0
    for end in range(1, rows.size + 1):
        if end < rows.size and rows[end] == rows[start]:
            continue
        for c in range(start, end):
            rank = _better(items[start:end], scores[start:end], items[c], scores[c])
            if rank < depth:
                top_items[rows[c], rank], top_scores[rows[c], rank] = items[c], scores[c]
        start = end


@compiled
def _better(items: Array, scores: Array, item: int, score: float) -> Number:
    """How many candidates come before this one."""
    count: Number = 0
    for j in range(items.size):
        count += np.int64((scores[j] > score) | ((scores[j] == score) & (items[j] < item)))
    return count
