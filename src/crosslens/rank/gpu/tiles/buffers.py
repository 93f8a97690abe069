"""Memory for tiles and their comparisons, which the next tile takes over."""

from __future__ import annotations

from typing import Any

from crosslens.rank.gpu.tiles.entries import WORD

Tensor = Any

_ADDED = 128


class Buffer:
    """Memory for one tile of numbers."""

    def __init__(self, kind: Any, device: Any) -> None:
        import torch

        self.values = torch.empty(0, dtype=kind, device=device)

    def of(self, height: int, width: int) -> Tensor:
        """Memory for a tile of this size."""
        import torch

        if len(self.values) < height * width:
            self.values = torch.empty(height * width, dtype=self.values.dtype, device=self.values.device)
        return self.values[: height * width].view(height, width)


class FlagBuffers:
    """Memory for some comparisons of a tile: a byte per score, whole words per row."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._buffers: list[Buffer] = []

    def of(self, number: int, scores: Tensor) -> Tensor:
        """Memory for a comparison of a tile; what is past the end of a row is False."""
        import torch

        height, width = scores.shape
        padded = -(-width // WORD) * WORD
        while len(self._buffers) <= number:
            self._buffers.append(Buffer(torch.bool, self.device))
        flags = self._buffers[number].of(height, padded)
        if padded > width:
            flags[:, width:] = False
        return flags


def words_of(flags: Tensor) -> Tensor:
    """Eight flags at a time."""
    import torch

    return flags.view(-1).view(torch.int64)


def count(flags: Tensor, axis: int) -> Tensor:
    """How many flags are set in each row (axis 0) or column (1).

    Up to 255 words are added as they are, so that a flag is read once, as a byte; torch would make four of it first.
    """
    import torch

    words = words_of(flags).view(len(flags), -1)
    if axis == 0:
        whole = words.shape[1] // _ADDED * _ADDED
        sums = words[:, :whole].unflatten(1, (-1, _ADDED)).sum(dim=2).view(torch.uint8).sum(dim=1, dtype=torch.int32)
        rest = words[:, whole:].sum(dim=1, keepdim=True).view(torch.uint8).sum(dim=1, dtype=torch.int32)
    else:
        whole = len(words) // _ADDED * _ADDED
        sums = words[:whole].unflatten(0, (-1, _ADDED)).sum(dim=1).view(torch.uint8).sum(dim=0, dtype=torch.int32)
        rest = words[whole:].sum(dim=0, keepdim=True).view(torch.uint8).sum(dim=0, dtype=torch.int32)
    return sums + rest
