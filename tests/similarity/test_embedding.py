"""Cosines under a text encoder, from any room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.encode.similarity import embedding_similarity
from crosslens.similarity import EmbeddingSimilarity, load_similarity

REFERENCES = [["a dog", "the dog runs"], [], ["cats sit"], ["a b c", "zebra", "dog"]]
CAPTIONS = ["a dog", "zzz", "cats sit", "the end"]


class Letters:
    """How often each letter occurs, less its usual share: some cosines are negative."""

    revision = "one"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.array([[text.count(chr(97 + n)) - 0.3 for n in range(26)] for text in texts], np.float32)


def expected(over: str) -> np.ndarray:
    def unit(text: str) -> np.ndarray:
        vector = Letters().encode_texts([text])[0].astype(np.float64)
        return vector / np.linalg.norm(vector)

    out = np.zeros((len(REFERENCES), len(CAPTIONS)))
    for row, image in enumerate(REFERENCES):
        for column, caption in enumerate(CAPTIONS):
            cosines = [float(unit(text) @ unit(caption)) for text in image]
            if cosines:
                out[row, column] = max(cosines) if over == "max" else sum(cosines) / len(cosines)
    return out


@pytest.mark.parametrize("over", ["mean", "max"])
def test_mean_and_maximum_over_the_references(over: str) -> None:
    encoder = Letters()
    similarity = embedding_similarity(encoder, over)  # type: ignore[arg-type]
    prepared = similarity.prepare(REFERENCES, CAPTIONS)
    result = prepared.block(slice(None))
    assert result.dtype == np.float32
    assert result.min() < 0
    np.testing.assert_allclose(result, expected(over), atol=1e-6)
    np.testing.assert_allclose(prepared.block(slice(1, 3)), result[1:3], atol=1e-6)
    rows, columns = (part.ravel() for part in np.indices(result.shape))
    np.testing.assert_allclose(prepared.pairs(rows, columns), result.ravel(), atol=1e-6)
    assert sorted(encoder.seen) == sorted({*CAPTIONS, *(text for image in REFERENCES for text in image)})


LIMIT = "CROSSLENS_MAX_VECTOR_BYTES"


def stored_captions(folder: Path, kind: Any = np.float32) -> cl.Dataset:
    """The captions of :data:`REFERENCES` and their letters in shards."""
    dataset = cl.Dataset.of({f"i{row}": texts for row, texts in enumerate(REFERENCES) if texts})
    dataset = dataset.with_extra_images(["alone"])
    folder.mkdir()
    for number, part in enumerate(np.array_split(Letters().encode_texts(dataset.texts), 3)):
        np.save(folder / f"text_{number}.npy", part.astype(kind))
    return dataset


@pytest.mark.parametrize("over", ["embed", "embed-max"])
@pytest.mark.parametrize("limit", ["1", "1000000"])
def test_vectors_in_files_are_as_good_as_an_encoder(tmp_path, monkeypatch, over, limit):
    from crosslens.similarity import embedding

    for name in ("_PAIR_NUMBERS", "_REFERENCE_NUMBERS", "_CAPTION_NUMBERS"):
        monkeypatch.setattr(embedding, name, 60)  # two vectors at a time
    monkeypatch.setenv(LIMIT, limit)
    dataset = stored_captions(tmp_path / "text")
    stored = load_similarity(f"{over}:vectors:{tmp_path / 'text'}")
    matrix = cl.relevance_matrix(dataset, stored)
    encoded = cl.relevance_matrix(dataset, embedding_similarity(Letters(), "max" if over == "embed-max" else "mean"))
    np.testing.assert_allclose(matrix, encoded, atol=1e-6)
    assert not matrix[-1].any()
    rows, columns = np.random.default_rng(0).permutation(np.argwhere(np.ones(matrix.shape)))[:9].T
    monkeypatch.setattr("crosslens.similarity.protocol._FILLED", 0)
    pairs = cl.similarity.relevance_pairs(dataset, stored, rows, columns)
    np.testing.assert_allclose(pairs, matrix[rows, columns], atol=1e-6)


def test_vectors_in_files_belong_to_their_captions(tmp_path):
    dataset = stored_captions(tmp_path / "text")
    stored = load_similarity(f"embed:vectors:{tmp_path / 'text'}")
    before = stored.revision
    with pytest.raises(UsageError, match="no vectors for other texts"):
        stored.prepare(REFERENCES, CAPTIONS)
    with pytest.raises(InputError, match=r"caption embeddings of shape \(6, 26\) for 1 captions"):
        cl.relevance_matrix(cl.Dataset.of({"x": ["one"]}), stored)
    np.save(tmp_path / "text" / "text_0.npy", np.zeros((2, 26), np.float32))
    changed = load_similarity(f"embed:vectors:{tmp_path / 'text'}")
    assert changed.revision != before
    with pytest.raises(InputError, match=r"text_0\.npy, row 0: a vector of zeros"):
        cl.relevance_matrix(dataset, changed)


def test_named_after_the_encoder() -> None:
    assert embedding_similarity(Letters(), "max").name.startswith("embed-max:")
    assert embedding_similarity(Letters()).revision == "one"


def test_a_vector_without_direction_names_the_text() -> None:
    similarity = EmbeddingSimilarity("nothing", "1", lambda texts, progress: np.zeros((len(texts), 3)))
    with pytest.raises(InputError, match="'a dog' is zero"):
        similarity.prepare([["a dog"]], ["a dog"])


def test_without_an_encoder_it_says_how() -> None:
    with pytest.raises(UsageError, match="embed-max:sentence:"):
        load_similarity("embed-max")


def test_found_from_below_without_importing_the_encoders() -> None:
    script = "from crosslens.similarity import SIMILARITIES; import sys; before = 'crosslens.encode' in sys.modules; "
    script += "assert not before; assert 'embed' in SIMILARITIES and 'embed-max' in SIMILARITIES; "
    script += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_matrix_under_an_encoder_of_ones_own() -> None:
    dataset = cl.Dataset.of({"x": ["a dog", "the dog runs"], "y": ["cats sit"]})
    matrix = cl.relevance_matrix(dataset, embedding_similarity(Letters(), "max"))
    np.testing.assert_allclose(matrix[[0, 0, 1], [0, 1, 2]], 1, atol=1e-6)
