"""What one-to-many heads share: global and local features of both sides, and attention over the local ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import CaptionBatch, EmbeddingSet, ImageBatch, InputShape, local_dimension
from crosslens.train.models.towers.layers import check_sizes, projection
from crosslens.train.models.towers.text import GRU, TRANSFORMER, text_tower


class Parts(NamedTuple):
    """An item as heads see it."""

    vector: Tensor
    """B×d: the global feature in the common space."""
    local: Tensor
    """B×T×l: regions, or states of words."""
    padding: Tensor | None
    """B×T, True where there is no word; None where nothing is padded."""


class PartsTower(nn.Module):
    """Global and local features of both sides: regions of an image, words of a caption."""

    def __init__(
        self, shape: InputShape, *, dimension: int, text: str, word_dimension: int, both: bool, dropout: float
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, word_dimension=word_dimension, dropout=dropout)
        if text not in (GRU, TRANSFORMER):
            problem = f"text is {text!r}, and this model needs a vector per word"
            raise UsageError(problem, fix=f"choose {GRU} or {TRANSFORMER}", option="text")
        self.region_dimension, self.state_dimension = local_dimension(shape), dimension
        self.dropout = nn.Dropout(dropout)
        self.image = projection(shape.vector or self.region_dimension, dimension)
        self.text = text_tower(shape, text, dimension, word_dimension=word_dimension, both=both)

    def images(self, images: ImageBatch) -> Parts:
        """Regions, and the global feature or, without one, their mean."""
        assert images.regions is not None
        vector = self.image(self.dropout(normalize(images.pooled(), dim=-1)))
        return Parts(vector, self.dropout(normalize(images.regions, dim=-1)), None)

    def captions(self, captions: CaptionBatch) -> Parts:
        """States of words, and what the text tower makes of all of them."""
        vector, states, padding = self.text.read(captions)
        return Parts(vector, states, padding)


class SetModel(nn.Module):
    """A model whose items are sets of vectors: a head on the parts of each side."""

    def __init__(self, parts: PartsTower, head: Callable[[int], nn.Module]) -> None:
        """``head`` makes a head for local features of so many dimensions."""
        super().__init__()
        self.parts = parts
        self.image, self.text = head(parts.region_dimension), head(parts.state_dimension)

    def encode_images(self, images: ImageBatch) -> EmbeddingSet:
        """K unit vectors per image."""
        encoded: EmbeddingSet = self.image(self.parts.images(images))
        return encoded

    def encode_captions(self, captions: CaptionBatch) -> EmbeddingSet:
        """K unit vectors per caption."""
        encoded: EmbeddingSet = self.text(self.parts.captions(captions))
        return encoded


class LocalAttention(nn.Module):
    """K weighted means of local features, with weights softmax(w₂ tanh(W₁ x)) over them (PVSE)."""

    def __init__(self, dimension: int, k: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dimension, max(1, dimension // 2), bias=False)
        self.heads = nn.Linear(max(1, dimension // 2), k, bias=False)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.xavier_uniform_(self.heads.weight)

    def forward(self, parts: Parts) -> Tensor:
        """B×K×l."""
        logits = self.heads(torch.tanh(self.hidden(parts.local)))
        if parts.padding is not None:
            logits = logits.masked_fill(parts.padding[..., None], -torch.inf)
        return torch.as_tensor(logits.softmax(dim=1).transpose(1, 2) @ parts.local)


class AttentionHead(nn.Module):
    """PVSE's head: LayerNorm(global + σ(W attended + b)) for each of K attentions, of length 1."""

    def __init__(self, local: int, dimension: int, k: int, dropout: float) -> None:
        super().__init__()
        self.attention = LocalAttention(local, k)
        self.out = projection(local, dimension)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(dimension)

    def forward(self, parts: Parts) -> EmbeddingSet:
        """K vectors per item."""
        residuals = torch.sigmoid(self.out(self.dropout(self.attention(parts))))
        return EmbeddingSet(normalize(self.norm(parts.vector[:, None] + residuals), dim=-1), residuals)


def pair_cosines(images: Tensor, captions: Tensor) -> Tensor:
    """Unit vectors m×K×d and n×L×d → all their cosines, m×K×n×L."""
    cosines = images.flatten(0, 1) @ captions.flatten(0, 1).T
    return cosines.view(*images.shape[:2], *captions.shape[:2])
