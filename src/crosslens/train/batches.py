"""Batches: which pairs, in which order, as tensors. A step's batch follows from the seed and the step alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import UsageError, random_stream
from crosslens.train.feature_sets import Split
from crosslens.train.models.protocol import CaptionBatch
from crosslens.train.vocabulary import CaptionVocabulary

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CaptionSource:
    """A split's captions as a model reads them: word numbers, or vectors of a frozen encoder."""

    words: Array | None
    lengths: Array | None
    vectors: Array | None = None

    @classmethod
    def of_words(cls, texts: tuple[str, ...], vocabulary: CaptionVocabulary) -> CaptionSource:
        """Captions as word numbers."""
        return cls(*vocabulary.encode(texts))

    def batch(self, rows: Array, device: Any) -> CaptionBatch:
        """The captions of these rows there; padding only up to the longest of them."""
        import torch

        if self.words is None or self.lengths is None:
            assert self.vectors is not None
            return CaptionBatch(None, None, torch.from_numpy(np.asarray(self.vectors[rows], np.float32)).to(device))
        lengths = self.lengths[rows]
        words = self.words[rows, : int(lengths.max())]
        return CaptionBatch(torch.from_numpy(words).to(device), torch.from_numpy(lengths))


class BatchPlan:
    """Every caption once per epoch, with its image, in an order drawn anew; a last incomplete batch is left out."""

    def __init__(self, split: Split, size: int, seed: int) -> None:
        self.captions = len(split.dataset.texts)
        if size > self.captions:
            raise UsageError(
                f"a batch of {size} pairs from {self.captions} training captions",
                fix=f"choose a batch size of at most {self.captions}, or a larger fraction", option="batch_size",
            )  # fmt: skip
        self.size, self.seed = size, seed
        self.per_epoch = self.captions // size
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def rows(self, step: int) -> Array:
        """The captions of a step's batch."""
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, random_stream(self.seed, "order", epoch).permutation(self.captions)
        return self._order[at * self.size : (at + 1) * self.size]
