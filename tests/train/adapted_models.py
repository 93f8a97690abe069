"""Tiny random models of the transformers library, pictures and captions, and recipes that adapt those models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.encode import Pretrained
from crosslens.train import CaptionBatch, InputShape, TrainingData, TrainingRecipe, TrainingSettings, load_features
from tests.encode.tiny_models import BERT, TEXTS, pictures, save_model, save_tokenizer

from .conftest import changed, small_recipe

SPLITS = {"train": 8, "dev": 4, "test": 4}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny random models on disk."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bases")
    models = {kind: save_model(kind, folder / kind) for kind in ("clip", "siglip")}
    torch.manual_seed(1)
    BertModel(BertConfig(**BERT)).save_pretrained(folder / "bert")
    save_tokenizer(folder / "bert")
    return {**models, "bert": folder / "bert"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures and captions in the layout of Flickr8k."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "images").mkdir()
    images, lines = (picture for seed in range(4) for picture in pictures(4, seed)), list[str]()
    for split, count in SPLITS.items():
        names = [f"{split}{number}.png" for number in range(count)]
        for name in names:
            next(images).save(folder / "images" / name)
            lines += [f"{name}#{k}\t{TEXTS[(len(lines) + k) % 4]} and {split}" for k in range(5)]
        (folder / f"Flickr_8k.{split}Images.txt").write_text("\n".join(names) + "\n")
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path_factory.getbasetemp() / "pixel-cache"))


def adapted(kind: str = "clip", **settings: Any) -> TrainingRecipe:
    return TrainingRecipe(
        "adapted", "", "images", {}, "dual-encoder", {"lora_rank": 2, **settings},
        ({"kind": "infonce", "temperature": 0.1, "learnt": True},),
        settings=TrainingSettings(epochs=3, batch_size=10, learning_rate=0.01, device="cpu", threads=1),
    )  # fmt: skip


def with_pixels(folder: Path, base: Path) -> TrainingData:
    return load_features("images", folder, {"encoder": str(base)})


def text_recipe(bases: dict[str, Path], **settings: Any) -> TrainingRecipe:
    model = {"dimension": 16, "text": "encoder", **settings}
    return replace(changed(small_recipe(), epochs=2), model_settings=model, text_model=str(bases["bert"]))


@cache
def shape_of(folder: Path) -> InputShape:
    """What a model on this encoder, as it is when first asked for, is built for."""
    base = Pretrained(str(folder))
    return InputShape(0, 0, encoder=base.model, revision=base.revision)


def tokens_of(folder: Path, texts: list[str] = TEXTS) -> CaptionBatch:
    """Captions as this encoder reads them."""
    import torch

    tokens = Pretrained(str(folder)).tokens(texts)
    return CaptionBatch(None, None, None, torch.from_numpy(tokens.ids), torch.from_numpy(np.asarray(tokens.mask)))
