"""Arrays in ``.npy`` files, whose headers are checked before anything is allocated or mapped."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from crosslens.core.input_files.regular import require_regular

_MAGIC = b"\x93NUMPY"


def open_array(path: str | Path, *, mmap: bool = True) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` file, left on disk until it is used; whatever is wrong with it raises ``ValueError``.

    A missing or unreadable file raises ``OSError``.
    """
    require_regular(path)
    with open(path, "rb") as file:
        start = file.read(8)
        if not start.startswith(_MAGIC):
            raise ValueError(f"this is {content_kind(start) or 'no .npy file'}" if start else "the file is empty")
        file.seek(0)
        shape, dtype = _header(file)
        stored, needed = os.fstat(file.fileno()).st_size - file.tell(), math.prod(shape) * dtype.itemsize
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"the array holds {'Python objects' if dtype.hasobject else 'nothing'}")
    if stored < needed:
        raise ValueError(
            f"cut off: {stored:,} bytes for an array of shape {shape} and type {dtype}, which is {needed:,}"
        )
    array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r" if mmap and needed else None, allow_pickle=False)
    return array


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type in the header of a ``.npy`` file."""
    try:
        is_first_version = np.lib.format.read_magic(file) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if is_first_version else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
    except OSError:
        raise
    except Exception as error:  # numpy evaluates the header as Python text, which fails in many ways
        first = (str(error).splitlines() or [""])[0]
        raise ValueError(f"damaged header: {first or type(error).__name__}") from error
    if any(type(side) is not int or not 0 <= side <= np.iinfo(np.int64).max for side in shape):
        raise ValueError(f"the header names the shape {shape!r:.80}")
    return shape, dtype


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
