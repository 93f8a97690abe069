"""Vectors rounded for tensor cores, and a proven bound on the error of their products.

With δ = x − x̂ the rounding error of a vector, ⟨a, b⟩ − ⟨â, b̂⟩ = ⟨δa, b⟩ + ⟨â, δb⟩, which is at most
|δa| |b| + |â| |δb| (Cauchy–Schwarz). The lengths of the δ are measured, not estimated: they are about a third of what
the worst rounding of every number would give. The sum itself is rounded, too: tensor cores add 16 products and the
running sum at a time, each cut to 24 bits at worst, which is at most (d + 64) · 2⁻²³ |â| |b̂| in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosslens.rank.scorers import rounding_bound

Tensor = Any

_BLOCK = 1 << 16
_SUM = 2.0**-23
_COMPARE = 12 * 2.0**-24
"""Of the exact score, which is rounded to float32, and of the comparison itself."""
_SMALLEST = 2.0**-126
"""Numbers below it lose digits in float32, or become 0."""


@dataclass(frozen=True)
class Rounded:
    """Vectors times ``unit``, a power of two, rounded and padded with zeros; and the largest lengths, for bounds."""

    values: Tensor
    unit: float
    length: float
    error: float


def largest_length(vectors: Tensor) -> float:
    """The greatest Euclidean length, in float64, a block at a time."""
    lengths = (
        float(vectors[start : start + _BLOCK].double().norm(dim=1).max()) for start in range(0, len(vectors), _BLOCK)
    )
    return max(lengths, default=0.0)


def halves(vectors: Tensor, rows: int, columns: int) -> Rounded:
    """Vectors in float16, padded to a multiple of ``rows`` vectors and ``columns`` dimensions.

    The power of two puts the largest number just below 2¹⁰: nothing overflows, and what is 2²⁴ times smaller is still
    told from 0.
    """
    import torch

    count, dimension = vectors.shape
    shape = (-(-count // rows) * rows, -(-dimension // columns) * columns)
    values = torch.zeros(shape, dtype=torch.float16, device=vectors.device)
    lowest, highest = torch.aminmax(vectors)
    unit = 2.0 ** (10 - _exponent(float(torch.maximum(highest, -lowest))))
    lengths, errors = [], []
    for start in range(0, count, _BLOCK):
        scaled = vectors[start : start + _BLOCK] * unit  # whose squares neither vanish nor overflow
        part = values[start : start + len(scaled), :dimension]
        part.copy_(scaled)
        lengths.append(torch.linalg.vector_norm(scaled, dim=1).max())
        # The difference is exact, its length is not.
        errors.append(torch.linalg.vector_norm(scaled.sub_(part), dim=1).max())
    room = (1 + dimension * 2.0**-23) / unit
    length, error = (float(torch.stack(parts).max()) * room for parts in (lengths, errors))
    return Rounded(values, unit, length, error)


def _exponent(largest: float) -> int:
    from math import frexp

    return max(-100, frexp(largest)[1]) if largest > 0 else 0


def product_slack(left: Rounded, right: Rounded, dimension: int) -> float:
    """How far the product of two rounded vectors may be from the exact score."""
    a, b = left.length + left.error, right.length + right.error
    sums = (dimension + 64) * _SUM * a * b
    slack = left.error * right.length + a * right.error + sums + _COMPARE * a * b
    return slack * (1 + 1e-6) + (dimension + 4) * _SMALLEST


def float32_slack(left: Rounded, right: Rounded, dimension: int) -> float:
    """How far a float32 sum, in any order, may be from the exact score."""
    relative = (rounding_bound(dimension) + _COMPARE) * (1 + 1e-6)
    return relative * left.length * right.length + (dimension + 4) * _SMALLEST
