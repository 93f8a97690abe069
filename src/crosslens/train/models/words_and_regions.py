"""Models that compare words with regions: SCAN by cross attention; SGR and SAF by vectors of similarity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape, SharedSettings
from crosslens.train.models.towers import (
    AttentionPool,
    RegionStates,
    WordStates,
    cross_attention,
    projection,
    scores_by_length,
    word_count,
)
from crosslens.train.recipe import check_choice, check_scale, check_sizes

TEXT_TO_IMAGE, IMAGE_TO_TEXT = "t2i", "i2t"
MEAN, LSE = "mean", "lse"
_PUBLISHED_SCALE = {TEXT_TO_IMAGE: 9.0, IMAGE_TO_TEXT: 4.0}


@MODELS.register("scan")
class Scan(SharedSettings, nn.Module):
    """Stacked cross attention (SCAN): words attend to regions, or regions to words, and the cosines are averaged.

    direction: `t2i`, every word attends to the regions; or `i2t`, every region to the words
    aggregation: over words or regions: `mean`, or `lse`, the logarithm of the sum of exponentials
    attention_scale: factor of what the softmax takes; 0: as published, 9 for `t2i` and 4 for `i2t`
    lse_scale: factor of the cosines inside `lse`
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
            by_words, of_length = self.direction == TEXT_TO_IMAGE, words[rows, :length]
            queries, contexts = (of_length, images) if by_words else (images, of_length)
            cosines, attention = cross_attention(queries, contexts, self.attention_scale)
            # The attended vector Σ a_r v_r itself, of d numbers for every pair of parts, is not made: its inner product
            # with the part is Σ a_r cos_r, its squared length aᵀ G a with G the inner products of the context's parts.
            gram = contexts @ contexts.transpose(1, 2)
            squared = ((attention.flatten(1, 2) @ gram).view_as(attention) * attention).sum(dim=3)
            cosines = (attention * cosines).sum(dim=3) / squared.clamp(min=1e-12).sqrt()
            if self.aggregation == MEAN:
                pooled = cosines.mean(dim=2)
            else:
                pooled = torch.logsumexp(self.lse_scale * cosines, dim=2) / self.lse_scale
            return pooled if by_words else pooled.T

        return scores_by_length(lengths, scores_of)

    def numbers_per_pair(self, images: Tensor, captions: tuple[Tensor, Tensor]) -> int:
        """Six arrays of words × regions."""
        return int(6 * images.shape[1] * captions[0].shape[1])


Images = tuple[Tensor, Tensor]
"""Regions (B×R×d) and the whole image (B×d)."""
Captions = tuple[Tensor, Tensor, Tensor]
"""Words (B×T×d), the whole caption (B×d), and how many words there are."""


class SimilarityKeywords(TypedDict, total=False):
    """The settings that SGR and SAF share."""

    dimension: int
    similarity_dimension: int
    word_dimension: int
    attention_scale: float
    dropout: float


class SimilarityVectors(SharedSettings, nn.Module, ABC):
    """What SGR and SAF share: encodings, and for every pair a vector of similarity per word and one of the whole.

    similarity_dimension: of the vectors of similarity
    dropout: of word embeddings, and where regions and words are pooled
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        dimension: int = 1024,
        similarity_dimension: int = 256,
        word_dimension: int = 300,
        attention_scale: float = 9.0,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        check_sizes(
            dimension=dimension, similarity_dimension=similarity_dimension, word_dimension=word_dimension,
            dropout=dropout,
        )  # fmt: skip
        check_scale("attention_scale", attention_scale)
        self.attention_scale = attention_scale
        self.regions = RegionStates(shape, dimension)
        self.words = WordStates(word_count(shape), word_dimension, dimension, both=True, dropout=dropout)
        self.image_pool, self.caption_pool = (AttentionPool(dimension, dropout) for _ in range(2))
        self.local = projection(dimension, similarity_dimension)
        self.whole = projection(dimension, similarity_dimension)
        self.score = projection(similarity_dimension, 1)

    def encode_images(self, images: ImageBatch) -> Images:
        """Unit vectors of the regions and of the whole."""
        regions = normalize(self.regions(images), dim=-1)
        return regions, self.image_pool(regions)

    def encode_captions(self, captions: CaptionBatch) -> Captions:
        """Unit vectors of the words and of the whole, and the number of words."""
        assert captions.lengths is not None
        words = normalize(self.words(captions), dim=-1)
        lengths = captions.lengths.to(words.device)
        return words, self.caption_pool(words, lengths), lengths

    def similarities(self, images: Images, words: Tensor, captions: Tensor) -> Tensor:
        """m×n×(1+T)×s: of the wholes, then of every word and the regions it attends to; captions of one length."""
        regions, whole = images
        _, attention = cross_attention(words, regions, self.attention_scale)
        attended = torch.einsum("mntr,mrd->mntd", attention, regions)
        local = self.local((normalize(attended, dim=-1) - words).square())
        of_whole = self.whole((whole[:, None] - captions).square())
        return normalize(torch.cat([of_whole[:, :, None], local], dim=2), dim=-1)

    @abstractmethod
    def reason(self, similarities: Tensor) -> Tensor:
        """m×n×(1+T)×s → m×n×s."""

    def scores(self, images: Images, captions: Captions) -> Tensor:
        """From 0 to 1."""
        words, whole, lengths = captions

        def scores_of(rows: Tensor, length: int) -> Tensor:
            reasoned = self.reason(self.similarities(images, words[rows, :length], whole[rows]))
            return self.score(reasoned)[..., 0].sigmoid()

        return scores_by_length(lengths, scores_of)

    def numbers_per_pair(self, images: Images, captions: Captions) -> int:
        """Of every word: three vectors of the common space, six of similarity, three numbers per region."""
        regions, words = images[0], captions[0]
        return int((1 + words.shape[1]) * (3 * words.shape[2] + 6 * self.local.out_features + 3 * regions.shape[1]))


class GraphStep(nn.Module):
    """One step of reasoning: every vector of similarity becomes ReLU(W Σ e_j s_j), with attention e to all of them."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.query = projection(dimension, dimension)
        self.key = projection(dimension, dimension, bias=False)  # the same for all: a bias changes no weight
        self.out = projection(dimension, dimension)

    def forward(self, similarities: Tensor) -> Tensor:
        edges = (self.query(similarities) @ self.key(similarities).transpose(-1, -2)).softmax(dim=-1)
        return self.out(edges @ similarities).relu()


@MODELS.register("sgr")
class Sgr(SimilarityVectors):
    """Similarity graph reasoning (SGR): the vectors of similarity of a pair reason over a graph of themselves.

    steps: of reasoning
    """

    def __init__(self, shape: InputShape, *, steps: int = 3, **shared: Unpack[SimilarityKeywords]) -> None:
        super().__init__(shape, **shared)
        check_sizes(steps=steps)
        self.graph = nn.Sequential(*(GraphStep(self.local.out_features) for _ in range(steps)))

    def reason(self, similarities: Tensor) -> Tensor:
        return self.graph(similarities)[:, :, 0]


@MODELS.register("saf")
class Saf(SimilarityVectors):
    """Similarity attention filtration (SAF): the vectors of similarity of a pair, weighted by how much they say."""

    def __init__(self, shape: InputShape, **shared: Unpack[SimilarityKeywords]) -> None:
        super().__init__(shape, **shared)
        self.filter = projection(self.local.out_features, 1)

    def reason(self, similarities: Tensor) -> Tensor:
        """The mean by weights between 0 and 1, of length 1."""
        weights = self.filter(similarities).sigmoid()
        return normalize((weights * similarities).sum(dim=2), dim=-1)  # its length makes dividing by Σ weights moot
