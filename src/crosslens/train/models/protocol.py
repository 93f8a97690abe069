"""What every trainable model is: images' features and captions in, encodings out, and scores between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from crosslens.core import Registry

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class InputShape:
    """What a model will be given: known before it is built."""

    image: tuple[int, ...]
    """Of one image's features: (d,) for a global vector, (regions, d) for local ones."""
    words: int
    """Words in the vocabulary, the padding (0) and the unknown word (1) included; 0 without word ids."""
    text: tuple[int, ...] = ()
    """Of one caption's vectors where a frozen sentence encoder reads it; () otherwise."""


@dataclass(frozen=True)
class CaptionBatch:
    """Captions of a batch: word ids (0 is padding) with their counts, or vectors of a frozen encoder."""

    words: Tensor | None
    lengths: Tensor | None
    vectors: Tensor | None = None


class TrainableModel(Protocol):
    """A ``torch.nn.Module`` with these methods, made from an :class:`InputShape` and settings by keyword."""

    def encode_images(self, features: Tensor) -> Any:
        """B images' features → the model's encoding: a tensor B×…, or a tuple of such tensors."""

    def encode_captions(self, captions: CaptionBatch) -> Any:
        """B captions → their encoding, of the same form."""

    def scores(self, images: Any, captions: Any) -> Tensor:
        """Encodings of m images and n captions → m×n similarities. Also called on blocks of a whole split."""

    def parameters(self) -> Any:
        """As of every ``torch.nn.Module``."""


MODELS: Registry[Callable[..., Any]] = Registry("trainable model", "trainable_models", ("crosslens.train.models",))
"""Kinds of models: ``(shape: InputShape, **settings) -> TrainableModel``. Declared with each: ``vectors`` (True where
an encoding is one unit vector per item, whose inner product is the score: such a model is an encoder)."""
