"""Image towers: what turns global and local features into one vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from crosslens.core import UsageError
from crosslens.train.models.protocol import ImageBatch, InputShape, local_dimension
from crosslens.train.models.towers.layers import projection
from crosslens.train.models.towers.text import ResidualHead

LINEAR, RESIDUAL, GRID = "linear", "residual", "grid"


class Standardisation(nn.Module):
    """Features with mean 0 and deviation 1 in every dimension, as measured over the training images."""

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        for name, size in (("vectors", shape.vector), ("regions", shape.regions[-1] if shape.regions else 0)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_deviation", torch.ones(size))

    def fit(self, features: Mapping[str, Any]) -> None:
        """Measure mean and deviation over all images (and regions)."""
        for name in ("vectors", "regions"):
            if name in features:
                rows = np.asarray(features[name]).reshape(-1, features[name].shape[-1])
                for part in ("mean", "std"):
                    measured = torch.from_numpy(getattr(rows, part)(axis=0, dtype=np.float64))
                    getattr(self, f"{name}_{'mean' if part == 'mean' else 'deviation'}").copy_(measured)

    def forward(self, images: ImageBatch) -> ImageBatch:
        """The same features, standardised; a dimension that never varied becomes 0."""
        return ImageBatch(self._scaled("vectors", images.vectors), self._scaled("regions", images.regions))

    def _scaled(self, name: str, features: Tensor | None) -> Tensor | None:
        if features is None:
            return None
        mean, deviation = getattr(self, f"{name}_mean"), getattr(self, f"{name}_deviation")
        return torch.where(deviation > 0, (features - mean) / deviation.clamp(min=1e-12), 0.0)


def unit_length(images: ImageBatch) -> ImageBatch:
    """Every vector and every region at length 1."""
    vectors, regions = images.vectors, images.regions
    return ImageBatch(
        None if vectors is None else normalize(vectors, dim=-1), None if regions is None else normalize(regions, dim=-1)
    )


class GridImage(nn.Module):
    """Local features through one transformer layer, pooled by attention; beside them their mean and the global one."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, standardise: bool, width: int = 256) -> None:
        super().__init__()
        local = local_dimension(shape)
        self.scale = Standardisation(shape) if standardise else None
        self.dropout = nn.Dropout(dropout)
        self.cells = nn.Linear(local, width)
        self.position = nn.Parameter(torch.randn(shape.regions[0], width) * 0.02)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.attention = nn.Linear(width, 1)
        self.head = ResidualHead(shape.vector + local + width, dimension, dropout)

    def forward(self, images: ImageBatch) -> Tensor:
        """B×d."""
        images = self.scale(images) if self.scale else unit_length(images)
        assert images.regions is not None
        regions = self.dropout(images.regions)
        states = self.layer(self.cells(regions) + self.position)
        pooled = (self.attention(states).softmax(dim=1) * states).sum(dim=1)
        whole = [] if images.vectors is None else [self.dropout(images.vectors)]
        return torch.as_tensor(self.head(torch.cat([*whole, regions.mean(dim=1), pooled], dim=-1)))


class PooledImage(nn.Module):
    """One vector per image, projected; without a global feature the mean of the local ones."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, standardise: bool, residual: bool) -> None:
        super().__init__()
        inputs = shape.vector or local_dimension(shape)
        self.scale = Standardisation(shape) if standardise else None
        self.dropout = nn.Dropout(dropout)
        self.head = ResidualHead(inputs, dimension, dropout) if residual else projection(inputs, dimension)

    def forward(self, images: ImageBatch) -> Tensor:
        """B×d."""
        vectors = self.scale(images).pooled() if self.scale else normalize(images.pooled(), dim=-1)
        return torch.as_tensor(self.head(self.dropout(vectors)))


def image_tower(shape: InputShape, kind: str, dimension: int, dropout: float, standardise: bool = False) -> Any:
    """A tower that turns a batch of images into B×dimension."""
    if kind == GRID:
        return GridImage(shape, dimension, dropout, standardise)
    if kind not in (LINEAR, RESIDUAL):
        raise UsageError(f"image is {kind!r}", fix=f"choose {LINEAR}, {RESIDUAL} or {GRID}", option="image")
    return PooledImage(shape, dimension, dropout, standardise, kind == RESIDUAL)
