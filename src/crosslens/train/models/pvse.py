"""PVSE: K vectors per item, from K attentions over its local features; the best of their cosines is the score."""

from __future__ import annotations

from torch import Tensor

from crosslens.train.models.protocol import MODELS, EmbeddingSet, InputShape
from crosslens.train.models.towers.layers import check_sizes
from crosslens.train.models.towers.local_features import AttentionHead, PartsTower, SetModel, pair_cosines
from crosslens.train.models.towers.text import GRU


@MODELS.register("pvse")
class Pvse(SetModel):
    """K attention heads over regions and words, added to the global vector; the highest cosine is the score (PVSE).

    k: vectors per item; published: 1, 2, 5
    dimension: of the common space
    text: what reads captions, word by word: `gru` or `transformer`
    word_dimension: of word embeddings
    both: a GRU in both directions
    dropout: of image features and of what attention gives
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        k: int = 2,
        dimension: int = 1024,
        text: str = GRU,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
    ) -> None:
        check_sizes(k=k)
        parts = PartsTower(
            shape, dimension=dimension, text=text, word_dimension=word_dimension, both=both, dropout=dropout
        )
        super().__init__(parts, lambda local: AttentionHead(local, dimension, k, dropout))

    def scores(self, images: EmbeddingSet, captions: EmbeddingSet) -> Tensor:
        """The highest of the K×K cosines of every pair."""
        return pair_cosines(images[0], captions[0]).amax(dim=(1, 3))

    def numbers_per_pair(self, images: EmbeddingSet, captions: EmbeddingSet) -> int:
        """The cosines of a pair, and room for its score."""
        count: int = 2 * images[0].shape[1] * captions[0].shape[1]
        return count
