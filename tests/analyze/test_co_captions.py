"""Co-captions: every pair once, each quantity against a slow reference, densities against scipy's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import gaussian_kde

import crosslens as cl
from crosslens.analyze import kernel_density, measure_caption_diversity
from crosslens.analyze.caption_polysemy.measure import co_caption_pairs, match_words
from crosslens.similarity import load_similarity

from .test_polysemy import cosine, dataset_of, vectors

Array = np.ndarray[Any, Any]

TEXTS = {
    "a": ["a red dog runs", "the dog is red", "sunset over the sea"],
    "b": ["a cat sleeps on a mat"],
    "c": ["two birds in a tree", "a tree with two birds"],
    "d": [],
    "e": ["a dog runs on the grass", "!"],
}


def spoken(texts: Sequence[str], progress: Any) -> list[tuple[list[str], Array]]:
    """A vector for each word, by its letters."""
    words = [[word for word in text.split() if word.isalpha()] for text in texts]
    return [
        (words_of_caption, np.array([[len(word), ord(word[0]) - 100, 1.0] for word in words_of_caption]).reshape(-1, 3))
        for words_of_caption in words
    ]


def slow_match(left: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> float:
    if not left or not right:
        return math.nan
    precision = sum(max(cosine(word, word_in_right) for word_in_right in right) for word in left) / len(left)
    recall = sum(max(cosine(word, word_in_left) for word_in_left in left) for word in right) / len(right)
    return 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0


def slow_means(dataset: cl.Dataset, compare: Any) -> list[float]:
    """The mean of ``compare(caption row, caption row)`` over every two captions of each image."""
    means = []
    for image in range(len(dataset.image_ids)):
        rows = [row for row in range(len(dataset.texts)) if dataset.caption_image[row] == image]
        values = [compare(first, second) for first, second in combinations(rows, 2)]
        values = [value for value in values if not math.isnan(value)]
        means.append(sum(values) / len(values) if values else math.nan)
    return means


def test_every_quantity_has_a_slow_reference() -> None:
    dataset = cl.Dataset.of(TEXTS)
    images, captions, _ = vectors(dataset, 3)
    sentences = np.random.default_rng(4).normal(size=(len(captions), 9))
    result = measure_caption_diversity(
        dataset, images=images, captions=captions, sentences=sentences, words=spoken, resamples=50
    )
    cider = load_similarity("cider", df=dataset).prepare([[text] for text in dataset.texts], dataset.texts)
    matrix = cider.block(slice(None)).astype(float)
    words = [words_of_caption.tolist() for _, words_of_caption in spoken(dataset.texts, None)]
    expected = {
        "co_caption_cosine": slow_means(dataset, lambda a, b: cosine(captions[a].tolist(), captions[b].tolist())),
        "co_caption_sentence": slow_means(dataset, lambda a, b: cosine(sentences[a].tolist(), sentences[b].tolist())),
        "co_caption_words": slow_means(dataset, lambda a, b: slow_match(words[a], words[b])),
        "co_caption_cider": slow_means(dataset, lambda a, b: (matrix[a, b] + matrix[b, a]) / 2),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(result.per_image[name].to_numpy(), values, atol=1e-6, err_msg=name)
        defined_values = [value for value in values if not math.isnan(value)]
        assert result.estimates[name].mean == pytest.approx(sum(defined_values) / len(defined_values), abs=1e-6)
        assert math.isnan(result.estimates[name].low), "fewer than ten images"
    by_image = [
        [cosine(images[image].tolist(), captions[row].tolist())
         for row in range(len(captions)) if dataset.caption_image[row] == image]
        for image in range(len(images))
    ]  # fmt: skip
    means = [sum(values) / len(values) if values else math.nan for values in by_image]
    np.testing.assert_allclose(result.per_image["pair_cosine"].to_numpy(), means)
    assert result.per_image["co_caption_cosine"].to_list()[1] is None, "a single caption has no co-captions"
    assert result.as_dict()["co_caption_words"]["pairs"] == 4, "a caption without words is not compared"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_every_pair_once(counts: list[int]) -> None:
    dataset = dataset_of(counts)
    owner, first, second = co_caption_pairs(dataset)
    expected = [
        (image, a, b)
        for image in range(len(counts))
        for a, b in combinations([row for row, owner in enumerate(dataset.caption_image) if owner == image], 2)
    ]
    assert list(zip(owner.tolist(), first.tolist(), second.tolist(), strict=True)) == expected


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 1000))
def test_matching_is_symmetric_and_bounded(left: int, right: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = [rng.normal(size=(size, 3)) for size in (left, right)]
    words = [words_of_caption / np.linalg.norm(words_of_caption, axis=1, keepdims=True) for words_of_caption in words]
    score = match_words(words[0], words[1])
    assert score == pytest.approx(match_words(words[1], words[0]), abs=1e-12)
    assert score == pytest.approx(slow_match(words[0].tolist(), words[1].tolist()), abs=1e-9)
    assert 0 <= score <= 1 + 1e-12
    assert match_words(words[0], words[0]) == pytest.approx(1)


def test_without_co_captions_only_pairs_with_the_image_remain() -> None:
    dataset = dataset_of([1, 1])
    images, captions, _ = vectors(dataset, 0)
    result = measure_caption_diversity(dataset, images=images, captions=captions, words=spoken)
    assert math.isnan(result.estimates["co_caption_cider"].mean)
    assert not math.isnan(result.estimates["pair_cosine"].mean)
    assert result.per_image["co_caption_cosine"].null_count() == 2


@pytest.mark.slow
def test_diverse_captions_score_lower() -> None:
    same = cl.Dataset.of({f"i{n}": [f"a dog runs over grass {n}", f"a dog runs on grass {n}"] for n in range(9)})
    diverse = cl.Dataset.of({f"i{n}": [f"a dog runs over grass {n}", f"freedom at dawn {n}"] for n in range(9)})
    rng = np.random.default_rng(0)
    results = [
        measure_caption_diversity(
            dataset, images=rng.normal(size=(9, 4)), captions=rng.normal(size=(18, 4)), words=spoken, resamples=0
        ).estimates
        for dataset in (same, diverse)
    ]
    for name in ("co_caption_words", "co_caption_cider"):
        assert results[0][name].mean > results[1][name].mean


@pytest.mark.parametrize("size", [2, 40, 3000])
def test_density_is_that_of_scipy(size: int) -> None:
    values = np.random.default_rng(size).beta(2, 5, size)
    ours = kernel_density(np.append(values, np.nan))
    assert ours is not None
    np.testing.assert_allclose(ours.density, gaussian_kde(values)(ours.at), atol=0.004 * ours.density.max())
    assert np.trapezoid(ours.density, ours.at) == pytest.approx(1, abs=2e-3)


def test_density_of_equal_values_and_of_none() -> None:
    peak = kernel_density(np.full(7, 0.25))
    assert peak is not None
    assert peak.at[np.argmax(peak.density)] == pytest.approx(0.25, abs=1e-3)
    assert kernel_density(np.array([np.nan])) is None
