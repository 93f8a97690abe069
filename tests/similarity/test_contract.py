"""What every registered φ promises: the same number however it is computed, documentation, and errors that help."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, MissingExtraError, UsageError
from crosslens.similarity import SIMILARITIES, PreparedSimilarity, Similarity, load_similarity

REFERENCES = [
    ["a brown dog runs on the green grass", "two dogs play outside", "a dog with a ball"],
    ["a man rides a red bicycle", "the cyclist on a street"],
    [],
    ["three white plates on a wooden table"],
]
CAPTIONS = ["a dog runs on grass", "a red bicycle", "a man and a dog", "white plates", "a man rides a red bicycle"]

SOURCES = {"embed": ":tiny", "embed-max": ":tiny"}
"""What to load where a name alone does not say enough."""
ROUNDED = ("embed", "embed-max")
"""φ whose numbers come out of matrix products in float32."""

ELSEWHERE = {"semantic", "spice-attribute", "spice-cardinality", "spice-colour", "spice-relation", "spice-size"}
"""The same code as spice-object, of other parts of one graph; what semantic computes is in test_semantic."""

every = pytest.mark.parametrize(
    "name",
    [pytest.param(entry.name, marks=pytest.mark.slow if entry.name in ELSEWHERE else ()) for entry in SIMILARITIES],
)


@cache
def load(name: str) -> Similarity:
    options: dict[str, Any] = {"offline": True, "cache": False} if name.startswith(("embed", "semantic")) else {}
    try:
        return load_similarity(name + SOURCES.get(name, ""), **options)
    except MissingExtraError as error:
        pytest.skip(str(error))


def prepare(name: str, images: list[int] | None = None, captions: list[int] | None = None, **how: Any) -> Any:
    references = [REFERENCES[row] for row in images or range(len(REFERENCES))]
    texts = [CAPTIONS[row] for row in captions or range(len(CAPTIONS))]
    try:
        return load(name).prepare(references, texts, **how)
    except MissingExtraError as error:
        pytest.skip(str(error))


@cache
def prepared_once(name: str) -> Any:
    return prepare(name)


@cache
def matrix(name: str) -> np.ndarray[Any, Any]:
    return np.asarray(prepared_once(name).block(slice(None)))


def assert_same(name: str, first: Any, second: Any) -> None:
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-6 if name in ROUNDED else 0)


@every
def test_shape_and_type(name: str) -> None:
    prepared = prepared_once(name)
    assert isinstance(prepared, PreparedSimilarity)
    assert prepared.shape == matrix(name).shape == (len(REFERENCES), len(CAPTIONS))
    assert matrix(name).dtype == np.float32
    assert np.isfinite(matrix(name)).all()
    assert not matrix(name)[2].any(), "an image without references has a row of zeros"
    assert len(np.unique(matrix(name))) > 1 or name in ("spice-size", "spice-cardinality")


@every
@pytest.mark.parametrize("filled", [0, 4], ids=["one by one", "as a grid"])
def test_a_block_equals_its_pairs(name: str, filled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.similarity.protocol._FILLED", filled)
    images, captions = np.divmod(np.arange(matrix(name).size), len(CAPTIONS))
    order = np.random.default_rng(0).permutation(len(images))
    pairs = prepared_once(name).pairs(images[order], captions[order])
    assert pairs.dtype == np.float32
    assert_same(name, pairs, matrix(name).reshape(-1)[order])
    assert len(prepared_once(name).pairs(images[:0], captions[:0])) == 0


@every
@pytest.mark.parametrize("height", [1, 3])
def test_tiles_do_not_matter(name: str, height: int) -> None:
    prepared = prepared_once(name)
    tiles = [prepared.block(slice(start, start + height)) for start in range(0, len(REFERENCES), height)]
    assert_same(name, np.concatenate(tiles), matrix(name))


@every
def test_order_does_not_matter(name: str) -> None:
    images, captions = [3, 0, 2, 1], [4, 2, 0, 3, 1]
    assert_same(name, prepare(name, images, captions).block(slice(None)), matrix(name)[np.ix_(images, captions)])


@every
def test_threads_do_not_matter_and_runs_repeat(name: str) -> None:
    for threads in (1, 3):
        assert_same(name, prepare(name, threads=threads).block(slice(None)), matrix(name))


@every
def test_it_is_documented(name: str) -> None:
    entry = SIMILARITIES[name]
    page = (Path(__file__).parents[2] / "docs" / "reference" / "similarities.md").read_text(encoding="utf-8")
    assert entry.summary.endswith("."), "the summary is a sentence"
    assert f"`{name}`" in page or f"## {name}" in page
    assert "extra" in entry.details or "example" in entry.details
    assert load(name).name.startswith(name)


@every
@pytest.mark.parametrize("source", ["no-such-source", "no:such:source"])
def test_a_bad_source_says_so(name: str, source: str) -> None:
    with pytest.raises(CrosslensError, match=f"{source}|unknown encoder 'no'"):
        load_similarity(f"{name}:{source}").prepare(REFERENCES, CAPTIONS)


@every
def test_bad_input_says_so(name: str) -> None:
    load(name)
    with pytest.raises(UsageError, match="has no option 'colour'") as caught:
        load_similarity(name, colour="red")
    assert caught.value.option == "colour"
    dataset = cl.Dataset.of({str(row): texts for row, texts in enumerate(REFERENCES) if texts})
    for images, captions in (([-1], [0]), ([0], [99]), ([0, 1], [0])):
        with pytest.raises(UsageError):
            cl.similarity.relevance_pairs(dataset, load(name), np.array(images), np.array(captions))
