"""Vectors of words: what a tokenizer's pieces add up to, and encoders that have none."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.core import UsageError
from crosslens.encode.adapters.onnx import TINY, OnnxEncoder, TextTower
from crosslens.encode.encoder import word_vectors


def test_pieces_of_a_word_add_their_directions() -> None:
    vectors = np.array([[9, 9], [3, 0], [0, 5], [4, 0], [9, 9]], np.float32)
    offsets = [(0, 0), (0, 4), (4, 7), (8, 11), (0, 0)]
    words, sums = word_vectors([None, 0, 0, 1, None], offsets, "Skateboard".replace("ard", "") + " dog", vectors)
    assert words == ["Skatebo", "dog"]
    np.testing.assert_allclose(sums, [[1, 1], [1, 0]], atol=1e-6)


def test_a_text_without_words() -> None:
    words, sums = word_vectors([None, None], [(0, 0), (0, 0)], "", np.ones((2, 3), np.float32))
    assert words == []
    assert sums.shape == (0, 3)


def test_a_model_without_vectors_of_tokens() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    encoder = OnnxEncoder(text=TextTower(str(TINY / "text.onnx"), str(TINY / "tokenizer.json")))
    assert not encoder.gives_words
    with pytest.raises(UsageError, match="no output with vectors of tokens"):
        encoder.encode_words(["a dog"])
