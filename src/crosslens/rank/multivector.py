"""Scores between sets of vectors: several per image, several per caption, one score per pair of sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.rank.scorers import rounding_bound

Array = np.ndarray[Any, Any]
Pooling = Callable[[Array], Array]
"""Turns products of shape (rows, row vectors, columns, column vectors) into scores of shape (rows, columns)."""


class PooledProduct:
    """Products of all pairs of vectors of two items, pooled into one score.

    ``pooling`` must not stretch differences: if every product changes by at most e, so does the score. ``stretch`` is
    the factor if it does, ``precision`` the type the products are computed in.
    """

    precision = np.float32

    def __init__(
        self,
        rows: Array,
        columns: Array,
        pooling: Pooling,
        *,
        stretch: float = 1.0,
        precision: type[np.floating[Any]] = np.float32,
    ) -> None:
        if rows.shape[2] != columns.shape[2]:
            raise InputError(
                f"vectors of {rows.shape[2]} and of {columns.shape[2]} dimensions",
                expected="image and caption vectors from the same model",
                fix="check that the two files belong together",
            )
        self.rows, self.columns, self.pooling, self.products_in = rows, columns, pooling, precision
        self.shape = (len(rows), len(columns))
        self.work = rows.shape[1] * columns.shape[1] * rows.shape[2]
        longest = _longest(rows) * _longest(columns)
        bound = rounding_bound(rows.shape[2]) * longest + 4e-6 * max(1.0, longest)  # products, then pooling
        slack = np.float32(stretch * bound if precision is np.float32 else 1e-6 * max(1.0, longest))
        self.row_slack = np.full(self.shape[0], slack, np.float32)
        self.column_slack = np.full(self.shape[1], slack, np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product of all vectors of the block, then pooled."""
        left = self.rows[rows].astype(self.products_in, copy=False)
        right = self.columns[columns].astype(self.products_in, copy=False)
        width = left.shape[2]
        products = left.reshape(-1, width) @ right.reshape(-1, width).T
        products = products.reshape(len(left), left.shape[1], len(right), right.shape[1])
        return np.ascontiguousarray(self.pooling(products), np.float32)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The same in float64, rounded once."""
        out = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), 1024):
            part = slice(start, start + 1024)
            left = self.rows[rows[part]].astype(np.float64)
            right = self.columns[columns[part]].astype(np.float64)
            products = np.einsum("pkd,pld->pkl", left, right, optimize=False)
            out[part] = self.pooling(products[:, :, None, :])[:, 0]
        return out


def best_pair(products: Array) -> Array:
    """Maximum over all pairs of vectors."""
    best: Array = products.max(axis=(1, 3))
    return best


def smooth_chamfer(alpha: float) -> Pooling:
    """Every vector's soft best match on the other side (log-sum-exp with ``alpha``), averaged over both sides."""

    def pool(products: Array) -> Array:
        scaled = products * products.dtype.type(alpha)
        forward = _log_sum_exp(scaled, 3).mean(axis=1)
        backward = _log_sum_exp(scaled, 1).mean(axis=2)
        pooled: Array = (forward + backward) / products.dtype.type(2 * alpha)
        return pooled

    return pool


def match_probability(scale: float, shift: float) -> Pooling:
    """Mean over pairs of samples of sigmoid(shift - scale · distance); expects minus half the squared distances."""

    def pool(products: Array) -> Array:
        distance = np.sqrt(np.maximum(-2 * products, 0))
        probability: Array = (1 / (1 + np.exp(np.clip(scale * distance - shift, -700, 700)))).mean(axis=(1, 3))
        return probability

    return pool


def _log_sum_exp(values: Array, axis: int) -> Array:
    largest = values.max(axis=axis, keepdims=True)
    total: Array = np.log(np.exp(values - largest).sum(axis=axis)) + largest.squeeze(axis)
    return total


def _longest(vectors: Array) -> float:
    return max(
        float(np.sqrt(np.einsum("nkd,nkd->nk", block, block).max(initial=0.0)))
        for block in (
            np.asarray(vectors[start : start + 4096], np.float64) for start in range(0, max(1, len(vectors)), 4096)
        )
    )
