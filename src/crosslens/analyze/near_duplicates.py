"""Which images are the same picture twice: by their vectors, by their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from crosslens.analyze.picture_hash import BITS

Array = np.ndarray[Any, Any]

_TILE = 4_000_000


class Likeness(NamedTuple):
    """Why two images count as one: ``by`` vectors (the cosine) or hash (the number of different bits)."""

    by: str
    number: float


class NearDuplicates:
    """All pairs of near-duplicates, found once; asking for one image is then quick."""

    def __init__(self, vectors: Array, hashes: Array | None, cosine: float, bits: int) -> None:
        """``vectors`` of length 1; ``hashes`` n×192 bits, or None where there are no pictures."""
        self._alike: dict[int, dict[int, Likeness]] = {}
        if cosine <= 1:
            self._by_vectors(vectors, cosine)
        if hashes is not None and bits >= 0:
            self._by_hashes(hashes, bits)

    def among(self, image: int, others: Iterable[int]) -> tuple[int, Likeness] | None:
        """The first of ``others`` that is the same picture as ``image``, in ascending order; None if there is none."""
        alike = self._alike.get(image)
        if not alike:
            return None
        chosen = alike.keys() & set(others) if not isinstance(others, (set, frozenset, dict)) else alike.keys() & others
        return (min(chosen), alike[min(chosen)]) if chosen else None

    def pairs(self) -> Iterator[tuple[int, int, Likeness]]:
        """Every pair once, the lower row first, in ascending order."""
        for one in sorted(self._alike):
            for other in sorted(self._alike[one]):
                if one < other:
                    yield one, other, self._alike[one][other]

    def _by_vectors(self, vectors: Array, cosine: float) -> None:
        rows = max(1, _TILE // len(vectors))
        for start in range(0, len(vectors), rows):
            near = vectors[start : start + rows] @ vectors.T >= cosine - 1e-9
            for one, other in zip(*np.nonzero(near), strict=True):
                exact = float((vectors[start + one] * vectors[other]).sum())
                # Rounding must not make an image differ from its very copy, whose cosine is 1 − 1e-16.
                if start + one < other and exact >= cosine - 1e-12:
                    self._enter(start + one, other, Likeness("vectors", exact))

    def _by_hashes(self, hashes: Array, bits: int) -> None:
        signs = np.where(hashes, np.float32(1), np.float32(-1))  # whole numbers up to 192: exact in float32
        rows = max(1, _TILE // len(signs))
        for start in range(0, len(signs), rows):
            different = (BITS - signs[start : start + rows] @ signs.T) / 2
            for one, other in zip(*np.nonzero(different <= bits), strict=True):
                if start + one < other:
                    self._enter(start + one, other, Likeness("hash", float(different[one, other])))

    def _enter(self, one: int, other: int, why: Likeness) -> None:
        self._alike.setdefault(int(one), {}).setdefault(int(other), why)
        self._alike.setdefault(int(other), {}).setdefault(int(one), why)
