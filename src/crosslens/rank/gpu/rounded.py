"""Vectors rounded for tensor cores, and a proven bound on the error of their products.

With δ = x − x̂ the rounding error of a vector, ⟨a, b⟩ − ⟨â, b̂⟩ = ⟨δa, b⟩ + ⟨â, δb⟩, which is at most
|δa| |b| + |â| |δb| (Cauchy–Schwarz). The lengths of the δ are measured, not estimated: they are about a third of what
the worst rounding of every number would give. The sum itself is rounded, too: tensor cores add 16 products and the
running sum at a time, each cut to 24 bits at worst, which is at most (d + 64) · 2⁻²³ |â| |b̂| in all.

Queries have bounds of their own, with the longest vector of the gallery: a short query has small scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from crosslens.rank.scorers import rounding_bound

Tensor = Any

_BLOCK = 1 << 16
_SUM = 2.0**-23
_COMPARE = 12 * 2.0**-24
"""Of the exact score, which is rounded to float32, and of the comparison itself."""
_COMPARE_ROUNDED = 4 * _COMPARE
"""Lengths of rounded vectors may be twice as long as they are counted here, and thresholds are added to products."""
_SMALLEST = 2.0**-126
"""Numbers below it lose digits in float32, or become 0."""
_TINY, _HUGE = 1e-15, 1e15
_EXPONENT = 10
"""Vectors are scaled to about 2 to this power."""


@dataclass(frozen=True)
class Rounded:
    """Vectors times ``units``, powers of two, rounded to float16 and padded with zeros.

    ``lengths`` are those of the vectors, ``errors`` those of what rounding took or gave: upper bounds, in float64, of
    every vector as it was.
    """

    values: Tensor
    units: Tensor
    lengths: Tensor
    errors: Tensor

    @property
    def shared(self) -> bool:
        """Whether all vectors were multiplied by the same power of two."""
        return len(self.units) == 0 or bool((self.units == self.units[0]).all())


def lengths_of(vectors: Tensor) -> Tensor:
    """Euclidean lengths, in float64: upper bounds that are off by rounding errors at most."""
    import torch

    lengths = torch.linalg.vector_norm(vectors, dim=1).double()
    if len(lengths) and not bool(((lengths > _TINY) & (lengths < _HUGE)).all()):  # squares may vanish or overflow
        for start in range(0, len(vectors), _BLOCK):
            part = vectors[start : start + _BLOCK].double()
            torch.linalg.vector_norm(part, dim=1, out=lengths[start : start + len(part)])
    return lengths * (1 + vectors.shape[1] * _SUM)


def halves(vectors: Tensor, rows: int, columns: int, *, each: bool, spare: int = 0) -> Rounded:
    """Vectors in float16, padded to a multiple of ``rows`` vectors, and ``spare`` more, and ``columns`` dimensions.

    Powers of two bring the lengths near 2¹⁰, the longest one's or ``each`` vector's: nothing overflows, and what is
    2²⁴ times smaller is still told from 0. Vectors of length 1 all have the same.
    """
    import torch

    count, dimension = vectors.shape
    shape = (-(-count // rows) * rows + spare, -(-dimension // columns) * columns)
    values = torch.zeros(shape, dtype=torch.float16, device=vectors.device)
    lengths, errors = lengths_of(vectors), torch.zeros(count, dtype=torch.float64, device=vectors.device)
    # Lengths of 1, give or take a rounding error, lie in the middle between two powers.
    exponents = torch.frexp(lengths * sqrt(0.5))[1].long()
    longest = int(torch.frexp(torch.tensor(_largest(lengths), dtype=torch.float64) * sqrt(0.5))[1])
    exponents = torch.where(lengths > 0, exponents, longest) if each else torch.full_like(exponents, longest)
    exponents = _EXPONENT - torch.clamp(exponents, min=-100)
    units = ((exponents + 1023) << 52).view(torch.float64)
    for start in range(0, count, _BLOCK):
        part = slice(start, min(start + _BLOCK, count))
        scaled = vectors[part] * units[part, None].float()
        rounded = values[part, :dimension]
        rounded.copy_(scaled)
        errors[part] = torch.linalg.vector_norm(scaled.sub_(rounded), dim=1)  # the difference is exact
    return Rounded(values, units, lengths, errors / units * (1 + dimension * _SUM))


def product_slack(queries: Rounded, gallery: Rounded, dimension: int) -> Tensor:
    """How far products of each rounded query may be from the exact scores, and comparisons may be off."""
    length, error = (_largest(part) for part in (gallery.lengths, gallery.errors))
    a, b = queries.lengths + queries.errors, length + error
    sums = (dimension + 64) * _SUM + _COMPARE_ROUNDED
    return (queries.errors * length + a * error + sums * a * b) * (1 + 1e-6) + (dimension + 4) * _SMALLEST


def float32_slack(queries: Tensor, gallery: Tensor, dimension: int) -> Tensor:
    """How far float32 sums, in any order, may be from the exact scores, from the lengths of vectors."""
    relative = (rounding_bound(dimension) + _COMPARE) * (1 + 1e-6)
    return relative * queries * _largest(gallery) + (dimension + 4) * _SMALLEST


def _largest(values: Tensor) -> float:
    return float(values.max()) if len(values) else 0.0
