"""Text towers: what reads a caption before a model compares it with images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from crosslens.core import UsageError
from crosslens.train.models.protocol import CaptionBatch, InputShape

GRU, TRANSFORMER, SENTENCE = "gru", "transformer", "sentence"


class WordStates(nn.Module):
    """Word ids → a state per word (B×T×d), by a GRU over word embeddings; both directions are averaged."""

    def __init__(self, words: int, word_dimension: int, dimension: int, *, both: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, word_dimension, padding_idx=0)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.gru = nn.GRU(word_dimension, dimension, batch_first=True, bidirectional=both)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×T×d; states of padding are 0."""
        assert captions.words is not None
        assert captions.lengths is not None
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(captions.words), captions.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = self.gru(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=captions.words.shape[1])
        if self.gru.bidirectional:
            padded = (padded[..., : self.gru.hidden_size] + padded[..., self.gru.hidden_size :]) / 2
        return padded


class GruText(nn.Module):
    """The state after the last word; of both directions the mean over words."""

    def __init__(self, shape: InputShape, dimension: int, word_dimension: int, both: bool) -> None:
        super().__init__()
        self.states = WordStates(shape.words, word_dimension, dimension, both=both)
        self.both = both

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×d."""
        assert captions.lengths is not None
        states: Tensor = self.states(captions)
        lengths = captions.lengths.to(states.device)
        if self.both:
            return states.sum(dim=1) / lengths[:, None]
        return states[torch.arange(len(states), device=states.device), lengths - 1]


class TransformerText(nn.Module):
    """A small transformer over word embeddings; the mean of its states."""

    def __init__(
        self, shape: InputShape, dimension: int, word_dimension: int, layers: int = 2, longest: int = 128
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, word_dimension, padding_idx=0)
        self.position = nn.Parameter(torch.randn(longest, word_dimension) * 0.02)
        heads = next(count for count in range(max(1, word_dimension // 64), 0, -1) if word_dimension % count == 0)
        layer = nn.TransformerEncoderLayer(
            word_dimension, heads, 4 * word_dimension, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(word_dimension, dimension)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×d."""
        assert captions.words is not None
        assert captions.lengths is not None
        words = captions.words[:, : len(self.position)]
        padding = words == 0
        states = self.layers(self.embedding(words) + self.position[: words.shape[1]], src_key_padding_mask=padding)
        kept = states.masked_fill(padding[..., None], 0)
        mean = kept.sum(dim=1) / (~padding).sum(dim=1, keepdim=True)
        return torch.as_tensor(self.out(mean))


class SentenceText(nn.Module):
    """Vectors of a frozen sentence encoder, carried on by a residual two-layer head."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float) -> None:
        super().__init__()
        self.head = ResidualHead(shape.text[-1], dimension, dropout)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×d."""
        assert captions.vectors is not None
        return torch.as_tensor(self.head(captions.vectors))


class ResidualHead(nn.Module):
    """A linear map plus a two-layer network on the same input."""

    def __init__(self, inputs: int, dimension: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, dimension)
        self.network = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(inputs, dimension),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(dimension, dimension),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """B×d."""
        return torch.as_tensor(self.linear(vectors) + self.network(vectors))


def text_tower(
    shape: InputShape, kind: str, dimension: int, *, word_dimension: int = 300, both: bool = False, dropout: float = 0.0
) -> Any:
    """A tower that turns a batch of captions into B×dimension."""
    if kind not in (GRU, TRANSFORMER, SENTENCE):
        raise UsageError(f"text is {kind!r}", fix=f"choose {GRU}, {TRANSFORMER} or {SENTENCE}", option="text")
    if (kind == SENTENCE) != bool(shape.text):
        rule = (
            'name one: text_model = "KIND:SOURCE"' if kind == SENTENCE else f"remove it, or choose text = {SENTENCE!r}"
        )
        problem = "no text_model" if kind == SENTENCE else "a text_model"
        raise UsageError(f"text is {kind!r} and the recipe names {problem}", fix=rule, option="text")
    if kind == GRU:
        return GruText(shape, dimension, word_dimension, both)
    if kind == TRANSFORMER:
        return TransformerText(shape, dimension, word_dimension)
    return SentenceText(shape, dimension, dropout)
