"""Live search ranks exactly, against sorting in double precision; words are left out one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError
from crosslens.values import Embeddings
from crosslens.web.search.encoders import MOST_WORDS, SearchGallery, word_effects, words_of
from crosslens.web.search.routes import check_text, shared_words

VOCABULARY = ("a", "red", "dog", "near", "the", "car")


def encode(texts: Sequence[str]) -> Embeddings:
    """A vector of word counts, and 1."""
    rows = [[text.split().count(word) for word in VOCABULARY] + [1] for text in texts]
    return Embeddings.of(np.array(rows, np.float32))


def cosines(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    left, right = queries.astype(np.float64), items.astype(np.float64)
    return (left @ right.T) / np.linalg.norm(left, axis=1)[:, None] / np.linalg.norm(right, axis=1)


@given(seed=st.integers(0, 500), items=st.integers(1, 60), depth=st.integers(1, 20))
def test_hits_are_sorted_by_exact_scores_and_then_by_position(seed: int, items: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, size=(items, 3)).astype(np.float32) + 0.5
    query = Embeddings.of(rng.integers(-2, 3, size=(1, 3)).astype(np.float32) + 0.5)
    hits = SearchGallery(Embeddings.of(vectors)).search(query, depth)
    scores = np.round(cosines(query.vectors, vectors)[0], 6)
    expected = sorted(range(items), key=lambda row: (-scores[row], row))[:depth]
    assert [scores[hit.row] for hit in hits] == [scores[row] for row in expected]
    assert [hit.rank for hit in hits] == list(range(1, min(depth, items) + 1))
    np.testing.assert_allclose([hit.score for hit in hits], [scores[hit.row] for hit in hits], atol=2e-6)


def test_equal_items_keep_their_order_and_several_vectors_work() -> None:
    same = SearchGallery(Embeddings.of(np.ones((5, 2), np.float32)))
    assert [hit.row for hit in same.search(Embeddings.of(np.ones((1, 2), np.float32)), 5)] == [0, 1, 2, 3, 4]
    sets = np.zeros((2, 2, 2), np.float32)
    sets[0], sets[1] = [[1, 0], [0.6, 0.8]], [[0, 1], [0, 1]]
    hits = SearchGallery(Embeddings.of(sets)).search(Embeddings.of(np.array([[0, 1]], np.float32)), 2)
    assert [hit.row for hit in hits] == [1, 0]
    assert hits[1].score == pytest.approx(0.8)


def test_vectors_of_another_encoder_are_refused() -> None:
    gallery = SearchGallery(Embeddings.of(np.ones((5, 2), np.float32)))
    with pytest.raises(InputError, match="vectors of 3 numbers for a gallery of 2"):
        gallery.search(Embeddings.of(np.ones((1, 3), np.float32)), 5)


@given(words=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8))
def test_the_effect_of_a_word_is_what_leaving_it_out_changes(words: list[str]) -> None:
    gallery = SearchGallery(encode(["a red dog", "the car", "a dog near the car", "red red red"]))
    text = " ".join(words)
    hits = gallery.search(encode([text]), 3)
    effects = word_effects(text, hits, gallery, encode)
    if len(words) == 1:
        assert effects == []
        return
    assert [text[effect.start : effect.end] for effect in effects] == words
    items = gallery.embeddings.vectors
    for position, effect in enumerate(effects):
        rest = " ".join(words[:position] + words[position + 1 :])
        before, after = (cosines(encode([text_of_query]).vectors, items)[0] for text_of_query in (text, rest))
        first, second = hits[0].row, hits[1].row
        assert effect.effect == pytest.approx(before[first] - after[first], abs=1e-5)
        lead = (before[first] - before[second]) - (after[first] - after[second])
        assert effect.lead == pytest.approx(lead, abs=1e-5)


def test_words() -> None:
    text = "Two dogs' half-eaten  cake, 3 o'clock — naïve!"
    assert [word[0] for word in words_of(text)] == ["Two", "dogs", "half-eaten", "cake", "3", "o'clock", "naïve"]
    gallery = SearchGallery(encode(["a dog", "the car"]))
    shortened: list[str] = []
    text = "a red dog"
    hits = gallery.search(encode([text]), 2)
    word_effects(text, hits, gallery, lambda texts: shortened.extend(texts) or encode(texts))
    assert shortened == ["red dog", "a dog", "a red"]
    long = " ".join(["dog"] * 100)
    assert len(word_effects(long, gallery.search(encode([long]), 2), gallery, encode)) == MOST_WORDS
    assert word_effects("dog !!", gallery.search(encode(["dog"]), 2), gallery, encode) == []


def test_sentences_are_checked() -> None:
    assert check_text("  a \n dog ") == "a dog"
    with pytest.raises(InputError, match="empty"):
        check_text(" \n ")
    with pytest.raises(InputError, match="1,001 characters"):
        check_text("x" * 1001)


def test_shared_words() -> None:
    assert shared_words("a red dog on the sofa", ("The RED dog", "a cat")) == [["red", "dog"], []]
