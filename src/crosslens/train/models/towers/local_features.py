"""What one-to-many models share: the parts of items, heads on both sides, and attention over the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import CaptionBatch, EmbeddingSet, ImageBatch, InputShape, Parts, local_dimension
from crosslens.train.models.towers.adapted import EncoderParts
from crosslens.train.models.towers.layers import check_sizes, projection
from crosslens.train.models.towers.pretrained import AdapterSettings
from crosslens.train.models.towers.text import GRU, TRANSFORMER, text_tower


class PartsTower(nn.Module):
    """Global and local features of both sides: stored regions of an image, words of a caption."""

    pretrained = False

    def __init__(
        self, shape: InputShape, *, dimension: int, text: str, word_dimension: int, both: bool, dropout: float
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, word_dimension=word_dimension)
        if text not in (GRU, TRANSFORMER):
            problem = f"text is {text!r}, and this model needs a vector per word"
            raise UsageError(problem, fix=f"choose {GRU} or {TRANSFORMER}", option="text")
        self.dimension, self.region_dimension, self.state_dimension = dimension, local_dimension(shape), dimension
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

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Whose learning rate ``image_rate`` and ``text_rate`` change."""
        return {"image": list(self.image.parameters()), "text": list(self.text.parameters())}


class HeadModel(nn.Module):
    """A head for images and one for captions, on parts that are stored features or states of an adapted encoder.

    dimension: of the common space; on pictures it is the encoder's own
    text: on stored features: what reads captions, word by word: `gru` or `transformer`
    word_dimension: of word embeddings
    both: a GRU in both directions
    dropout: of stored image features, and inside heads
    lora_rank: on pictures: of the LoRA adapters of the encoder; 0: none
    lora_alpha: adapters are multiplied by lora_alpha ÷ lora_rank
    lora_dropout: of what adapters read
    lora_targets: the linear maps that get an adapter, by the ends of their names, joined by commas; without any, the
        projections of attention in both towers
    """

    def __init__(
        self,
        shape: InputShape,
        head: Callable[[HeadInputs], nn.Module],
        *,
        dimension: int = 1024,
        text: str = GRU,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
        lora_rank: int = 8,
        lora_alpha: float = 8.0,
        lora_dropout: float = 0.0,
        lora_targets: str = "",
    ) -> None:
        super().__init__()
        check_sizes(dropout=dropout)
        self.parts: EncoderParts | PartsTower
        if shape.pictures:
            self.parts = EncoderParts(shape, AdapterSettings(lora_rank, lora_alpha, lora_dropout, lora_targets))
        else:
            self.parts = PartsTower(
                shape, dimension=dimension, text=text, word_dimension=word_dimension, both=both, dropout=dropout
            )
        self.image, self.text = (
            head(HeadInputs(local, self.parts.dimension, self.parts.pretrained, dropout))
            for local in (self.parts.region_dimension, self.parts.state_dimension)
        )

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Of the towers; heads have the full learning rate."""
        return self.parts.rate_groups()

    def encode_images(self, images: ImageBatch) -> Any:
        """What the head makes of images."""
        return self.image(self.parts.images(images))

    def encode_captions(self, captions: CaptionBatch) -> Any:
        """What the head makes of captions."""
        return self.text(self.parts.captions(captions))


class HeadInputs(NamedTuple):
    """What a head is built for."""

    local: int
    """Dimensions of local features."""
    dimension: int
    """Of the common space."""
    pretrained: bool
    """Whether the global vector is that of a pretrained encoder, from whose scores the head then begins."""
    dropout: float

    def gate(self) -> nn.Parameter | None:
        """The learnt factor of residuals on a pretrained encoder: 0 at first."""
        return nn.Parameter(torch.zeros(())) if self.pretrained else None


def gated_sum(vector: Tensor, residuals: Tensor, gate: Tensor) -> Tensor:
    """B×d and B×K×d → B×K×d, of length 1: the direction of the vector while the gate is 0."""
    return normalize(normalize(vector, dim=-1)[:, None] + gate * residuals, dim=-1)


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
    """PVSE's head: LayerNorm(global + σ(W attended + b)) for each of K attentions, of length 1.

    On a pretrained encoder the norm is that of the residual alone: a norm of the sum, which subtracts the mean over
    dimensions, would change the encoder's own cosines.
    """

    def __init__(self, inputs: HeadInputs, k: int) -> None:
        super().__init__()
        self.attention = LocalAttention(inputs.local, k)
        self.out = projection(inputs.local, inputs.dimension)
        self.dropout = nn.Dropout(inputs.dropout)
        self.norm = nn.LayerNorm(inputs.dimension)
        self.gate = inputs.gate()

    def forward(self, parts: Parts) -> EmbeddingSet:
        """K vectors per item."""
        residuals = torch.sigmoid(self.out(self.dropout(self.attention(parts))))
        if self.gate is not None:
            return EmbeddingSet(gated_sum(parts.vector, self.norm(residuals), self.gate), residuals)
        return EmbeddingSet(normalize(self.norm(parts.vector[:, None] + residuals), dim=-1), residuals)


def pair_cosines(images: Tensor, captions: Tensor) -> Tensor:
    """Unit vectors m×K×d and n×L×d → all their cosines, m×K×n×L."""
    cosines = images.flatten(0, 1) @ captions.flatten(0, 1).T
    return cosines.view(*images.shape[:2], *captions.shape[:2])
