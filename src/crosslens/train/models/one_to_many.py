"""Models with several vectors (PVSE, DivE) or a distribution (PCME) per item: heads on the parts of both sides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize

from crosslens.core import UsageError
from crosslens.train.models.pretrained import AdapterSettings, EncoderParts
from crosslens.train.models.protocol import (
    MODELS,
    CaptionBatch,
    EmbeddingSet,
    Gaussian,
    ImageBatch,
    InputShape,
    Parts,
    SharedSettings,
    local_dimension,
)
from crosslens.train.models.towers import GRU, TRANSFORMER, projection, text_tower
from crosslens.train.recipe import check_scale, check_sizes


class PartsTower(nn.Module):
    """Global and local features of both sides: stored regions of an image, words of a caption."""

    pretrained = False

    def __init__(
        self, shape: InputShape, *, dimension: int, text: str, word_dimension: int, both: bool, dropout: float
    ) -> None:
        super().__init__()
        check_sizes(dimension=dimension, word_dimension=word_dimension)
        if text not in (GRU, TRANSFORMER):
            problem = f"text is {text!r}, and this model needs a vector per word"
            raise UsageError(problem, fix=f"choose {GRU} or {TRANSFORMER}", option="text")
        self.dimension, self.region_dimension, self.state_dimension = dimension, local_dimension(shape), dimension
        self.dropout = nn.Dropout(dropout)
        self.image = projection(shape.vector or self.region_dimension, dimension)
        self.text = text_tower(shape, text, dimension, word_dimension=word_dimension, both=both)

    def images(self, images: ImageBatch) -> Parts:
        """Regions, and the global feature or, without one, their mean."""
        assert images.regions is not None
        vector = self.image(self.dropout(normalize(images.pooled(), dim=-1)))
        return Parts(vector, self.dropout(normalize(images.regions, dim=-1)), None)

    def captions(self, captions: CaptionBatch) -> Parts:
        """States of words, and what the text tower makes of all of them."""
        vector, states, padding = self.text.read(captions)
        return Parts(vector, states, padding)

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Whose learning rate ``image_rate`` and ``text_rate`` change."""
        return {"image": list(self.image.parameters()), "text": list(self.text.parameters())}


class HeadKeywords(TypedDict, total=False):
    """The settings that models with heads share."""

    dimension: int
    text: str
    word_dimension: int
    both: bool
    dropout: float
    lora_rank: int
    lora_alpha: float
    lora_dropout: float
    lora_targets: str


class HeadModel(SharedSettings, nn.Module):
    """A head for images and one for captions, on parts that are stored features or states of an adapted encoder.

    dimension: of the common space; on pictures it is the encoder's own
    text: on stored features: what reads captions, word by word: `gru` or `transformer`
    dropout: of stored image features, and inside heads
    lora_rank: on pictures: of the LoRA adapters of the encoder; 0: none
    """

    def __init__(
        self,
        shape: InputShape,
        head: Callable[[HeadInputs], nn.Module],
        *,
        dimension: int = 1024,
        text: str = GRU,
        word_dimension: int = 300,
        both: bool = False,
        dropout: float = 0.0,
        lora_rank: int = 8,
        lora_alpha: float = 8.0,
        lora_dropout: float = 0.0,
        lora_targets: str = "",
    ) -> None:
        super().__init__()
        check_sizes(dropout=dropout)
        self.parts: EncoderParts | PartsTower
        if shape.pictures:
            self.parts = EncoderParts(shape, AdapterSettings(lora_rank, lora_alpha, lora_dropout, lora_targets))
        else:
            self.parts = PartsTower(
                shape, dimension=dimension, text=text, word_dimension=word_dimension, both=both, dropout=dropout
            )
        self.image, self.text = (
            head(HeadInputs(local, self.parts.dimension, self.parts.pretrained, dropout))
            for local in (self.parts.region_dimension, self.parts.state_dimension)
        )

    def rate_groups(self) -> dict[str, list[nn.Parameter]]:
        """Of the towers; heads have the full learning rate."""
        return self.parts.rate_groups()

    def encode_images(self, images: ImageBatch) -> Any:
        return self.image(self.parts.images(images))

    def encode_captions(self, captions: CaptionBatch) -> Any:
        return self.text(self.parts.captions(captions))


class HeadInputs(NamedTuple):
    """What a head is built for."""

    local: int
    """Dimensions of local features."""
    dimension: int
    """Of the common space."""
    pretrained: bool
    """Whether the global vector is that of a pretrained encoder, from whose scores the head then begins."""
    dropout: float

    def gate(self) -> nn.Parameter | None:
        """The learnt factor of residuals on a pretrained encoder: 0 at first."""
        return nn.Parameter(torch.zeros(())) if self.pretrained else None


def gated_sum(vector: Tensor, residuals: Tensor, gate: Tensor) -> Tensor:
    """B×d and B×K×d → B×K×d, of length 1: the direction of the vector while the gate is 0."""
    return normalize(normalize(vector, dim=-1)[:, None] + gate * residuals, dim=-1)


class LocalAttention(nn.Module):
    """K weighted means of local features, with weights softmax(w₂ tanh(W₁ x)) over them (PVSE)."""

    def __init__(self, dimension: int, k: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dimension, max(1, dimension // 2), bias=False)
        self.heads = nn.Linear(max(1, dimension // 2), k, bias=False)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.xavier_uniform_(self.heads.weight)

    def forward(self, parts: Parts) -> Tensor:
        logits = self.heads(torch.tanh(self.hidden(parts.local)))
        if parts.padding is not None:
            logits = logits.masked_fill(parts.padding[..., None], -torch.inf)
        return logits.softmax(dim=1).transpose(1, 2) @ parts.local


class AttentionHead(nn.Module):
    """PVSE's head: LayerNorm(global + σ(W attended + b)) for each of K attentions, of length 1.

    On a pretrained encoder the norm is that of the residual alone: a norm of the sum, which subtracts the mean over
    dimensions, would change the encoder's own cosines.
    """

    def __init__(self, inputs: HeadInputs, k: int) -> None:
        super().__init__()
        self.attention = LocalAttention(inputs.local, k)
        self.out = projection(inputs.local, inputs.dimension)
        self.dropout = nn.Dropout(inputs.dropout)
        self.norm = nn.LayerNorm(inputs.dimension)
        self.gate = inputs.gate()

    def forward(self, parts: Parts) -> EmbeddingSet:
        residuals = torch.sigmoid(self.out(self.dropout(self.attention(parts))))
        if self.gate is not None:
            return EmbeddingSet(gated_sum(parts.vector, self.norm(residuals), self.gate), residuals)
        return EmbeddingSet(normalize(self.norm(parts.vector[:, None] + residuals), dim=-1), residuals)


def pair_cosines(images: Tensor, captions: Tensor) -> Tensor:
    """Unit vectors m×K×d and n×L×d → all their cosines, m×K×n×L."""
    cosines = images.flatten(0, 1) @ captions.flatten(0, 1).T
    return cosines.view(*images.shape[:2], *captions.shape[:2])


@MODELS.register("pvse")
class Pvse(HeadModel):
    """K attention heads over an item's parts, added to its global vector; the highest cosine is the score (PVSE).

    k: vectors per item; published: 1, 2, 5
    """

    def __init__(self, shape: InputShape, *, k: int = 2, **shared: Unpack[HeadKeywords]) -> None:
        check_sizes(k=k)
        super().__init__(shape, lambda inputs: AttentionHead(inputs, k), **shared)

    def scores(self, images: EmbeddingSet, captions: EmbeddingSet) -> Tensor:
        """The highest of the K×K cosines of every pair."""
        return pair_cosines(images[0], captions[0]).amax(dim=(1, 3))

    def numbers_per_pair(self, images: EmbeddingSet, captions: EmbeddingSet) -> int:
        """The cosines of a pair, and room for its score."""
        return int(2 * images[0].shape[1] * captions[0].shape[1])


@MODELS.register("dive")
class Dive(HeadModel):
    """Slot attention over an item's parts, added to its global vector; smooth Chamfer is the score (DivE).

    k: slots, and so vectors, per item; published: 2, 4, 5
    iterations: rounds of slot attention, with the same weights
    alpha: how near the smooth maximum of the score is to the maximum
    """

    def __init__(
        self, shape: InputShape, *, k: int = 4, iterations: int = 4, alpha: float = 16.0, **shared: Unpack[HeadKeywords]
    ) -> None:
        check_sizes(k=k, iterations=iterations)
        check_scale("alpha", alpha)
        super().__init__(shape, lambda inputs: SlotHead(inputs, k, iterations), **shared)
        self.alpha = alpha

    def scores(self, images: EmbeddingSet, captions: EmbeddingSet) -> Tensor:
        """The smooth Chamfer similarity of every pair of sets."""
        return smooth_chamfer(pair_cosines(images[0], captions[0]), self.alpha)

    def numbers_per_pair(self, images: EmbeddingSet, captions: EmbeddingSet) -> int:
        """The cosines of a pair, scaled, their powers, and room for sums."""
        return int(4 * images[0].shape[1] * captions[0].shape[1])


def smooth_chamfer(cosines: Tensor, alpha: float) -> Tensor:
    """½ of the mean over x of log Σ_y exp(α c(x, y)) ÷ α, plus ½ of the same with x and y exchanged (DivE).

    cosines: m×K×n×L. As α grows, this tends to the Chamfer similarity: the mean over x of the highest c(x, y) and the
    mean over y of the highest c(x, y), averaged. It is at most (log K + log L) ÷ 2α above it, and never below.
    """
    scaled = alpha * cosines
    over_captions = scaled.logsumexp(dim=3).mean(dim=1)
    over_images = scaled.logsumexp(dim=1).mean(dim=2)
    return (over_captions + over_images) / (2 * alpha)


class SlotHead(nn.Module):
    """DivE's head: LayerNorm(slots) + LayerNorm(global), of length 1; a pretrained encoder's vector stays as it is."""

    def __init__(self, inputs: HeadInputs, k: int, iterations: int) -> None:
        super().__init__()
        self.slots = SlotAttention(inputs, k, iterations)
        self.gate = inputs.gate()
        self.norm = None if inputs.pretrained else nn.LayerNorm(inputs.dimension)

    def forward(self, parts: Parts) -> EmbeddingSet:
        residuals = self.slots(parts)
        if self.norm is None:
            assert self.gate is not None
            return EmbeddingSet(gated_sum(parts.vector, residuals, self.gate), residuals)
        return EmbeddingSet(normalize(residuals + self.norm(parts.vector)[:, None], dim=-1), residuals)


class SlotAttention(nn.Module):
    """K learnt slots, updated by local features in several rounds; the slots compete for every feature."""

    def __init__(self, inputs: HeadInputs, k: int, iterations: int) -> None:
        super().__init__()
        local, dimension = inputs.local, inputs.dimension
        self.iterations, self.scale = iterations, dimension**-0.5
        self.initial = nn.Parameter(torch.randn(k, dimension))
        self.local = nn.LayerNorm(local)
        self.query = nn.Linear(dimension, dimension, bias=False)
        self.key = nn.Linear(local, dimension, bias=False)
        self.value = nn.Linear(local, dimension, bias=False)
        self.out = nn.Linear(dimension, dimension)
        self.before_attention, self.before_network, self.last = (nn.LayerNorm(dimension) for _ in range(3))
        self.network = nn.Sequential(
            nn.Linear(dimension, 2 * dimension),
            nn.GELU(),
            nn.Dropout(inputs.dropout),
            nn.Linear(2 * dimension, dimension),
        )

    def forward(self, parts: Parts) -> Tensor:
        features = self.local(parts.local)
        keys, values = self.key(features), self.value(features)
        slots = self.initial.expand(len(features), -1, -1)
        for _ in range(self.iterations):
            weights = slot_weights(self.scale * self.query(self.before_attention(slots)), keys, parts.padding)
            slots = slots + self.out(weights @ values)
            slots = slots + self.network(self.before_network(slots))
        return self.last(slots)


def slot_weights(queries: Tensor, keys: Tensor, padding: Tensor | None) -> Tensor:
    """B×K×T: a softmax over the slots for every feature, then divided by each slot's sum over features."""
    shares = (queries @ keys.transpose(1, 2)).softmax(dim=1)
    if padding is not None:
        shares = shares.masked_fill(padding[:, None, :], 0)
    return shares / (shares.sum(dim=2, keepdim=True) + 1e-7)  # a slot that no feature chose stays as it is


INITIAL_VARIANCE = 0.1
"""Of all dimensions together, before training: small beside the unit length of means."""


@MODELS.register("pcme")
class Pcme(HeadModel):
    """A mean and a variance per item, from attention over its parts; the score is the match probability (PCME).

    Two samples at distance d match with probability σ(b − a·d), with learnt a and b; an image and a caption with the
    mean of that over their samples. Scores are its log-odds: the same order, without ties where it rounds to 0 or 1.
    In training samples are drawn anew; in evaluation every item has the same deviations, scaled by its variance.

    samples: drawn per item
    scale: a at the beginning
    shift: b at the beginning
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        samples: int = 7,
        scale: float = 15.0,
        shift: float = 15.0,
        **shared: Unpack[HeadKeywords],
    ) -> None:
        check_sizes(samples=samples)
        check_scale("scale", scale)
        super().__init__(shape, lambda inputs: GaussianHead(inputs, samples), **shared)
        self.scale, self.shift = nn.Parameter(torch.tensor(float(scale))), nn.Parameter(torch.tensor(float(shift)))

    def scores(self, images: Gaussian, captions: Gaussian) -> Tensor:
        """Log-odds of the match of every pair."""
        return match_log_odds(images[2], captions[2], self.scale, self.shift)

    def numbers_per_pair(self, images: Gaussian, captions: Gaussian) -> int:
        """The distances of a pair's samples, their probabilities in two forms, powers of these, and sums."""
        return int(6 * images[2].shape[1] * captions[2].shape[1])


def match_log_odds(images: Tensor, captions: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Samples m×J×d and n×L×d → log p ÷ (1 − p), where p is the mean of σ(shift − scale · distance) over J×L."""
    distances = torch.cdist(images.flatten(0, 1), captions.flatten(0, 1))
    logits = (shift - scale * distances).view(*images.shape[:2], *captions.shape[:2])
    matching = logsigmoid(logits)
    mismatching = matching - logits  # log σ(−x) = log σ(x) − x
    return matching.logsumexp(dim=(1, 3)) - mismatching.logsumexp(dim=(1, 3))


class GaussianHead(nn.Module):
    """The mean is PVSE's head with one vector; the log-variance is linear in the global vector and in attention.

    On a pretrained encoder samples leave the mean by the gate times their deviation, so that they begin as it.
    """

    def __init__(self, inputs: HeadInputs, samples: int) -> None:
        super().__init__()
        local, dimension = inputs.local, inputs.dimension
        self.mean = AttentionHead(inputs, 1)
        self.attention = LocalAttention(local, 1)
        self.of_local, self.of_vector = projection(local, dimension), projection(dimension, dimension)
        nn.init.constant_(self.of_vector.bias, math.log(INITIAL_VARIANCE / dimension))
        self.deviations: Tensor
        self.register_buffer("deviations", torch.randn(samples, dimension))

    def forward(self, parts: Parts) -> Gaussian:
        """A distribution per item, with samples: new ones in training, the stored deviations otherwise."""
        mean, gate = self.mean(parts).vectors[:, 0], self.mean.gate
        vector = parts.vector if gate is None else normalize(parts.vector, dim=-1)
        log_variance = self.of_vector(vector) + self.of_local(self.attention(parts))[:, 0]
        shape = (len(mean), *self.deviations.shape)
        deviations = torch.randn(shape, device=mean.device, dtype=mean.dtype) if self.training else self.deviations
        offsets = (log_variance / 2).exp()[:, None] * deviations
        return Gaussian(mean, log_variance, mean[:, None] + (offsets if gate is None else gate * offsets))
