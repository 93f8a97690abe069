"""BLEU and ROUGE-L against the captioning package's own."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.core import UsageError
from crosslens.language import tokenize
from crosslens.similarity import load_similarity

from .test_cider import captions_like

REFERENCES = captions_like(np.random.default_rng(3), 12)
CAPTIONS = [text for image in REFERENCES for text in image]


def written(texts: list[str]) -> list[str]:
    return [" ".join(tokens) for tokens in tokenize(texts)]


def test_bleu() -> None:
    scorer = pytest.importorskip("pycocoevalcap.bleu.bleu_scorer", reason="pip install pycocoevalcap")
    peer, captions = scorer.BleuScorer(n=4), written(CAPTIONS)
    for image in map(written, REFERENCES):
        for caption in captions:
            peer += (caption, image)
    for longest, scores in enumerate(peer.compute_score(option="closest")[1], start=1):
        result = load_similarity(f"bleu:{longest}").prepare(REFERENCES, CAPTIONS).block(slice(None))
        np.testing.assert_allclose(result, np.reshape(scores, (len(REFERENCES), -1)), rtol=1e-5, atol=1e-7)
    assert longest == 4


def test_rouge() -> None:
    peer = pytest.importorskip("pycocoevalcap.rouge.rouge", reason="pip install pycocoevalcap").Rouge()
    captions = written(CAPTIONS)
    expected = [[peer.calc_score([caption], image) for caption in captions] for image in map(written, REFERENCES)]
    result = load_similarity("rouge-l").prepare(REFERENCES, CAPTIONS).block(slice(None))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["bleu", "rouge-l"])
def test_blocks_pairs_and_threads_agree(name: str) -> None:
    whole = load_similarity(name).prepare(REFERENCES, CAPTIONS, threads=1).block(slice(None))
    prepared = load_similarity(name).prepare(REFERENCES, CAPTIONS, threads=3)
    np.testing.assert_array_equal(prepared.block(slice(4, 9)), whole[4:9])
    rows, columns = np.array([0, 11, 3]), np.array([5, 0, 2])
    np.testing.assert_array_equal(prepared.pairs(rows, columns), whole[rows, columns])


@pytest.mark.parametrize("name", ["bleu", "rouge-l"])
def test_worked_by_hand(name: str) -> None:
    prepared = load_similarity(name).prepare([["a red dog"], []], ["a red dog", "...", "blue"])
    result = prepared.block(slice(None))
    # Three tokens have no 4-gram: BLEU-4 of a copy is 0 (up to the package's smoothing), BLEU-3 would be 1.
    assert result[0, 0] == pytest.approx(0.0316 if name == "bleu" else 1.0, abs=1e-3)
    np.testing.assert_allclose(result[0, 1:], 0, atol=1e-3)
    np.testing.assert_array_equal(result[1], 0)


@pytest.mark.parametrize("name", ["bleu:5", "bleu:x", "rouge-l:2"])
def test_what_there_is_not(name: str) -> None:
    with pytest.raises(UsageError):
        load_similarity(name)
