"""Images far from each other: farthest-point sampling in a plane, as in the paper, or in the full space."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass

import numpy as np

from crosslens.analyze import farthest_points, unit_vectors
from crosslens.build.settings import FULL, UMAP, SamplingSettings
from crosslens.core import MissingExtraError, UsageError, argument
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import Array

NEIGHBOURS = 15
"""UMAP's default."""
FEWEST = 8
"""UMAP lays out no fewer points: with less there is no neighbourhood to keep."""


def has_umap() -> bool:
    """Whether umap-learn is installed, without importing it."""
    return importlib.util.find_spec("umap") is not None


def planar_map(vectors: Array, seed: int) -> Array:
    """n×2 positions, by the cosine; the same for the same vectors and seed. Needs at least ``FEWEST`` vectors."""
    if not has_umap():
        raise MissingExtraError("a UMAP map", "umap-learn", "polysemy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread, and others of its dependencies
        from umap import UMAP

        reducer = UMAP(
            n_components=2,
            n_neighbors=min(NEIGHBOURS, len(vectors) - 1),
            metric="cosine",
            init="spectral" if len(vectors) > 4 * NEIGHBOURS else "random",  # the spectrum of few points is degenerate
            random_state=seed % 2**32,
            n_jobs=1,
        )
        return np.asarray(reducer.fit_transform(np.asarray(vectors, np.float32)), np.float64)


PAPER_COUNT = 5_000
_TILE = 4_000_000


@dataclass(frozen=True)
class SampleSpread:
    """How far apart sampled images are; distances are 1 − cosine in the full space.

    ``nearest_mean``, ``nearest_min``  from a sampled image to the nearest other sampled one
    ``covered_mean``, ``covered_max``  from any image to the nearest sampled one: small where the sample covers all
    """

    space: str
    nearest_mean: float
    nearest_min: float
    covered_mean: float
    covered_max: float


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of the sampled images in the order of their choice, and the spread of each way of sampling."""

    rows: Array
    spreads: tuple[SampleSpread, ...]
    notes: tuple[str, ...] = ()


def sample_images(vectors: Array, settings: SamplingSettings, progress: Progress | None = None) -> Sample:
    """Sample images of these vectors (n×d)."""
    vectors = unit_vectors(vectors)
    if settings.count is not None and settings.count > len(vectors):
        raise UsageError(
            f"count is {settings.count:,}, and there are {len(vectors):,} images",
            fix=f"pass at most {argument('count', len(vectors))}",
            option="count",
        )
    count, spaces = settings.count or min(PAPER_COUNT, len(vectors)), [settings.sampling]
    notes: tuple[str, ...] = ()
    if settings.compare_sampling and settings.sampling == FULL and not has_umap():
        notes = ("umap-learn is not installed: the spread of the paper's sampling is not shown",)
    elif settings.compare_sampling:
        spaces.append(FULL if settings.sampling == UMAP else UMAP)
    rows: dict[str, Array] = {}
    for space in spaces:
        if count == len(vectors):
            rows[space] = np.arange(count)  # nothing to choose, and no map to compute
            continue
        points, metric = (vectors, "cosine") if space == FULL else (planar_map(vectors, settings.seed), "euclidean")
        picks = farthest_points(points, count, seed=settings.seed, metric=metric, progress=progress)
        rows[space] = np.asarray(picks)
    spreads = tuple(measure_spread(space, vectors, picks) for space, picks in rows.items())
    return Sample(rows[settings.sampling], spreads, notes)


def measure_spread(space: str, vectors: Array, rows: Array) -> SampleSpread:
    """The spread of a sample of these vectors, which have length 1."""
    sample = vectors[rows]
    covered = _nearest_distances(vectors, sample)
    nearest = _nearest_distances(sample, sample, skip_own=True) if len(rows) > 1 else np.zeros(1)
    values = (round(float(value), 6) for value in (nearest.mean(), nearest.min(), covered.mean(), covered.max()))
    return SampleSpread(space, *values)


def _nearest_distances(queries: Array, items: Array, *, skip_own: bool = False) -> Array:
    """1 − the largest cosine of each query with an item; ``skip_own``: but not with itself."""
    nearest = np.empty(len(queries))
    rows = max(1, _TILE // len(items))
    for start in range(0, len(queries), rows):
        cosines = queries[start : start + rows] @ items.T
        if skip_own:
            diagonal = np.arange(len(cosines))
            cosines[diagonal, start + diagonal] = -np.inf
        nearest[start : start + rows] = 1 - cosines.max(axis=1)
    return np.maximum(nearest, 0.0)


_POOL_TILE = 8_000_000
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
    progress = shown_progress(progress)
    queries = unit_vectors(images)
    nearest_members: list[tuple[Array, Array]] = [(np.empty(0, np.int64), np.empty(0))] * len(queries)
    sizes, nearest = np.zeros(len(queries), np.int64), np.full(len(queries), -np.inf)
    rows = max(1, _POOL_TILE // len(queries))
    with stage(progress, "comparing with the pool", len(pool)):
        for start in range(0, len(pool), rows):
            tile = unit_vectors(np.asarray(pool[start : start + rows]))
            scores = queries @ tile.T
            np.maximum(nearest, scores.max(axis=1), out=nearest)
            near = (scores >= band[0] - _ROUNDING) & (scores <= band[1] + _ROUNDING)
            for image in np.flatnonzero(near.any(axis=1)):
                at = np.flatnonzero(near[image])
                exact = (queries[image] * tile[at]).sum(axis=1)  # in one order, on any number of threads
                inside = (exact >= band[0] - _EXACT) & (exact <= band[1] + _EXACT)
                sizes[image] += int(inside.sum())
                candidates = np.concatenate([nearest_members[image][0], start + at[inside]])
                values = np.concatenate([nearest_members[image][1], exact[inside]])
                order = np.lexsort((candidates, -values))[:most]
                nearest_members[image] = candidates[order], values[order]
            progress.advance(len(tile))
    members, cosines = zip(*nearest_members, strict=True)
    return Clusters(members, cosines, sizes, nearest)


def check_clusters(clusters: Clusters, band: tuple[float, float], sizes: tuple[int, int]) -> None:
    """Raise where no image has a member, or none enough."""
    low, high = band
    if not clusters.sizes.any():
        least, middle, largest = np.quantile(clusters.nearest, (0, 0.5, 1))
        raise UsageError(
            f"the band is empty: no pool image has a cosine of {low:g} to {high:g} with any image "
            f"(the largest are {least:.2f} to {largest:.2f}, {middle:.2f} in the middle)",
            fix=f"pass another {argument('band')}, or a larger pool",
            option="band",
        )
    if not (clusters.sizes >= sizes[0]).any():
        raise UsageError(
            f"no image has {sizes[0]:,} pool images in the band: the largest cluster has {int(clusters.sizes.max()):,}",
            fix=f"pass smaller {argument('cluster_sizes')}, a wider {argument('band')} or a larger pool",
            option="cluster_sizes",
        )
