"""dis(t): by hand, against a slow reference, and what must not change it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import entropy, entropy_band, entropy_histogram, measure_discriminability, nearest_items
from crosslens.core import InputError, UsageError

Array = np.ndarray[Any, Any]


def embeddings(vectors: Any, prefix: str = "x") -> cl.Embeddings:
    return cl.Embeddings.of(np.asarray(vectors, np.float64), [f"{prefix}{row}" for row in range(len(vectors))])


def slow(text: Array, images: Array, own_image: int, k: int, temperature: float) -> float:
    """One description, one number at a time."""
    cosines = []
    for row, image in enumerate(images):
        if row != own_image:
            best = max(
                sum(float(a) * float(b) for a, b in zip(text, vector, strict=True))
                / (math.sqrt(sum(float(a) ** 2 for a in text)) * math.sqrt(sum(float(b) ** 2 for b in vector)))
                for vector in np.atleast_2d(image)
            )
            cosines.append(best)
    nearest = sorted(cosines, reverse=True)[:k]
    weights = [math.exp((cosine - nearest[0]) / temperature) for cosine in nearest]
    return -sum(w / sum(weights) * math.log(w / sum(weights)) for w in weights if w > 0)


def random(texts: int, images: int, dimension: int, seed: int, several: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shape = (images, several, dimension) if several else (images, dimension)
    return rng.standard_normal((texts, dimension)), rng.standard_normal(shape), rng.integers(-1, images, texts)


# By hand


def test_two_equal_neighbours_are_one_bit() -> None:
    # The text points along x; its own image too. The two others at 60° on either side: cos = 1/2 both.
    images = embeddings([[1, 0], [0.5, math.sqrt(3) / 2], [0.5, -math.sqrt(3) / 2], [-1, 0]])
    result = measure_discriminability(embeddings([[2, 0]]), images, [0], k=2, temperature=0.1)
    assert result.values[0] == pytest.approx(math.log(2), abs=1e-12)
    assert result.neighbours.items.tolist() == [[1, 2]]
    assert result.neighbours.cosines[0] == pytest.approx([0.5, 0.5])


def test_a_value_worked_out_on_paper() -> None:
    # Cosines 1 and 0 at T = 1/ln 3: weights 3 and 1, p = 3/4 and 1/4, entropy = ln 4 − (3/4) ln 3.
    result = measure_discriminability(
        embeddings([[1, 0]]), embeddings([[1, 0], [0, 1]]), [-1], k=2, temperature=1 / math.log(3)
    )
    assert result.values[0] == pytest.approx(math.log(4) - 0.75 * math.log(3), abs=1e-12)


def test_the_own_image_does_not_count() -> None:
    texts, images = embeddings([[1, 0]]), embeddings([[1, 0], [1, 0.1], [0, 1], [-1, 0]])
    without = measure_discriminability(texts, images, [0], k=2, temperature=0.05)
    with_it = measure_discriminability(texts, images, [-1], k=2, temperature=0.05)
    assert 0 not in without.neighbours.items
    assert 0 in with_it.neighbours.items
    assert without.values[0] < with_it.values[0]


def test_the_papers_temperature_says_nothing() -> None:
    texts, images, own_images = random(50, 200, 16, seed=1)
    result = measure_discriminability(embeddings(texts), embeddings(images), own_images, k=20, temperature=1.0)
    assert result.values.min() > 0.99 * math.log(20)
    assert (result.values > entropy_band(20, 0.8)[1]).all()


def test_the_band() -> None:
    assert entropy_band(20, 0.8) == pytest.approx((0.1 * math.log(20), 0.9 * math.log(20)))
    assert entropy_band(7, 1.0) == (0.0, math.log(7))
    for eta in (0, -1, 1.5, math.nan):
        with pytest.raises(UsageError, match="eta"):
            entropy_band(20, eta)


# Against the reference, and invariances


@given(
    st.integers(1, 8), st.integers(3, 30), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from([0, 3]),
    st.floats(1e-3, 10), st.data(),
)  # fmt: skip
def test_as_the_reference_says(
    texts: int, images: int, dimension: int, seed: int, several: int, temperature: float, data: st.DataObject
) -> None:
    left, right, own_images = random(texts, images, dimension, seed, several)
    k = data.draw(st.integers(1, images - 1))
    result = measure_discriminability(embeddings(left), embeddings(right), own_images, k=k, temperature=temperature)
    expected = [slow(left[row], right, int(own_images[row]), k, temperature) for row in range(texts)]
    np.testing.assert_allclose(result.values, expected, atol=1e-8 + 1e-13 / temperature)
    assert (result.values >= 0).all()
    assert (result.values <= math.log(k)).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.booleans())
def test_neither_tile_nor_order_nor_length_changes_it(seed: int, tile: int, ties: bool) -> None:
    texts, images, own_images = random(9, 40, 5, seed)
    if ties:  # many images in the same place, more than are proposed at first
        images[5:35] = images[5]
    whole = measure_discriminability(embeddings(texts), embeddings(images), own_images, k=6, temperature=0.1)
    tiled = measure_discriminability(embeddings(texts), embeddings(images), own_images, k=6, temperature=0.1, tile=tile)
    assert np.array_equal(whole.values, tiled.values)
    assert np.array_equal(whole.neighbours.items, tiled.neighbours.items)
    order = np.random.default_rng(seed).permutation(40)
    moved = np.where(own_images >= 0, np.argsort(order)[own_images], -1)
    shuffled = measure_discriminability(embeddings(texts), embeddings(images[order]), moved, k=6, temperature=0.1)
    assert np.array_equal(whole.values, shuffled.values)
    scaled = measure_discriminability(embeddings(4 * texts), embeddings(images / 2), own_images, k=6, temperature=0.1)
    assert np.array_equal(whole.values, scaled.values)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(1e-4, 100), st.floats(1.01, 50))
def test_a_higher_temperature_is_never_surer(cosines: list[float], temperature: float, factor: float) -> None:
    row = np.array([cosines])
    cool, warm = entropy(row, temperature)[0], entropy(row, temperature * factor)[0]
    assert 0 <= cool <= warm + 1e-12 <= math.log(len(cosines)) + 1e-12


def test_the_temperature_that_centres() -> None:
    texts, images, own_images = random(101, 60, 8, seed=3)
    result = measure_discriminability(embeddings(texts), embeddings(images), own_images, k=10)
    centred = measure_discriminability(
        embeddings(texts), embeddings(images), own_images, k=10, temperature=result.centring_temperature()
    )
    assert np.median(centred.values) == pytest.approx(math.log(10) / 2, abs=1e-9)


def test_nothing_centres_what_is_all_alike() -> None:
    result = measure_discriminability(embeddings([[1, 0]]), embeddings([[0, 1]] * 5), [-1], k=4)
    assert result.centring_temperature() == 0


def test_the_histogram_counts_everything() -> None:
    chart = entropy_histogram(np.array([0.0, 0.1, 1.5, 2.9, math.log(20)]), 20, 0.8, title="dis(t)", bins=10)
    assert chart.counts == (2, 0, 0, 0, 0, 1, 0, 0, 0, 2)
    assert chart.band is not None
    inside = [chart.band[0] <= (low + high) / 2 <= chart.band[1] for low, high in pairwise(chart.edges)]
    assert inside == [False, *[True] * 8, False]


# Bad input


def test_wrong_use_is_explained() -> None:
    texts, images, own_images = random(3, 5, 4, seed=0)
    with pytest.raises(UsageError, match="choose k from 1 to 4"):
        measure_discriminability(embeddings(texts), embeddings(images), [0, 1, 2], k=5)
    with pytest.raises(InputError, match="dimensions"):
        nearest_items(texts[:, :2], images, 2)
    with pytest.raises(UsageError, match="without"):
        nearest_items(texts, images, 2, without=[0, 1, 9])
    with pytest.raises(UsageError, match="temperature"):
        measure_discriminability(embeddings(texts), embeddings(images), own_images, k=2, temperature=0)
    uncertain = cl.Embeddings(tuple("abcde"), images, np.ones_like(images))
    with pytest.raises(UsageError, match="distributions"):
        nearest_items(texts, uncertain, 2)


def test_no_descriptions_at_all() -> None:
    result = measure_discriminability(embeddings(np.zeros((0, 4))), embeddings(np.eye(4)), [], k=2)
    assert result.values.shape == (0,)


def test_a_vector_of_zeros_is_as_near_to_everything() -> None:
    result = measure_discriminability(embeddings([[0.0, 0.0]]), embeddings([[1, 0], [0, 1], [1, 1]]), [-1], k=3)
    assert result.values[0] == pytest.approx(math.log(3))
