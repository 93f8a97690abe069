"""PCME: a normal distribution per item; how probably a pair of samples matches is the score."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from crosslens.train.models.protocol import MODELS, Gaussian, InputShape, Parts
from crosslens.train.models.towers.layers import check_scale, check_sizes, projection
from crosslens.train.models.towers.local_features import AttentionHead, HeadInputs, HeadModel, LocalAttention

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
        self, shape: InputShape, *, samples: int = 7, scale: float = 15.0, shift: float = 15.0, **shared: Any
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
        count: int = 6 * images[2].shape[1] * captions[2].shape[1]
        return count


def match_log_odds(images: Tensor, captions: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Samples m×J×d and n×L×d → log p ÷ (1 − p), where p is the mean of σ(shift − scale · distance) over J×L."""
    distances = torch.cdist(images.flatten(0, 1), captions.flatten(0, 1))
    logits = (shift - scale * distances).view(*images.shape[:2], *captions.shape[:2])
    matching = logsigmoid(logits)
    mismatching = matching - logits  # log σ(−x) = log σ(x) − x
    return matching.logsumexp(dim=(1, 3)) - mismatching.logsumexp(dim=(1, 3))


class GaussianHead(nn.Module):
    """The mean is PVSE's head with one vector; the log-variance is linear in the global vector and in attention."""

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
        mean = self.mean(parts).vectors[:, 0]
        log_variance = self.of_vector(parts.vector) + self.of_local(self.attention(parts))[:, 0]
        shape = (len(mean), *self.deviations.shape)
        deviations = torch.randn(shape, device=mean.device, dtype=mean.dtype) if self.training else self.deviations
        return Gaussian(mean, log_variance, mean[:, None] + (log_variance / 2).exp()[:, None] * deviations)
