"""VSE++: one unit vector per image and per caption; the cosine is the score."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape, local_dimension
from crosslens.train.models.text import GRU, ResidualHead, text_tower

LINEAR, RESIDUAL = "linear", "residual"


@MODELS.register("vse", vectors=True)
class Vse(nn.Module):
    """A projection of a global image feature beside a text tower (VSE++).

    dimension: of the common space
    text: what reads captions: `gru`, `transformer` or `sentence` (a frozen sentence encoder with a head)
    image: how the feature is projected: `linear`, as published, or `residual` (plus a two-layer network)
    word_dimension: of word embeddings
    both: a GRU in both directions
    dropout: of the feature, and inside residual heads
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        dimension: int = 1024,
        text: str = GRU,
        image: str = LINEAR,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if image not in (LINEAR, RESIDUAL):
            raise UsageError(f"image is {image!r}", fix=f"choose {LINEAR} or {RESIDUAL}", option="image")
        for name, size in (("dimension", dimension), ("word_dimension", word_dimension)):
            if size < 1:
                raise UsageError(f"{name} is {size}", fix=f"{name} must be at least 1", option=name)
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout is {dropout}", fix="dropout must be at least 0 and below 1", option="dropout")
        inputs = shape.vector or local_dimension(shape)
        self.dropout = nn.Dropout(dropout)
        self.image: nn.Module
        if image == LINEAR:
            self.image = nn.Linear(inputs, dimension)
            bound = math.sqrt(6.0 / (inputs + dimension))
            nn.init.uniform_(self.image.weight, -bound, bound)
            nn.init.zeros_(self.image.bias)
        else:
            self.image = ResidualHead(inputs, dimension, dropout)
        self.text = text_tower(shape, text, dimension, word_dimension=word_dimension, both=both, dropout=dropout)

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×d, of length 1. Without global features, local ones are averaged."""
        return normalize(self.image(self.dropout(normalize(images.pooled(), dim=-1))), dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        """B×d, of length 1."""
        return normalize(self.text(captions), dim=-1)

    def scores(self, images: Tensor, captions: Tensor) -> Tensor:
        """Cosines."""
        return torch.as_tensor(images @ captions.T)
