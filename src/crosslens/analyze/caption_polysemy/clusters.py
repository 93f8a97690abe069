"""Clusters of similar images (UMAP, then HDBSCAN), and how diverse the captions in each of them are.

UMAP draws a map in two dimensions and HDBSCAN finds its dense parts; every figure of a cluster is computed from the
vectors themselves. A cluster's polysemy is its image similarity times its caption diversity: it is high where images
are similar and captions are not.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.caption_polysemy.measure import CaptionGroups, joint_vectors
from crosslens.analyze.near_duplicates import unit_vectors
from crosslens.analyze.options import ClusterOptions
from crosslens.core import UnknownNameError, UsageError, argument, needs_extra
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import Array, derive_seed, frozen, json_form, random_stream
from crosslens.values import Dataset, Ids

_MOST_CAPTIONS = 5_000
"""Captions of a cluster up to which every pair is compared; of more, a sample of as many."""
_ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class ImageCluster:
    """A cluster: its images, nearest to its middle first, and its figures; NaN where there is nothing to compare.

    ``image_similarity`` is the mean cosine of two of its images, ``caption_diversity`` the mean angle between captions
    of different images; ``purity`` is the share of the images whose ``category`` is the most frequent.
    """

    number: int
    rows: tuple[int, ...]
    image_similarity: float
    caption_diversity: float
    purity: float
    category: str | None

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def polysemy(self) -> float:
        return self.image_similarity * self.caption_diversity


@dataclass(frozen=True, eq=False)
class PolysemyClusters:
    """The clusters of a dataset, the most polysemous first, and the map: a point per image.

    ``labels`` has the number of each image's cluster, counted from 1; 0: it is in none.
    """

    name: str
    image_ids: Ids
    clusters: tuple[ImageCluster, ...]
    labels: Array
    map: Array
    purity_by: str | None

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per cluster."""
        names = ("image_similarity", "caption_diversity", "polysemy", "purity")
        schema = {"cluster": pl.Int64, "images": pl.Int64, **dict.fromkeys(names, pl.Float64), "category": pl.String}
        rows = [
            (cluster.number, cluster.size, *(getattr(cluster, name) for name in names), cluster.category)
            for cluster in self.clusters
        ]
        return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)

    @property
    def purity(self) -> float:
        """The mean purity over the images that are in a cluster."""
        sizes = [(cluster.size, cluster.purity) for cluster in self.clusters if not np.isnan(cluster.purity)]
        return sum(size * purity for size, purity in sizes) / sum(size for size, _ in sizes) if sizes else float("nan")

    def as_dict(self) -> dict[str, Any]:
        facts = {"purity_by": self.purity_by, "purity": self.purity, "clusters": self.table}
        return {"images_in_no_cluster": int((self.labels == 0).sum()), **json_form(facts)}


def cluster_images(
    dataset: Dataset,
    *,
    images: Any,
    captions: Any,
    visual: Any | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    min_cluster_size: int = 10,
    umap_neighbours: int = 15,
    purity_by: str | None = None,
) -> PolysemyClusters:
    """Cluster the images by their vectors (``visual``, or else ``images``), and measure each cluster.

    The same seed gives the same clusters. Images and captions are vectors of a joint space, as in
    :func:`crosslens.polysemy`; the other options are those of :class:`ClusterOptions`.
    """
    ClusterOptions(min_cluster_size, umap_neighbours, purity_by)
    _, of_captions, looks = joint_vectors(dataset, images, captions, visual)
    categories: list[Any] = [None] * len(looks)
    if purity_by is not None:
        if purity_by not in dataset.images.columns:
            error = UnknownNameError("column of the images", purity_by, dataset.images.columns)
            error.option = "purity_by"
            raise error
        categories = dataset.images[purity_by].to_list()
    if len(looks) <= umap_neighbours:
        rule = f"{argument('umap_neighbours', umap_neighbours)} must be below the number of images, {len(looks)}"
        raise UsageError(rule, fix="choose fewer neighbours, or more images", option="umap_neighbours")
    with needs_extra("clusters of images", "scikit-learn", "polysemy"):
        from sklearn.cluster import HDBSCAN
    progress = shown_progress(progress)
    unit = unit_vectors(looks)
    with stage(progress, "drawing the map of images", 1):
        points = draw_map(unit, umap_neighbours, seed)
    parts: list[Array] = []  # HDBSCAN's clusters: the rows of each; rows in none of them are noise
    if len(points) >= min_cluster_size:
        labels = HDBSCAN(min_cluster_size=min_cluster_size, copy=True).fit_predict(points)
        parts = [np.flatnonzero(labels == label) for label in range(labels.max(initial=-1) + 1)]
    groups = CaptionGroups.of(dataset.caption_image, len(looks))
    unnumbered = []
    with stage(progress, "measuring clusters", len(parts)):
        for rows in parts:
            owner, own_captions = groups.spread(rows)
            if len(own_captions) > _MOST_CAPTIONS:
                random = random_stream(seed, "captions of a cluster", len(own_captions))
                sample = np.sort(random.choice(len(own_captions), _MOST_CAPTIONS, replace=False))
                owner, own_captions = owner[sample], own_captions[sample]
            diversity = caption_diversity(of_captions, own_captions, rows[owner])
            category_counts = Counter(str(categories[row]) for row in rows if categories[row] is not None)
            category = min(category_counts, key=lambda name: (-category_counts[name], name), default=None)
            purity = float("nan") if category is None else category_counts[category] / category_counts.total()
            members, count = unit[rows], len(rows)
            order = rows[np.argsort(-(members @ members.mean(axis=0)), kind="stable")]
            # The mean cosine of two different ones, from the length of their sum: no matrix of all pairs. The squares
            # are fewer than the members where vectors of zeros are among them.
            cosines = float((members.sum(axis=0) ** 2).sum()) - float((members * members).sum())
            similarity = cosines / (count * (count - 1)) if count > 1 else float("nan")
            unnumbered.append(ImageCluster(0, tuple(order.tolist()), similarity, diversity, purity, category))
            progress.advance()
    unnumbered.sort(key=lambda cluster: (-np.nan_to_num(cluster.polysemy, nan=-np.inf), -cluster.size, cluster.rows))
    clusters = tuple(replace(cluster, number=number) for number, cluster in enumerate(unnumbered, start=1))
    labels = np.zeros(len(points), np.int64)
    for cluster in clusters:
        labels[list(cluster.rows)] = cluster.number
    names = dataset.name, dataset.image_ids
    return PolysemyClusters(*names, clusters, frozen(labels), frozen(points), purity_by)


def draw_map(unit: Array, neighbours: int, seed: int) -> Array:
    """UMAP's map of vectors of length 1: n×2. One thread, so that a seed gives one map."""
    with needs_extra("the map of images", "umap-learn", "polysemy"):
        import umap
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and disconnected parts, which are what is looked for
        mapper = umap.UMAP(
            n_neighbors=neighbours, n_components=2, min_dist=0.0, metric="cosine", n_jobs=1,
            random_state=derive_seed(seed, "map") % 2**32,
        )  # fmt: skip
        return np.asarray(mapper.fit_transform(unit.astype(np.float32)), np.float64)


def caption_diversity(captions: Array, rows: Array, images: Array) -> float:
    """The mean angle between two of these captions that belong to different images; NaN where there are no such two."""
    unit = unit_vectors(captions[rows])
    total, count = 0.0, 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(rows))
        is_pair = images[start:stop, None] != images[None, :]
        is_pair &= np.arange(start, stop)[:, None] < np.arange(len(rows))[None, :]
        angles = np.arccos(np.clip(unit[start:stop] @ unit.T, -1.0, 1.0))
        total, count = total + float(angles[is_pair].sum()), count + int(is_pair.sum())
    return total / count if count else float("nan")
