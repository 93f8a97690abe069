"""The file on "Models without a package" runs: with a small random model in the place of the authors' package."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.core import user_code

pytest.importorskip("torch", reason="pip install 'crosslens[torch]'")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "own-model.md"
STAND_IN = '''
from types import SimpleNamespace
import torch
from torch import nn


class TextEncoder(nn.Module):
    """Words, and in the mode "fusion" what is seen, summed up."""

    def __init__(self):
        super().__init__()
        self.words, self.mix = nn.Embedding(97, 8), nn.Linear(8, 8)

    def forward(self, input_ids=None, attention_mask=None, encoder_embeds=None, encoder_hidden_states=None,
                encoder_attention_mask=None, return_dict=True, mode="multi"):
        if mode == "text":
            states = self.words(input_ids) * attention_mask[..., None]
            states = torch.cat([states.mean(dim=1, keepdim=True), states[:, 1:]], dim=1)
            return SimpleNamespace(last_hidden_state=states)
        assert mode == "fusion" and encoder_attention_mask.shape == encoder_hidden_states.shape[:2]
        seen = encoder_hidden_states.mean(dim=1, keepdim=True)
        return SimpleNamespace(last_hidden_state=torch.tanh(self.mix(encoder_embeds) * seen))


class VisualEncoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.patches = size, nn.Conv2d(3, 8, size // 2, size // 2)

    def forward(self, image):
        assert image.shape[1:] == (3, self.size, self.size)
        return self.patches(image).flatten(2).transpose(1, 2)


class ALBEF(nn.Module):
    def __init__(self, text_encoder=None, tokenizer=None, config=None):
        super().__init__()
        self.visual_encoder, self.text_encoder = VisualEncoder(config["image_res"]), TextEncoder()
        self.vision_proj, self.text_proj = nn.Linear(8, 4), nn.Linear(8, 4)
        self.itm_head, self.temp = nn.Linear(8, 2), nn.Parameter(torch.tensor(config["temp"]))
'''
TOKENIZER = """
import zlib
import torch


class Tokens(dict):
    input_ids = property(lambda self: self["input_ids"])
    attention_mask = property(lambda self: self["attention_mask"])

    def to(self, device):
        return self


class BertTokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return cls()

    def __call__(self, texts, padding, truncation, max_length, return_tensors):
        rows = [[1] + [zlib.crc32(word.encode()) % 96 + 1 for word in text.split()][: max_length - 1] for text in texts]
        ids = torch.tensor([row + [0] * (max_length - len(row)) for row in rows])
        return Tokens(input_ids=ids, attention_mask=(ids > 0).long())
"""


@pytest.fixture
def place(photos: cl.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's file, a package called ``models``, and a checkpoint of random weights."""
    import torch

    (code,) = re.findall(r'```python title="albef.py"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "albef.py").write_text(code)
    package = tmp_path / "authors" / "models"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model_retrieval.py").write_text(STAND_IN)
    (package / "tokenization_bert.py").write_text(TOKENIZER)
    monkeypatch.syspath_prepend(str(tmp_path / "authors"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        monkeypatch.delitem(sys.modules, name)
    from models.model_retrieval import ALBEF  # type: ignore[import-not-found]

    torch.manual_seed(0)
    model = ALBEF(config={"image_res": 384, "temp": 0.07})
    torch.save({"model": model.state_dict()}, tmp_path / "weights.pth")
    monkeypatch.setenv("ALBEF_CHECKPOINT", str(tmp_path / "weights.pth"))
    photos.save(tmp_path / "dataset")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(user_code, "_FILES", dict(user_code._FILES))  # tasks of later tests would load the page's file
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]


@pytest.mark.slow
def test_the_page_s_model_finds_and_re_ranks(place: Path) -> None:
    from crosslens.encode import as_picture, load_encoder, load_pair_scorer

    command = ["evaluate", "--dataset", "./dataset", "--image-folder", "photos", "--resamples", "0"]
    model = "callable:albef.py:albef"
    assert main([*command, "--model", model, "--rerank", model, "--rerank-depth", "3", "-o", "runs/albef"]) == 0
    run = cl.Run.load("runs/albef")
    dataset = cl.load_dataset("./dataset")
    encoder, scorer = load_encoder(model), load_pair_scorer(model)
    assert encoder.revision
    assert encoder.revision == scorer.revision
    assert encoder.logit_scale == pytest.approx(1 / 0.07)
    pictures = [as_picture(place / "photos" / file) for file in dataset.images["file"]]
    images, texts = _direct(pictures, list(dataset.texts))
    np.testing.assert_allclose(encoder.encode_images(pictures), images, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(dataset.texts), texts, atol=1e-5)
    first = [scorer.score_pairs([picture] * len(dataset.texts), dataset.texts) for picture in pictures]
    cosines = _unit(images) @ _unit(texts).T
    ranking = run.rankings["i2t"]
    for row, scores in enumerate(first):
        top = sorted(range(len(scores)), key=lambda item: (-cosines[row, item], item))[:3]
        expected = sorted(top, key=lambda item: (-scores[item], item))
        assert list(ranking.top_items[row][:3]) == expected


def _unit(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _direct(pictures: list[Any], texts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The same model, called as the authors call it."""
    import torch
    from models.model_retrieval import ALBEF
    from models.tokenization_bert import BertTokenizer  # type: ignore[import-not-found]

    model = ALBEF(config={"image_res": 384, "temp": 0.07})
    model.load_state_dict(torch.load("weights.pth", weights_only=True)["model"])
    mean, std = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])
    with torch.inference_mode():
        rows = [(np.asarray(picture.resize((384, 384), resample=3)) / 255 - mean) / std for picture in pictures]
        pixels = torch.tensor(np.stack(rows), dtype=torch.float32).permute(0, 3, 1, 2)
        images = model.vision_proj(model.visual_encoder(pixels)[:, 0])
        plain = ["".join(letter for letter in text.lower() if letter not in ",.'!?") for text in texts]
        tokens = BertTokenizer()(plain, "max_length", True, 30, "pt")
        states = model.text_encoder(tokens.input_ids, attention_mask=tokens.attention_mask, mode="text")
        return images.numpy(), model.text_proj(states.last_hidden_state[:, 0]).numpy()
