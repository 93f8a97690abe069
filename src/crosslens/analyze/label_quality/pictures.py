"""Which files show the same picture: hashes, vectors and sizes propose pairs, and pixels decide.

Two files are one picture if their bytes are equal, or if no region differs by more than saving the picture again would
change it. What saving changes is measured on these very pixels: both pictures are compressed once more, strongly,
and the difference of the two must nowhere be larger than the differences that this makes nearby. So a flat sky hides
next to nothing, and a changed letter, a moved object, another colour or a second moment of a burst is another picture.
"""

from __future__ import annotations

import hashlib
import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from crosslens.analyze.near_duplicates import NearDuplicates, hash_files, unit_vectors
from crosslens.core import InputError
from crosslens.data import read_image_bytes
from crosslens.encode import as_picture, read_ahead
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import Array
from crosslens.values import Dataset, Embeddings, positions

_QUALITY = 50
"""JPEG quality down to which two files may differ by how they were saved."""
_SMALLEST = 32
"""Pixels of the shorter side below which only equal pixels are the same picture."""
_BLOCKS, _NEARBY = (4, 12), 17
"""Sides of the regions over which differences are averaged, and how far saving spreads what it changes."""
_FACTOR, _FLOOR, _MOST = 1.5, (2.5, 1.5), (24.0, 12.0)
"""A region differs if by more than _FACTOR times what saving changes nearby and _FLOOR, or by more than _MOST grey
levels; the last two for each of the blocks. Chroma is saved at half the size: twice as much for it."""
_CHROMA = np.array([1.0, 2.0, 2.0], np.float32)
_THUMBNAIL_NOISE = 12 * _CHROMA


@dataclass(frozen=True)
class SamePicture:
    """Two images (rows), and whether their files are equal byte for byte or their pixels up to saving."""

    first: int
    second: int
    same_file: bool

    def __str__(self) -> str:
        return "equal files" if self.same_file else "equal pixels, saved differently"


def same_pictures(
    dataset: Dataset,
    files: Mapping[str, str],
    vectors: Embeddings | None = None,
    *,
    bits: int,
    cosine: float,
    progress: Progress | None = None,
) -> list[SamePicture]:
    """The pairs of images that are one picture, in ascending order.

    Compared are those whose hashes differ in at most ``bits`` or whose vectors have at least this ``cosine``.
    """
    rows = [row for row, image in enumerate(dataset.image_ids) if image in files]
    paths = {row: files[dataset.image_ids[row]] for row in rows}
    by_content: dict[bytes, list[int]] = defaultdict(list)
    with stage(shown_progress(progress), "comparing files", len(rows)) as bar:
        for row, digest in zip(rows, read_ahead(_digest, paths.values()), strict=True):
            by_content[digest].append(row)
            bar.advance()
    same = {pair: True for copies in by_content.values() for pair in combinations(copies, 2)}
    original = {row: copies[0] for copies in by_content.values() for row in copies}
    candidates: set[tuple[int, int]] = set()
    if bits >= 0 and len(by_content) > 1:
        distinct = [copies[0] for copies in by_content.values()]
        near = NearDuplicates(np.empty((0, 0)), hash_files([paths[row] for row in distinct], progress), 2.0, bits)
        candidates |= {(distinct[left], distinct[right]) for left, right, _ in near.pairs()}
    if vectors is not None and cosine <= 1:
        array = unit_vectors(vectors, "images")
        if array.ndim != 2:
            raise InputError("an image has several vectors", expected="one vector per image", fix="pass their mean")
        places = positions(vectors.ids, dataset.image_ids, "image", any_ending=vectors.has_names).tolist()
        pairs = [(places[left], places[right]) for left, right, _ in NearDuplicates(array, None, cosine, -1).pairs()]
        candidates |= {(original[a], original[b]) for a, b in pairs if a in original and b in original}
    compared = sorted({(min(pair), max(pair)) for pair in candidates if pair[0] != pair[1]})
    thumbnails = {row: _thumbnail(paths[row]) for pair in compared for row in pair} if compared else {}
    copies_of = {copies[0]: copies for copies in by_content.values()}
    with stage(shown_progress(progress), "comparing pictures", len(compared)) as bar:
        for left, right in compared:
            alike = (np.abs(thumbnails[left] - thumbnails[right]) <= _THUMBNAIL_NOISE).all()
            if alike and is_same_picture(as_picture(paths[left]), as_picture(paths[right])):
                same |= {(min(a, b), max(a, b)): False for a in copies_of[left] for b in copies_of[right]}
            bar.advance()
    return [SamePicture(*pair, same[pair]) for pair in sorted(same)]


def is_same_picture(first: Any, second: Any) -> bool:
    """Whether two pictures are one, saved twice: in another format or quality, or at another size."""
    from scipy.ndimage import maximum_filter

    if first.size == second.size and np.array_equal(np.asarray(first), np.asarray(second)):
        return True
    width, height = size = min(first.size, second.size, key=lambda size: size[0] * size[1])
    larger = max(first.size, second.size, key=lambda size: size[0] * size[1])
    # A side is rounded to a pixel when a picture is scaled; what differs by more was cut or stretched.
    if min(size) < _SMALLEST or abs(larger[0] * height - larger[1] * width) > larger[0] + larger[1]:
        return False
    small = [_scaled(picture, size, sharp=True) for picture in (first, second)]
    difference = _planes(small[0]) - _planes(small[1])
    noise = [_planes(picture) - _planes(_saved(picture)) for picture in small]
    for picture, sharp in zip((first, second), small, strict=True):
        if picture.size != size:  # scaled by another filter
            noise.append(_planes(sharp) - _planes(_scaled(picture, size, sharp=False)))
    for block, floor, most in zip(_BLOCKS, _FLOOR, _MOST, strict=True):
        nearby = np.maximum.reduce([_means(change, block) for change in noise])
        nearby = maximum_filter(nearby, (_NEARBY, _NEARBY, 1), mode="nearest")
        limit = np.minimum(_FACTOR * nearby + floor * _CHROMA, most * _CHROMA)
        if (_means(difference, block) > limit).any():
            return False
    return True


def _planes(picture: Any) -> Array:
    """Brightness and two differences of colour."""
    return np.asarray(picture.convert("YCbCr"), np.float32)


def _means(difference: Array, block: int) -> Array:
    """How far two pictures are apart on average around each pixel."""
    from scipy.ndimage import uniform_filter

    return np.asarray(np.abs(uniform_filter(difference, (block, block, 0), mode="nearest")))


def _thumbnail(path: str) -> Array:
    from PIL import Image

    return _planes(as_picture(path).resize((_SMALLEST, _SMALLEST), Image.Resampling.BOX)).astype(np.int16)


def _scaled(picture: Any, size: tuple[int, int], *, sharp: bool) -> Any:
    from PIL import Image

    picture = picture.convert("RGB")
    if picture.size == size:
        return picture
    return picture.resize(size, Image.Resampling.LANCZOS if sharp else Image.Resampling.BILINEAR)


def _saved(picture: Any) -> Any:
    """The picture as it is after strong compression."""
    from PIL import Image

    file = io.BytesIO()
    picture.save(file, "JPEG", quality=_QUALITY)
    return Image.open(file).convert("RGB")


def _digest(path: str) -> bytes:
    try:
        return hashlib.sha256(read_image_bytes(path)).digest()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=path, fix="check the path") from error
