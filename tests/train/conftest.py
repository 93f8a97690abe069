"""Small feature sets that can be learned: an image's regions are its words' vectors, its global vector is their sum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslens.train import ImageFeatures, Split, TrainingData, TrainingRecipe, TrainingSettings, plan_sweep, run_sweep
from crosslens.values import Dataset

WORDS = ["dog", "cat", "red", "blue", "runs", "sleeps", "tree", "house", "boy", "girl", "ball", "water"]
DIMENSION = 16
SMALL_RECIPE = """
least_count = 1

[data]
kind = "flickr8k"

[model]
kind = "vse"
dimension = 8
word_dimension = 8

[[loss]]
kind = "triplet"

[training]
batch_size = 20
epochs = 2
learning_rate = 0.01
"""
"""The smallest training that learns something, as a file."""


def made_split(name: str, count: int, seed: int, kinds: tuple[str, ...] = ("vectors",)) -> Split:
    meaning = np.random.default_rng(1).standard_normal((len(WORDS), DIMENSION))
    stream = np.random.default_rng(seed)
    captions, chosen_words = {}, []
    for image in range(count):
        word_rows = stream.choice(len(WORDS), 4, replace=False)
        captions[f"{name}-{image}.jpg"] = [
            "a " + " ".join(WORDS[word] for word in stream.permutation(word_rows)) for _ in range(5)
        ]
        chosen_words.append(word_rows)
    regions = meaning[np.array(chosen_words)].astype(np.float32)
    arrays = {"vectors": regions.sum(axis=1), "regions": regions}
    return Split(Dataset.of(captions, name=name), ImageFeatures(**{kind: arrays[kind] for kind in kinds}))


def made_data(*kinds: str) -> TrainingData:
    """Three splits with global features, or with the kinds that are named: `vectors`, `regions`."""
    splits = (("train", 40, 2), ("dev", 20, 3), ("test", 20, 4))
    return TrainingData(*(made_split(*split, kinds or ("vectors",)) for split in splits))


@pytest.fixture(scope="session")
def data() -> TrainingData:
    return made_data()


@pytest.fixture(scope="session")
def region_data() -> TrainingData:
    return made_data("regions")


@pytest.fixture(scope="session")
def local_data() -> TrainingData:
    return made_data("vectors", "regions")


SWEEP_SETTINGS = ["loss=triplet,sam-random", "fraction=0.25,1"]


@pytest.fixture(scope="session")
def sweep_home(tmp_path_factory: pytest.TempPathFactory, data: TrainingData) -> Path:
    """Data, a recipe, and a finished sweep of two losses, two fractions and three seeds."""
    home = tmp_path_factory.mktemp("sweep")
    write_flickr8k(home / "data", data)
    (home / "small.toml").write_text(SMALL_RECIPE.replace("batch_size = 20", "batch_size = 40"))
    plan = plan_sweep(home / "small.toml", home / "data", SWEEP_SETTINGS, seeds=3, device="cpu")
    run_sweep(plan, home / "finished")
    return home


@pytest.fixture(scope="session")
def picture_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures, what ``tiny`` makes of them, and a model trained on that, in the folder ``model``; read only."""
    from .trained_models import train_on_pictures

    home = tmp_path_factory.mktemp("pictures")
    train_on_pictures(home)
    return home


@pytest.fixture
def recipe() -> TrainingRecipe:
    return small_recipe()


def small_recipe() -> TrainingRecipe:
    """Trains in a fraction of a second."""
    return TrainingRecipe(
        "small", "", "precomp", {}, "vse", {"dimension": 16, "word_dimension": 8}, ({"kind": "triplet"},),
        least_count=1, settings=TrainingSettings(epochs=3, batch_size=40, learning_rate=0.01, device="cpu", threads=1),
    )  # fmt: skip


def changed(recipe: TrainingRecipe, **settings: object) -> TrainingRecipe:
    """The recipe with other settings of its training."""
    return replace(recipe, settings=replace(recipe.settings, **settings))  # type: ignore[arg-type]


def write_flickr8k(folder: Path, data: TrainingData) -> Path:
    """The layout of Flickr8k: captions and lists of all splits, features of all photos in another order."""
    files = {"vectors": "efficientnet_lite0_global.npy", "regions": "efficientnet_lite0_grid3x3_pca256.npy"}
    (folder / "features").mkdir(parents=True)
    splits = {"train": data.train, "dev": data.validation, "test": data.test}
    lines, names = [], list[str]()
    for name, split in splits.items():
        ids = list(split.dataset.image_ids)
        (folder / f"Flickr_8k.{name}Images.txt").write_text("\n".join(ids) + "\n")
        texts = np.reshape(split.dataset.texts, (-1, 5))
        lines += [f"{image}#{k}\t{text}" for image, five in zip(ids, texts, strict=True) for k, text in enumerate(five)]
        names += ids
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    order = np.random.default_rng(0).permutation(len(names))
    (folder / "features" / "names.txt").write_text("".join(f"{names[row]}\n" for row in order))
    for kind in data.train.features.arrays():
        rows = np.concatenate([split.features.arrays()[kind] for split in splits.values()])
        np.save(folder / "features" / files[kind], rows.astype(np.float16)[order])
    return folder
