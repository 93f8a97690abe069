"""Comparisons of whole tiles: a byte per score, in memory that the next tile takes over, read eight at a time."""

from __future__ import annotations

from typing import Any

Tensor = Any

WORD = 8
_ADDED = 128


class FlagBuffers:
    """Memory for some comparisons of a tile."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._buffers: list[Tensor] = []

    def of(self, number: int, scores: Tensor) -> Tensor:
        """Memory for a comparison of a tile, each row a whole number of words; what is past the end is False."""
        import torch

        height, width = scores.shape
        padded = -(-width // WORD) * WORD
        while len(self._buffers) <= number:
            self._buffers.append(torch.empty(0, dtype=torch.uint8, device=self.device))
        if len(self._buffers[number]) < height * padded:
            self._buffers[number] = torch.empty(height * padded, dtype=torch.uint8, device=self.device)
        flags = self._buffers[number][: height * padded].view(torch.bool).view(height, padded)
        if padded > width:
            flags[:, width:] = False
        return flags


def words_of(flags: Tensor) -> Tensor:
    """Eight flags at a time."""
    import torch

    return flags.view(-1).view(torch.uint8).view(torch.int64)


def join(flags: Tensor, others: Tensor) -> None:
    """Set what is set in either."""
    words_of(flags).bitwise_or_(words_of(others))


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
