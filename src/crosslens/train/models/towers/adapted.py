"""A pretrained dual encoder with LoRA adapters: its vectors, and the states of patches and tokens behind them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from crosslens.core import UsageError
from crosslens.encode import PretrainedOutput
from crosslens.train.models.protocol import CaptionBatch, ImageBatch, InputShape, Parts
from crosslens.train.models.towers.pretrained import AdapterSettings, add_adapters, keep_by_reference, referenced_model

_VISION, _TEXT = ("vision", "visual", "image"), ("text",)


class AdaptedEncoder(nn.Module):
    """A dual encoder of the transformers library whose own weights stay as they are, beside adapters that are trained.

    projection: train the encoder's last projections into the common space, too
    """

    def __init__(self, shape: InputShape, adapters: AdapterSettings, projection: bool = False) -> None:
        super().__init__()
        self._pretrained = referenced_model(shape)
        self.encoder = self._pretrained.module()
        architecture = self._pretrained.architecture
        if architecture.texts is None or not _is_dual(self.encoder, architecture.model_class):
            raise UsageError(
                f"{shape.encoder} does not compare pictures with texts", fix="use a dual encoder, such as CLIP"
            )
        add_adapters(self.encoder, adapters)
        if projection:
            for name, weight in self.encoder.named_parameters():
                if _is_projection(name):
                    weight.requires_grad_(True)
        keep_by_reference(self.encoder)

    def train(self, mode: bool = True) -> AdaptedEncoder:
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

    def read_images(self, images: ImageBatch) -> PretrainedOutput:
        """Vectors of pictures, and states of their patches."""
        if images.pixels is None:
            raise UsageError("the model reads pictures", fix='train it on pictures: [data] kind = "images"')
        return self._pretrained.read_images(self.encoder, images.pixels)

    def read_captions(self, captions: CaptionBatch) -> PretrainedOutput:
        """Vectors of captions, and states of their tokens."""
        return self._pretrained.read_texts(self.encoder, captions.tokens, captions.mask)


class EncoderParts(AdaptedEncoder):
    """What heads take from a dual encoder: its vector of an item, and the states of patches or tokens."""

    pretrained = True

    def __init__(self, shape: InputShape, adapters: AdapterSettings) -> None:
        super().__init__(shape, adapters)
        blank, text = np.zeros((8, 8, 3), np.uint8), self._pretrained.tokens(["a"])
        with torch.inference_mode():  # which sizes there are, the settings of every architecture say in another way
            image = self.images(ImageBatch(pixels=torch.from_numpy(self._pretrained.pixels([blank]))))
            tokens, mask = (None if part is None else torch.from_numpy(np.asarray(part)) for part in text[:2])
            caption = self.captions(CaptionBatch(None, None, None, tokens, mask))
        self.dimension = image.vector.shape[-1]
        self.region_dimension, self.state_dimension = image.local.shape[-1], caption.local.shape[-1]

    def images(self, images: ImageBatch) -> Parts:
        """Patches, and the encoder's vector of the picture."""
        return self._parts(self.read_images(images), None)

    def captions(self, captions: CaptionBatch) -> Parts:
        """Tokens, and the encoder's vector of the caption."""
        return self._parts(self.read_captions(captions), None if captions.mask is None else captions.mask == 0)

    def _parts(self, output: PretrainedOutput, padding: torch.Tensor | None) -> Parts:
        if output.states is None:
            raise UsageError(
                f"{self._pretrained.model} does not return the states of patches and tokens",
                fix="use a dual encoder that does, such as CLIP or SigLIP",
            )
        return Parts(output.vectors, output.states, padding)


def _is_dual(encoder: nn.Module, model_class: str) -> bool:
    return model_class != "AutoModel" or all(
        hasattr(encoder, method) for method in ("get_image_features", "get_text_features")
    )


def _is_projection(name: str) -> bool:
    """Whether a weight belongs to a projection behind a tower: outside it, and called so."""
    return "proj" in name.partition(".")[0]
