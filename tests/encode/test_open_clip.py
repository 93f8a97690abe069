"""The open_clip adapter, with a small module in the library's place."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="pip install 'crosslens[encoders]'")

import torch

from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.encode import load_encoder
from crosslens.storage import is_offline
from tests.encode.tiny_models import TEXTS, pictures


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.visual = torch.nn.Linear(3 * 8 * 8, 6)
        self.visual.output_dim = 6
        self.words = torch.nn.Embedding(256, 6)
        self.logit_scale = torch.nn.Parameter(torch.tensor(2.0))

    def encode_image(self, pixels: Any) -> Any:
        return self.visual(pixels.flatten(1))

    def encode_text(self, tokens: Any) -> Any:
        return self.words(tokens).mean(dim=1)


def transform(picture: Any) -> Any:
    return torch.tensor(np.asarray(picture.resize((8, 8)), np.float32).transpose(2, 0, 1) / 255)


def tokenize(texts: list[str]) -> Any:
    return torch.tensor([list(text.encode()[:12].ljust(12, b"\0")) for text in texts])


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("open_clip")
    module.calls = []  # type: ignore[attr-defined]

    def create(architecture: str, pretrained: str) -> tuple[Any, Any, Any]:
        module.calls.append((architecture, pretrained))  # type: ignore[attr-defined]
        if architecture != "ViT-tiny":
            raise RuntimeError(f"Model config for {architecture} not found.\nmore lines")
        return Model(len(pretrained)), None, transform

    module.create_model_and_transforms = create  # type: ignore[attr-defined]
    module.get_tokenizer = lambda architecture: tokenize  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "open_clip", module)
    return module


def test_it_is_the_library_s_own_call(stand_in: types.ModuleType) -> None:
    messages: list[str] = []
    encoder = load_encoder("openclip:ViT-tiny/toy", device="cpu", notify=messages.append)
    model = Model(3).eval()
    with torch.inference_mode():
        images = model.encode_image(torch.stack([transform(picture) for picture in pictures()])).numpy()
        texts = model.encode_text(tokenize(TEXTS)).numpy()
    np.testing.assert_allclose(encoder.encode_images(pictures()), images, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS[:1]), texts[:1], atol=1e-5)
    assert (encoder.dimension, encoder.logit_scale) == (6, pytest.approx(np.exp(2.0)))
    assert "fetches the weights" in messages[0], "announced before it can happen"
    assert stand_in.calls == [("ViT-tiny", "toy")]


def test_other_weights_are_another_revision(stand_in: types.ModuleType) -> None:
    toy, same, other_weights = (
        load_encoder(f"openclip:ViT-tiny/{tag}", device="cpu") for tag in ("toy", "toy", "other")
    )
    assert toy.revision == same.revision != other_weights.revision


def test_a_weights_file_needs_no_network(stand_in: types.ModuleType, tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_bytes(b"")
    messages: list[str] = []
    load_encoder(f"openclip:ViT-tiny/{tmp_path}/weights.pt", device="cpu", notify=messages.append)
    assert stand_in.calls == [("ViT-tiny", f"{tmp_path}/weights.pt")]
    assert messages == []


def test_offline_is_passed_on(stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="pip install 'crosslens[encoders]'")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    create, modes = stand_in.create_model_and_transforms, []

    def noting(*arguments: Any, **options: Any) -> Any:
        modes.append((os.environ["HF_HUB_OFFLINE"], hub.constants.HF_HUB_OFFLINE, is_offline()))
        return create(*arguments, **options)

    monkeypatch.setattr(stand_in, "create_model_and_transforms", noting)
    load_encoder("openclip:ViT-tiny/toy", device="cpu", offline=True)
    assert modes == [("1", True, True)]
    assert (os.environ["HF_HUB_OFFLINE"], hub.constants.HF_HUB_OFFLINE) == ("0", False), "the next model may be fetched"


def test_mistakes_are_explained(stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="which weights"):
        load_encoder("openclip:ViT-tiny")
    with pytest.raises(InputError, match="not found"):
        load_encoder("openclip:ViT-huge/toy", device="cpu")
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtraError, match="open_clip_torch"):
        load_encoder("openclip:ViT-tiny/toy", device="cpu")
