"""What every trainable model is: images' features and captions in, encodings out, and scores between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from crosslens.core import Registry, UsageError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class InputShape:
    """What a model will be given: known before it is built."""

    vector: int
    """Dimensions of an image's global feature; 0 without one."""
    words: int
    """Words in the vocabulary, the padding (0) and the unknown word (1) included; 0 without word ids."""
    text: tuple[int, ...] = ()
    """Of one caption's vectors where a frozen sentence encoder reads it; () otherwise."""
    regions: tuple[int, ...] = ()
    """Regions (or grid cells) of an image and the dimensions of each; () without local features."""


def local_dimension(shape: InputShape) -> int:
    """Dimensions of local features; raises where there are none."""
    if not shape.regions:
        raise UsageError("the data have no local features", fix="name an array of images × regions × dimension")
    return shape.regions[-1]


@dataclass(frozen=True)
class ImageBatch:
    """Images of a batch: global features (B×d), local ones (B×regions×d), or both."""

    vectors: Tensor | None = None
    regions: Tensor | None = None

    def pooled(self) -> Tensor:
        """B×d: the global feature or, without one, the mean of the local ones."""
        if self.vectors is not None:
            return self.vectors
        assert self.regions is not None
        return self.regions.mean(dim=1)


@dataclass(frozen=True)
class CaptionBatch:
    """Captions of a batch: word ids (0 is padding) with their counts, or vectors of a frozen encoder."""

    words: Tensor | None
    lengths: Tensor | None
    vectors: Tensor | None = None


class TrainableModel(Protocol):
    """A ``torch.nn.Module`` with these methods, made from an :class:`InputShape` and settings by keyword."""

    def encode_images(self, images: ImageBatch) -> Any:
        """B images → the model's encoding: a tensor B×…, or a tuple of such tensors."""

    def encode_captions(self, captions: CaptionBatch) -> Any:
        """B captions → their encoding, of the same form."""

    def scores(self, images: Any, captions: Any) -> Tensor:
        """Encodings of m images and n captions → m×n similarities. Also called on blocks of a whole split."""

    def parameters(self) -> Any:
        """As of every ``torch.nn.Module``."""


MODELS: Registry[Callable[..., Any]] = Registry("trainable model", "trainable_models", ("crosslens.train.models",))
"""Kinds of models: ``(shape: InputShape, **settings) -> TrainableModel``. Declared with each: ``vectors`` (True where
an encoding is one unit vector per item, whose inner product is the score: such a model is an encoder)."""
