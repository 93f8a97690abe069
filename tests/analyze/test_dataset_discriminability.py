"""dis(t) of whole datasets: against plain loops, side by side, and against nonsense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import compare_discriminability
from crosslens.core import CrosslensError, InputError, UsageError

Array = np.ndarray[Any, Any]


def dataset(images: int, captions: int, name: str = "toys") -> cl.Dataset:
    return cl.Dataset.of(
        {f"i{image}": [f"caption {number} of {image}" for number in range(captions)] for image in range(images)},
        name=name,
    )


def vectors(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 6))


def slow(captions: Array, images: Array, owner: list[int], k: int, temperature: float) -> list[float]:
    """Every caption, every other image, one number at a time."""
    entropies = []
    for text, owner_row in zip(captions, owner, strict=True):
        cosines = []
        for row, image in enumerate(images):
            if row != owner_row:
                lengths = math.sqrt(sum(x * x for x in text)) * math.sqrt(sum(x * x for x in image))
                cosines.append(sum(a * b for a, b in zip(text, image, strict=True)) / lengths)
        weights = [math.exp(cosine / temperature) for cosine in sorted(cosines, reverse=True)[:k]]
        entropies.append(-sum(w / sum(weights) * math.log(w / sum(weights)) for w in weights))
    return entropies


@given(st.integers(4, 9), st.integers(1, 3), st.integers(2, 3), st.floats(0.05, 2), st.floats(0.1, 1), st.integers())
def test_agrees_with_plain_loops(images: int, captions: int, k: int, temperature: float, eta: float, seed: int) -> None:
    toys, seed = dataset(images, captions), abs(seed) % 1000
    left, right = vectors(images, seed), vectors(images * captions, seed + 1)
    result = cl.analyze.dataset_discriminability(
        toys, images=left, captions=right, k=k, temperature=temperature, eta=eta
    )
    expected = slow(right, left, [row // captions for row in range(len(right))], k, temperature)
    assert result.of("dis") == pytest.approx(expected, abs=1e-9)
    assert result["dis"] == pytest.approx(sum(expected) / len(expected))
    low, high = (1 - eta) / 2 * math.log(k), (1 + eta) / 2 * math.log(k)
    clear = [value for value in expected if min(abs(value - low), abs(value - high)) > 1e-9]
    if len(clear) == len(expected):
        assert result["below_band"] == pytest.approx(sum(value < low for value in expected) / len(expected))
        assert result["above_band"] == pytest.approx(sum(value > high for value in expected) / len(expected))
    assert result["in_band"] + result["below_band"] + result["above_band"] == pytest.approx(1)


def test_the_order_of_the_images_changes_nothing() -> None:
    toys, left, right = dataset(6, 2), vectors(6, 1), vectors(12, 2)
    order = [3, 0, 5, 1, 4, 2]
    shuffled = cl.Embeddings(tuple(toys.image_ids[row] for row in order), left[order])
    plain = cl.analyze.dataset_discriminability(toys, images=left, captions=right, k=3, temperature=0.1)
    matched = cl.analyze.dataset_discriminability(toys, images=shuffled, captions=right, k=3, temperature=0.1)
    assert matched.of("dis").tolist() == plain.of("dis").tolist()
    assert matched.table.equals(plain.table)


def test_the_table_names_the_nearest_other_image_and_both_ends() -> None:
    toys = dataset(3, 1)
    angle = math.radians(10)
    left = np.array([[1, 0], [math.cos(angle), math.sin(angle)], [-1, 0.0]])
    result = cl.analyze.dataset_discriminability(toys, images=left, captions=left, k=2, temperature=0.1)
    table = result.table
    assert table["nearest"].to_list() == ["i1", "i0", "i1"], "never the caption's own image"
    assert table["cosine"][0] == pytest.approx(math.cos(angle))
    assert table["text"].to_list() == list(toys.texts)
    ordered = sorted(zip(result.of("dis"), toys.caption_ids, strict=True))
    assert result.extremes(1, least=True)["caption"].to_list() == [ordered[-1][1]]
    assert result.extremes(2, least=False)["caption"].to_list() == [caption for _, caption in ordered[:2]]


def test_equal_values_keep_the_order_of_the_dataset() -> None:
    toys = dataset(4, 1)
    same = np.ones((4, 3))
    result = cl.analyze.dataset_discriminability(toys, images=same, captions=same, k=3, temperature=0.5)
    assert result.of("dis") == pytest.approx([math.log(3)] * 4)
    assert result.extremes(4, least=True)["caption"].to_list() == list(toys.caption_ids)
    assert result.extremes(4, least=False)["caption"].to_list() == list(toys.caption_ids)


def test_two_datasets_of_the_same_images_are_paired() -> None:
    left, sharp, vague = vectors(12, 1), vectors(12, 2), np.ones((24, 6))
    first = cl.analyze.dataset_discriminability(dataset(12, 1), images=left, captions=sharp, k=4, temperature=0.02)
    second = cl.analyze.dataset_discriminability(
        dataset(12, 2, "vague"), images=left, captions=vague, k=4, temperature=5.0
    )
    comparison = compare_discriminability([first, second], resamples=200, permutations=500)
    change = comparison.changes["vague"]["dis"]
    assert change.paired
    assert change.difference == pytest.approx(second["dis"] - first["dis"])
    assert change.low > 0
    assert change.p_value < 0.01
    mean = comparison.means["toys"]["dis"]
    assert mean.low < first["dis"] < mean.high
    assert comparison.table["dataset"].unique().sort().to_list() == ["toys", "vague"]


def test_different_images_are_drawn_apart() -> None:
    first = cl.analyze.dataset_discriminability(
        dataset(6, 1), images=vectors(6, 1), captions=vectors(6, 2), k=3, temperature=0.1
    )
    second_dataset = cl.Dataset.of({f"other{n}": [f"text {n}"] for n in range(7)}, name="others")
    second = cl.analyze.dataset_discriminability(
        second_dataset, images=vectors(7, 3), captions=vectors(7, 4), k=3, temperature=0.1
    )
    change = compare_discriminability([first, second], resamples=100).changes["others"]["dis"]
    assert not change.paired
    assert math.isnan(change.p_value)
    assert change.low < change.difference < change.high


class TextsOnly:
    name = "texts"
    abilities = frozenset({"texts"})

    def encode_texts(self, texts: list[str]) -> Array:
        return np.array([[1.0, len(text) % 7, text.count("2")] for text in texts])


def test_images_made_of_their_captions() -> None:
    toys = dataset(5, 2)
    texts = TextsOnly().encode_texts(list(toys.texts))
    means = np.array([(texts[2 * row] + texts[2 * row + 1]) / 2 for row in range(5)])
    result = cl.analyze.dataset_discriminability(toys, TextsOnly(), image_text="mean", k=3, temperature=0.2)
    assert result.of("dis") == pytest.approx(slow(texts, means, [row // 2 for row in range(10)], 3, 0.2))


def test_an_image_without_captions_is_no_neighbour_where_captions_stand_for_images() -> None:
    toys = cl.Dataset.of({"a": ["one"], "b": [], "c": ["three"], "d": ["four"]})
    result = cl.analyze.dataset_discriminability(toys, TextsOnly(), image_text="mean", k=2, temperature=0.2)
    assert result.gallery == ("a", "c", "d")
    assert set(result.table["nearest"]) <= {"a", "c", "d"}


def test_the_temperature_is_proposed_where_the_model_has_none() -> None:
    toys, left, right = dataset(8, 1), vectors(8, 1), vectors(8, 2)
    with pytest.raises(UsageError, match="no logit scale") as caught:
        cl.analyze.dataset_discriminability(toys, images=left, captions=right, k=4)
    proposed = float(caught.value.fix.split("; ")[1].split()[0])
    median = np.median(
        cl.analyze.dataset_discriminability(toys, images=left, captions=right, k=4, temperature=proposed).of("dis")
    )
    assert median == pytest.approx(math.log(4) / 2, rel=0.1)


GOOD: dict[str, Any] = {"images": vectors(5, 1), "captions": vectors(10, 2), "k": 3, "temperature": 0.1}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"captions": None}, "no caption embeddings"),
        ({"k": 5}, "5 neighbours among 4 other items"),
        ({"k": 1}, "k is 1"),
        ({"eta": 0.0}, "eta = 0"),
        ({"temperature": 0.0}, "temperature = 0"),
        ({"images": vectors(4, 1)}, "image embeddings of shape"),
        ({"captions": np.ones((10, 3))}, "queries of 3 dimensions and items of 6"),
        ({"temprature": 1}, "temprature"),
        ({"model": "tiny"}, "both embeddings and a model"),
    ],
)
def test_bad_input(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(CrosslensError, match=problem):
        cl.analyze.dataset_discriminability(dataset(5, 2), **{**GOOD, **change})


def test_no_captions() -> None:
    empty = cl.Dataset.of({"a": [], "b": [], "c": []})
    with pytest.raises(InputError, match="no captions"):
        cl.analyze.dataset_discriminability(
            empty, images=vectors(3, 1), captions=np.zeros((0, 6)), k=2, temperature=1.0
        )


def test_settings_must_be_the_same() -> None:
    toys = dataset(5, 2)
    with pytest.raises(UsageError, match="differ in k or eta"):
        compare_discriminability([cl.analyze.dataset_discriminability(toys, **{**GOOD, "k": k}) for k in (2, 3)])
