"""PVSE: K vectors per item, from K attentions over its local features; the best of their cosines is the score."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from crosslens.train.models.protocol import MODELS, EmbeddingSet, InputShape
from crosslens.train.models.towers.layers import check_sizes
from crosslens.train.models.towers.local_features import AttentionHead, HeadModel, pair_cosines


@MODELS.register("pvse")
class Pvse(HeadModel):
    """K attention heads over an item's parts, added to its global vector; the highest cosine is the score (PVSE).

    k: vectors per item; published: 1, 2, 5
    """

    def __init__(self, shape: InputShape, *, k: int = 2, **shared: Any) -> None:
        check_sizes(k=k)
        super().__init__(shape, lambda inputs: AttentionHead(inputs, k), **shared)

    def scores(self, images: EmbeddingSet, captions: EmbeddingSet) -> Tensor:
        """The highest of the K×K cosines of every pair."""
        return pair_cosines(images[0], captions[0]).amax(dim=(1, 3))

    def numbers_per_pair(self, images: EmbeddingSet, captions: EmbeddingSet) -> int:
        """The cosines of a pair, and room for its score."""
        count: int = 2 * images[0].shape[1] * captions[0].shape[1]
        return count
