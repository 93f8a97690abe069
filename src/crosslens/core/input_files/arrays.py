"""Arrays in ``.npy`` and ``.npz`` files, whose headers are checked before anything is allocated, unpacked or mapped."""

from __future__ import annotations

import io
import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from crosslens.core.input_files.limits import UNPACKED_BYTES
from crosslens.core.input_files.regular import require_regular

Array = np.ndarray[Any, Any]

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 20
"""Bytes: numpy would read up to four gigabytes of it before it looks."""
_CHUNK = 1 << 24
_DEFLATED = 1032
"""Bytes that deflate can make of one, at most."""
NPZ_ERRORS = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error,
    lzma.LZMAError, struct.error,
)  # fmt: skip
"""What a damaged archive raises; RuntimeError, where a flipped bit says that it is encrypted."""


def open_array(path: str | Path, *, mmap: bool = True) -> Array:
    """The array in a ``.npy`` file, left on disk until it is used; whatever is wrong with it raises ``ValueError``.

    A missing or unreadable file raises ``OSError``.
    """
    require_regular(path)
    with open(path, "rb") as file:
        start = file.read(8)
        if not start.startswith(_MAGIC):
            raise ValueError(f"this is {content_kind(start) or 'no .npy file'}" if start else "the file is empty")
        file.seek(0)
        shape, *_ = _header(file, os.fstat(file.fileno()).st_size)
    array: Array = np.load(path, mmap_mode="r" if mmap and 0 not in shape else None, allow_pickle=False)
    return array


@dataclass(frozen=True)
class PackedArray:
    """An array of an ``.npz`` archive, of which only the header was read."""

    archive: Path | bytes
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    start: int

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """In the order of the file, which may be that of Fortran: columns first."""
        return self.shape[::-1] if self.by_columns else self.shape

    def unpack(self) -> Array:
        """The array in memory; one beyond the limit raises."""
        UNPACKED_BYTES.check(math.prod(self.shape) * self.dtype.itemsize, f"the array {self.member!r}, unpacked,")
        array = np.empty(self.stored_shape, self.dtype)
        self.unpack_into(array)
        return array.T if self.by_columns else array

    def unpack_into(self, array: Array) -> None:
        """Fill an array of the :attr:`stored_shape`, a part at a time; damaged content raises one of ``NPZ_ERRORS``."""
        with _opened(self.archive) as archive, archive.open(f"{self.member}.npy") as file:
            unpacking: Any = file
            unpacking.read(self.start)
            content, filled = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b""), 0
            while filled < len(content) and (part := unpacking.readinto(content[filled : filled + _CHUNK])):
                filled += part
            if filled < len(content) or file.read(1):  # reading on to the end compares the checksum
                raise ValueError("cut off" if filled < len(content) else "more content than its header says")


def open_npz(archive: Path | bytes, names: Iterable[str] | None = None) -> dict[str, PackedArray]:
    """The arrays of an ``.npz`` archive, or those of these names, with checked headers; not unpacked yet.

    What is wrong with it raises one of ``NPZ_ERRORS``; a missing name ``KeyError``.
    """
    with _opened(archive) as opened:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in opened.infolist():
            if info.filename.endswith(".npy") and members.setdefault(info.filename[:-4], info) is not info:
                raise ValueError(f"it has {info.filename!r:.80} twice")
        arrays: dict[str, PackedArray] = {}
        for name in members if names is None else names:
            unpacked_size([members[name]])
            with opened.open(members[name]) as file:
                arrays[name] = PackedArray(archive, name, *_header(file, members[name].file_size))
    return arrays


def unpacked_size(members: Iterable[zipfile.ZipInfo]) -> int:
    """How many bytes members of a zip archive unpack to; raises ``ValueError`` for one that claims the impossible."""
    total = 0
    for info in members:
        factor = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _DEFLATED}.get(info.compress_type)
        if factor is not None and info.file_size > factor * info.compress_size:
            packed = f"{info.compress_size:,} bytes of {info.filename!r:.80}"
            raise ValueError(f"cut off: {packed} cannot unpack to {info.file_size:,}")
        total += info.file_size
    return total


def _opened(archive: Path | bytes) -> zipfile.ZipFile:
    if not isinstance(archive, bytes):
        require_regular(archive)
    return zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)


def _header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Shape, type, order and length of the header of a ``.npy`` file of ``size`` bytes, which must suffice for them."""
    try:
        start = file.read(12)
        length = int.from_bytes(start[8:10] if start[6:7] == b"\x01" else start[8:12], "little")
        if length > _LONGEST_HEADER:
            raise ValueError(f"a header of {length:,} bytes")
        content = io.BytesIO(start + file.read(length))
        is_first_version = np.lib.format.read_magic(content) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if is_first_version else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read_header(content)
    except (OSError, zipfile.BadZipFile):
        raise
    except Exception as error:  # numpy evaluates the header as Python text, which fails in many ways
        first = (str(error).splitlines() or [""])[0]
        raise ValueError(f"damaged header: {first or type(error).__name__}") from error
    if any(type(side) is not int or not 0 <= side <= np.iinfo(np.int64).max for side in shape):
        raise ValueError(f"the header names the shape {shape!r:.80}")
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"the array holds {'Python objects' if dtype.hasobject else 'nothing'}")
    stored, needed = size - content.tell(), math.prod(shape) * dtype.itemsize
    if stored < needed:
        raise ValueError(
            f"cut off: {stored:,} bytes for an array of shape {shape} and type {dtype}, which is {needed:,}"
        )
    return shape, dtype, by_columns, content.tell()


def content_kind(start: bytes) -> str:
    """What a file seems to be, by its first bytes; empty where they say nothing."""
    known = {
        b"PK": "an .npz archive or a PyTorch file: end its name in .npz or .pt",
        b"\x80": "a pickle or PyTorch file",
        _MAGIC: "a .npy file",
        b"\x89HDF": "an HDF5 file",
        b"PAR1": "a Parquet file",
    }
    kind = next((what for magic, what in known.items() if start.startswith(magic)), "")
    is_text = start.isascii() and "".join(start.decode("ascii").split()).isprintable()
    return kind or ("text" if is_text else "")
