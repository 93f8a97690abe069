"""From vectors to two dimensions: by principal components, or by UMAP in a process of its own."""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, Embeddings, MissingExtraError, Progress, SilentProgress, UsageError, stage
from crosslens.rank import unit_rows

Array = np.ndarray[Any, Any]

PCA, UMAP = "pca", "umap"
METHODS = (PCA, UMAP)
MOST_FOR_UMAP = 100_000
"""With more points than this, principal components are the default: UMAP would take hours."""

_BLOCK = 65_536
_NEIGHBOURS = 15
_POLL = 0.2


def default_method(points: int) -> str:
    """The method of a map of so many points where none is named."""
    return UMAP if points <= MOST_FOR_UMAP and has_umap() else PCA


def has_umap() -> bool:
    """Whether umap-learn is installed, without the seconds that importing it takes."""
    return importlib.util.find_spec("umap") is not None


def project(
    sides: Sequence[Embeddings],
    method: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Array:
    """One point (n×2, float32, within −1…1) per item, the items of the first side before those of the second.

    Directions are compared, not lengths: every vector is brought to length 1. Of an item with several vectors the mean
    counts. The aspect ratio is kept, and so is the order of the items.
    """
    if method not in METHODS:
        raise UsageError(f"unknown projection {method!r}", fix=f"use one of: {', '.join(METHODS)}", option="method")
    progress = progress or SilentProgress()
    if len({side.dimension for side in sides}) > 1:
        widths = " and ".join(str(side.dimension) for side in sides)
        raise CrosslensError(f"images and captions have vectors of different lengths, {widths}", fix="use one encoder")
    if method == UMAP and sum(len(side.ids) for side in sides) > _NEIGHBOURS:
        points = _umap(sides, seed, progress, is_stopped)
    else:
        points = principal_components(sides, progress)
    return fitted(points)


def blocks(sides: Sequence[Embeddings]) -> Iterator[Array]:
    """The vectors of all items, a block at a time, at length 1."""
    for side in sides:
        for start in range(0, len(side.ids), _BLOCK):
            part = np.asarray(side.block(start, start + _BLOCK), np.float32)
            yield unit_rows(part if part.ndim == 2 else unit_rows(part).mean(axis=1))


def principal_components(sides: Sequence[Embeddings], progress: Progress) -> Array:
    """The two directions of largest variance; the sign of each makes its largest weight positive.

    Two passes over the vectors: one for mean and covariance, one for the points. Nothing as large as the vectors is
    held in memory.
    """
    count = sum(len(side.ids) for side in sides)
    dimension = sides[0].dimension
    total, products = np.zeros(dimension), np.zeros((dimension, dimension))
    with stage(progress, "principal components", 2 * count):
        for block in blocks(sides):
            exact = block.astype(np.float64)
            total += exact.sum(axis=0)
            products += exact.T @ exact
            progress.advance(len(block))
        mean = total / count
        _, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
        axes = directions[:, ::-1][:, :2]
        if axes.shape[1] < 2:
            axes = np.column_stack([axes, np.zeros(dimension)])
        axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1, 1)
        points = np.empty((count, 2))
        start = 0
        for block in blocks(sides):
            points[start : start + len(block)] = (block - mean) @ axes
            start += len(block)
            progress.advance(len(block))
    return points


def fitted(points: Array) -> Array:
    """The same points within −1…1, centred, the aspect ratio kept."""
    low, high = points.min(axis=0), points.max(axis=0)
    reach = float((high - low).max()) / 2 or 1.0
    return np.ascontiguousarray((points - (low + high) / 2) / reach, np.float32)


def _umap(sides: Sequence[Embeddings], seed: int, progress: Progress, is_stopped: Callable[[], bool]) -> Array:
    """UMAP in another process: its compiled code would hold up every page of the server."""
    if not has_umap():
        raise MissingExtraError("a UMAP map", "umap-learn", "polysemy")
    with tempfile.TemporaryDirectory(prefix="crosslens-map-") as folder, stage(progress, "UMAP", 0):
        vectors, points = Path(folder) / "vectors.npy", Path(folder) / "points.npy"
        np.save(vectors, np.concatenate(list(blocks(sides))))
        worker = multiprocessing.get_context("spawn").Process(
            target=lay_out, args=(str(vectors), str(points), seed), daemon=True
        )
        worker.start()
        try:
            while worker.is_alive() and not is_stopped():
                worker.join(_POLL)
        finally:
            if worker.is_alive():
                worker.kill()
            worker.join()
        if worker.exitcode != 0 or not points.exists():
            raise CrosslensError("UMAP was stopped before it had finished", fix="start it again, or use pca")
        return np.asarray(np.load(points, allow_pickle=False))


def lay_out(vectors: str, points: str, seed: int) -> None:
    """UMAP of the vectors in a file, written to another: the work of the other process."""
    import warnings

    import umap

    rows = np.load(vectors, allow_pickle=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a seed means one thread
        mapper = umap.UMAP(
            n_neighbors=min(_NEIGHBOURS, len(rows) - 1), min_dist=0.1, metric="cosine", random_state=seed
        )
        np.save(points, np.asarray(mapper.fit_transform(rows), np.float32))
