"""Near-duplicate images, exactly: neither tile size nor order changes a result.

Duplicates are proposed by vectors or by a perceptual hash: pictures that look the same differ in few of its bits,
however they were saved. Of each colour channel, scaled to 32×32, it takes the 8×8 lowest frequencies of the cosine
transform; a bit says whether one is above their median. Colours count: two drawings that differ in a colour alone are
two pictures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import dctn

from crosslens.core import InputError, UsageError
from crosslens.data import REPAIR_IMAGE
from crosslens.encode import as_picture, read_ahead
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import Array
from crosslens.values import Embeddings

_TILE = 4_000_000  # numbers held at once
HASH_BITS = 192
_SIDE, _LOW = 32, 8


def unit_vectors(vectors: Embeddings | Array, name: str = "vectors") -> Array:
    """Vectors of length 1 in float64; vectors of zeros stay."""
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError(f"{name} are distributions", fix="pass their means as plain vectors")
        vectors = vectors.vectors
    array = np.asarray(vectors, np.float64)
    length = np.sqrt((array * array).sum(axis=-1, keepdims=True))
    return np.asarray(np.divide(array, length, out=np.zeros_like(array), where=length > 0))


def perceptual_hash(picture: Any) -> Array:
    """The 192 bits of a picture, 64 for each of red, green and blue."""
    from PIL import Image

    small = np.asarray(picture.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float64)
    waves = dctn(small, axes=(0, 1), norm="ortho")[:_LOW, :_LOW].reshape(_LOW * _LOW, 3)
    # The first is the mean brightness: it says nothing about what is where.
    return np.asarray((waves > np.median(waves[1:], axis=0) + 1e-6).T.reshape(-1))


def hash_files(files: Sequence[str], progress: Progress | None = None) -> Array:
    """n×192 bits; an unreadable file raises with its name."""
    progress = shown_progress(progress)
    rows = np.zeros((len(files), HASH_BITS), bool)

    def bits_of(file: str) -> Array:
        try:
            return perceptual_hash(as_picture(file))
        except InputError as error:
            error.fix = error.fix or REPAIR_IMAGE
            raise

    with stage(progress, "hashing pictures", len(files)):
        for row, bits in enumerate(read_ahead(bits_of, files)):
            rows[row] = bits
            progress.advance()
    return rows


class DuplicateEvidence(NamedTuple):
    """Why two images count as one: ``by`` vectors (the cosine) or hash (the number of different bits)."""

    by: str
    number: float


class NearDuplicates:
    """All pairs of near-duplicates, computed once."""

    def __init__(self, vectors: Array, hashes: Array | None, cosine: float, bits: int) -> None:
        """``vectors`` of length 1; ``hashes`` n×192 bits, or None where there are no pictures."""
        self._duplicates: dict[int, dict[int, DuplicateEvidence]] = {}
        for left, right, _ in _near_rows(vectors, lambda products: products >= cosine - 1e-9) if cosine <= 1 else ():
            exact = float((vectors[left] * vectors[right]).sum())
            # Rounding must not make an image differ from its very copy, whose cosine is 1 − 1e-16.
            if exact >= cosine - 1e-12:
                self._add(left, right, DuplicateEvidence("vectors", exact))
        if hashes is not None and bits >= 0:
            signs = np.where(hashes, np.float32(1), np.float32(-1))  # whole numbers up to 192: exact in float32
            for left, right, product in _near_rows(signs, lambda products: (HASH_BITS - products) / 2 <= bits):
                self._add(left, right, DuplicateEvidence("hash", (HASH_BITS - product) / 2))

    def among(self, image: int, others: Iterable[int]) -> tuple[int, DuplicateEvidence] | None:
        """The first of ``others`` that is the same picture as ``image``, in ascending order; None if there is none."""
        duplicates = self._duplicates.get(image, {})
        matches = duplicates.keys() & (others if isinstance(others, (set, frozenset)) else set(others))
        return (min(matches), duplicates[min(matches)]) if matches else None

    def pairs(self) -> Iterator[tuple[int, int, DuplicateEvidence]]:
        """Every pair once, the lower row first, in ascending order."""
        for left in sorted(self._duplicates):
            for right in sorted(self._duplicates[left]):
                if left < right:
                    yield left, right, self._duplicates[left][right]

    def _add(self, left: int, right: int, evidence: DuplicateEvidence) -> None:
        self._duplicates.setdefault(left, {}).setdefault(right, evidence)
        self._duplicates.setdefault(right, {}).setdefault(left, evidence)


def _near_rows(vectors: Array, near: Callable[[Array], Array]) -> Iterator[tuple[int, int, float]]:
    """Every two rows whose product is near, the lower first, and the product; a tile at a time."""
    step = max(1, _TILE // max(len(vectors), 1))
    for start in range(0, len(vectors), step):
        products = vectors[start : start + step] @ vectors.T
        for row, other in zip(*np.nonzero(near(products)), strict=True):
            if start + row < other:
                yield int(start + row), int(other), float(products[row, other])


_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, without punctuation."""
    return tuple(_WORD.findall(text.casefold()))
