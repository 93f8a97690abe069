"""Text towers: what reads a caption before a model compares it with images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from crosslens.core import UsageError
from crosslens.train.models.protocol import ENCODER, CaptionBatch, InputShape
from crosslens.train.models.towers.pretrained import AdapterSettings, add_adapters, keep_by_reference, referenced_model
from crosslens.train.models.towers.recurrence import run_gru

GRU, TRANSFORMER, SENTENCE = "gru", "transformer", "sentence"


class WordStates(nn.Module):
    """Word ids → a state per word (B×T×d), by a GRU over word embeddings; both directions are averaged."""

    def __init__(
        self, words: int, word_dimension: int, dimension: int, *, both: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(words, word_dimension, padding_idx=0)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.gru = nn.GRU(word_dimension, dimension, batch_first=True, bidirectional=both)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×T×d; states of padding are 0."""
        assert captions.words is not None
        assert captions.lengths is not None
        quick = (
            captions.words.device.type == "cpu" and not self.gru.bidirectional and not torch.is_autocast_enabled("cpu")
            and not (self.training and self.dropout.p)
        )  # fmt: skip
        packed = nn.utils.rnn.pack_padded_sequence(
            captions.words if quick else self.dropout(self.embedding(captions.words)), captions.lengths.cpu(),
            batch_first=True, enforce_sorted=False,
        )  # fmt: skip
        states = run_gru(self.gru, packed, self.embedding.weight) if quick else self.gru(packed)[0]
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
        return self.read(captions)[0]

    def read(self, captions: CaptionBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The caption's vector (B×d), its words' states (B×T×d), and which of them are padding (B×T)."""
        assert captions.words is not None
        assert captions.lengths is not None
        states: Tensor = self.states(captions)
        lengths = captions.lengths.to(states.device)
        if self.both:
            vector = states.sum(dim=1) / lengths[:, None]
        else:
            vector = states[torch.arange(len(states), device=states.device), lengths - 1]
        return vector, states, captions.words == 0


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
        states, padding = self._states(captions)
        return self._mean(states, padding)

    def read(self, captions: CaptionBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The caption's vector (B×d), its words' states (B×T×d), and which of them are padding (B×T)."""
        states, padding = self._states(captions)
        return self._mean(states, padding), self.out(states).masked_fill(padding[..., None], 0), padding

    def _states(self, captions: CaptionBatch) -> tuple[Tensor, Tensor]:
        assert captions.words is not None
        words = captions.words[:, : len(self.position)]
        padding = words == 0
        vectors = self.embedding(words) + self.position[: words.shape[1]]
        return self.layers(vectors, src_key_padding_mask=padding), padding

    def _mean(self, states: Tensor, padding: Tensor) -> Tensor:
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


class EncoderText(nn.Module):
    """A pretrained text encoder that is trained further; the mean over its tokens, carried on by a residual head."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, adapters: AdapterSettings) -> None:
        super().__init__()
        pretrained = referenced_model(shape)
        self.encoder = pretrained.module()
        if hasattr(self.encoder, "get_text_features"):
            raise UsageError(
                f"{shape.encoder} is a dual encoder, not a text encoder", fix="train it with kind = 'dual-encoder'",
                option="text",
            )  # fmt: skip
        if adapters.rank:
            add_adapters(self.encoder, adapters)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler.requires_grad_(False)  # not used here
        keep_by_reference(self.encoder)
        self.head = ResidualHead(self.encoder.config.hidden_size, dimension, dropout)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×d."""
        assert captions.tokens is not None
        mask = torch.ones_like(captions.tokens) if captions.mask is None else captions.mask
        states = self.encoder(input_ids=captions.tokens, attention_mask=mask).last_hidden_state
        mean = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return torch.as_tensor(self.head(mean))


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
    shape: InputShape,
    kind: str,
    dimension: int,
    *,
    word_dimension: int = 300,
    both: bool = False,
    dropout: float = 0.0,
    adapters: AdapterSettings | None = None,
) -> Any:
    """A tower that turns a batch of captions into B×dimension."""
    if kind not in (GRU, TRANSFORMER, SENTENCE, ENCODER):
        fix = f"choose {GRU}, {TRANSFORMER}, {SENTENCE} or {ENCODER}"
        raise UsageError(f"text is {kind!r}", fix=fix, option="text")
    if (kind in (SENTENCE, ENCODER)) != bool(shape.text or shape.encoder):
        named = bool(shape.text or shape.encoder)
        fix = (
            f"remove it, or choose text = {SENTENCE!r} or {ENCODER!r}"
            if named
            else 'name one: text_model = "KIND:SOURCE"'
        )
        problem = "a text_model" if named else "no text_model"
        raise UsageError(f"text is {kind!r} and the recipe names {problem}", fix=fix, option="text")
    if kind == GRU:
        return GruText(shape, dimension, word_dimension, both)
    if kind == TRANSFORMER:
        return TransformerText(shape, dimension, word_dimension)
    if kind == SENTENCE:
        return SentenceText(shape, dimension, dropout)
    return EncoderText(shape, dimension, dropout, adapters or AdapterSettings(0))
