"""Captions as a model reads them: as word numbers, through a frozen encoder, or as a pretrained model's tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import UsageError
from crosslens.encode import PixelRows, Pretrained, TokenArrays, encode_texts, load_encoder
from crosslens.engine import Progress
from crosslens.storage import Array, random_stream
from crosslens.train.features import Split, TrainingData
from crosslens.train.models.protocol import ENCODER, CaptionBatch
from crosslens.train.recipe import TrainingRecipe

PADDING, UNKNOWN, FIRST = 0, 1, 2
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def words_of(text: str) -> list[str]:
    """The words of a caption in lower case, without punctuation."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class CaptionVocabulary:
    """Known words; the first has the number 2, after padding (0) and unknown words (1)."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str], least: int = 4) -> CaptionVocabulary:
        """The words that occur at least ``least`` times: the most frequent first, then by the alphabet."""
        counts = Counter(word for text in texts for word in words_of(text))
        frequent = [word for word, count in counts.items() if count >= least]
        return cls(tuple(sorted(frequent, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words) + FIRST

    def encode(self, texts: Sequence[str], longest: int = 64) -> tuple[Array, Array]:
        """Word numbers, padded by 0 to the longest text, and how many each text has; at least one, an unknown."""
        number_of = {word: number for number, word in enumerate(self.words, FIRST)}
        rows = [[number_of.get(word, UNKNOWN) for word in words_of(text)[:longest]] or [UNKNOWN] for text in texts]
        lengths = np.array([len(row) for row in rows], np.int64)
        words = np.full((len(rows), int(lengths.max(initial=1))), PADDING, np.int64)
        for at, row in enumerate(rows):
            words[at, : len(row)] = row
        return words, lengths


@dataclass(frozen=True)
class CaptionSource:
    """A split's captions as a model reads them: word numbers, vectors of a frozen encoder, or tokens."""

    words: Array | None = None
    lengths: Array | None = None
    vectors: Array | None = None
    tokens: TokenArrays | None = None

    def batch(self, rows: Array, device: Any, among: Array | None = None) -> CaptionBatch:
        """The captions of these rows there; padding only up to the longest of them, or of those ``among``."""
        import torch

        def there(array: Array, kind: Any = np.int64) -> Any:
            return torch.from_numpy(np.asarray(array, kind)).to(device)

        if self.vectors is not None:
            return CaptionBatch(None, None, there(self.vectors[rows], np.float32))
        if self.tokens is not None:
            longest = int(self.tokens.lengths[rows if among is None else among].max())
            ids, mask = (None if part is None else there(part[rows, :longest]) for part in self.tokens[:2])
            return CaptionBatch(None, None, None, ids, mask)
        assert self.words is not None
        assert self.lengths is not None
        lengths = self.lengths[rows]
        longest = int((lengths if among is None else self.lengths[among]).max())
        return CaptionBatch(there(self.words[rows, :longest]), torch.from_numpy(lengths))


def pretrained_of(recipe: TrainingRecipe, data: TrainingData) -> Pretrained | None:
    """The pretrained model that a recipe trains further, if any: the one that sees the pictures, or a text encoder."""
    pixels = data.train.features.pixels
    if isinstance(pixels, PixelRows):
        return Pretrained(pixels.model)
    if recipe.model_settings.get("text") == ENCODER and recipe.text_model:
        return Pretrained(recipe.text_model)
    return None


class CaptionReader:
    """Reads the captions of splits as the model does: as words, through a frozen encoder, or as a model's tokens."""

    def __init__(
        self, text_model: str, vocabulary: CaptionVocabulary, progress: Progress, pretrained: Pretrained | None = None
    ) -> None:
        self._text_model, self._vocabulary, self._progress = text_model, vocabulary, progress
        self._pretrained = pretrained
        self._sources: dict[int, tuple[Split, CaptionSource]] = {}
        self.revision = ""
        """Of the frozen encoder, once it has read a split."""

    def __call__(self, split: Split) -> CaptionSource:
        """A split's captions; read once."""
        if id(split) not in self._sources:
            texts = split.dataset.texts
            if self._pretrained is not None:
                source = CaptionSource(tokens=self._pretrained.tokens(texts))
            elif not self._text_model:
                source = CaptionSource(*self._vocabulary.encode(texts))
            else:
                encoder = load_encoder(self._text_model)
                self.revision = encoder.revision
                source = CaptionSource(vectors=encode_texts(encoder, texts, progress=self._progress).rows)
            self._sources[id(split)] = split, source
        return self._sources[id(split)][1]


class BatchPlan:
    """Every caption once per epoch, with its image, in an order drawn anew; a last incomplete batch is left out."""

    def __init__(self, split: Split, size: int, seed: int) -> None:
        self.captions = len(split.dataset.texts)
        if size > self.captions:
            raise UsageError(
                f"a batch of {size} pairs from {self.captions} training captions",
                fix=f"choose a batch size of at most {self.captions}, or a larger fraction",
                option="batch_size",
            )
        self.size, self.seed = size, seed
        self.per_epoch = self.captions // size
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def rows(self, step: int) -> Array:
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, random_stream(self.seed, "order", epoch).permutation(self.captions)
        return self._order[at * self.size : (at + 1) * self.size]
