"""From vectors to two dimensions: by principal components, or by UMAP in a process of its own."""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.core import CrosslensError, MissingExtraError, UsageError
from crosslens.engine import Progress, shown_progress, stage
from crosslens.language import STOP_WORDS
from crosslens.rank import unit_rows
from crosslens.storage import Array, random_stream
from crosslens.values import Embeddings

PCA, UMAP = "pca", "umap"
METHODS = (PCA, UMAP)
MOST_FOR_UMAP = 100_000
"""With more points than this, principal components are the default: UMAP would take hours."""

SEED = 0
_BLOCK = 65_536
_NEIGHBOURS = 15
_POLL = 0.2


def has_umap() -> bool:
    """Whether umap-learn is installed, without the seconds that importing it takes."""
    return importlib.util.find_spec("umap") is not None


def project(
    groups: Sequence[Embeddings],
    method: str,
    *,
    progress: Progress | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Array:
    """One point (n×2, float32, within −1…1) per item of each group, in their order.

    Directions are compared, not lengths: every vector is brought to length 1. Of an item with several vectors the mean
    counts. The aspect ratio is kept, and so is the order of the items.
    """
    if method not in METHODS:
        raise UsageError(f"unknown projection {method!r}", fix=f"use one of: {', '.join(METHODS)}", option="method")
    progress = shown_progress(progress)
    if len({group.dimension for group in groups}) > 1:
        widths = " and ".join(str(group.dimension) for group in groups)
        raise CrosslensError(f"images and captions have vectors of different lengths, {widths}", fix="use one encoder")
    if method == UMAP and sum(len(group.ids) for group in groups) > _NEIGHBOURS:
        points = _umap(groups, progress, is_stopped)
    else:
        points = principal_components(groups, progress)
    low, high = points.min(axis=0), points.max(axis=0)
    reach = float((high - low).max()) / 2 or 1.0
    return np.ascontiguousarray((points - (low + high) / 2) / reach, np.float32)


def blocks(groups: Sequence[Embeddings]) -> Iterator[Array]:
    """The vectors of all items, a block at a time, at length 1."""
    for group in groups:
        for start in range(0, len(group.ids), _BLOCK):
            part = np.asarray(group.block(start, start + _BLOCK), np.float32)
            yield unit_rows(part if part.ndim == 2 else unit_rows(part).mean(axis=1))


def principal_components(groups: Sequence[Embeddings], progress: Progress) -> Array:
    """The two directions of largest variance; the sign of each makes its largest weight positive.

    Two passes over the vectors: one for mean and covariance, one for the points. Nothing as large as the vectors is
    held in memory.
    """
    count = sum(len(group.ids) for group in groups)
    dimension = groups[0].dimension
    total, products = np.zeros(dimension), np.zeros((dimension, dimension))
    with stage(progress, "principal components", 2 * count):
        for block in blocks(groups):
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
        for block in blocks(groups):
            points[start : start + len(block)] = (block - mean) @ axes
            start += len(block)
            progress.advance(len(block))
    return points


def _umap(groups: Sequence[Embeddings], progress: Progress, is_stopped: Callable[[], bool]) -> Array:
    """UMAP in another process: its compiled code would hold up every page of the server."""
    if not has_umap():
        raise MissingExtraError("a UMAP map", "umap-learn", "polysemy")
    with tempfile.TemporaryDirectory(prefix="crosslens-map-") as folder, stage(progress, "UMAP", 0):
        vectors, points = Path(folder) / "vectors.npy", Path(folder) / "points.npy"
        np.save(vectors, np.concatenate(list(blocks(groups))))
        worker = multiprocessing.get_context("spawn").Process(
            target=lay_out, args=(str(vectors), str(points)), daemon=True
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


def lay_out(vectors: str, points: str) -> None:
    """UMAP of the vectors in a file, written to another: the work of the other process."""
    import warnings

    import umap

    rows = np.load(vectors, allow_pickle=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a seed means one thread
        mapper = umap.UMAP(
            n_neighbors=min(_NEIGHBOURS, len(rows) - 1), min_dist=0.1, metric="cosine", random_state=SEED
        )
        np.save(points, np.asarray(mapper.fit_transform(rows), np.float32))


MOST_CLUSTERS = 12
_SAMPLE = 50_000

_WORDS = 3
_TEXTS = 200_000
"""Captions whose words are counted; of more, every k-th."""
_WORD = r"\p{L}{3,}"


@dataclass(frozen=True)
class Region:
    """A cluster of points: its words, how many images and captions, its centre."""

    number: int
    name: str
    images: int
    captions: int
    x: float
    y: float


def assign_clusters(points: Array) -> tuple[Array, Array]:
    """The number of every point's cluster, and the clusters' centres: k-means on the map, the largest cluster first."""
    from scipy.cluster.vq import kmeans2, vq

    distinct = np.unique(points[:: max(1, len(points) // _SAMPLE)], axis=0)
    count = min(MOST_CLUSTERS, max(1, int(np.sqrt(len(points) / 2))), len(distinct))
    stream = random_stream(SEED, "map clusters")
    rows = np.sort(stream.permutation(len(points))[:_SAMPLE])
    sample = points[rows].astype(np.float64)
    centres, _ = kmeans2(sample, count, minit="++", seed=stream, missing="raise" if count == 1 else "warn")
    numbers, _ = vq(points.astype(np.float64), centres)
    sizes = np.bincount(numbers, minlength=count)
    order = np.lexsort((np.arange(count), -sizes))
    order = order[sizes[order] > 0]
    rank = np.zeros(count, np.uint8)
    rank[order] = np.arange(len(order), dtype=np.uint8)
    return rank[numbers], centres[order]


def describe_clusters(numbers: Array, centres: Array, images: int, texts: list[str] | None) -> list[Region]:
    """The clusters with their names; ``texts`` are those of the captions, whose points come after the ``images``.

    A name is the words whose share of captions is highest, weighed by how much it exceeds that of all captions.
    """
    names: dict[int, str] = {}
    if texts is not None:
        step = max(1, len(texts) // _TEXTS)
        table = pl.DataFrame({"cluster": numbers[images::step].astype(np.int64), "text": texts[::step]})
        words = (
            table.with_columns(word=pl.col("text").str.to_lowercase().str.extract_all(_WORD).list.unique())
            .select("cluster", "word")
            .explode("word")
            .filter(pl.col("word").is_not_null() & ~pl.col("word").is_in(list(STOP_WORDS)))
        )
        sizes = table.group_by("cluster").agg(size=pl.len())
        overall = words.group_by("word").agg(overall=pl.len() / table.height)
        shares = words.group_by("cluster", "word").agg(uses=pl.len()).join(sizes, on="cluster").join(overall, on="word")
        shares = shares.with_columns(share=pl.col("uses") / pl.col("size"))
        shares = shares.with_columns(weight=pl.col("share") * (pl.col("share") / pl.col("overall")).log())
        best = shares.filter(pl.col("weight") > 0).sort(["weight", "word"], descending=[True, False])
        grouped = best.group_by("cluster", maintain_order=True).agg(pl.col("word").head(_WORDS))
        names = {int(number): ", ".join(words) for number, words in grouped.iter_rows()}
    count = len(centres)
    counts = [np.bincount(part, minlength=count).tolist() for part in (numbers[:images], numbers[images:])]
    return [
        Region(number, names.get(number) or f"region {number + 1}", *sizes, *centre)
        for number, (*sizes, centre) in enumerate(zip(*counts, centres.tolist(), strict=True))
    ]
