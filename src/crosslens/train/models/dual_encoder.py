"""Pretrained dual encoders (CLIP, SigLIP, …) on pictures, adapted by LoRA, with their own vector per item."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape
from crosslens.train.models.towers.adapted import AdaptedEncoder
from crosslens.train.models.towers.pretrained import AdapterSettings


@MODELS.register("dual-encoder", vectors=True)
class DualEncoder(AdaptedEncoder):
    """A pretrained dual encoder of the transformers library, adapted: its own weights stay as they are.

    It reads pictures, so it is trained on the feature set `images`, which names the encoder. Only adapters (and
    projections) are trained and stored, beside a reference to the encoder.

    lora_rank: of the LoRA adapters; 0: none
    lora_alpha: adapters are multiplied by lora_alpha ÷ lora_rank
    lora_dropout: of what adapters read
    lora_targets: the linear maps that get an adapter, by the ends of their names, joined by commas; without any, the
        projections of attention in both towers
    projection: train the encoder's last projections into the common space, too
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        lora_rank: int = 8,
        lora_alpha: float = 16.0,
        lora_dropout: float = 0.0,
        lora_targets: str = "",
        projection: bool = False,
    ) -> None:
        if not shape.pictures:
            raise UsageError("dual-encoder reads pictures", fix='train it on pictures: [data] kind = "images"')
        super().__init__(shape, AdapterSettings(lora_rank, lora_alpha, lora_dropout, lora_targets), projection)
        if not any(weight.requires_grad for weight in self.parameters()):
            what = "a lora_rank of 0" + (", and the encoder has no projections" if projection else " and no projection")
            raise UsageError(f"nothing to train: {what}", fix="set lora_rank to 1 or more", option="lora_rank")

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×d, of length 1."""
        return normalize(self.read_images(images).vectors, dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        """B×d, of length 1."""
        return normalize(self.read_captions(captions).vectors, dim=-1)

    def scores(self, images: Tensor, captions: Tensor) -> Tensor:
        """Cosines."""
        return torch.as_tensor(images @ captions.T)
