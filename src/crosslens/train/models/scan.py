"""SCAN: stacked cross attention between regions and words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape
from crosslens.train.models.towers.attention import RegionStates, attended_cosines, scores_by_length, word_count
from crosslens.train.models.towers.layers import check_choice, check_scale, check_sizes
from crosslens.train.models.towers.text import WordStates

TEXT_TO_IMAGE, IMAGE_TO_TEXT = "t2i", "i2t"
MEAN, LSE = "mean", "lse"
_PUBLISHED_SCALE = {TEXT_TO_IMAGE: 9.0, IMAGE_TO_TEXT: 4.0}


@MODELS.register("scan")
class Scan(nn.Module):
    """Stacked cross attention (SCAN): words attend to regions, or regions to words, and the cosines are averaged.

    direction: `t2i`, every word attends to the regions; or `i2t`, every region to the words
    aggregation: over words or regions: `mean`, or `lse`, the logarithm of the sum of exponentials
    attention_scale: factor of what the softmax takes; 0: as published, 9 for `t2i` and 4 for `i2t`
    lse_scale: factor of the cosines inside `lse`
    dimension: of the common space
    word_dimension: of word embeddings
    both: a GRU in both directions
    dropout: of word embeddings
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        direction: str = TEXT_TO_IMAGE,
        aggregation: str = MEAN,
        attention_scale: float = 0.0,
        lse_scale: float = 6.0,
        dimension: int = 1024,
        word_dimension: int = 300,
        both: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("direction", direction, (TEXT_TO_IMAGE, IMAGE_TO_TEXT))
        check_choice("aggregation", aggregation, (MEAN, LSE))
        self.attention_scale = attention_scale or _PUBLISHED_SCALE[direction]
        check_scale("attention_scale", self.attention_scale)
        check_scale("lse_scale", lse_scale)
        check_sizes(dimension=dimension, word_dimension=word_dimension, dropout=dropout)
        self.direction, self.aggregation, self.lse_scale = direction, aggregation, lse_scale
        self.regions = RegionStates(shape, dimension)
        self.words = WordStates(word_count(shape), word_dimension, dimension, both=both, dropout=dropout)

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×R×d, of length 1 each."""
        return normalize(self.regions(images), dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> tuple[Tensor, Tensor]:
        """B×T×d, of length 1 each, padding 0; and how many words there are."""
        assert captions.lengths is not None
        states = normalize(self.words(captions), dim=-1)
        return states, captions.lengths.to(states.device)

    def scores(self, images: Tensor, captions: tuple[Tensor, Tensor]) -> Tensor:
        """The mean (or log-sum-exp) of the cosines of words and attended regions, or of regions and attended words."""
        words, lengths = captions

        def scores_of(rows: Tensor, length: int) -> Tensor:
            chosen = words[rows, :length]
            if self.direction == TEXT_TO_IMAGE:
                return self._pooled(attended_cosines(chosen, images, self.attention_scale))
            return self._pooled(attended_cosines(images, chosen, self.attention_scale)).T

        return scores_by_length(lengths, scores_of)

    def _pooled(self, cosines: Tensor) -> Tensor:
        if self.aggregation == MEAN:
            return cosines.mean(dim=2)
        return torch.logsumexp(self.lse_scale * cosines, dim=2) / self.lse_scale

    def numbers_per_pair(self, images: Tensor, captions: tuple[Tensor, Tensor]) -> int:
        """Six arrays of words × regions."""
        return int(6 * images.shape[1] * captions[0].shape[1])
