"""Images far from each other: farthest-point sampling in a plane, as in the paper, or in the full space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze import farthest_points, unit_vectors
from crosslens.build.imp.planar_map import has_umap, planar_map
from crosslens.build.imp.settings import FULL, UMAP, SamplingSettings
from crosslens.core import Progress, UsageError, argument

Array = np.ndarray[Any, Any]

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
    count = _count(len(vectors), settings)
    spaces, notes = _spaces(settings)
    rows = {space: _sample(vectors, space, count, settings.seed, progress) for space in spaces}
    spreads = tuple(measure_spread(space, vectors, chosen) for space, chosen in rows.items())
    return Sample(rows[settings.sampling], spreads, notes)


def measure_spread(space: str, vectors: Array, rows: Array) -> SampleSpread:
    """The spread of a sample of these vectors, which have length 1."""
    chosen = vectors[rows]
    covered = _nearest_distances(vectors, chosen)
    nearest = _nearest_distances(chosen, chosen, skip_own=True) if len(rows) > 1 else np.zeros(1)
    values = (round(float(value), 6) for value in (nearest.mean(), nearest.min(), covered.mean(), covered.max()))
    return SampleSpread(space, *values)


def _spaces(settings: SamplingSettings) -> tuple[list[str], tuple[str, ...]]:
    """The chosen space first; the other one, if it is compared."""
    if not settings.compare_sampling:
        return [settings.sampling], ()
    if settings.sampling == FULL and not has_umap():
        return [FULL], ("umap-learn is not installed: the spread of the paper's sampling is not shown",)
    return [settings.sampling, FULL if settings.sampling == UMAP else UMAP], ()


def _count(images: int, settings: SamplingSettings) -> int:
    if settings.count is not None and settings.count > images:
        raise UsageError(
            f"count is {settings.count:,}, and there are {images:,} images",
            fix=f"pass at most {argument('count', images)}", option="count",
        )  # fmt: skip
    return settings.count or min(PAPER_COUNT, images)


def _sample(vectors: Array, space: str, count: int, seed: int, progress: Progress | None) -> Array:
    if count == len(vectors):
        return np.arange(count)  # nothing to choose, and no map to compute
    if space == FULL:
        return np.asarray(farthest_points(vectors, count, seed=seed, metric="cosine", progress=progress))
    points = planar_map(vectors, seed)
    return np.asarray(farthest_points(points, count, seed=seed, metric="euclidean", progress=progress))


def _nearest_distances(queries: Array, items: Array, *, skip_own: bool = False) -> Array:
    """1 − the largest cosine of each query with an item; ``skip_own``: but not with itself."""
    nearest = np.empty(len(queries))
    rows = max(1, _TILE // len(items))
    for start in range(0, len(queries), rows):
        cosines = queries[start : start + rows] @ items.T
        if skip_own:
            own = np.arange(len(cosines))
            cosines[own, start + own] = -np.inf
        nearest[start : start + rows] = 1 - cosines.max(axis=1)
    return np.maximum(nearest, 0.0)
