"""Pictures for a stored model that reads pixels, prepared as those that it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosslens.encode import IMAGES, Array, Pretrained, require_modality


class PixelReader:
    """A pretrained model's image processor in the form of an encoder: pictures in, pixels out."""

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
