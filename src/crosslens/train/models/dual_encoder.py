"""Pretrained dual encoders (CLIP, SigLIP, …) on pictures, adapted by LoRA."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape
from crosslens.train.models.towers.pretrained import AdapterSettings, add_adapters, keep_by_reference, referenced_model

_VISION, _TEXT = ("vision", "visual", "image"), ("text",)


@MODELS.register("dual-encoder", vectors=True)
class DualEncoder(nn.Module):
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
        super().__init__()
        if not shape.encoder:
            raise UsageError("dual-encoder reads pictures", fix='train it on pictures: [data] kind = "images"')
        pretrained = referenced_model(shape)
        self.encoder = pretrained.module()
        self._images, self._texts = pretrained.architecture.images, pretrained.architecture.texts
        if self._texts is None or not _is_dual(self.encoder, pretrained.architecture.model_class):
            raise UsageError(
                f"{shape.encoder} does not compare pictures with texts", fix="use a dual encoder, such as CLIP"
            )
        add_adapters(self.encoder, AdapterSettings(lora_rank, lora_alpha, lora_dropout, lora_targets))
        if projection:
            for name, weight in self.encoder.named_parameters():
                if _is_projection(name):
                    weight.requires_grad_(True)
        if not any(weight.requires_grad for weight in self.encoder.parameters()):
            what = "a lora_rank of 0" + (", and the encoder has no projections" if projection else " and no projection")
            raise UsageError(f"nothing to train: {what}", fix="set lora_rank to 1 or more", option="lora_rank")
        keep_by_reference(self.encoder)

    def train(self, mode: bool = True) -> DualEncoder:
        """As of every module; statistics of batches inside the encoder stay as they are, like its weights."""
        super().train(mode)
        for module in self.encoder.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Adapters and projections of each tower, by the names of its modules."""
        named = [(name, weight) for name, weight in self.encoder.named_parameters() if weight.requires_grad]
        return {
            group: [weight for name, weight in named if name.startswith(starts)]
            for group, starts in (("image", _VISION), ("text", _TEXT))
        }

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×d, of length 1."""
        if images.pixels is None:
            raise UsageError("dual-encoder reads pictures", fix='train it on pictures: [data] kind = "images"')
        return normalize(self._images(self.encoder, {"pixel_values": images.pixels}), dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        """B×d, of length 1."""
        inputs = {"input_ids": captions.tokens, "attention_mask": captions.mask}
        assert self._texts is not None
        features = self._texts(self.encoder, {name: value for name, value in inputs.items() if value is not None})
        return normalize(features, dim=-1)

    def scores(self, images: Tensor, captions: Tensor) -> Tensor:
        """Cosines."""
        return torch.as_tensor(images @ captions.T)


def _is_dual(encoder: nn.Module, model_class: str) -> bool:
    return model_class != "AutoModel" or all(
        hasattr(encoder, method) for method in ("get_image_features", "get_text_features")
    )


def _is_projection(name: str) -> bool:
    """Whether a weight belongs to a projection behind a tower: outside it, and called so."""
    return "proj" in name.partition(".")[0]
