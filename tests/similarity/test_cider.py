"""CIDEr against an obvious reference, against the captioning package, and against itself."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.language import tokenize
from crosslens.similarity import Cider, load_similarity, references_of, relevance_matrix
from crosslens.values import Dataset

Grams = Counter[tuple[str, ...]]


def grams_of(text: str) -> list[Grams]:
    words = text.lower().split()
    return [Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1)) for n in (1, 2, 3, 4)]


def obvious(
    references: Sequence[Sequence[str]], caption: str, image: int, corpus: Sequence[Sequence[str]], plain: bool
) -> float:
    """CIDEr of one cell, word for word from its definition."""
    images = [texts for texts in corpus if texts]

    def weight(gram: tuple[str, ...]) -> float:
        holding = sum(any(gram in grams_of(text)[len(gram) - 1] for text in texts) for texts in images)
        return math.log(max(len(images), 1)) - math.log(max(1, holding))

    candidate = grams_of(caption)
    total = 0.0
    for text in references[image]:
        reference = grams_of(text)
        penalty = math.exp(-((sum(candidate[1].values()) - sum(reference[1].values())) ** 2) / (2 * 6.0**2))
        for h, r in zip(candidate, reference, strict=True):
            norms = [math.sqrt(sum((count * weight(gram)) ** 2 for gram, count in grams.items())) for grams in (h, r)]
            shared = 0.0
            for gram in h:
                mine, theirs = h[gram] * weight(gram), r[gram] * weight(gram)
                shared += (mine if plain else min(mine, theirs)) * theirs
            if norms[0] and norms[1]:
                shared /= norms[0] * norms[1]
            total += shared * (1.0 if plain else penalty)
    return 10 * total / 4 / len(references[image]) if references[image] else 0.0


WORD = st.sampled_from(["a", "a", "dog", "cat", "runs", "on", "the", "red", "mat"])
TEXT = st.lists(WORD, min_size=1, max_size=7).map(" ".join)
REFERENCES = st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=4)


@given(REFERENCES, st.lists(TEXT, min_size=1, max_size=4), st.booleans(), st.none() | REFERENCES)
def test_every_cell_is_what_the_definition_says(
    references: list[list[str]], captions: list[str], plain: bool, df: list[list[str]] | None
) -> None:
    prepared = Cider("split", df, plain=plain).prepare(references, captions)
    result = prepared.block(slice(None))
    corpus = references if df is None else df
    expected = [
        [obvious(references, caption, image, corpus, plain) for caption in captions] for image in range(len(references))
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    images, places = (part.ravel() for part in np.indices(result.shape))
    np.testing.assert_array_equal(prepared.pairs(images, places), result.ravel())


WORDS = [
    "a",
    "the",
    "on",
    "of",
    "dog",
    "cat",
    "man",
    "red",
    "blue",
    "big",
    "runs",
    "sits",
    "holds",
    "mat",
    "tree",
    "in",
]


def captions_like(rng: np.random.Generator, images: int) -> list[list[str]]:
    words = np.array(WORDS)
    chance = 1 / np.arange(1, len(words) + 1)
    return [
        [
            " ".join(rng.choice(words, rng.integers(3, 15), p=chance / chance.sum())) + "."
            for _ in range(rng.integers(1, 6))
        ]
        for _ in range(images)
    ]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_equal_to_the_bit_at_any_number_of_threads_and_in_any_blocks(threads: int) -> None:
    references = captions_like(np.random.default_rng(0), 60)
    captions = [text for image in references for text in image]
    whole = Cider().prepare(references, captions, threads=1).block(slice(None))
    prepared = Cider().prepare(references, captions, threads=threads)
    parts = [prepared.block(slice(start, start + 7)) for start in range(0, 60, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def peer_scores(references: list[list[str]], captions: list[str], images: list[int], places: list[int]) -> np.ndarray:
    """pycocoevalcap's numbers for single cells: document frequencies of all images, then these pairs."""
    scorer = pytest.importorskip("pycocoevalcap.cider.cider_scorer", reason="pip install pycocoevalcap")
    written = [[" ".join(tokens) for tokens in tokenize(image)] for image in references]
    peer = scorer.CiderScorer()
    for image in written:
        peer += (image[0], image)
    peer.compute_doc_freq()
    # It takes the number of images from the number of pairs, so pairs are given in as many at a time.
    result: list[float] = []
    cooked, texts = peer.crefs, [" ".join(tokens) for tokens in tokenize(captions)]
    for start in range(0, len(images), len(references)):
        some = slice(start, start + len(references))
        fill = len(references) - len(images[some])
        peer.crefs = [cooked[image] for image in images[some]] + cooked[:1] * fill
        peer.ctest = [scorer.cook_test(texts[row]) for row in places[some]] + cooked[0][:1] * fill
        result += peer.compute_cider()[: len(images[some])]
    return np.array(result)


def test_equal_to_the_captioning_package() -> None:
    references = captions_like(np.random.default_rng(1), 20)
    captions = [text for image in references for text in image]
    cells = [part.ravel().tolist() for part in np.indices((20, len(captions)))]
    result = Cider().prepare(references, captions).block(slice(None))
    np.testing.assert_allclose(result.ravel(), peer_scores(references, captions, *cells), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_equal_to_the_captioning_package_on_coco(shared_data: Path) -> None:
    with gzip.open(shared_data / "coco_karpathy_test" / "captions.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    by_image: dict[str, list[str]] = {}
    for _, image, text in rows:
        by_image.setdefault(image, []).append(text)
    references = list(by_image.values())
    captions = [text for image in references for text in image]
    prepared = Cider().prepare(references, captions)
    rng = np.random.default_rng(0)
    images, places = rng.integers(0, 5000, 5000), rng.integers(0, len(captions), 5000)
    images[:1000] = np.searchsorted(np.cumsum([len(texts) for texts in references]), places[:1000], "right")
    result = prepared.pairs(images, places)
    expected = peer_scores(references, captions, images.tolist(), places.tolist())
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)
    row = int(images[0])
    here = images == row
    np.testing.assert_array_equal(prepared.block(slice(row, row + 1))[0, places[here]], result[here])


def test_a_caption_of_the_image_keeps_its_own_value() -> None:
    dataset = Dataset.of({"a": ["a red dog runs fast"], "b": ["two cats sit on mats"]})
    np.testing.assert_allclose(relevance_matrix(dataset), [[10, 0], [0, 10]], atol=1e-6)


def test_one_image_knows_nothing_rare() -> None:
    dataset = Dataset.of({"a": ["a dog", "a red dog"]})
    np.testing.assert_array_equal(relevance_matrix(dataset), np.zeros((1, 2)))
    df_dataset = Dataset.of({"x": ["a dog"], "y": ["the cat"]})
    assert relevance_matrix(dataset, load_similarity("cider", df=df_dataset)).min() > 0


def test_an_image_without_captions_has_a_row_of_zeros_and_counts_for_nothing() -> None:
    with_it = Cider().prepare([["a dog"], [], ["the cat"]], ["a dog"]).block(slice(None))
    without = Cider().prepare([["a dog"], ["the cat"]], ["a dog"]).block(slice(None))
    assert with_it[:, 0].tolist() == [without[0, 0], 0, without[1, 0]]


def test_the_corpus_and_the_tokenizer_show_in_name_and_revision() -> None:
    dataset = Dataset.of({"a": ["a dog"], "b": ["a cat"]})
    assert load_similarity("cider:split").name == "cider:split"
    assert load_similarity("cider-plain").name == "cider-plain"
    plain, counted = load_similarity("cider"), load_similarity("cider", df=dataset)
    assert plain.revision != counted.revision == load_similarity("cider", df=references_of(dataset)).revision
