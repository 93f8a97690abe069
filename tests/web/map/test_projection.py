"""Vectors in two dimensions, against numpy's singular vectors; clusters, against the definition of nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError, UsageError
from crosslens.values import Embeddings
from crosslens.web.map.projection import PCA, UMAP, assign_clusters, describe_clusters, project


def sides(images: int = 20, captions: int = 50, dimension: int = 6, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    rng = np.random.default_rng(seed)
    stretch = np.linspace(3, 0.2, dimension)
    return (
        Embeddings.of((rng.normal(size=(images, dimension)) * stretch).astype(np.float32)),
        Embeddings.of((rng.normal(size=(captions, dimension)) * stretch).astype(np.float32)),
    )


def slow_components(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    directions = np.linalg.svd(centred.astype(np.float64))[2][:2]
    return centred @ directions.T


class Noted:
    def __init__(self) -> None:
        self.done = self.total = 0

    def start(self, label: str, total: int) -> None:
        self.total = total

    def advance(self, steps: int = 1) -> None:
        self.done += steps

    def finish(self) -> None: ...


@given(seed=st.integers(0, 1000), images=st.integers(2, 30), captions=st.integers(2, 30))
def test_principal_components_are_those_of_svd(seed: int, images: int, captions: int) -> None:
    pair = sides(images, captions, seed=seed)
    expected = slow_components(np.concatenate([side.vectors for side in pair]))
    points = project(pair, PCA)
    assert points.shape == (images + captions, 2)
    assert points.dtype == np.float32
    assert np.abs(points).max() == pytest.approx(1)
    np.testing.assert_allclose(points.max(axis=0), -points.min(axis=0), atol=1e-6)
    spread = (expected.max(axis=0) - expected.min(axis=0)).max() / 2  # one for both axes
    for axis in (0, 1):  # up to sign and place
        component, slow = points[:, axis] - points[:, axis].mean(), expected[:, axis] / spread
        sign = 1 if component @ (slow - slow.mean()) > 0 else -1
        np.testing.assert_allclose(component, sign * (slow - slow.mean()), atol=2e-4)


def test_a_map_is_the_same_every_time_and_tells_its_progress() -> None:
    noted = Noted()
    first = project(sides(), PCA, progress=noted)
    assert np.array_equal(first, project(sides(), PCA))
    assert noted.done == noted.total == 2 * 70


def test_several_vectors_per_item_count_as_their_mean() -> None:
    single, _ = sides(12)
    copied = Embeddings(single.ids, np.repeat(single.vectors[:, None], 3, axis=1))
    np.testing.assert_allclose(project((single, single), PCA), project((copied, single), PCA), atol=1e-5)


def test_lengths_of_vectors_do_not_matter() -> None:
    images, captions = sides()
    longer = Embeddings(images.ids, images.vectors * np.linspace(0.1, 50, len(images.ids))[:, None].astype(np.float32))
    np.testing.assert_allclose(project((images, captions), PCA), project((longer, captions), PCA), atol=1e-5)


def test_one_dimension_and_equal_points() -> None:
    ones = Embeddings.of(np.ones((4, 1), np.float32))
    assert project((ones, ones), PCA).tolist() == [[0, 0]] * 8
    numbers, centres = assign_clusters(np.zeros((5, 2), np.float32))
    assert numbers.tolist() == [0] * 5
    assert len(centres) == 1


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="unknown projection 'tsne'"):
        project(sides(), "tsne")
    narrower = Embeddings.of(np.ones((3, 9), np.float32))
    with pytest.raises(CrosslensError, match="different lengths, 6 and 9"):
        project((sides()[0], narrower), PCA)


@pytest.mark.slow
def test_umap_keeps_neighbours_together_and_repeats_itself() -> None:
    pytest.importorskip("umap", reason="pip install 'crosslens[polysemy]'")
    rng = np.random.default_rng(0)
    centres = np.eye(3, 8) * 10
    groups = np.arange(90) % 3
    vectors = Embeddings.of((centres[groups] + rng.normal(size=(90, 8))).astype(np.float32))
    points = project((vectors, vectors), UMAP)
    assert np.array_equal(points, project((vectors, vectors), UMAP))
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    both = np.tile(groups, 2)
    assert (both[distances.argmin(axis=1)] == both).mean() > 0.95


@pytest.mark.slow
def test_umap_that_is_stopped_says_so() -> None:
    pytest.importorskip("umap", reason="pip install 'crosslens[polysemy]'")
    with pytest.raises(CrosslensError, match="UMAP was stopped"):
        project(sides(), UMAP, is_stopped=lambda: True)


def test_clusters_are_nearest_centres_largest_first() -> None:
    rng = np.random.default_rng(1)
    blobs = [
        rng.normal(size=(count, 2)) * 0.02 + centre for count, centre in ((30, (0, 0)), (60, (1, 1)), (15, (-1, 1)))
    ]
    points = np.concatenate(blobs).astype(np.float32)
    numbers, centres = assign_clusters(points)
    sizes = np.bincount(numbers)
    assert list(sizes) == sorted(sizes, reverse=True)
    for row, point in enumerate(points):
        slow = min(range(len(centres)), key=lambda n: float(((point - centres[n]) ** 2).sum()))
        assert numbers[row] == slow
    assert np.array_equal(numbers, assign_clusters(points)[0])


def test_clusters_are_named_by_words_that_others_do_not_use() -> None:
    texts = ["a dog runs on the beach", "the dog sleeps on a sofa", "a red car in the city", "a red bus in the city"]
    numbers = np.array([0, 0, 1, 1])
    names = [region.name for region in describe_clusters(numbers, np.zeros((2, 2)), 0, texts)]
    assert names[0].split(", ")[0] == "dog"
    assert set(names[1].split(", ")[:2]) == {"city", "red"}
    regions = describe_clusters(np.array([1, 0, 0, 1, 1]), np.zeros((2, 2)), 1, texts)
    assert [(region.images, region.captions) for region in regions] == [(0, 2), (1, 2)]
    assert [region.name for region in describe_clusters(numbers, np.zeros((2, 2)), 0, None)] == ["region 1", "region 2"]
