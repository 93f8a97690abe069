"""DivE: K vectors per item, from slots that compete for its local features; sets are compared by smooth Chamfer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.train.models.protocol import MODELS, EmbeddingSet, InputShape, Parts
from crosslens.train.models.towers.layers import check_scale, check_sizes
from crosslens.train.models.towers.local_features import HeadInputs, HeadModel, gated_sum, pair_cosines


@MODELS.register("dive")
class Dive(HeadModel):
    """Slot attention over an item's parts, added to its global vector; smooth Chamfer is the score (DivE).

    k: slots, and so vectors, per item; published: 2, 4, 5
    iterations: rounds of slot attention, with the same weights
    alpha: how near the smooth maximum of the score is to the maximum
    """

    def __init__(
        self, shape: InputShape, *, k: int = 4, iterations: int = 4, alpha: float = 16.0, **shared: Any
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
        count: int = 4 * images[0].shape[1] * captions[0].shape[1]
        return count


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
        """K vectors per item."""
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
        """B×K×d."""
        features = self.local(parts.local)
        keys, values = self.key(features), self.value(features)
        slots = self.initial.expand(len(features), -1, -1)
        for _ in range(self.iterations):
            weights = slot_weights(self.scale * self.query(self.before_attention(slots)), keys, parts.padding)
            slots = slots + self.out(weights @ values)
            slots = slots + self.network(self.before_network(slots))
        return torch.as_tensor(self.last(slots))


def slot_weights(queries: Tensor, keys: Tensor, padding: Tensor | None) -> Tensor:
    """B×K×T: a softmax over the slots for every feature, then divided by each slot's sum over features."""
    shares = (queries @ keys.transpose(1, 2)).softmax(dim=1)
    if padding is not None:
        shares = shares.masked_fill(padding[:, None, :], 0)
    return shares / (shares.sum(dim=2, keepdim=True) + 1e-7)  # a slot that no feature chose stays as it is
