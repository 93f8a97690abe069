"""Pretrained encoders inside trainable models: kept by reference, trained as a whole or through LoRA adapters.

LoRA (Hu et al. 2022): a linear map W gains (alpha ÷ rank)·B·A, where B begins as zero and only A and B are trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import InputError, UsageError, needs_extra
from crosslens.encode import Pretrained, PretrainedOutput
from crosslens.train.models.protocol import MODELS, CaptionBatch, CosineScores, ImageBatch, InputShape, Parts
from crosslens.train.recipe import check_scale

_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj", "query", "key", "value", "qkv", "q_lin", "k_lin", "v_lin")
"""What the projections of attention are called in the library's models."""


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters of a module; rank 0 means none."""

    rank: int
    alpha: float = 16.0
    dropout: float = 0.0
    targets: str = ""
    """The linear maps that get one, by the ends of their names, joined by commas; default: those of attention."""

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise UsageError(f"lora_rank is {self.rank}", fix="lora_rank must be at least 0", option="lora_rank")
        check_scale("lora_alpha", self.alpha)
        if not 0 <= self.dropout < 1:
            fix = "lora_dropout must be at least 0 and below 1"
            raise UsageError(f"lora_dropout is {self.dropout}", fix=fix, option="lora_dropout")


def referenced_model(shape: InputShape) -> Pretrained:
    """The pretrained model of a shape; raises unless its files are those that the shape was made with."""
    pretrained = Pretrained(shape.encoder)
    if pretrained.revision != shape.revision:
        raise InputError(
            f"{shape.encoder} has changed since this model was trained on it", file=pretrained.folder,
            expected=f"the model with the hash {shape.revision[:12]}, not {pretrained.revision[:12]}",
            fix="put the files of the earlier model back, or train again", code="changed-file",
        )  # fmt: skip
    return pretrained


def add_adapters(module: nn.Module, settings: AdapterSettings) -> None:
    """Freeze a pretrained module and give it adapters, which alone are trained; scores stay as they are at first."""
    module.requires_grad_(False)
    if not settings.rank:
        return
    with needs_extra("LoRA adapters", "peft", "train"):
        from peft import LoraConfig, inject_adapter_in_model
    make: Any = LoraConfig  # which declares alpha as a whole number, and takes any
    config = make(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout,
        target_modules=target_names(module, settings.targets),
    )  # fmt: skip
    inject_adapter_in_model(config, module)


def target_names(module: nn.Module, targets: str = "") -> list[str]:
    """The linear maps of a module that get an adapter, by their full names.

    Those inside torch's own attention are left out: it reads their weights past any adapter.
    """
    suffixes = tuple(part.strip() for part in targets.split(",") if part.strip()) or _ATTENTION
    inside = [f"{name}." for name, part in module.named_modules() if isinstance(part, nn.MultiheadAttention)]
    linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    names = [
        name
        for name in linear
        if any(f".{name}".endswith(f".{end}") for end in suffixes) and not name.startswith(tuple(inside))
    ]
    if not names:
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise UsageError(
            f"no linear map of the model is called {' or '.join(suffixes[:4])}",
            fix=f"name some in lora_targets: {', '.join(ends[:12]) or 'there are none'}",
            option="lora_targets",
        )
    return names


def keep_by_reference(module: Any) -> None:
    """Note which weights of a pretrained module are not trained: they are not stored with the model (trained_state)."""
    names = (name for name, weight in module.named_parameters(remove_duplicate=False) if not weight.requires_grad)
    module.by_reference = frozenset(names)


class AdaptedEncoder(nn.Module):
    """A dual encoder of the transformers library whose own weights stay as they are, beside adapters that are trained.

    projection: train the encoder's last projections into the common space, too
    """

    def __init__(self, shape: InputShape, adapters: AdapterSettings, projection: bool = False) -> None:
        super().__init__()
        self._pretrained = referenced_model(shape)
        self.encoder = self._pretrained.module()
        architecture = self._pretrained.architecture
        towers = ("get_image_features", "get_text_features")
        is_dual = architecture.model_class != "AutoModel" or all(hasattr(self.encoder, tower) for tower in towers)
        if architecture.texts is None or not is_dual:
            raise UsageError(
                f"{shape.encoder} does not compare pictures with texts", fix="use a dual encoder, such as CLIP"
            )
        add_adapters(self.encoder, adapters)
        if projection:
            for name, weight in self.encoder.named_parameters():
                if "proj" in name.partition(".")[0]:  # outside a tower, and called so
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
        trainable = [(name, weight) for name, weight in self.encoder.named_parameters() if weight.requires_grad]
        return {
            group: [weight for name, weight in trainable if name.startswith(starts)]
            for group, starts in (("image", ("vision", "visual", "image")), ("text", ("text",)))
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


@MODELS.register("dual-encoder", vectors=True)
class DualEncoder(CosineScores, AdaptedEncoder):
    """A pretrained dual encoder of the transformers library, adapted: its own weights stay as they are.

    It reads pictures, so it is trained on the feature set `images`, which names the encoder. Only adapters (and
    projections) are trained and stored, beside a reference to the encoder.

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
            why = "a lora_rank of 0" + (", and the encoder has no projections" if projection else " and no projection")
            raise UsageError(f"nothing to train: {why}", fix="set lora_rank to 1 or more", option="lora_rank")

    def encode_images(self, images: ImageBatch) -> Tensor:
        return normalize(self.read_images(images).vectors, dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        return normalize(self.read_captions(captions).vectors, dim=-1)
