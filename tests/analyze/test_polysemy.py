"""Polysemy curves: against slow loops, what must not change them, planted polysemy, bad input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import InputError, UsageError
from tests.tables import rest_slow

Array = np.ndarray[Any, Any]


def dataset_of(counts: Sequence[int], name: str = "drawn") -> cl.Dataset:
    return cl.Dataset.of({f"i{row}": [f"text {n}" for n in range(count)] for row, count in enumerate(counts)}, name)


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(left, right, strict=True))
    length = math.sqrt(sum(a * a for a in left) * sum(b * b for b in right))
    return product / length if length else 0.0


def slow(dataset: cl.Dataset, images: Array, captions: Array, visual: Array, size: int) -> list[tuple[float, float]]:
    """For each image both quantities, from the definition, one number at a time."""
    values = []
    for query in range(len(images)):
        others = [row for row in range(len(images)) if row != query]
        others.sort(key=lambda row: (-cosine(visual[query].tolist(), visual[row].tolist()), row))
        near = others[:size]
        similarity = sum(cosine(visual[query].tolist(), visual[row].tolist()) for row in near) / size
        angles = [
            math.acos(max(-1.0, min(1.0, cosine(images[query].tolist(), captions[row].tolist()))))
            for neighbour in near
            for row in range(len(captions))
            if dataset.caption_image[row] == neighbour
        ]
        values.append((similarity, sum(angles) / len(angles) if angles else math.nan))
    return values


def vectors(dataset: cl.Dataset, seed: int, width: int = 6) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    images, texts = len(dataset.image_ids), len(dataset.caption_ids)
    return rng.normal(size=(images, width)), rng.normal(size=(texts, width)), rng.normal(size=(images, width + 2))


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=9).filter(any),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.data(),
)
def test_slow_reference(counts: list[int], seed: int, separate: bool, data: st.DataObject) -> None:
    dataset = dataset_of(counts)
    images, captions, visual = vectors(dataset, seed)
    sizes = data.draw(st.lists(st.integers(1, len(counts) - 1), min_size=1, max_size=4))
    extra = {"visual": visual} if separate else {}
    result = cl.polysemy(dataset, images=images, captions=captions, sizes=sizes, resamples=20, **extra)
    assert result.table["R"].to_list() == sorted(set(sizes))
    for at, size in enumerate(result.sizes):
        expected = slow(dataset, images, captions, visual if separate else images, size)
        ours = np.stack([result.image_similarity[:, at], result.caption_distance[:, at]], axis=1)
        np.testing.assert_allclose(ours, expected, atol=1e-9)
        distances = [distance for _, distance in expected if not math.isnan(distance)]
        row = result.table.row(at, named=True)
        assert row["image_similarity"] == pytest.approx(sum(value for value, _ in expected) / len(expected))
        assert row["images"] == len(distances)
        assert row["caption_distance"] == (pytest.approx(sum(distances) / len(distances)) if distances else None)


def test_by_hand() -> None:
    """Three images at 0°, 30° and 90°; each caption lies 10° further than its image."""
    degrees = np.radians([0, 30, 90])
    images = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    captions = np.stack([np.cos(degrees + np.radians(10)), np.sin(degrees + np.radians(10))], axis=1)
    table = cl.polysemy(dataset_of([1, 1, 1]), images=images, captions=captions, sizes=[2, 1]).table
    first, second = table.to_dicts()
    assert first["R"] == 1
    assert first["image_similarity"] == pytest.approx((2 * math.cos(math.radians(30)) + 0.5) / 3)
    # 0° → the caption at 40°; 30° → that at 10°; 90° → that at 40°.
    assert first["caption_distance"] == pytest.approx(math.radians((40 + 20 + 50) / 3))
    assert second["caption_distance"] == pytest.approx(math.radians(((40 + 100) + (20 + 70) + (80 + 50)) / 6))


def test_order_and_scale_change_nothing() -> None:
    dataset = dataset_of([2, 1, 3, 0, 2, 1, 1])
    images, captions, visual = vectors(dataset, 5)
    first = cl.polysemy(dataset, images=images, captions=captions, visual=visual, sizes=[1, 4], resamples=50, seed=3)
    order = [4, 2, 6, 0, 5, 1, 3]
    moved = dataset.select([dataset.image_ids[row] for row in order])
    again = cl.polysemy(
        moved,
        images=cl.Embeddings(dataset.image_ids, 3 * images),
        captions=cl.Embeddings(dataset.caption_ids, captions / 7),
        visual=visual[order],
        sizes=[4, 1, 4],
        resamples=50,
        seed=3,
    )
    np.testing.assert_allclose(first.table.to_numpy(), again.table.to_numpy(), rtol=1e-9)
    np.testing.assert_allclose(first.caption_distance[order], again.caption_distance, rtol=1e-9)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of([3, 0, 2, 1, 4, 1, 2, 2])
    images, captions, _ = vectors(dataset, 1)
    whole = cl.polysemy(dataset, images=images, captions=captions, sizes=[1, 3, 7])
    monkeypatch.setattr("crosslens.analyze.caption_polysemy.measure._QUERIES", 3)
    single = cl.polysemy(dataset, images=images, captions=captions, sizes=[1, 3, 7])
    np.testing.assert_array_equal(whole.caption_distance, single.caption_distance)


@pytest.mark.parametrize("kind", rest_slow([np.float32, np.float16, np.float64, np.int32]))
def test_every_kind_of_numbers(kind: Any) -> None:
    dataset = dataset_of([2, 1, 3, 1])
    images, captions, _ = ((10 * array).astype(kind) for array in vectors(dataset, 2, width=7))
    result = cl.polysemy(dataset, images=images, captions=np.asfortranarray(captions), sizes=[2], resamples=0)
    expected = slow(dataset, images.astype(float), captions.astype(float), images.astype(float), 2)
    np.testing.assert_allclose(result.caption_distance[:, 0], [distance for _, distance in expected], atol=1e-7)


def test_approximate_neighbours_say_how_good_they_are() -> None:
    pytest.importorskip("faiss", reason="pip install 'crosslens[approximate]'")
    dataset, images, captions = planted(0.2, 0)
    exact = cl.polysemy(dataset, images=images, captions=captions, sizes=[5])
    near = cl.polysemy(dataset, images=images, captions=captions, sizes=[5], approximate=True)
    assert exact.recall is None
    assert near.recall is not None
    assert 0.5 < near.recall <= 1
    assert near.table["image_similarity"][0] == pytest.approx(exact.table["image_similarity"][0], abs=0.02)
    assert "approximate neighbours, recall@5" in near.text()
    assert "approximate" not in exact.text()


def test_vectors_of_zeros_and_exact_copies() -> None:
    dataset = dataset_of([1, 1, 1])
    images = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    result = cl.polysemy(dataset, images=images, captions=images, sizes=[1])
    assert result.image_similarity[:, 0].tolist() == [1, 1, 0]
    np.testing.assert_allclose(result.caption_distance[:, 0], [0, 0, math.pi / 2])


def planted(spread: float, seed: int) -> tuple[cl.Dataset, Array, Array]:
    """Twelve groups of ten near-equal pictures; a caption's vector is its picture's plus noise of this length."""
    rng = np.random.default_rng(seed)
    images = np.repeat(rng.normal(size=(12, 32)), 10, axis=0)
    images = images / np.linalg.norm(images, axis=1, keepdims=True) + 0.01 * rng.normal(size=(120, 32))
    noise = rng.normal(size=(120, 32))
    return dataset_of([1] * 120), images, images + spread * noise / np.linalg.norm(noise, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_planted_polysemy_is_ordered(seed: int) -> None:
    plain, diverse = (
        cl.polysemy(dataset, images=images, captions=captions, sizes=[1, 5, 9])
        for dataset, images, captions in (planted(0.2, seed), planted(1.5, seed))
    )
    np.testing.assert_array_equal(plain.image_similarity, diverse.image_similarity)
    assert (plain.image_similarity > 0.99).all()
    assert (plain.table["caption_distance_high"] < diverse.table["caption_distance_low"]).all()
    for result in (plain, diverse):
        table = result.table
        assert (table["caption_distance_low"] <= table["caption_distance"]).all()
        assert (table["caption_distance"] <= table["caption_distance_high"]).all()


def test_values_of_each_image_are_a_table() -> None:
    dataset = dataset_of([1, 0, 0])
    images, captions, _ = vectors(dataset, 0)
    table = cl.polysemy(dataset, images=images, captions=captions, sizes=[1, 2], resamples=0).per_image
    assert table.columns == [
        "image", "image_similarity_1", "image_similarity_2", "caption_distance_1", "caption_distance_2",
    ]  # fmt: skip
    assert table["image"].to_list() == list(dataset.image_ids)
    assert table["caption_distance_2"][0] is None, "neither neighbour has a caption"


def test_no_interval_where_none_is_asked_for() -> None:
    dataset = dataset_of([1, 1, 1])
    images, captions, _ = vectors(dataset, 0)
    table = cl.polysemy(dataset, images=images, captions=captions, sizes=[1], resamples=0).table
    assert table["image_similarity_low"].to_list() == [None]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1, 3], "R must be at most 2, the number of other images in drawn; it is 3"),
        ([0], "R = 0 is not a whole number of at least 1"),
        ([1.5], "R = 1.5 is not"),
        ([True], "R = True is not"),
        ([], "sizes is"),
        ("12", "sizes is '12'"),
    ],
)
def test_wrong_sizes(sizes: Any, message: str) -> None:
    dataset = dataset_of([1, 1, 1])
    images, captions, _ = vectors(dataset, 0)
    with pytest.raises(UsageError, match=message):
        cl.polysemy(dataset, images=images, captions=captions, sizes=sizes)


def test_wrong_vectors() -> None:
    dataset = dataset_of([1, 1, 1])
    images, captions, visual = vectors(dataset, 0)
    with pytest.raises(InputError, match="images of 6 dimensions and captions of 5"):
        cl.polysemy(dataset, images=images, captions=captions[:, :5], sizes=[1])
    with pytest.raises(InputError, match="image embeddings of shape"):
        cl.polysemy(dataset, images=images[:2], captions=captions, sizes=[1])
    with pytest.raises(InputError, match="NaN in vectors"):
        cl.polysemy(dataset, images=images, captions=captions, visual=visual * np.nan, sizes=[1])
    with pytest.raises(UsageError, match="multi embeddings of images"):
        cl.polysemy(dataset, images=images[:, None, :], captions=captions, sizes=[1])
    with pytest.raises(InputError, match="the dataset has no captions"):
        cl.polysemy(dataset_of([0, 0]), images=images[:2], captions=captions[:0], sizes=[1])
