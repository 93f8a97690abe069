"""Models with one unit vector per item, whose cosine is the score: VSE++, VSRN and CVSE.

VSRN: regions reason over a graph of themselves, then a GRU reads them to one vector. CVSE: an image and a caption are
also described by concepts that captions agree on, the most frequent content words of a collection, with edges to those
that they bring along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize

from crosslens.core import UsageError
from crosslens.language import STOP_WORDS
from crosslens.train.captions import FIRST, CaptionVocabulary, words_of
from crosslens.train.models.pretrained import AdapterSettings
from crosslens.train.models.protocol import MODELS, CaptionBatch, CosineScores, ImageBatch, InputShape
from crosslens.train.models.towers import (
    GRID,
    GRU,
    LINEAR,
    RESIDUAL,
    AttentionPool,
    EncoderText,
    GridImage,
    PooledImage,
    RegionStates,
    WordStates,
    projection,
    text_tower,
    word_count,
)
from crosslens.train.recipe import check_choice, check_scale, check_share, check_sizes


@MODELS.register("vse", vectors=True)
class Vse(CosineScores, nn.Module):
    """A projection of a global image feature beside a text tower (VSE++).

    image: how the feature is projected: `linear`, as published; `residual` (plus a two-layer network); or `grid`, which
        adds local features, through a transformer layer
    standardise: image features get mean 0 and deviation 1 over the training images, instead of unit length
    dropout: of the features, and inside residual heads
    lora_rank: with `encoder`: train LoRA adapters of this rank; 0: all weights
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        dimension: int = 1024,
        text: str = GRU,
        image: str = LINEAR,
        standardise: bool = False,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
        lora_rank: int = 0,
        lora_alpha: float = 16.0,
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, word_dimension=word_dimension, dropout=dropout)
        check_choice("image", image, (LINEAR, RESIDUAL, GRID))
        self.image: Any = (
            GridImage(shape, dimension, dropout, standardise)
            if image == GRID
            else PooledImage(shape, dimension, dropout, standardise, image == RESIDUAL)
        )
        self.text = text_tower(
            shape, text, dimension, word_dimension=word_dimension, both=both, dropout=dropout,
            adapters=AdapterSettings(lora_rank, lora_alpha),
        )  # fmt: skip

    def fit_features(self, features: Mapping[str, Any]) -> None:
        """Measure the training features, for standardisation."""
        if self.image.scale is not None:
            self.image.scale.fit(features)

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Whose learning rate ``image_rate`` and ``text_rate`` change; of a pretrained encoder not its new head."""
        text = self.text.encoder if isinstance(self.text, EncoderText) else self.text
        return {"image": list(self.image.parameters()), "text": list(text.parameters())}

    def encode_images(self, images: ImageBatch) -> Tensor:
        """B×d, of length 1. Without global features, local ones are averaged."""
        return normalize(self.image(images), dim=-1)

    def encode_captions(self, captions: CaptionBatch) -> Tensor:
        """B×d, of length 1."""
        return normalize(self.text(captions), dim=-1)


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
        affinity = self.query(regions) @ self.key(regions).transpose(1, 2) / regions.shape[1]
        reasoned = self.out(affinity @ self.value(regions))
        return regions + self.norm(reasoned.transpose(1, 2)).transpose(1, 2)


@MODELS.register("vsrn", vectors=True)
class Vsrn(CosineScores, nn.Module):
    """Visual semantic reasoning (VSRN): graph layers over regions, then a GRU over them; one vector per image.

    Its second loss, of captions generated from the regions, is the loss `captioning`.

    dimension: of regions and of the common space
    layers: of graph reasoning
    text: what reads captions: `gru`, `transformer` or `sentence` (a frozen sentence encoder with a head)
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


SCALE, SHIFT, THRESHOLD = 5.0, 0.02, 0.3
"""s, u and ε of CVSE: an edge where s^(P − u) − s^(−u) ≥ ε."""
_AT_ONCE = 10_000
Encoding = tuple[Tensor, Tensor, Tensor, Tensor]
"""Of the fused, the instance and the consensus level, B×d of length 1 each; and log weights of concepts, B×concepts."""


def concept_graph(texts: Sequence[str], *, concepts: int = 300) -> dict[str, Any]:
    """What CVSE is built from: the numbers of the concepts in the vocabulary, and edges between them.

    There is an edge from concept i to j where P = (captions with both) ÷ (captions with i), rescaled, is large enough.
    Captions with fewer content words have fewer concepts. Vocabularies list frequent words first, so a word's number
    does not depend on how rare a word they leave out.
    """
    numbers = [
        (number, word)
        for number, word in enumerate(CaptionVocabulary.of(texts, 1).words, FIRST)
        if word not in STOP_WORDS and not word.isdigit()
    ][:concepts]
    row_of = {word: at for at, (_, word) in enumerate(numbers)}
    # In how many captions two concepts occur; on the diagonal, in how many one does.
    together = np.zeros((len(row_of), len(row_of)))
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        occurs = np.zeros((len(part), len(row_of)), np.float32)
        for row, text in enumerate(part):
            occurs[row, [row_of[word] for word in words_of(text) if word in row_of]] = 1
        together += occurs.T @ occurs
    shares = together / np.diag(together)[:, None]
    edges = SCALE ** (shares - SHIFT) - SCALE**-SHIFT >= THRESHOLD
    np.fill_diagonal(edges, False)  # a concept is its own neighbour without saying
    return {"concept_numbers": [number for number, _ in numbers], "concept_edges": np.argwhere(edges).tolist()}


class ConceptGraph(nn.Module):
    """Word vectors of concepts → their vectors in the common space, by two graph convolutions: A ρ(A X W₁) W₂."""

    adjacency: Tensor

    def __init__(self, edges: Sequence[Sequence[int]], concepts: int, inputs: int, dimension: int) -> None:
        super().__init__()
        graph = torch.eye(concepts)
        for source, target in edges:
            graph[source, target] = 1
        degree = graph.sum(dim=1).rsqrt()
        self.register_buffer("adjacency", degree[:, None] * graph * degree, persistent=False)
        self.first = projection(inputs, dimension, bias=False)
        self.second = projection(dimension, dimension, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """Concepts × inputs → concepts × d, of length 1."""
        hidden = leaky_relu(self.adjacency @ self.first(words), 0.2)
        return normalize(self.adjacency @ self.second(hidden), dim=-1)


@MODELS.register("cvse", vectors=True, prepare=concept_graph)
class Cvse(CosineScores, nn.Module):
    """Consensus-aware embedding (CVSE): vectors of the item itself, and of the concepts it calls to mind, fused.

    concepts: how many of the most frequent content words of the training captions; fewer where the vocabulary has fewer
    instance_share: of the item's own vector in the fused one
    label_share: of the concepts a caption names, as against those its vector is close to
    concept_scale: factor of what the softmax over concepts takes
    dropout: of word embeddings, and where regions and words are pooled
    """

    numbers: Tensor
    column_of: Tensor

    def __init__(
        self,
        shape: InputShape,
        *,
        concept_numbers: Sequence[int],
        concept_edges: Sequence[Sequence[int]],
        concepts: int = 300,
        instance_share: float = 0.75,
        label_share: float = 0.35,
        concept_scale: float = 10.0,
        dimension: int = 1024,
        word_dimension: int = 300,
        both: bool = True,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        check_sizes(concepts=concepts, dimension=dimension, word_dimension=word_dimension, dropout=dropout)
        check_share("instance_share", instance_share)
        check_share("label_share", label_share)
        check_scale("concept_scale", concept_scale)
        numbers = torch.tensor([number for number in concept_numbers if number < word_count(shape)])
        if not len(numbers):
            raise UsageError("the vocabulary has no content word", fix="train on more captions, or lower least_count")
        # Concepts are sorted by their numbers: those that the vocabulary lacks are the last.
        concept_edges = [edge for edge in concept_edges if max(edge) < len(numbers)]
        if len(numbers) < concepts:
            self.notes = (f"{len(numbers)} concepts, not {concepts}: the vocabulary has no more content words",)
        concepts = len(numbers)
        self.instance_share, self.label_share, self.concept_scale = instance_share, label_share, concept_scale
        column_of = torch.full((shape.words,), concepts)  # words that are no concept fall into one more column
        column_of[numbers] = torch.arange(concepts)
        self.register_buffer("numbers", numbers, persistent=False)
        self.register_buffer("column_of", column_of, persistent=False)
        self.regions = RegionStates(shape, dimension)
        self.words = WordStates(shape.words, word_dimension, dimension, both=both, dropout=dropout)
        self.image_pool, self.caption_pool = (AttentionPool(dimension, dropout) for _ in range(2))
        self.graph = ConceptGraph(concept_edges, concepts, word_dimension, dimension)
        self.image_concepts, self.caption_concepts = (projection(dimension, dimension, bias=False) for _ in range(2))

    def encode_images(self, images: ImageBatch) -> Tensor | Encoding:
        """B×d, of length 1; while training, all that the losses of CVSE compare."""
        instance = self.image_pool(normalize(self.regions(images), dim=-1))
        concepts = self._concepts()
        logits = self.concept_scale * self.image_concepts(instance) @ concepts.T
        return self._fused(instance, concepts, logits.log_softmax(dim=1))

    def encode_captions(self, captions: CaptionBatch) -> Tensor | Encoding:
        """As of images; a caption also names concepts itself."""
        assert captions.words is not None
        assert captions.lengths is not None
        instance = self.caption_pool(self.words(captions), captions.lengths.to(captions.words.device))
        concepts = self._concepts()
        mentions = torch.zeros(len(instance), len(concepts) + 1, device=instance.device, dtype=instance.dtype)
        mentions.scatter_(1, self.column_of[captions.words], 1)
        by_label = (self.concept_scale * mentions[:, :-1]).softmax(dim=1)
        by_vector = (self.concept_scale * self.caption_concepts(instance) @ concepts.T).softmax(dim=1)
        weights = self.label_share * by_label + (1 - self.label_share) * by_vector
        return self._fused(instance, concepts, weights.clamp(min=1e-12).log())

    def _concepts(self) -> Tensor:
        return self.graph(self.words.embedding(self.numbers))

    def _fused(self, instance: Tensor, concepts: Tensor, log_weights: Tensor) -> Tensor | Encoding:
        consensus = normalize(log_weights.exp() @ concepts, dim=-1)
        fused = normalize(self.instance_share * instance + (1 - self.instance_share) * consensus, dim=-1)
        return (fused, instance, consensus, log_weights) if self.training else fused
