"""VSRN: regions reason over a graph of themselves, then a GRU reads them to one vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.train.models.protocol import MODELS, CaptionBatch, ImageBatch, InputShape
from crosslens.train.models.towers.attention import RegionStates
from crosslens.train.models.towers.layers import check_sizes
from crosslens.train.models.towers.text import GRU, text_tower


class RegionGraph(nn.Module):
    """One layer of reasoning: V + BN((θ(V) φ(V)ᵀ ÷ R) g(V) W), with an affinity between all pairs of R regions."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.query = nn.Linear(dimension, dimension)
        self.key = nn.Linear(dimension, dimension)
        self.value = nn.Linear(dimension, dimension)
        self.out = nn.Linear(dimension, dimension, bias=False)  # the normalisation has one
        self.norm = nn.BatchNorm1d(dimension)
        nn.init.zeros_(self.norm.weight)  # as published: a layer begins as the identity

    def forward(self, regions: Tensor) -> Tensor:
        """B×R×d → B×R×d."""
        affinity = self.query(regions) @ self.key(regions).transpose(1, 2) / regions.shape[1]
        reasoned = self.out(affinity @ self.value(regions))
        return torch.as_tensor(regions + self.norm(reasoned.transpose(1, 2)).transpose(1, 2))


@MODELS.register("vsrn", vectors=True)
class Vsrn(nn.Module):
    """Visual semantic reasoning (VSRN): graph layers over regions, then a GRU over them; one vector per image.

    Its second loss, of captions generated from the regions, is the loss `captioning`.

    dimension: of regions and of the common space
    layers: of graph reasoning
    text: what reads captions: `gru`, `transformer` or `sentence` (a frozen sentence encoder with a head)
    word_dimension: of word embeddings
    both: a GRU in both directions for captions
    dropout: of image features, and inside the head of a sentence encoder
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        dimension: int = 2048,
        layers: int = 4,
        text: str = GRU,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, layers=layers, word_dimension=word_dimension, dropout=dropout)
        self.region_dimension = dimension
        self.regions = RegionStates(shape, dimension, dropout)
        self.graph = nn.Sequential(*(RegionGraph(dimension) for _ in range(layers)))
        self.reader = nn.GRU(dimension, dimension, batch_first=True)
        self.text = text_tower(shape, text, dimension, word_dimension=word_dimension, both=both, dropout=dropout)

    def encode_images(self, images: ImageBatch) -> Tensor | tuple[Tensor, Tensor]:
        """B×d, of length 1: the state of the GRU after the last region; while training, with the regions (B×R×d)."""
        regions = normalize(self.graph(self.regions(images)), dim=-1)
        states, _ = self.reader(regions)
        vectors = normalize(states[:, -1], dim=-1)
        return (vectors, regions) if self.training else vectors

    def encode_captions(self, captions: CaptionBatch) -> Tensor | tuple[Tensor, Tensor]:
        """B×d, of length 1; while training, with the word ids (B×T), where there are any."""
        vectors = normalize(self.text(captions), dim=-1)
        return (vectors, captions.words) if self.training and captions.words is not None else vectors

    def scores(self, images: Tensor | tuple[Tensor, Tensor], captions: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """Cosines."""
        left, right = (encoding[0] if isinstance(encoding, tuple) else encoding for encoding in (images, captions))
        return left @ right.T
