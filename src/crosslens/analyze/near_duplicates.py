"""Near-duplicate images, exactly: neither tile size nor order changes a result.

Duplicates are found by vectors or by a perceptual hash: pictures that look the same differ in few of its bits, however
they were saved. Of each colour channel, scaled to 32×32, it takes the 8×8 lowest frequencies of the cosine transform; a
bit says whether one is above their median. Colours count: two drawings that differ in a colour alone are two pictures.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import dctn

from crosslens.core import (
    Array,
    Dataset,
    Embeddings,
    InputError,
    Progress,
    UsageError,
    positions,
    shown_progress,
    stage,
)
from crosslens.data import REPAIR_IMAGE, read_image_bytes
from crosslens.encode import as_picture, read_ahead

_TILE = 4_000_000  # numbers held at once
HASH_BITS = 192
_SIDE, _LOW = 32, 8


def unit_vectors(vectors: Embeddings | Array, what: str = "vectors") -> Array:
    """Vectors of length 1 in float64; vectors of zeros stay."""
    if isinstance(vectors, Embeddings):
        if vectors.variance is not None:
            raise UsageError(f"{what} are distributions", fix="pass their means as plain vectors")
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
        chosen = duplicates.keys() & (others if isinstance(others, (set, frozenset)) else set(others))
        return (min(chosen), duplicates[min(chosen)]) if chosen else None

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
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True)
class DuplicateImages:
    """Two images (rows) that are one picture, and how that is known.

    ``same_file`` their files are equal byte for byte; ``bits`` by which their perceptual hashes differ, of 192;
    ``cosine`` of their vectors; None where that was not compared or is not near.
    """

    first: int
    second: int
    same_file: bool = False
    bits: int | None = None
    cosine: float | None = None

    @property
    def severity(self) -> float:
        """1 for equal files and equal hashes, less for each bit or hundredth of the cosine."""
        by_bits = 0.0 if self.bits is None else 1 - self.bits / HASH_BITS
        return 1.0 if self.same_file else max(by_bits, self.cosine or 0.0)

    def __str__(self) -> str:
        by_bits = None if self.bits is None else f"hashes differ in {self.bits} of {HASH_BITS} bits"
        parts = ("equal files" if self.same_file else by_bits, self.cosine and f"cosine {self.cosine:.4f}")
        return ", ".join(part for part in parts if part)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, without punctuation."""
    return tuple(_WORD.findall(text.casefold()))


@dataclass(frozen=True)
class CaptionCopies:
    """Captions of other images in the same words, each as (row of its image, id); whether in the same order."""

    captions: tuple[tuple[int, str], ...] = ()
    in_order: bool = True


NO_COPIES = CaptionCopies()


def duplicate_captions(dataset: Dataset) -> dict[int, CaptionCopies]:
    """For each caption (row) whose words a caption or corpus text of another image has too: those.

    Case, punctuation and articles do not count. Captions with the same words in the same order are listed alone where
    there are any, otherwise those with the words in another order.
    """
    sources = (dataset, dataset.described)[: 1 if dataset.corpus is None else 2]
    texts = [
        tuple(word for word in words_of(text) if word not in _ARTICLES) for source in sources for text in source.texts
    ]
    owners = [
        entry for source in sources for entry in zip(source.caption_image.tolist(), source.caption_ids, strict=True)
    ]
    in_order = _elsewhere(texts, owners, len(dataset.texts))
    in_any = _elsewhere([tuple(sorted(words)) for words in texts], owners, len(dataset.texts))
    return {row: CaptionCopies(in_order.get(row, others), row in in_order) for row, others in in_any.items()}


def _elsewhere(
    keys: Sequence[tuple[str, ...]], owners: Sequence[tuple[int, str]], captions: int
) -> dict[int, tuple[tuple[int, str], ...]]:
    """Of each of the first ``captions`` texts, the (image, id) of those of other images with the same key."""
    same: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        if key:
            same.setdefault(key, []).append(row)
    duplicates = {}
    for rows in same.values():
        for row in rows if len(rows) > 1 else ():
            others = dict.fromkeys(owners[other] for other in rows if owners[other][0] != owners[row][0])
            if others and row < captions:
                duplicates[row] = tuple(others)
    return duplicates


def duplicate_images(
    dataset: Dataset,
    files: Mapping[str, str] | None = None,
    vectors: Embeddings | None = None,
    *,
    bits: int,
    cosine: float,
    progress: Progress | None = None,
) -> list[DuplicateImages]:
    """Pairs of images that are one picture: equal files, hashes within ``bits``, vectors of at least ``cosine``."""
    evidence: dict[tuple[int, int], dict[str, Any]] = {}
    if files:
        rows = [row for row, image in enumerate(dataset.image_ids) if image in files]
        paths = [files[dataset.image_ids[row]] for row in rows]
        same: dict[bytes, list[int]] = {}
        with stage(shown_progress(progress), "comparing files", len(paths)) as bar:
            for row, digest in zip(rows, read_ahead(_digest, paths), strict=True):
                same.setdefault(digest, []).append(row)
                bar.advance()
        for pair in (pair for copies in same.values() for pair in combinations(copies, 2)):
            evidence.setdefault(pair, {})["same_file"] = True
        if bits >= 0:
            hashes = NearDuplicates(np.empty((0, 0)), hash_files(paths, progress), 2.0, bits)
            for left, right, why in hashes.pairs():
                evidence.setdefault((rows[left], rows[right]), {})["bits"] = int(why.number)
    if vectors is not None and cosine <= 1:
        array = unit_vectors(vectors, "images")
        if array.ndim != 2:
            raise InputError("an image has several vectors", expected="one vector per image", fix="pass their mean")
        image_rows = positions(vectors.ids, dataset.image_ids, "image", any_ending=vectors.has_names).tolist()
        for left, right, near in NearDuplicates(array, None, cosine, -1).pairs():
            pair = min(image_rows[left], image_rows[right]), max(image_rows[left], image_rows[right])
            evidence.setdefault(pair, {})["cosine"] = min(near.number, 1.0)
    return [DuplicateImages(left, right, **how) for (left, right), how in sorted(evidence.items())]


def _digest(path: str) -> bytes:
    try:
        return hashlib.sha256(read_image_bytes(path)).digest()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=path, fix="check the path") from error
