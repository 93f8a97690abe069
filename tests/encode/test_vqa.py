"""VQAScore of a local model: the probability of "Yes" as a slow forward pass has it, one pair at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.encode import PAIR_SCORERS, load_pair_scorer
from tests.encode.tiny_models import TEXTS, pictures, save_llava
from tests.extras import skip_without

skip_without("encoders", "transformers")

TEMPLATE = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %} {{ part['text'] }}{% endif %}{% endfor %}{% endfor %} a"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llava(tmp_path_factory.mktemp("llava"))


def slow_scores(folder: Path, prompts: list[str]) -> list[float]:
    """One pair at a time: the softmax after the last token, at the token yes."""
    import torch
    from transformers import AutoProcessor, LlavaForConditionalGeneration

    model = LlavaForConditionalGeneration.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    yes = processor.tokenizer.get_vocab()["yes"]
    scores = []
    for picture, prompt in zip(pictures(), prompts, strict=True):
        inputs = processor(images=picture, text=prompt, return_tensors="pt")
        with torch.inference_mode():
            logits = model(**inputs).logits[0, -1]
        scores.append(float(torch.softmax(logits, 0)[yes]))
    return scores


def asked(text: str) -> str:
    return f'Does this figure show "{text}"? Please answer yes or no.'


def test_it_is_the_probability_of_yes(folder: Path) -> None:
    scorer = load_pair_scorer(f"vqa:{folder}")
    expected = slow_scores(folder, [f"<image>\n{asked(text)}" for text in TEXTS])
    scores = scorer.score_pairs(pictures(), TEXTS)
    np.testing.assert_allclose(scores, expected, rtol=1e-4)  # texts of different lengths in one batch
    assert len({round(score, 8) for score in scores.tolist()}) == len(TEXTS)
    assert ((scores > 0) & (scores < 1)).all()


def test_a_chat_template_is_used(tmp_path: Path) -> None:
    folder = save_llava(tmp_path / "chat", template=TEMPLATE)
    scores = load_pair_scorer(f"vqa:{folder}").score_pairs(pictures(), TEXTS)
    np.testing.assert_allclose(scores, slow_scores(folder, [f"<image> {asked(text)} a" for text in TEXTS]), rtol=1e-4)


def test_it_scores_the_pairs_of_a_dataset(folder: Path, photos: cl.Dataset, tmp_path: Path) -> None:
    from crosslens.analyze import ImageCaptionPairs
    from crosslens.encode import EncodeOptions

    pairs = ImageCaptionPairs.of_captions(photos)
    scores = pairs.from_pair_model(load_pair_scorer(f"vqa:{folder}"), EncodeOptions(image_folder=tmp_path / "photos"))
    assert scores.shape == (12,)
    assert np.isfinite(scores).all()


def test_mistakes_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_pair_scorer(f"vqa:{tmp_path / 'nowhere'}")
    with pytest.raises(UsageError, match=r"no model is named for http://127.0.0.1/v1"):
        load_pair_scorer("vqa:http://127.0.0.1/v1")
    with pytest.raises(UsageError, match="on the network"):
        load_pair_scorer("vqa:https://example.org/v1?model=x", offline=True)
    assert "vqa" in PAIR_SCORERS.names()
