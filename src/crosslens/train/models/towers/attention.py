"""Attention between the words of captions and the regions of images, and over the parts of one item."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import ImageBatch, InputShape, local_dimension
from crosslens.train.models.towers.layers import projection

_SLOPE = 0.1
"""Of the leaky ReLU in front of the softmax."""


class RegionStates(nn.Module):
    """Local features → B×R×d by one linear layer; a global feature, where the data have one, is one more region."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.local = projection(local_dimension(shape), dimension)
        self.whole = projection(shape.vector, dimension) if shape.vector else None

    def forward(self, images: ImageBatch) -> Tensor:
        """B×R×d; the global feature is the last region."""
        assert images.regions is not None
        states: Tensor = self.local(self.dropout(images.regions))
        if self.whole is None:
            return states
        assert images.vectors is not None
        return torch.cat([states, self.whole(self.dropout(images.vectors))[:, None]], dim=1)


class AttentionPool(nn.Module):
    """The parts of an item → one unit vector: a part's weight follows from the part and the mean of all."""

    def __init__(self, dimension: int, dropout: float) -> None:
        super().__init__()
        self.part = nn.Sequential(projection(dimension, dimension), nn.Tanh(), nn.Dropout(dropout))
        self.mean = nn.Sequential(projection(dimension, dimension), nn.Tanh(), nn.Dropout(dropout))
        self.weight = projection(dimension, 1, bias=False)  # the same for all parts: a bias changes no weight

    def forward(self, parts: Tensor, lengths: Tensor | None = None) -> Tensor:
        """B×T×d → B×d; parts from ``lengths`` on are padding, and 0."""
        count = torch.full_like(parts[:, 0, 0], parts.shape[1]) if lengths is None else lengths
        mean = parts.sum(dim=1) / count[:, None]
        logits = self.weight(self.part(parts) * self.mean(mean)[:, None])[..., 0]
        if lengths is not None:
            positions = torch.arange(parts.shape[1], device=parts.device)
            logits = logits.masked_fill(positions >= lengths[:, None], -torch.inf)
        return normalize((logits.softmax(dim=1)[..., None] * parts).sum(dim=1), dim=-1)


def cross_attention(queries: Tensor, contexts: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Cosines and attention of every part of every query item to the parts of every context item (SCAN).

    ``queries`` (q×L×d) and ``contexts`` (c×R×d) have unit parts; both results are c×q×L×R. Cosines below 0 are shrunk,
    and those with one part of the context are divided by their length over the query's parts; the softmax over the
    context's parts of ``scale`` times that is the attention.
    """
    cosines = torch.einsum("crd,qld->cqlr", contexts, queries)
    scaled = normalize(leaky_relu(cosines, _SLOPE), dim=2)
    return cosines, (scale * scaled).softmax(dim=3)


def attended_cosines(queries: Tensor, contexts: Tensor, scale: float) -> Tensor:
    """c×q×L: the cosine of every part of a query item and what it attends to in a context item.

    The attended vector Σ a_r v_r itself, of d numbers for every pair of parts, is not made: its inner product with the
    part is Σ a_r cos_r, and its squared length is aᵀ G a with G the inner products of the context's parts.
    """
    cosines, attention = cross_attention(queries, contexts, scale)
    gram = contexts @ contexts.transpose(1, 2)
    squared = ((attention.flatten(1, 2) @ gram).view_as(attention) * attention).sum(dim=3)
    return (attention * cosines).sum(dim=3) / squared.clamp(min=1e-12).sqrt()


def scores_by_length(lengths: Tensor, scores_of: Callable[[Tensor, int], Tensor]) -> Tensor:
    """m×n: ``scores_of(rows, length)`` of the captions of one length after the other, so padding takes no part."""
    counts = lengths.cpu()
    groups = [(length, (counts == length).nonzero()[:, 0]) for length in sorted(set(counts.tolist()))]
    parts = [scores_of(rows.to(lengths.device), length) for length, rows in groups]
    order = torch.cat([rows for _, rows in groups]).argsort().to(lengths.device)
    return torch.cat(parts, dim=1)[:, order]


def word_count(shape: InputShape) -> int:
    """Words in the vocabulary; raises where a sentence encoder reads the captions, which says nothing of words."""
    if shape.text:
        raise UsageError(
            "the recipe names a text_model, which gives vectors of whole captions; this model compares words",
            fix="remove text_model", option="text_model",
        )  # fmt: skip
    return shape.words
