"""Text-only retrieval: who asks, what stands for an image, and the published table on real captions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.encode import Cache, text_only
from tests.encode.conftest import Counting

DATASET = cl.Dataset.of({"a": ["one", "three", "seven aa"], "b": ["x", "yyyy"], "c": ["a b", "c", "dd", "e"]})


def test_one_asks_the_others_stand_for_the_image(counting: Counting) -> None:
    encoded = text_only(DATASET, counting, cache=Cache())
    assert encoded.dataset.texts == ("one", "x", "a b")
    assert encoded.captions.ids == ("a#0", "b#0", "c#0")
    assert encoded.images.ids == ("a", "b", "c")
    expected = np.stack(
        [Counting().encode_texts(texts).mean(axis=0) for texts in (["three", "seven aa"], ["yyyy"], ["c", "dd", "e"])]
    )
    np.testing.assert_allclose(encoded.images.vectors, expected)
    np.testing.assert_allclose(encoded.captions.vectors, Counting().encode_texts(["one", "x", "a b"]))


def test_any_caption_may_ask(counting: Counting) -> None:
    encoded = text_only(DATASET, counting, query=1)
    assert encoded.dataset.texts == ("three", "yyyy", "c")
    np.testing.assert_allclose(encoded.images.vectors[1], Counting().encode_texts(["x"])[0])


def test_a_summary_stands_for_the_image(counting: Counting) -> None:
    encoded = text_only(DATASET, counting, image_text="extractive")
    assert "yyyy" in counting.seen
    np.testing.assert_allclose(encoded.images.vectors[1], Counting().encode_texts(["yyyy"])[0])


def test_images_need_two_captions(counting: Counting) -> None:
    with pytest.raises(InputError, match="image 'b' has 1 captions"):
        text_only(cl.Dataset.of({"a": ["one", "two"], "b": ["one"]}), counting)
    with pytest.raises(InputError, match="image 'b'"):
        text_only(DATASET, counting, query=2)
    with pytest.raises(UsageError, match="-1"):
        text_only(DATASET, counting, query=-1)


def test_an_encoder_of_images_cannot(counting: Counting) -> None:
    counting.abilities = frozenset(("images",))
    with pytest.raises(UsageError, match="not texts"):
        text_only(DATASET, counting)


@pytest.mark.slow
def test_the_published_table(shared_data: Path, tmp_path: Path) -> None:
    """paraphrase-MiniLM-L3-v2 on Flickr8k, to the fourth digit (make reproduce-flickr8k does both models)."""
    from crosslens.encode.adapters.onnx import OnnxEncoder, TextTower
    from tests.encode.test_onnx import real_files

    model, words = real_files()
    dataset = cl.load_dataset("flickr", captions=shared_data / "flickr8k" / "Flickr8k.token.txt")
    encoder = OnnxEncoder(text=TextTower(str(model), str(words), output="461", longest=128))
    encoded = text_only(dataset, encoder, cache=Cache())
    run = cl.evaluate(
        encoded.dataset, images=encoded.images, captions=encoded.captions, directions=["t2t"], resamples=0,
        metrics="Hit@1 Hit@5 Hit@10 MRR@5 MRR@10 MRR MedR",
    )  # fmt: skip
    figures = [round(metric.mean, 4) for metric in run.values.values()]
    assert figures == [0.5399, 0.7736, 0.8544, 0.6293, 0.6403, 0.6467, 1]
