"""Pictures for a stored model that reads pixels, in the form of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from crosslens.core import fingerprint
from crosslens.encode import IMAGES, Array, Pretrained, require_modality
from crosslens.train.inputs.feature_sets import ImageFeatures
from crosslens.train.models.protocol import ImageBatch


class PixelReader:
    """A pretrained model's image processor: pictures in, pixels out, prepared as those that a model was trained on."""

    logit_scale: float | None = None
    dimension: int | None = None
    abilities = frozenset((IMAGES,))

    def __init__(self, pretrained: Pretrained) -> None:
        self._pretrained = pretrained
        self.name, self.revision, self.preprocessing = pretrained.model, pretrained.revision, pretrained.preprocessing

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n×channels×height×width; rounded, as the pixels on disk are that a model is trained on."""
        return self._pretrained.pixels(images).astype(np.float16)

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Not possible."""
        require_modality(self, "texts")
        raise AssertionError


class PictureEncodings(PixelReader):
    """What a model without vectors makes of pictures, the numbers of each in a row: far fewer than its pixels.

    ``on_rows`` is the model where such rows are compared with captions.
    """

    def __init__(self, pretrained: Pretrained, model: Any, name: str, revision: str, device: Any) -> None:
        super().__init__(pretrained)
        self._model, self._device = model, device
        self.name, self.revision = name, fingerprint("pictures", {"model": revision, "encoder": self.revision})
        self.on_rows = SimpleNamespace(
            encode_images=self._unpacked, encode_captions=model.encode_captions, scores=model.scores,
            numbers_per_pair=getattr(model, "numbers_per_pair", lambda images, captions: 1),
        )  # fmt: skip

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n × numbers."""
        import torch

        with torch.inference_mode():
            rows = torch.cat([part.flatten(1).float() for part in self._encoded(images)], dim=1)
            return np.asarray(rows.cpu().numpy())

    def _unpacked(self, images: ImageBatch) -> Any:
        """The model's own encoding, a tuple of tensors, of a batch of rows."""
        import torch

        assert images.vectors is not None
        parts = torch.split(images.vectors, [int(np.prod(shape)) for shape in self._shapes], dim=1)
        return tuple(part.reshape(len(part), *shape) for part, shape in zip(parts, self._shapes, strict=True))

    def _encoded(self, pictures: Sequence[Any]) -> Any:
        pixels = ImageFeatures(pixels=super().encode_images(pictures))
        return self._model.encode_images(pixels.batch(slice(None), self._device))

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of the tensors of one picture's encoding."""
        import torch

        with torch.inference_mode():
            return [tuple(part.shape[1:]) for part in self._encoded([np.zeros((8, 8, 3), np.uint8)])]
