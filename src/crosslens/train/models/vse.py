"""VSE++: one unit vector per image and per caption; the cosine is the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape
from crosslens.train.models.towers.image import LINEAR, image_tower
from crosslens.train.models.towers.layers import check_sizes
from crosslens.train.models.towers.pretrained import AdapterSettings
from crosslens.train.models.towers.text import GRU, EncoderText, text_tower


@MODELS.register("vse", vectors=True)
class Vse(nn.Module):
    """A projection of a global image feature beside a text tower (VSE++).

    dimension: of the common space
    text: what reads captions: `gru`, `transformer`, `sentence` (a frozen sentence encoder with a head) or
        `encoder` (a pretrained text encoder that is trained further, with a head)
    image: how the feature is projected: `linear`, as published; `residual` (plus a two-layer network); or `grid`, which
        adds local features, through a transformer layer
    standardise: image features get mean 0 and deviation 1 over the training images, instead of unit length
    word_dimension: of word embeddings
    both: a GRU in both directions
    dropout: of the features, and inside residual heads
    lora_rank: with `encoder`: train LoRA adapters of this rank; 0: all weights
    lora_alpha: adapters are multiplied by lora_alpha ÷ lora_rank
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        dimension: int = 1024,
        text: str = GRU,
        image: str = LINEAR,
        standardise: bool = False,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
        lora_rank: int = 0,
        lora_alpha: float = 16.0,
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, word_dimension=word_dimension, dropout=dropout)
        self.image = image_tower(shape, image, dimension, dropout, standardise)
        self.text = text_tower(
            shape, text, dimension, word_dimension=word_dimension, both=both, dropout=dropout,
            adapters=AdapterSettings(lora_rank, lora_alpha),
        )  # fmt: skip

    def fit_features(self, features: Mapping[str, Any]) -> None:
        """Measure the training features, for standardisation."""
        if self.image.scale is not None:
            self.image.scale.fit(features)

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Whose learning rate ``image_rate`` and ``text_rate`` change; of a pretrained encoder not its new head."""
        text = self.text.encoder if isinstance(self.text, EncoderText) else self.text
        return {"image": list(self.image.parameters()), "text": list(text.parameters())}

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×d, of length 1. Without global features, local ones are averaged."""
        return normalize(self.image(images), dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        """B×d, of length 1."""
        return normalize(self.text(captions), dim=-1)

    def scores(self, images: Tensor, captions: Tensor) -> Tensor:
        """Cosines."""
        return torch.as_tensor(images @ captions.T)
