"""A φ that anybody can compute by hand: how many words of a caption occur in the references, as a share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def overlap(references: Sequence[str], caption: str) -> float:
    """The mean, over the references, of the share of the caption's words that a reference has."""
    words = caption.split()
    return sum(sum(word in reference.split() for word in words) / len(words) for reference in references) / max(
        len(references), 1
    )


class Overlap:
    """The same as a similarity; counts how large a block it was asked for."""

    name = "overlap"
    revision = "1"

    def __init__(self) -> None:
        self.largest = 0

    def prepare(
        self, references: Sequence[Sequence[str]], captions: Sequence[str], *, progress: Any = None, threads: Any = None
    ) -> PreparedOverlap:
        return PreparedOverlap(self, references, captions)


class PreparedOverlap:
    def __init__(self, owner: Overlap, references: Sequence[Sequence[str]], captions: Sequence[str]) -> None:
        self._owner, self._references, self._captions = owner, references, captions

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._references), len(self._captions)

    def block(self, rows: slice) -> Array:
        references_of_block = self._references[rows]
        self._owner.largest = max(self._owner.largest, len(references_of_block))
        cells = [[overlap(references, caption) for caption in self._captions] for references in references_of_block]
        return np.array(cells, np.float32)

    def pairs(self, images: Array, captions: Array) -> Array:
        return np.array(
            [overlap(self._references[i], self._captions[c]) for i, c in zip(images, captions, strict=True)], np.float32
        )


def made_dataset(images: int, per_image: int, seed: int = 0) -> dict[str, list[str]]:
    """Captions of words that depend on the image's topic: images of one topic match each other's captions."""
    random = np.random.default_rng(seed)
    result = {}
    for image in range(images):
        topic = image % 5
        words = [f"t{topic}w{word}" for word in range(6)]
        result[f"i{image}"] = [" ".join(random.choice(words, 4)) for _ in range(per_image)]
    return result
