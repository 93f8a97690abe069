"""Room for vectors that somebody needs as one array: in memory, or in a file where they would fill it."""

from __future__ import annotations

import math
import tempfile
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.ids import frozen
from crosslens.core.input_files.limits import VECTOR_BYTES
from crosslens.core.storage import cache_folder, reserve
from crosslens.core.vectors.blocks import ArrayBlocks, VectorBlocks, each_block

Array = np.ndarray[Any, Any]


def zero_vectors(shape: tuple[int, ...], kind: Any = np.float32) -> Array:
    """Zeros. Those beyond the limit of vectors in memory lie in a file that goes with its last user."""
    size = np.dtype(kind).itemsize * math.prod(shape)
    if size <= VECTOR_BYTES.value:
        return np.zeros(shape, kind)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            reserve(file, size)
        except OSError as error:
            fix = f"free {size / 1e9:.1f} GB there, choose another folder with CROSSLENS_CACHE, or set "
            fix += f"{VECTOR_BYTES.variable} higher to hold them in memory"
            raise InputError(f"no room for {size / 1e9:.1f} GB of vectors", file=folder, fix=fix) from error
        return np.memmap(file, kind, "r+", shape=shape)


def joined_vectors(source: VectorBlocks, kind: Any = None) -> Array:
    """All vectors as one array of numbers of this kind: the stored array itself, where it is one, or a copy."""
    kind = source.dtype if kind is None else np.dtype(kind)
    if isinstance(source, ArrayBlocks) and source.dtype == kind:
        return source.array
    joined = zero_vectors(source.shape, kind)
    for start, block in each_block(source):
        joined[start : start + len(block)] = block
    return frozen(joined)
