"""Clusters: planted ones are found again, their figures are those of the vectors, bad input."""

from __future__ import annotations

import math
import sys
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import cluster_images
from crosslens.core import MissingExtraError, UnknownNameError, UsageError

from .test_polysemy import cosine, dataset_of

Array = np.ndarray[Any, Any]

CLUSTERS, EACH, WIDTH = 5, 20, 16


def planted(seed: int = 0) -> tuple[cl.Dataset, Array, Array, Array]:
    """Well separated groups of pictures, two captions each; the further the group, the more diverse its captions."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(CLUSTERS), EACH))
    images = 4 * np.eye(WIDTH)[truth] + 0.15 * rng.normal(size=(len(truth), WIDTH))
    owner = np.repeat(np.arange(len(truth)), 2)
    captions = images[owner] + (0.1 + truth[owner, None]) * rng.normal(size=(len(owner), WIDTH))
    dataset = dataset_of([2] * len(truth))
    names = pl.Series("kind", [None if row == 3 else f"kind {group}" for row, group in enumerate(truth)])
    return cl.Dataset(dataset.name, dataset.images.with_columns(names), dataset.captions), images, captions, truth


def pairs_of(labels: Array) -> set[tuple[int, int]]:
    """Every two rows that share a label."""
    return {(a, b) for a, b in combinations(range(len(labels)), 2) if labels[a] == labels[b]}


def check_figures(result: Any, dataset: cl.Dataset, images: Array, captions: Array) -> None:
    for cluster in result.clusters:
        rows = sorted(cluster.rows)
        similar = [cosine(images[a].tolist(), images[b].tolist()) for a, b in combinations(rows, 2)]
        texts = [row for row in range(len(captions)) if dataset.caption_image[row] in rows]
        angles = [
            math.acos(cosine(captions[a].tolist(), captions[b].tolist()))
            for a, b in combinations(texts, 2)
            if dataset.caption_image[a] != dataset.caption_image[b]
        ]
        assert cluster.image_similarity == pytest.approx(sum(similar) / len(similar))
        assert cluster.caption_diversity == pytest.approx(sum(angles) / len(angles))
        assert result.labels[rows].tolist() == [cluster.number] * len(rows)


@pytest.fixture
def flat_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two largest directions of the vectors instead of UMAP's map, which takes seconds to import."""

    def flat(unit: Array, neighbours: int, seed: int) -> Array:
        return np.asarray(unit[:, :CLUSTERS] @ np.random.default_rng(1).normal(size=(CLUSTERS, 2)))

    monkeypatch.setattr("crosslens.analyze.caption_polysemy.clusters.draw_map", flat)


@pytest.mark.usefixtures("flat_map")
def test_figures_come_from_the_vectors() -> None:
    dataset, images, captions, truth = planted()
    result = cluster_images(dataset, images=images, captions=captions, min_cluster_size=15, purity_by="kind")
    assert pairs_of(result.labels) == pairs_of(truth)
    check_figures(result, dataset, images, captions)
    assert [cluster.polysemy for cluster in result.clusters] == sorted(
        (cluster.polysemy for cluster in result.clusters), reverse=True
    )
    assert [cluster.category for cluster in result.clusters] == [f"kind {group}" for group in (4, 3, 2, 1, 0)]
    assert result.purity == 1
    assert result.table["images"].to_list() == [EACH] * CLUSTERS
    middle = result.clusters[0].rows
    centre = (images[list(middle)] / np.linalg.norm(images[list(middle)], axis=1, keepdims=True)).mean(axis=0)
    near = [cosine(images[row].tolist(), centre.tolist()) for row in middle]
    assert near == sorted(near, reverse=True), "examples begin with the most typical image"


@pytest.mark.usefixtures("flat_map")
def test_mixed_categories_and_large_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, images, captions, _ = planted()
    halves = dataset.images.with_columns(pl.Series("half", [row % 2 for row in range(len(images))]))
    mixed = cl.Dataset(dataset.name, halves, dataset.captions)
    result = cluster_images(mixed, images=images, captions=captions, min_cluster_size=15, purity_by="half")
    for cluster in result.clusters:
        odd = sum(row % 2 for row in cluster.rows)
        assert cluster.purity == max(odd, EACH - odd) / EACH
        assert cluster.category == ("1" if odd > EACH - odd else "0")
    monkeypatch.setattr("crosslens.analyze.caption_polysemy.clusters._MOST_CAPTIONS", 30)
    sampled = cluster_images(mixed, images=images, captions=captions, min_cluster_size=15, seed=1)
    again = cluster_images(mixed, images=images, captions=captions, min_cluster_size=15, seed=1)
    assert sampled.table.equals(again.table)
    for part, whole in zip(sampled.clusters, result.clusters, strict=True):
        assert part.caption_diversity == pytest.approx(whole.caption_diversity, rel=0.25)
        assert math.isnan(part.purity)


@pytest.mark.usefixtures("flat_map")
def test_no_cluster_at_all() -> None:
    dataset, images, captions, _ = planted()
    result = cluster_images(dataset, images=images, captions=captions, min_cluster_size=101)
    assert result.clusters == ()
    assert result.table.height == 0
    assert result.as_dict()["images_in_no_cluster"] == len(images)


def test_bad_input() -> None:
    dataset, images, captions, _ = planted()
    with pytest.raises(UnknownNameError, match="kin"):
        cluster_images(dataset, images=images, captions=captions, purity_by="kin")
    with pytest.raises(UsageError, match="umap_neighbours=100 must be below the number of images, 100"):
        cluster_images(dataset, images=images, captions=captions, umap_neighbours=100)
    with pytest.raises(UsageError, match="min_cluster_size"):
        cluster_images(dataset, images=images, captions=captions, min_cluster_size=1)


@pytest.mark.parametrize(("package", "install"), [("umap", "umap-learn"), ("sklearn.cluster", "scikit-learn")])
def test_without_the_extra(package: str, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if package != "umap":
        monkeypatch.setattr("crosslens.analyze.caption_polysemy.clusters.draw_map", lambda unit, *_: unit[:, :2])
    dataset, images, captions, _ = planted()
    with pytest.raises(MissingExtraError, match=install) as raised:
        cluster_images(dataset, images=images, captions=captions)
    assert "crosslens[polysemy]" in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_clusters_are_recovered(seed: int) -> None:
    """The whole way, UMAP included: adjusted Rand 1, and the same map twice."""
    from sklearn.metrics import adjusted_rand_score

    dataset, images, captions, truth = planted(seed)
    visual = np.random.default_rng(seed).normal(size=(WIDTH, 24))
    arguments = {"images": images, "captions": captions, "visual": images @ visual, "seed": seed}
    result = cluster_images(dataset, **arguments)
    assert adjusted_rand_score(truth, result.labels) == 1
    check_figures(result, dataset, images @ visual, captions)
    again = cluster_images(dataset, **arguments)
    np.testing.assert_array_equal(result.map, again.map)
    assert result.map.shape == (len(images), 2)
