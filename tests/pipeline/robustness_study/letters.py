"""A small study: captions of random words, and an encoder that counts letters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl

QUICK: dict[str, Any] = {"permutations": 50, "resamples": 50}


class Letters:
    """Counts letters, later ones a little more, and looks at colours; remembers what it was asked."""

    name, revision, preprocessing = "letters", "1", ""
    abilities = frozenset(("images", "texts"))
    dimension: int | None = 26
    logit_scale: float | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pictures = 0

    def encode_texts(self, texts: Any) -> np.ndarray:
        self.texts += texts
        return np.stack([self._letters(text.lower()) for text in texts])

    def _letters(self, text: str) -> np.ndarray:
        vector = np.ones(26, np.float32)
        for position, letter in enumerate(text):
            if letter.isascii() and letter.isalpha():
                vector[ord(letter) - 97] += 1 + position / 100
        return vector

    def encode_images(self, images: Any) -> np.ndarray:
        self.pictures += len(images)
        return (
            np.array(
                [np.resize(np.asarray(picture.convert("RGB").resize((4, 4))), 26) for picture in images], np.float32
            )
            + 1
        )


WORDS = ("dog", "cat", "tree", "house", "ball", "child", "river", "cloud", "small", "large", "red", "green", "running")


def captions(images: int, each: int = 3, seed: int = 0) -> cl.Dataset:
    random = np.random.default_rng(seed)
    return cl.Dataset.of(
        {
            f"i{n}": [
                f"A {' '.join(random.choice(WORDS, 5, replace=False))} {k}." for k in range(each)
            ]
            for n in range(images)
        }
    )  # fmt: skip


def text_study(dataset: cl.Dataset, encoder: Any, perturbations: str, **options: Any) -> cl.Robustness:
    return cl.robustness(dataset, model=encoder, image_text="mean", perturbations=perturbations, **{**QUICK, **options})


def pictures(dataset: cl.Dataset, folder: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(3)
    for id in dataset.image_ids:
        image.fromarray(random.integers(0, 255, (16, 16, 3), np.uint8)).save(folder / f"{id}.png")


def with_files(dataset: cl.Dataset) -> cl.Dataset:
    return replace(dataset, images=dataset.images.with_columns(file=pl.col("image") + ".png"))
