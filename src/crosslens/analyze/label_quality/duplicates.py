"""Duplicates in a dataset: the same picture under two ids, the same caption on two images."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze.near_duplicates import HASH_BITS, DuplicateEvidence, NearDuplicates, hash_files, unit_vectors
from crosslens.core import Dataset, Embeddings, InputError, Progress, SilentProgress, positions, stage
from crosslens.data import read_image_bytes
from crosslens.encode import read_ahead

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
    texts = [tuple(word for word in words_of(text) if word not in _ARTICLES) for own in sources for text in own.texts]
    owners = [entry for own in sources for entry in zip(own.caption_image.tolist(), own.caption_ids, strict=True)]
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
        for left, right in _equal_files(paths, progress):
            evidence.setdefault((rows[left], rows[right]), {})["same_file"] = True
        if bits >= 0:
            hashes = NearDuplicates(np.empty((0, 0)), hash_files(paths, progress), 2.0, bits)
            for left, right, why in hashes.pairs():
                evidence.setdefault((rows[left], rows[right]), {})["bits"] = int(why.number)
    if vectors is not None and cosine <= 1:
        for left, right, near in _near(dataset, vectors, cosine):
            evidence.setdefault((left, right), {})["cosine"] = min(near.number, 1.0)
    return [DuplicateImages(left, right, **how) for (left, right), how in sorted(evidence.items())]


def _near(dataset: Dataset, vectors: Embeddings, cosine: float) -> list[tuple[int, int, DuplicateEvidence]]:
    array = unit_vectors(vectors, "images")
    if array.ndim != 2:
        raise InputError("an image has several vectors", expected="one vector per image", fix="pass their mean")
    rows = positions(vectors.ids, dataset.image_ids, "image", any_ending=vectors.has_names).tolist()
    pairs = NearDuplicates(array, None, cosine, -1).pairs()
    return [(min(rows[left], rows[right]), max(rows[left], rows[right]), why) for left, right, why in pairs]


def _equal_files(paths: Sequence[str], progress: Progress | None) -> list[tuple[int, int]]:
    same: dict[bytes, list[int]] = {}
    progress = progress or SilentProgress()
    with stage(progress, "comparing files", len(paths)):
        for row, digest in enumerate(read_ahead(_digest, paths)):
            same.setdefault(digest, []).append(row)
            progress.advance()
    return [(left, right) for rows in same.values() for n, left in enumerate(rows) for right in rows[n + 1 :]]


def _digest(path: str) -> bytes:
    try:
        return hashlib.sha256(read_image_bytes(path)).digest()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=path, fix="check the path") from error
