"""Types of arrays; and arrays in files, ``.npy`` and ``.npz``, whose headers are checked before anything is unpacked.

Whoever reads an array of the cache says what it must be like. A ``.json`` beside it says what it is and holds a hash of
the file: it is written last, and without it the array does not count. An entry of another shape or type than expected,
or of other content than was written, is removed with a note, and its reader computes it again.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from crosslens.core import InputError, printable_line
from crosslens.storage.hashing import file_fingerprint
from crosslens.storage.input_files import UNPACKED_BYTES, is_finite_number, read_json_file, require_regular
from crosslens.storage.output import atomic_file, write_text

Array = np.ndarray[Any, Any]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

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


def frozen(array: Array) -> Array:
    """A read-only view of ``array``: the values that flow through crosslens do not change."""
    view = array.view()
    view.flags.writeable = False
    return view


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
    kinds = {
        b"PK": "an .npz archive or a PyTorch file: end its name in .npz or .pt",
        b"\x80": "a pickle or PyTorch file",
        _MAGIC: "a .npy file",
        b"\x89HDF": "an HDF5 file",
        b"PAR1": "a Parquet file",
    }
    kind = next((what for magic, what in kinds.items() if start.startswith(magic)), "")
    is_text = start.isascii() and "".join(start.decode("ascii").split()).isprintable()
    return kind or ("text" if is_text else "")


_AGAIN = "write it again"
_NOUNS = {str: "a text", bool: "true or false", dict: "an object", list: "a list", float: "a finite number"}


def require_entries(content: Any, types: Mapping[str, type], file: str | Path, inside: str = "") -> None:
    """Raise unless ``content`` is a mapping whose entries, where it has them, are of these types."""
    if not isinstance(content, Mapping):
        problem = f"{inside or 'the content'} is {content!r:.60}"
        raise InputError(problem, file=file, expected="an object", fix=_AGAIN)
    for name, kind in types.items():
        value = content.get(name, kind())
        fits = is_finite_number(value) if kind is float else isinstance(value, kind)
        if not fits:
            where = f" of {inside}" if inside else ""
            problem = f"{name!r}{where} is {value!r:.60}"
            raise InputError(problem, file=file, expected=_NOUNS[kind], fix=_AGAIN)


def require_array(
    array: Array, shape: tuple[int, ...], file: str | Path, *, whole: bool = True, low: int | None = None,
    high: int | None = None,
) -> None:  # fmt: skip
    """Raise unless an array has this shape and, if ``whole``, whole numbers from ``low`` to ``high``."""
    if array.shape != shape or array.dtype.kind not in ("iu" if whole else "fiu"):
        numbers = "whole numbers" if whole else "numbers"
        problem = f"an array of shape {array.shape} and type {array.dtype}"
        raise InputError(problem, file=file, expected=f"{numbers} of shape {shape}", fix=_AGAIN)
    if low is None or not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < low or (high is not None and most > high):
        problem = f"numbers from {least} to {most}"
        limits = f"numbers from {low} to {high}" if high is not None else f"numbers of at least {low}"
        raise InputError(problem, file=file, expected=limits, fix=_AGAIN)


def require_offsets(offsets: Array, groups: int, entries: int, file: str | Path) -> None:
    """Raise unless offsets cut ``entries`` entries into ``groups`` groups."""
    require_array(offsets, (groups + 1,), file, low=0, high=entries)
    if offsets[0] != 0 or offsets[-1] != entries or (np.diff(offsets) < 0).any():
        raise InputError("the offsets do not ascend from 0", file=file, expected=f"up to {entries}", fix=_AGAIN)


_DAMAGED = (OSError, InputError, ValueError, KeyError, TypeError, EOFError)


def read_cached_array(file: Path, shape: tuple[int | None, ...], kind: Any) -> Array | None:
    """The array, left on disk; None where there is none. A side of the ``shape`` that is None may have any length."""
    description = file.with_suffix(".json")
    try:
        content = read_json_file(description)["content"]
        array = open_array(file)
        fits = array.ndim == len(shape) and all(
            side in (None, length) for side, length in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != kind:
            raise ValueError(f"an array of shape {array.shape} and type {array.dtype}")
        if file_fingerprint([file]) != content:
            raise ValueError("its content is not what was written")
        return array
    except FileNotFoundError:
        return None
    except _DAMAGED as error:
        reason = printable_line(f"{file} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")
        print(f"note: a damaged cache file was removed, its content is computed again: {reason}", file=sys.stderr)
    for damaged in (description, file):
        with suppress(OSError):
            damaged.unlink(missing_ok=True)
    return None


def write_cached_array(file: Path, write: Callable[[Path], None], facts_given: Mapping[str, Any] | None = None) -> None:
    """Keep the array that ``write`` puts into the file it is given."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file, wait=True) as partial:
        write(partial)
    facts = {**(facts_given or {}), "content": file_fingerprint([file])}
    write_text(file.with_suffix(".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n", wait=True)
