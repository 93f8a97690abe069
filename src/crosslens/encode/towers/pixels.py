"""Pictures as a model sees them, computed once and kept on disk: an array of pixels in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    InputError,
    Progress,
    SilentProgress,
    cache_folder,
    fingerprint,
    mapped_array,
    open_array,
    read_cached_array,
    stage,
    write_cached_array,
)
from crosslens.data import REPAIR_IMAGE, read_image_bytes
from crosslens.encode.cache import key_of
from crosslens.encode.encoder import Array
from crosslens.encode.images import as_picture, read_ahead
from crosslens.encode.towers.pretrained import Pretrained

_PICTURES = 32
"""How many are prepared at once."""


@dataclass(frozen=True)
class PixelRows:
    """Pixels of images, in an array that stays on disk; a selection of rows is read when it is asked for."""

    path: Path
    """An array of images × channels × height × width, as half-precision numbers."""
    rows: Array
    model: str
    """The model whose image processor made them."""
    key: str
    """A hash of pictures and processing: what stands for the array where results are compared."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Array | slice) -> PixelRows:
        return PixelRows(self.path, self.rows[rows], self.model, self.key)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array of these rows."""
        return (len(self.rows), *open_array(self.path).shape[1:])

    def read(self) -> Array:
        """The rows, as 32-bit numbers."""
        return np.asarray(open_array(self.path)[self.rows], np.float32)


def stored_pixels(
    pretrained: Pretrained,
    files: Sequence[str],
    *,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> PixelRows:
    """The pixels of image files by a model's own image processor, from the cache or computed and put there."""
    hashes = list(read_ahead(_content_hash, files))
    key = fingerprint("pixels", {"images": hashes, "preprocessing": pretrained.preprocessing})
    path = cache_folder(cache) / "pixels" / f"{key}.npy"
    if read_cached_array(path, (len(files), None, None, None), np.float16) is None:
        write_cached_array(path, lambda partial: _write(partial, pretrained, files, progress or SilentProgress()))
    return PixelRows(path, np.arange(len(files)), pretrained.model, key)


def _content_hash(file: str) -> str:
    try:
        return key_of(read_image_bytes(file)).hex()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=file, fix=REPAIR_IMAGE) from error


def _write(path: Path, pretrained: Pretrained, files: Sequence[str], progress: Progress) -> None:
    array: Any = None
    start = 0
    with stage(progress, "preparing pictures", len(files)):
        for pictures in _batches(read_ahead(as_picture, files)):
            pixels = pretrained.pixels(pictures)
            if array is None:
                shape = (len(files), *pixels.shape[1:])
                array = mapped_array(path, np.float16, shape)
            array[start : start + len(pixels)] = pixels
            start += len(pixels)
            progress.advance(len(pixels))
        array.flush()


def _batches(pictures: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(pictures, _PICTURES)):
        yield batch
