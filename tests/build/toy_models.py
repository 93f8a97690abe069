"""Encoders and generators that need no library, and scenes to build from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from crosslens.build import Request

Array = np.ndarray[Any, Any]
_WIDTH = 32


@cache
def _of(word: str) -> Array:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=6).digest(), "little")
    return np.random.default_rng(seed).standard_normal(_WIDTH)


@cache
def _small(pixels: bytes, size: tuple[int, int]) -> bytes:
    from PIL import Image

    return Image.frombytes("RGB", size, pixels).resize((8, 8)).tobytes()


class Words:
    """A text is the sum of its words; an image a projection of its colours: a space, if not a good one."""

    revision, logit_scale = "1", 20.0

    def encode_texts(self, texts: Sequence[str]) -> Array:
        rows = [sum((_of(word) for word in re.findall(r"\w+", text.lower())), np.zeros(_WIDTH)) for text in texts]
        return np.array(rows, np.float32)

    def encode_images(self, images: Sequence[Any]) -> Array:
        projection = np.random.default_rng(0).standard_normal((192, _WIDTH))
        small = [np.frombuffer(_small(image.tobytes(), image.size), np.uint8) for image in images]
        return ((np.stack(small).astype(np.float32) / 255 - 0.5) @ projection).astype(np.float32)


class OnlyTexts:
    """The half of it that reads."""

    revision = "1"

    def encode_texts(self, texts: Sequence[str]) -> Array:
        return Words().encode_texts(texts)


class Fickle:
    """A generator that never says the same twice, as a language model may; breaks down after ``patience`` requests.

    With another patience or seed it says other things, and the same ones every time the tests run.
    """

    name, revision, sees_pictures = "fickle", "1", False

    def __init__(self, patience: int = 10**9, seed: int = 0) -> None:
        self.patience, self.asked = patience, 0
        self._chance = np.random.default_rng([patience, seed])

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> tuple[str, ...]:
        if self.asked >= self.patience:
            raise KeyboardInterrupt
        self.asked += 1
        words = self._chance.integers(10_000, size=(request.wanted, 4))
        return tuple(f"a picture of {request.purpose} " + " ".join(f"w{number}" for number in row) for row in words)
