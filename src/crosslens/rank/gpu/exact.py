"""Exact scores on a device: inner products summed in float64, rounded once to float32."""

from __future__ import annotations

from functools import cache
from typing import Any

Tensor = Any

_AT_ONCE = 1 << 18
_PAIRS = 16
"""Pairs of a program."""


def exact_scores(left: Tensor, right: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """One score per (row, column) pair."""
    import torch

    out = torch.empty(len(rows), dtype=torch.float32, device=left.device)
    if len(rows) == 0:
        return out
    if fused(left.device.type):
        from crosslens.rank.gpu.fused.kernels import exact_products

        dimension = left.shape[1]
        grid = (-(-len(rows) // _PAIRS),)
        exact_products[grid](
            left, right, rows, columns, out, len(rows), dimension=dimension, padded=lanes(dimension), size=_PAIRS
        )
        return out
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        products = left[rows[part].long()].double().mul_(right[columns[part].long()])
        out[part] = products.sum(dim=1).float()
    return out


def lanes(dimension: int) -> int:
    """How many dimensions a program reads at a time: a power of two."""
    return min(256, 1 << (dimension - 1).bit_length())


@cache
def fused(device: str) -> bool:
    """Whether kernels can be compiled for the device."""
    import os

    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return False
    try:
        import triton.tools.tensor_descriptor  # noqa: F401 - older versions lack it
    except ImportError:
        return False
    return True


def orderable(scores: Tensor) -> Tensor:
    """Integers that sort as the float32 scores do."""
    import torch

    bits = scores.view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)
