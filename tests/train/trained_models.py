"""Small trained models for tests of what is done with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import crosslens.train.stored.encoder  # noqa: F401  # where crosslens is installed, an entry point imports it
from crosslens.encode import encode_dataset, load_encoder, save_encoded
from crosslens.train import MODELS, Trained, TrainingData, TrainingRecipe, load_features, train_model
from crosslens.values import Dataset

from .conftest import changed, small_recipe, write_flickr8k

PAIRS = "test-pairs"


def train_on_files(
    folder: Path,
    data: TrainingData,
    recipe: TrainingRecipe | None = None,
    options: Mapping[str, Any] | None = None,
    **settings: object,
) -> Trained:
    """Written as Flickr8k's files in ``folder/data`` (once), trained into ``folder/model``."""
    if not (folder / "data").exists():
        write_flickr8k(folder / "data", data)
    recipe = changed(recipe or small_recipe(), **{"epochs": 2, **settings})
    return train_model(
        recipe, load_features("flickr8k", folder / "data", options or {}), folder / "model", overwrite=True
    )


def write_pictures(folder: Path, count: int = 6) -> dict[str, Dataset]:
    """Three splits of drawn pictures (JSON lines), each encoded by ``tiny`` into a folder of its name."""
    stream = np.random.default_rng(0)
    datasets = {}
    for split in ("train", "validation", "test"):
        captions = {}
        for number in range(count):
            name = f"{split}-{number}.png"
            colour = stream.integers(0, 255, 3)
            pixels = np.full((16, 16, 3), colour, np.uint8)
            pixels[: 2 + number] = 255 - pixels[: 2 + number]
            (folder / "pictures").mkdir(exist_ok=True, parents=True)
            Image.fromarray(pixels).save(folder / "pictures" / name)
            captions[name] = [f"a picture with {number} lines", f"{'dark' if colour.sum() < 380 else 'bright'} lines"]
        dataset = Dataset.of(captions, name=split)
        dataset.save(folder / f"{split}-captions")
        save_encoded(encode_dataset(dataset, load_encoder("tiny"), image_folder=folder / "pictures"), folder / split)
        datasets[split] = dataset
    return datasets


def train_on_pictures(folder: Path, encoder: str = "") -> Trained:
    """A model of what ``tiny`` makes of pictures."""
    write_pictures(folder / "data")
    options = {split: f"{split}-captions" for split in ("train", "validation", "test")}
    options |= {"encoder": encoder} if encoder else {}
    recipe = changed(small_recipe(), epochs=1, batch_size=4)
    return train_model(recipe, load_features("embeddings", folder / "data", options), folder / "model")


@contextmanager
def pair_model() -> Iterator[str]:
    """A model without vectors, registered meanwhile: words look for their best region, as in cross-attention."""
    import torch
    from torch import nn

    @MODELS.register(PAIRS)
    class Pairs(nn.Module):
        """Attention of words over two halves of a feature."""

        def __init__(self, shape: Any, *, dimension: int = 8, offsets: Any = (0.0,)) -> None:
            super().__init__()
            self.words = nn.Embedding(shape.words, dimension, padding_idx=0)
            self.image = nn.Linear(shape.vector // 2, dimension)
            self.register_buffer("offset", torch.tensor(float(sum(offsets))))

        def encode_images(self, images: Any) -> tuple[Any, Any]:
            halves = images.pooled().unflatten(1, (2, -1))
            return self.image(halves), halves.sum(dim=(1, 2))

        def encode_captions(self, captions: Any) -> tuple[Any, Any]:
            return self.words(captions.words), captions.words > 0

        def scores(self, images: tuple[Any, Any], captions: tuple[Any, Any]) -> Any:
            words, mask = captions
            best = torch.einsum("ird,ctd->ictr", images[0], words).amax(dim=3)
            sums = (best * mask[None]).sum(dim=2) / mask.sum(dim=1)
            return sums + self.offset + 0.001 * images[1][:, None]

    try:
        yield PAIRS
    finally:
        MODELS._entries.pop(PAIRS)
