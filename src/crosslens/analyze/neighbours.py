"""The items most similar to each query, exactly: no query is answered differently in another tile or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError

Array = np.ndarray[Any, Any]

NOTHING = -1
"""In ``without``: this query leaves nothing out."""
_TILE = 4_000_000  # numbers held at once
_ROUNDING = 1e-12  # how far a matrix product in float64 may be from the sum taken in order, with room to spare
_SPARE = 16


class Neighbours(NamedTuple):
    """For each query its nearest items, nearest first, equally near ones in the order of the items."""

    items: Array
    """n×k positions."""
    cosines: Array
    """n×k, float64."""


def nearest(
    queries: Embeddings | Array,
    items: Embeddings | Array,
    k: int,
    *,
    without: Sequence[int] | Array | None = None,
    tile: int | None = None,
) -> Neighbours:
    """The ``k`` items of highest cosine for each query; ``without`` names an item per query that does not count.

    An item with several vectors is as near as the nearest of them. A vector of zeros has the cosine 0 with everything.
    """
    left, right = unit(queries, "queries"), unit(items, "items")
    if left.ndim != 2:
        raise UsageError("queries of several vectors each", fix="pass one vector per query, such as their mean")
    if left.shape[1] != right.shape[-1]:
        raise InputError(
            f"queries of {left.shape[1]} dimensions and items of {right.shape[-1]}",
            expected="vectors of one space",
            fix="encode both with the same model",
        )
    hidden = np.full(len(left), NOTHING) if without is None else np.asarray(without, np.int64)
    if len(hidden) != len(left) or (len(hidden) and not NOTHING <= hidden.min() <= hidden.max() < len(right)):
        raise UsageError("without names items that are not there", fix="give one position, or -1, per query")
    most = len(right) - int((hidden >= 0).any())
    if not 1 <= k <= most:
        raise UsageError(f"{k} neighbours among {most} other items", fix=f"choose k from 1 to {most}")
    rows = tile or max(1, _TILE // max(len(right), (k + _SPARE) * right[0].size))
    found = [
        _of_tile(left[start : start + rows], right, k, hidden[start : start + rows])
        for start in range(0, len(left), rows)
    ]
    if not found:
        return Neighbours(np.empty((0, k), np.int64), np.empty((0, k)))
    return Neighbours(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def unit(vectors: Embeddings | Array, what: str = "vectors") -> Array:
    """Vectors of length 1 in float64; vectors of zeros stay."""
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError(f"{what} are distributions", fix="pass their means as plain vectors")
        vectors = vectors.vectors
    array = np.asarray(vectors, np.float64)
    length = np.sqrt((array * array).sum(axis=-1, keepdims=True))
    scaled: Array = np.divide(array, length, out=np.zeros_like(array), where=length > 0)
    return scaled


def _of_tile(queries: Array, items: Array, k: int, hidden: Array) -> tuple[Array, Array]:
    scores = _products(queries, items)
    own = np.flatnonzero(hidden >= 0)
    scores[own, hidden[own]] = -np.inf
    # The product of matrices sums in an order of its own: it only proposes, and the sums taken in order decide.
    proposed = min(k + _SPARE, scores.shape[1])
    candidates = np.argpartition(-scores, proposed - 1, axis=1)[:, :proposed]
    cosines = _exact(queries[:, None, :], items[candidates])
    cosines[np.take_along_axis(scores, candidates, 1) == -np.inf] = -np.inf
    order = np.lexsort((candidates, -cosines))[:, :k]
    kept, best = np.take_along_axis(candidates, order, 1), np.take_along_axis(cosines, order, 1)
    if proposed < scores.shape[1]:
        lowest = np.take_along_axis(scores, candidates, 1).min(axis=1)
        for row in np.flatnonzero(best[:, -1] - lowest <= 2 * _ROUNDING):  # more ties than were proposed
            every = _exact(queries[row], items)
            if hidden[row] >= 0:
                every[hidden[row]] = -np.inf
            kept[row] = np.lexsort((np.arange(len(every)), -every))[:k]
            best[row] = every[kept[row]]
    return kept, best


def _products(queries: Array, items: Array) -> Array:
    flat = queries @ items.reshape(-1, items.shape[-1]).T
    scores: Array = flat if items.ndim == 2 else flat.reshape(len(queries), *items.shape[:2]).max(axis=2)
    return scores


def _exact(queries: Array, items: Array) -> Array:
    """Cosines summed in one fixed order, whatever stands beside them."""
    if items.ndim == queries.ndim + (2 if queries.ndim == 1 else 1):  # several vectors per item
        queries = queries[..., None, :]
        cosines: Array = (queries * items).sum(axis=-1).max(axis=-1)
        return cosines
    summed: Array = (queries * items).sum(axis=-1)
    return summed
