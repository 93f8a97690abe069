"""A small feature set that can be learned: an image's vector is the sum of its words' vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import Dataset
from crosslens.train import ImageFeatures, Split, TrainingData, TrainingRecipe, TrainingSettings

WORDS = ["dog", "cat", "red", "blue", "runs", "sleeps", "tree", "house", "boy", "girl", "ball", "water"]
DIMENSION = 16


def made_split(name: str, count: int, seed: int) -> Split:
    meaning = np.random.default_rng(1).standard_normal((len(WORDS), DIMENSION))
    stream = np.random.default_rng(seed)
    captions, features = {}, []
    for image in range(count):
        chosen = stream.choice(len(WORDS), 4, replace=False)
        captions[f"{name}-{image}.jpg"] = [
            "a " + " ".join(WORDS[word] for word in stream.permutation(chosen)) for _ in range(5)
        ]
        features.append(meaning[chosen].sum(axis=0))
    return Split(Dataset.of(captions, name=name), ImageFeatures(np.array(features, np.float32)))


def made_data() -> TrainingData:
    return TrainingData(made_split("train", 40, 2), made_split("dev", 20, 3), made_split("test", 20, 4))


@pytest.fixture(scope="session")
def data() -> TrainingData:
    return made_data()


@pytest.fixture
def recipe() -> TrainingRecipe:
    return small_recipe()


def small_recipe() -> TrainingRecipe:
    """Trains in a fraction of a second."""
    return TrainingRecipe(
        "small", "", "precomp", {}, "vse", {"dimension": 16, "word_dimension": 8}, ({"kind": "triplet"},),
        least_count=1, settings=TrainingSettings(epochs=3, batch_size=20, learning_rate=0.01, device="cpu", threads=1),
    )  # fmt: skip


def changed(recipe: TrainingRecipe, **settings: object) -> TrainingRecipe:
    """The recipe with other settings of its training."""
    return replace(recipe, settings=replace(recipe.settings, **settings))  # type: ignore[arg-type]


def write_flickr8k(folder: Path, data: TrainingData) -> Path:
    """The layout of Flickr8k: captions and lists of all splits, features of all photos in another order."""
    (folder / "features").mkdir(parents=True)
    splits = {"train": data.train, "dev": data.validation, "test": data.test}
    lines, names, rows = [], list[str](), list[np.ndarray]()
    for name, split in splits.items():
        ids = list(split.dataset.image_ids)
        (folder / f"Flickr_8k.{name}Images.txt").write_text("\n".join(ids) + "\n")
        texts = np.reshape(split.dataset.texts, (-1, 5))
        lines += [f"{image}#{k}\t{text}" for image, five in zip(ids, texts, strict=True) for k, text in enumerate(five)]
        names += ids
        rows += list(split.features.vectors)
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    order = np.random.default_rng(0).permutation(len(names))
    (folder / "features" / "names.txt").write_text("".join(f"{names[row]}\n" for row in order))
    np.save(folder / "features" / "efficientnet_lite0_global.npy", np.array(rows, np.float16)[order])
    return folder
