"""Somebody's own φ: a function of an image's captions and one caption."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.progress import Progress
from crosslens.similarity.similarity import Array

Function = Callable[[Sequence[str], str], float]


class OwnSimilarity:
    """A Python function as φ. It is called once per cell, so it suits some pairs or a small collection.

    Nobody knows when a function changes: ``revision`` is empty, and nothing is ever resumed from its numbers.
    """

    revision = ""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.name = "own:" + (getattr(function, "__qualname__", None) or type(function).__qualname__)

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> PreparedFunction:
        """Keep the texts; nothing else can be done before it is called."""
        return PreparedFunction(self.function, self.name, references, captions)


class PreparedFunction:
    """A function with the texts it is called with."""

    def __init__(
        self, function: Function, name: str, references: Sequence[Sequence[str]], captions: Sequence[str]
    ) -> None:
        self._function, self._name, self._references, self._captions = function, name, references, captions
        self.shape = (len(references), len(captions))

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""
        images = range(self.shape[0])[rows]
        values = [self._value(image, caption) for image in images for caption in range(self.shape[1])]
        return np.array(values, np.float32).reshape(len(images), self.shape[1])

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""
        cells = zip(np.asarray(images).tolist(), np.asarray(captions).tolist(), strict=True)
        return np.array([self._value(image, caption) for image, caption in cells], np.float32)

    def _value(self, image: int, caption: int) -> float:
        references = self._references[image]
        value = self._function(references, self._captions[caption]) if len(references) else 0.0
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                f"{self._name} gave {value!r:.40} for the caption {self._captions[caption]!r:.60}",
                row=f"image {image}",
                expected="a finite number",
                fix="let the function return a number for every pair",
            )
        return number
