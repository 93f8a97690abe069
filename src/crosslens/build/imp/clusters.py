"""The cluster of an image: the pool's images whose cosine with it lies in a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze import unit_vectors
from crosslens.core import Progress, SilentProgress, UsageError, argument, stage

Array = np.ndarray[Any, Any]

_TILE = 8_000_000
_ROUNDING = 1e-9  # of a product of matrices, whose order of summing is not fixed
_EXACT = 1e-12  # of a sum in a fixed order: a cosine written 0.8 is in a band up to 0.8


@dataclass(frozen=True, eq=False)
class Clusters:
    """For each image its members in the pool (rows), the most similar first, with their cosines.

    ``sizes``    how many pool images lie in the band, also where only the most similar are kept
    ``nearest``  the largest cosine of the image with any pool image, in the band or above it
    """

    members: tuple[Array, ...]
    cosines: tuple[Array, ...]
    sizes: Array
    nearest: Array


def find_clusters(
    images: Array, pool: Array, band: tuple[float, float], most: int, progress: Progress | None = None
) -> Clusters:
    """All pool images with low ≤ cosine ≤ high, of which the ``most`` similar are kept; equal ones in the pool's order.

    The pool is read tile by tile, so that it may be a file much larger than memory.
    """
    if images.shape[1] != pool.shape[1]:
        raise UsageError(
            f"the images have {images.shape[1]} dimensions, the pool's images {pool.shape[1]}",
            fix="encode both with the same encoder",
        )
    progress = progress or SilentProgress()
    queries = unit_vectors(images)
    kept: list[tuple[Array, Array]] = [(np.empty(0, np.int64), np.empty(0))] * len(queries)
    sizes, nearest = np.zeros(len(queries), np.int64), np.full(len(queries), -np.inf)
    rows = max(1, _TILE // len(queries))
    with stage(progress, "comparing with the pool", len(pool)):
        for start in range(0, len(pool), rows):
            tile = unit_vectors(np.asarray(pool[start : start + rows]))
            _add_tile(queries, tile, start, band, most, kept, sizes, nearest)
            progress.advance(len(tile))
    members, cosines = zip(*kept, strict=True)
    return Clusters(members, cosines, sizes, nearest)


def _add_tile(
    queries: Array, tile: Array, start: int, band: tuple[float, float], most: int,
    kept: list[tuple[Array, Array]], sizes: Array, nearest: Array,
) -> None:  # fmt: skip
    scores = queries @ tile.T
    np.maximum(nearest, scores.max(axis=1), out=nearest)
    near = (scores >= band[0] - _ROUNDING) & (scores <= band[1] + _ROUNDING)
    for image in np.flatnonzero(near.any(axis=1)):
        rows = np.flatnonzero(near[image])
        cosines = (queries[image] * tile[rows]).sum(axis=1)  # in one order, on any number of threads
        inside = (cosines >= band[0] - _EXACT) & (cosines <= band[1] + _EXACT)
        sizes[image] += int(inside.sum())
        members = np.concatenate([kept[image][0], start + rows[inside]])
        values = np.concatenate([kept[image][1], cosines[inside]])
        order = np.lexsort((members, -values))[:most]
        kept[image] = members[order], values[order]


def check_clusters(clusters: Clusters, band: tuple[float, float], sizes: tuple[int, int]) -> Array:
    """Which images have a cluster that is large enough; raises where no image has a member, or none enough."""
    low, high = band
    if not clusters.sizes.any():
        raise UsageError(
            f"the band is empty: no pool image has a cosine of {low:g} to {high:g} with any image "
            f"(the largest are {_quantiles(clusters.nearest)})",
            fix=f"pass another {argument('band')}, or a larger pool", option="band",
        )  # fmt: skip
    enough = clusters.sizes >= sizes[0]
    if not enough.any():
        raise UsageError(
            f"no image has {sizes[0]:,} pool images in the band: the largest cluster has {int(clusters.sizes.max()):,}",
            fix=f"pass smaller {argument('cluster_sizes')}, a wider {argument('band')} or a larger pool",
            option="cluster_sizes",
        )
    return np.asarray(enough)


def _quantiles(cosines: Array) -> str:
    low, middle, high = np.quantile(cosines, (0, 0.5, 1))
    return f"{low:.2f} to {high:.2f}, {middle:.2f} in the middle"
